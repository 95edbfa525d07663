"""Which cells of a log are worth keeping."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from advisor.logfiles.columns import Columns
from advisor.run.pilot_run import SERIES
from advisor.trainers import FRAMEWORKS, plain, spellings
from advisor.trainers.generic import keys as generic

ALWAYS = frozenset({*SERIES, *generic.KIND_KEYS, *generic.RUN_KEYS, *generic.UNSURE_STEPS})


def keep(columns: Columns) -> Callable[[str], bool]:
    """Predicate of the keys whose cells a reader keeps; of others only the name is kept.

    Parameters
    ----------
    columns : Columns
        Keys that the user mapped are kept besides those that a framework uses.

    Returns
    -------
    wanted : callable (key) -> bool
    """
    mapped = {*columns.keys.values(), *columns.filter, *columns.eval_filter}
    return lambda key: key in mapped or _is_used(key)


@lru_cache(maxsize=65536)
def _is_used(key: str) -> bool:
    return any(
        name in ALWAYS
        or generic.COMPONENT_STD.fullmatch(name) is not None
        or any(framework.reads(name) for framework in (*FRAMEWORKS, generic.FRAMEWORK))
        for name in spellings(plain(key))
    )
