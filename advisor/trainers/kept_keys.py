"""Which cells of a log are kept; of other keys only the name is."""

from __future__ import annotations

from collections.abc import Callable

from advisor.logfiles.columns import Columns
from advisor.run.pilot_run import SERIES
from advisor.trainers.common_keys import COMPONENT_STD, KIND_KEYS, RUN_KEYS, UNSURE_STEPS
from advisor.trainers.key_table import plain, spellings
from advisor.trainers.registry import all_key_tables, cached

ALWAYS = frozenset({*SERIES, *KIND_KEYS, *RUN_KEYS, *UNSURE_STEPS})


def kept_keys(columns: Columns) -> Callable[[str], bool]:
    """Whether a reader keeps the cells of a key: those that a trainer uses or the user mapped."""
    mapped = {*columns.keys.values(), *columns.filter, *columns.eval_filter}
    return lambda key: key in mapped or _is_used(key)


@cached
def _is_used(key: str) -> bool:
    return any(
        name in ALWAYS
        or COMPONENT_STD.fullmatch(name) is not None
        or any(table.reads(name) for table in all_key_tables())
        for name in spellings(plain(key))
    )
