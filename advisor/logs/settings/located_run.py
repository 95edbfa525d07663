"""A run on its way from file to `PilotRun`."""

from __future__ import annotations

from typing import NamedTuple

from advisor.logfiles.find import Found
from advisor.logfiles.logged import Reader
from advisor.logs.rows.raw_run import RawRun
from advisor.logs.settings.stated_settings import Beside


class Piece(NamedTuple):
    """What a file told of a run, what lay beside it, and who read it."""

    found: Found
    reader: Reader
    raw: RawRun
    beside: Beside
