"""Settings that stand beside the rewards, as a column with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.logfiles.table import Table
from advisor.logs.settings.stated_settings import check_settings, derive_settings
from advisor.trainers import Derived, KeyTable, plain, spellings
from advisor.trainers.keys import COLUMN_SETTINGS


def column_settings(table: Table, framework: KeyTable) -> Derived:
    """Settings from columns of one run that hold one value in all rows that have any.

    A column with several values is a series, or tells apart what is not known to be runs.
    """
    settings: dict[str, Any] = {}
    for key in table.keys:
        name = next((n for n in spellings(plain(key)) if n in COLUMN_SETTINGS), None)
        if name is None:
            continue
        numbers = table.column(key)
        values = {*numbers[np.isfinite(numbers)].tolist(), *table.text(key).values()}
        if len(values) == 1:
            settings.setdefault(COLUMN_SETTINGS[name], values.pop())
    if not settings:
        return Derived()
    derived = derive_settings(settings, framework)
    facts, arithmetic = {}, {}
    for key, value in derived.facts.items():
        try:
            check_settings({key: value})
        except InputError:
            continue
        facts[key] = value
        arithmetic[key] = derived.arithmetic.get(key, f"{key} {value}") + " [a column of the log]"
    return Derived(facts, arithmetic, derived.assumptions)
