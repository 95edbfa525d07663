"""The column map: which key of a log holds which series, said by the user or known by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.pilot_run import SERIES

REWARD_KEYS: tuple[tuple[str, ...], ...] = (
    ("reward",),
    ("mean_reward", "reward_mean", "rewards/mean", "reward/mean", "rollout/reward_mean"),
    ("reward_avg", "avg_reward"),
    ("critic/score/mean", "env/all/reward/total"),
)
"""Names of the train reward, best first; names within one pair of brackets are equally good.

None is a spread or a reward component, and none contains a KL penalty (verl's
``critic/rewards/mean`` and OpenRLHF's ``return`` do).
"""

STEP_KEYS = ("step", "global_step", "optimizer_step", "training/global_step")
"""Names of the counter of optimizer steps, best first."""

UNSURE_STEP_KEYS = (
    "grpo_step", "rollout_step", "iteration", "iter", "progress/step", "progress/batch",
)  # fmt: skip
"""Counters that are batches of rollouts in some trainers and optimizer steps in others."""

EVAL_KEYS = ("eval_reward", "eval/reward", "eval/mean_reward")
"""Names of the held-out reward."""

SERIES_KEYS: dict[str, tuple[str, ...]] = {
    "reward_std_within_group": ("reward_std", "group_reward_std"),
    "silent_group_share": ("frac_reward_zero_std",),
    "entropy": ("entropy", "actor/entropy", "policy/entropy", "optim/entropy", "token_entropy"),
    "gradient_norm": ("grad_norm", "actor/grad_norm"),
    "clip_share": ("clip_ratio/region_mean", "clip_ratio", "clip_fraction", "actor/pg_clipfrac"),
    "learning_rate": ("learning_rate", "lr", "actor/lr", "optim/lr"),
    "kl": ("kl", "actor/kl_loss", "reference_kl"),
    "completion_length": (
        "completions/mean_length", "response_length/mean", "avg_response_token_length",
    ),
    "truncated_share": ("completions/clipped_ratio", "response_length/clip_ratio"),
    "step_time_seconds": ("step_time",),
}  # fmt: skip
"""Names of the other series, best first; a series' own name always counts."""

STEP_UNITS = ("optimizer", "refresh")
OPTIONS = ("step", "step_unit", "filter", "eval_reward", "eval_filter")


@dataclass(frozen=True)
class Columns:
    """A column map.

    Attributes
    ----------
    keys : dict of str to str
        Series name (or ``step``, ``eval_reward``) -> key of the log.
    filter, eval_filter : dict of str to str
        What a row's cells must equal to count as a train row, or as an evaluation.
    step_unit : {"optimizer", "refresh"} or None
        What the step counts: optimizer steps or batches of rollouts.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, str] = field(default_factory=dict)
    eval_filter: Mapping[str, str] = field(default_factory=dict)
    step_unit: str | None = None

    def __bool__(self) -> bool:
        return bool(self.keys or self.filter or self.eval_filter or self.step_unit)


def parse_columns(
    columns: Mapping[str, Any] | None, *, path: Path | None = None, row: int | None = None
) -> Columns:
    """Check a column map.

    Parameters
    ----------
    columns : mapping or None
        ``{"reward": "train/acc", "step": "grpo_step", "filter": "type=rollout", ...}``.
    path, row : Path, int, optional
        Where it stands, for messages.

    Returns
    -------
    columns : Columns

    Raises
    ------
    InputError
        A name is not known, a value is no text, or a filter is not ``key=value``.
    """
    allowed = (*SERIES, *OPTIONS)
    given: dict[str, str] = {}
    for name, value in (columns or {}).items():
        if name not in allowed:
            raise InputError(
                "this column is not one that the package reads",
                path=path,
                row=row,
                key=f"columns.{name}",
                advice=nearest(name, allowed),
            )
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"the column map needs the name of a key of the log, not {value!r}",
                path=path,
                row=row,
                key=f"columns.{name}",
                advice=f"For example {name} = \"train/{name}\"",
            )
        given[name] = value.strip()
    unit = given.pop("step_unit", None)
    if unit is not None and unit not in STEP_UNITS:
        raise InputError(
            f"'{unit}' is no unit of steps",
            path=path,
            row=row,
            key="columns.step_unit",
            advice="Use 'optimizer' (optimizer steps) or 'refresh' (batches of rollouts)",
        )
    filters = [
        _parse_filter(name, given.pop(name, ""), path, row) for name in ("filter", "eval_filter")
    ]
    return Columns(given, filters[0], filters[1], unit)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Advice that names the closest allowed name, or all of them where none is close."""
    names = sorted(allowed)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else f"Use one of {', '.join(names)}"


def _parse_filter(name: str, text: str, path: Path | None, row: int | None) -> dict[str, str]:
    conditions: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(
                f"'{part}' is not of the form key=value",
                path=path,
                row=row,
                key=f"columns.{name}",
                advice=f"Write for example {name} = \"type=rollout\"",
            )
        conditions[key.strip()] = value.strip()
    return conditions


def find_keys(seen: Iterable[str], columns: Columns, path: Path) -> dict[str, str]:
    """Which key of a log holds what.

    Parameters
    ----------
    seen : iterable of str
        Keys of the log.
    columns : Columns
        What the user said; it comes first.
    path : Path
        For messages.

    Returns
    -------
    keys : dict of str to str
        Series name (or ``step``, ``eval_reward``) -> key; ``reward`` is always there.

    Raises
    ------
    InputError
        No reward key, several equally good ones, or a mapped key that the log lacks.
    """
    listed = list(seen)
    by_name: dict[str, str] = {}
    for key in listed:
        by_name.setdefault(_plain(key), key)
    found: dict[str, str] = {}
    for name, key in columns.keys.items():
        if key not in listed:
            raise InputError(
                f"the column map reads '{name}' from a key that the log lacks",
                path=path,
                key=key,
                advice=f"Keys seen: {show_keys(listed, key)}",
            )
        found[name] = key
    if "reward" not in found:
        found["reward"] = _find_reward(by_name, listed, path)
    tables = {"step": STEP_KEYS, "eval_reward": EVAL_KEYS, **SERIES_KEYS}
    for name, names in tables.items():
        if name in found:
            continue
        match = next((by_name[n] for n in _spellings((name, *names)) if n in by_name), None)
        if match is not None and match not in found.values():
            found[name] = match
    return found


def has_reward_key(seen: Iterable[str]) -> bool:
    """Whether one of the known names of the train reward is among the keys."""
    names = {_plain(key) for key in seen}
    return any(name in names for level in REWARD_KEYS for name in _spellings(level))


def show_keys(keys: Iterable[str], wanted: str = "reward") -> str:
    """At most eight keys for a message, the likeliest first."""
    listed = list(dict.fromkeys(keys))
    close = difflib.get_close_matches(wanted, listed, n=8, cutoff=0.4)
    ordered = list(dict.fromkeys([*close, *listed]))
    more = f" and {len(ordered) - 8} more" if len(ordered) > 8 else ""
    return (", ".join(ordered[:8]) or "none") + more


def _find_reward(by_name: Mapping[str, str], listed: list[str], path: Path) -> str:
    for level in REWARD_KEYS:
        matches = [by_name[name] for name in _spellings(level) if name in by_name]
        if len(matches) > 1:
            raise InputError(
                f"{' and '.join(matches)} could each be the train reward",
                path=path,
                key="reward",
                advice=f"Say which in a column map: [columns] reward = \"{matches[0]}\"",
            )
        if matches:
            return matches[0]
    raise InputError(
        f"no key holds the train reward (keys seen: {show_keys(listed)})",
        path=path,
        key="reward",
        advice="Name it in pilots.toml: [columns] reward = \"...\"",
    )


def _spellings(names: Iterable[str]) -> list[str]:
    """Names, each also with the prefix under which W&B and TensorBoard file them."""
    return [spelled for name in names for spelled in (name, f"train/{name}")]


def _plain(key: str) -> str:
    """Lower case and without the blanks that notebook tables put round slashes."""
    return key.strip().lower().replace(" / ", "/")
