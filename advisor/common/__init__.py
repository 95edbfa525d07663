"""What every room needs: saving, progress, seeds, safe text, extras that may be missing."""

from advisor.common.engine import (
    Engine,
    EngineSettings,
    Item,
    Mapped,
    Outcome,
    digest_of,
    engine_of,
    mapped,
)
from advisor.common.html import bullets, heading, paragraph, table, whole
from advisor.common.progress import (
    SAMPLING,
    SAMPLING_AGAIN,
    Progress,
    ProgressLines,
    progress_of,
    silent,
)
from advisor.common.saving import (
    DRAFT,
    check_output,
    owned,
    replacing,
    second_places,
    standing,
    write_new,
    write_or_keep,
    write_whole,
)
from advisor.common.seed import DEFAULT_SEED
from advisor.common.shown import counted, harmless, without_password
from advisor.common.version import VERSION

__all__ = [
    "DEFAULT_SEED",
    "DRAFT",
    "SAMPLING",
    "SAMPLING_AGAIN",
    "VERSION",
    "Engine",
    "EngineSettings",
    "Item",
    "Mapped",
    "Outcome",
    "Progress",
    "ProgressLines",
    "bullets",
    "check_output",
    "counted",
    "digest_of",
    "engine_of",
    "harmless",
    "heading",
    "mapped",
    "owned",
    "paragraph",
    "progress_of",
    "replacing",
    "second_places",
    "silent",
    "standing",
    "table",
    "whole",
    "without_password",
    "write_new",
    "write_or_keep",
    "write_whole",
]
