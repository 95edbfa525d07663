"""Kinds of rows in one log: which train, which evaluate, which the user asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.logfiles.columns import Columns
from advisor.logfiles.table import Table
from advisor.theory.arrays import BoolArray
from advisor.trainers import KeyTable
from advisor.trainers.common_keys import KIND_KEYS

TRAIN_KINDS = ("rollout", "train", "training")
EVAL_KINDS = ("eval", "evaluation", "val", "validation", "test")


OF_EPISODES = frozenset(
    {
        *("action", "actions", "chosen_action", "action_type", "observation", "obs"),
        *("next_state", "next_observation", "next_obs", "done", "terminated"),
    }
)
"""Keys of what an agent does and sees at one step of an episode."""


class Chosen(NamedTuple):
    """Rows that may hold the train reward, rows that evaluate, and what was assumed."""

    train: BoolArray
    evaluate: BoolArray
    assumptions: tuple[str, ...]


def passes(table: Table, conditions: Mapping[str, str]) -> BoolArray:
    """Rows whose cells equal what the conditions ask, as text or as numbers."""
    mask = np.ones(len(table), dtype=bool)
    for key, wanted in conditions.items():
        hits = np.zeros(len(table), dtype=bool)
        for row, text in table.text(key).items():
            hits[row] = text == wanted or text == wanted.lower()
        with contextlib.suppress(ValueError):
            hits |= table.column(key) == float(wanted)
        mask &= hits
    return mask


def choose_kinds(table: Table, framework: KeyTable, columns: Columns, path: Path) -> Chosen:
    """Tell rows with the train reward from others.

    Parameters
    ----------
    table : Table
    framework : KeyTable
        Its own kinds come before the common ones.
    columns : Columns
        A filter of the user comes first.
    path : Path
        For messages.

    Raises
    ------
    InputError
        No row passes the user's filter.
    """
    everything = np.ones(len(table), dtype=bool)
    if columns.filter:
        train = passes(table, columns.filter)
        if not train.any():
            raise _nothing_passes(table, columns.filter, path)
        evaluate = passes(table, columns.eval_filter) if columns.eval_filter else everything
        return Chosen(train, evaluate, ())
    declared = (framework.kind_key,) if framework.kind_key else ()
    for key in (*declared, *KIND_KEYS):
        texts = table.text(key)
        values = list(dict.fromkeys(texts.values()))
        # As many kinds as rows is a text per row, not a kind.
        if not values or (len(values) > 1 and len(values) == len(texts)):
            continue
        trains = [v for v in (*framework.train_kinds, *TRAIN_KINDS) if v in values]
        tests = {v for v in (*framework.eval_kinds, *EVAL_KINDS) if v in values}
        if len(values) < 2 or not (trains or tests):
            continue
        kind = np.array([texts.get(row, "") for row in range(len(table))])
        train = kind == trains[0] if trains else ~np.isin(kind, list(tests))
        said = f"rows with {key}={trains[0]} read as train rows" if trains else ""
        others = [v for v in values if v not in tests and v not in trains[:1]]
        if said and others:
            said += f" (of {', '.join(values[:6])})"
        evaluate = np.isin(kind, list(tests)) if tests else ~train
        if columns.eval_filter:
            evaluate = passes(table, columns.eval_filter)
        return Chosen(train, evaluate, (said,) if said and others else ())
    evaluate = passes(table, columns.eval_filter) if columns.eval_filter else everything
    return Chosen(everything, evaluate, ())


def refuse_kinds(table: Table, chosen: Chosen, columns: Columns, path: Path) -> None:
    """Raise where rows of several kinds hold a reward and nothing tells which to read."""
    if not chosen.train.all():
        return
    for key in KIND_KEYS:
        texts = table.text(key)
        kinds = list(dict.fromkeys(texts.values()))
        if 1 < len(kinds) < len(texts):
            raise InputError(
                f"rows of {len(kinds)} kinds hold a reward ({', '.join(kinds[:8])})",
                path=path,
                key=key,
                advice=f'Choose one in a column map: filter = "{key}=..."',
            )


def refuse_episodes(table: Table, columns: Columns, path: Path) -> None:
    """Raise where rows are the actions of an agent, whose rewards are of no training."""
    if "reward" in columns.keys:
        return
    found = [key for key in table.keys if key.lower().partition("/")[0] in OF_EPISODES]
    if found:
        raise InputError(
            "the rows are steps of an agent in its environment, not of its training",
            path=path,
            key=found[0],
            advice="Give the log of the training, or name its reward in a column map",
        )


def _nothing_passes(table: Table, conditions: Mapping[str, str], path: Path) -> InputError:
    key = next(iter(conditions))
    seen = [str(v) for v in dict.fromkeys(table.text(key).values())]
    seen += [f"{v:g}" for v in dict.fromkeys(table.column(key)[table.has(key)][:8].tolist())]
    shown = ", ".join(f"{key}={value}" for value in seen[:8])
    return InputError(
        f"no row passes the filter {', '.join(f'{k}={v}' for k, v in conditions.items())}",
        path=path,
        key="columns.filter",
        advice=f"Values seen: {shown or f'none, no row has the key {key}'}",
    )
