"""Whether ``reward_std`` is the spread within groups, or over the whole batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.logfiles.table import Table
from advisor.trainers import plain, spellings
from advisor.trainers.common_keys import COMPONENT_STD


def is_batch_spread(table: Table, keys: Mapping[str, str], known: Mapping[str, Any]) -> bool:
    """Tell TRL's newer ``reward_std`` (over the batch) from the older (mean within groups).

    Parameters
    ----------
    table : Table
        Rows with reward.
    keys : mapping of str to str
        Series name -> key.
    known : mapping
        Settings; with one prompt per step both spreads agree.

    Returns
    -------
    is_batch : bool
        True where a row proves it. TRL 0.27 changed the meaning and kept the key, and no log
        states its version: either every group is silent and the spread is not zero, or the
        spread equals that of the only reward function, which TRL takes over the batch.
    """
    spread = table.column(keys["reward_std_within_group"])
    if "silent_group_share" in keys:
        silent = table.column(keys["silent_group_share"])
        if np.any((silent >= 1) & (spread > 1e-6)):
            return True
    if known.get("prompts_per_step") == 1:
        return False
    components = [
        key
        for key in table.keys
        if any(COMPONENT_STD.fullmatch(name) for name in spellings(plain(key)))
    ]
    if len(components) != 1:
        return False
    component = table.column(components[0])
    both = np.isfinite(spread) & np.isfinite(component)
    # One row, or rows without any spread, may agree by chance.
    if both.sum() < 2 or not np.any(spread[both] > 0):
        return False
    return bool(np.allclose(spread[both], component[both], rtol=1e-3, atol=1e-6))
