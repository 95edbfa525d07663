"""Which key of a log holds what: as mapped by the user, else by its common names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.columns import Columns

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
    "grpo_step",
    "rollout_step",
    "iteration",
    "iter",
    "progress/step",
    "progress/batch",
)
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
        "completions/mean_length",
        "response_length/mean",
        "avg_response_token_length",
    ),
    "truncated_share": ("completions/clipped_ratio", "response_length/clip_ratio"),
    "step_time_seconds": ("step_time",),
}
"""Names of the other series, best first; a series' own name always counts."""


def find_reward_key(seen: Iterable[str], columns: Columns, path: Path) -> str:
    """Key of the train reward.

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
    key : str

    Raises
    ------
    InputError
        None is known, several are equally good, or the log lacks the mapped one.
    """
    listed = list(seen)
    if "reward" in columns.keys:
        return _mapped("reward", listed, columns, path)
    by_name = _by_name(listed)
    for level in REWARD_KEYS:
        matches = [by_name[name] for name in _spellings(level) if name in by_name]
        if len(matches) > 1:
            raise InputError(
                f"{' and '.join(matches)} could each be the train reward",
                path=path,
                key="reward",
                advice=f'Say which in a column map: [columns] reward = "{matches[0]}"',
            )
        if matches:
            return matches[0]
    raise InputError(
        f"no key holds the train reward (keys seen: {show_keys(listed)})",
        path=path,
        key="reward",
        advice='Name it in pilots.toml: [columns] reward = "..."',
    )


def find_keys(
    seen: Iterable[str], reward: str, columns: Columns, path: Path, elsewhere: Iterable[str] = ()
) -> dict[str, str]:
    """Keys of everything that is read.

    Parameters
    ----------
    seen : iterable of str
        Keys of the rows that hold a train reward.
    reward : str
        Key of the train reward.
    columns, path : Columns, Path
        As in `find_reward_key`.
    elsewhere : iterable of str
        Keys of other rows, among which evaluations may stand.

    Returns
    -------
    keys : dict of str to str
        Series name (or ``step``, ``eval_reward``) -> key.

    Raises
    ------
    InputError
        The log lacks a mapped key.
    """
    listed, everywhere = list(seen), [*seen, *elsewhere]
    found = {"reward": reward}
    for name in columns.keys:
        found[name] = _mapped(name, everywhere, columns, path)
    by_name = _by_name(listed)
    tables = {"step": (*STEP_KEYS, *UNSURE_STEP_KEYS), **SERIES_KEYS}
    for name, names in tables.items():
        match = next((by_name[n] for n in _spellings((name, *names)) if n in by_name), None)
        if name not in found and match is not None and match not in found.values():
            found[name] = match
    if "eval_reward" not in found:
        by_name = _by_name(everywhere)
        match = next((by_name[name] for name in EVAL_KEYS if name in by_name), None)
        if match is not None:
            found["eval_reward"] = match
    return found


def has_reward_key(seen: Iterable[str]) -> bool:
    """Whether one of the known names of the train reward is among the keys."""
    names = {plain(key) for key in seen}
    return any(name in names for level in REWARD_KEYS for name in _spellings(level))


def show_keys(keys: Iterable[str], wanted: str = "reward") -> str:
    """At most eight keys for a message, the likeliest first."""
    listed = list(dict.fromkeys(keys))
    close = difflib.get_close_matches(wanted, listed, n=8, cutoff=0.4)
    ordered = list(dict.fromkeys([*close, *listed]))
    shown = [key if len(key) <= 40 else f"{key[:37]}..." for key in ordered[:8]]
    more = f" and {len(ordered) - 8} more" if len(ordered) > 8 else ""
    return (", ".join(shown) or "none") + more


def plain(key: str) -> str:
    """Lower case and without the blanks that notebook tables put round slashes."""
    return key.strip().lower().replace(" / ", "/")


def _mapped(name: str, listed: list[str], columns: Columns, path: Path) -> str:
    key = columns.keys[name]
    if key not in listed:
        raise InputError(
            f"the column map reads '{name}' from a key that the log lacks",
            path=path,
            key=key,
            advice=f"Keys seen: {show_keys(listed, key)}",
        )
    return key


def _by_name(listed: Iterable[str]) -> Mapping[str, str]:
    by_name: dict[str, str] = {}
    for key in listed:
        by_name.setdefault(plain(key), key)
    return by_name


def _spellings(names: Iterable[str]) -> list[str]:
    """Names, each also with the prefix under which W&B and TensorBoard file them."""
    return [spelled for name in names for spelled in (name, f"train/{name}")]
