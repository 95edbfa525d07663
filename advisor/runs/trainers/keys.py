"""Which key of a log holds what: as mapped, as declared, or likely by its words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from advisor.errors import InputError, NoRewardError
from advisor.runs.logfiles.logged import Column, Columns, Table
from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.key_table import (
    COMMON_KEYS,
    DATA,
    UNSURE_STEPS,
    KeyTable,
    plain,
    spellings,
)
from advisor.runs.trainers.registry import all_key_tables, cached, key_tables, settings_in_name

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|%")
WORDS = {name: frozenset(listed) for name, listed in read_data("common")["words"].items()}
SUCCESS, EVALUATION = WORDS["success"], WORDS["evaluation"]
PLAIN = WORDS["mean"] | WORDS["train"] | WORDS["plain"]
"""Words that leave the meaning of a reward as it is."""
LIKE_A_SCORE = WORDS["score"] | WORDS["gap"] | EVALUATION | WORDS["named_like_a_score"]


@lru_cache(maxsize=65536)
def words(key: str) -> tuple[str, ...]:
    """Words of a key in lower case: ``RL/Mean_Reward`` and ``meanReward`` have two or three."""
    return tuple(word.lower() for word in WORD.findall(key))


def likely_reward(keys: Sequence[str]) -> str | None:
    """Key that by its words is the mean reward of a step, else the share of right completions."""
    rewards = [key for key in keys if is_like_a_reward(key)]
    if rewards:
        return min(rewards, key=_rank)
    shares = [key for key in keys if is_success(key)]
    if shares and any(WORDS["reinforcement"].intersection(words(key)) for key in keys):
        return min(shares, key=_rank)
    return None


@lru_cache(maxsize=65536)
def is_like_a_reward(key: str) -> bool:
    """Whether a key has the word reward, and no word that would make it something else."""
    found = words(key)
    rewards = WORDS["reward"].intersection(found)
    return len(rewards) == 1 and all(word in PLAIN or word in WORDS["reward"] for word in found)


@lru_cache(maxsize=65536)
def is_success(key: str) -> bool:
    """Whether a key is the share of completions of a training batch that are right."""
    found = words(key)
    known = SUCCESS | WORDS["share"] | PLAIN
    return (
        bool(SUCCESS.intersection(found))
        and bool(WORDS["train"].intersection(found))
        and all(word in known for word in found)
    )


def _rank(key: str) -> tuple[bool, bool, int]:
    found = words(key)
    return not WORDS["mean"].intersection(found), "total" in found, len(found)


@lru_cache(maxsize=65536)
def counts_evaluations(key: str) -> bool:
    """Whether a key counts or times what was evaluated."""
    found = words(key)
    return not EVALUATION.isdisjoint(found) and not WORDS["count"].isdisjoint(found)


@lru_cache(maxsize=65536)
def is_like_a_score(key: str) -> bool:
    """Whether a key may be the mean of a measure of answers, or of its gap to the reward."""
    if len(key) > 80:  # a sentence
        return False
    found = frozenset(words(key))
    if not WORDS["no_mean"].isdisjoint(found):
        return False
    is_score = key.lower() in WORDS["named_like_a_score"] or is_gap(key)
    return is_score or not WORDS["score"].isdisjoint(found)


@lru_cache(maxsize=65536)
def is_gap(key: str) -> bool:
    """Whether a key is the difference between what is optimised and what is meant."""
    return not WORDS["gap"].isdisjoint(words(key))


COLUMN_SETTINGS: Mapping[str, str] = {
    name: name.removesuffix("_mean") for name in DATA["column_settings"]
}
"""Columns that hold a setting where they have one value -> its name among settings."""

SCORE_IN_A_NAME = re.compile(
    rf"^(?!.*std$).*(?<![a-z])(?:{'|'.join(sorted(LIKE_A_SCORE))})", re.IGNORECASE
)
"""What a name has that may be a score: most keys are asked for nothing further."""

FRACTION = re.compile(r"(\d{1,9}) */ *(\d{1,9})")


@dataclass(frozen=True)
class Keys:
    """Keys of a log by what they hold."""

    found: dict[str, str]  # ``reward``, ``step`` and the names of ``PilotRun.SERIES`` -> key
    evaluations: tuple[str, ...]  # Keys of held-out rewards that are averaged
    parts: dict[str, str]  # Reward function -> key of its mean
    scores: tuple[str, ...] = ()  # Other keys that may score answers, by the words of their names


def restore_slashes(table: Table, keys: Sequence[str]) -> tuple[Table, str | None]:
    """Rows under the keys of their trainer where all of its slashes were replaced, and a remark."""
    if any("/" in key for key in keys):
        return table, None
    tables = [(known, known.restored(keys)) for known in key_tables()]
    marks = [known.score(names.values()) for known, names in tables]
    # So many keys that only one trainer writes.
    if max(marks) < 3:
        return table, None
    best = tables[marks.index(max(marks))][1]
    key = min(best, key=lambda key: (not has_reward_key([key]), keys.index(key)))
    return table.renamed(best), f"keys were read with their slashes ('{key}' as '{best[key]}')"


def count_fractions(table: Table) -> tuple[Table, int | None]:
    """Rows with a step where each tells ``12/1000`` (ms-swift, Megatron), and the planned steps."""
    for key in ("global_step/max_steps", "iteration"):
        found = {row: FRACTION.fullmatch(text) for row, text in table.text(key).items()}
        known = {row: match for row, match in found.items() if match is not None}
        if known:
            steps = np.array([float(match[1]) for match in known.values()])
            planned = int(known[max(known)][2]) or None
            return table.with_column("step", Column(np.array([*known]), steps)), planned
    return table, None


def choose_framework(keys: Iterable[str], named: str | None) -> KeyTable:
    """Key table that the format names, else the one with most marks among the keys."""
    if named is not None:
        return next((f for f in key_tables() if f.name == named), COMMON_KEYS)
    bare = [name for key in keys for name in spellings(plain(key))]
    best = max(key_tables(), key=lambda framework: framework.score(bare))
    return best if best.score(bare) else COMMON_KEYS


def reward_key(
    seen: Sequence[str], filled: Sequence[str], framework: KeyTable, columns: Columns, path: Path
) -> str | None:
    """Key of the train reward: the mapped one, else the best declared; None where none is known."""
    if "reward" in columns.keys:
        return mapped_key(columns.keys["reward"], seen, path, "reward")
    for listed in (filled, seen):
        by_name = _by_name(listed)
        for level in (*framework.reward, *COMMON_KEYS.reward):
            matches = [by_name[name] for name in level if name in by_name]
            if len(matches) > 1:
                problem = f"{' and '.join(matches)} could each be the train reward"
                advice = f"Say which: --column reward={matches[0]}, or [columns] in pilots.toml"
                raise InputError(problem, path=path, key="reward", advice=advice)
            if matches and plain(matches[0]) not in framework.never_reward:
                return matches[0]
    return likely_reward([key for key in filled if plain(key) not in _never()])


def no_reward(seen: Sequence[str], framework: KeyTable, path: Path) -> NoRewardError:
    """Error of a log without a train reward."""
    looked = [key for key in seen if plain(key) in framework.never_reward]
    why = f"; '{looked[0]}' is not it: {framework.never_reward[plain(looked[0])]}" if looked else ""
    problem = f"no key holds the train reward (keys seen: {show_keys(seen)}{why})"
    advice = (
        'Name it: --column reward=COLUMN, or in pilots.toml [columns] reward = "..."; where '
        "columns are runs, name all of them: reward=COLUMN,COLUMN"
    )
    return NoRewardError(problem, path=path, key="reward", advice=advice)


def find_keys(
    train: Sequence[str],
    seen: Sequence[str],
    reward: str | None,
    framework: KeyTable,
    columns: Columns,
    path: Path,
) -> Keys:
    """Keys of all that is read: reward, step, series, evaluations and parts of the reward."""
    found = {} if reward is None else {"reward": reward}
    for name in columns.keys:
        found[name] = mapped_key(columns.keys[name], seen, path, name)
    by_name = _by_name(train if reward is not None else seen)
    common = COMMON_KEYS
    counters = (*framework.optimizer_steps, *framework.refreshes, *common.optimizer_steps)
    tables: dict[str, tuple[str, ...]] = {"step": (*counters, *UNSURE_STEPS)}
    for name in dict.fromkeys([*framework.series, *common.series]):
        tables[name] = (name, *framework.series.get(name, ()), *common.series.get(name, ()))
    for name, names in tables.items():
        match = next((by_name[n] for n in names if n in by_name), None)
        if name not in found and match is not None and match not in found.values():
            found[name] = match
    mapped = found.pop("eval_reward", None)
    evaluations = (mapped,) if mapped else _evaluations(seen, framework)
    parts: dict[str, str] = {}
    for key in train:
        match_part = _full(framework.parts, key) or _full(common.parts, key)
        if match_part is not None and key not in found.values():
            parts.setdefault(match_part.group("name"), key)
    used = {*found.values(), *evaluations, *parts.values()}
    others = (key for key in seen if key not in used and SCORE_IN_A_NAME.search(key))
    return Keys(found, evaluations, parts, tuple(filter(is_like_a_score, others)))


def has_reward_key(seen: Iterable[str]) -> bool:
    """Whether a name of the train reward is among the keys, declared by a trainer or likely."""
    keys = list(seen)
    if any(map(_is_reward, keys)) or rewards_of_runs(keys):
        return True
    return any(map(is_success, keys)) and likely_reward(keys) is not None


def rewards_of_runs(keys: Sequence[str]) -> dict[str, str]:
    """Rewards that begin with a run's name (``lr1e-5/reward``) -> what they begin with.

    The name states a setting: tasks and datasets have names and rewards, too. Next to a reward
    without a name they are parts of it.
    """
    found = {key: begin for key in keys if (begin := _name_of_run(key))}
    return {} if found and any(map(_is_reward, keys)) else found


@cached
def _name_of_run(key: str) -> str:
    for cut in re.finditer("/| - ", key):
        if settings_in_name(key[: cut.start()]) and _is_reward(key[cut.end() :]):
            return key[: cut.end()]
    return ""


def is_declared(key: str) -> bool:
    """Whether a trainer, or the common names, declare a key as the train reward."""
    return any(spelled in _rewards() for spelled in spellings(plain(key)))


@cached
def _is_reward(key: str) -> bool:
    return is_declared(key) or (plain(key) not in _never() and is_like_a_reward(key))


def has_evaluation_key(seen: Iterable[str]) -> bool:
    """Whether a key of a held-out reward is there, that a trainer or a common name declares."""
    return any(map(_is_evaluation, seen))


@cached
def _is_evaluation(key: str) -> bool:
    return any(_evaluations([key], table) for table in all_key_tables())


def show_keys(keys: Iterable[str], sought: str = "reward") -> str:
    """At most eight keys for a message, the likeliest first."""
    listed = list(dict.fromkeys(keys))
    close = difflib.get_close_matches(sought, listed[:500], n=8, cutoff=0.4)
    ordered = list(dict.fromkeys([*close, *listed]))
    shown = [key if len(key) <= 40 else f"{key[:37]}..." for key in ordered[:8]]
    more = f" and {len(ordered) - 8} more" if len(ordered) > 8 else ""
    return (", ".join(shown) or "none") + more


@cached
def _rewards() -> frozenset[str]:
    return _flattened(key for table in all_key_tables() for keys in table.reward for key in keys)


@cached
def _never() -> frozenset[str]:
    return _flattened(name for table in all_key_tables() for name in table.never_reward)


def _flattened(names: Iterable[str]) -> frozenset[str]:
    """Names, and what they are where slashes were replaced."""
    return frozenset(spelling for name in names for spelling in (name, name.replace("/", "_")))


def _evaluations(seen: Sequence[str], framework: KeyTable) -> tuple[str, ...]:
    """Keys of the best pattern that is there; several are averaged."""
    for pattern in (*framework.evaluations, *COMMON_KEYS.evaluations):
        matches = tuple(key for key in seen if _full(pattern, key))
        if matches:
            return matches
    return ()


@lru_cache(maxsize=65536)
def _full(pattern: str, key: str) -> re.Match[str] | None:
    matches = (re.fullmatch(pattern, name) for name in spellings(plain(key)))
    return next((match for match in matches if match is not None), None)


def mapped_key(key: str, seen: Sequence[str], path: Path, name: str = "reward") -> str:
    """Check that a log has the key that a column map reads a series from."""
    if key not in seen:
        problem = f"the column map reads '{name}' from '{key}', which the log lacks"
        advice = f"Keys seen: {show_keys(seen, key)}"
        raise InputError(problem, path=path, key=f"columns.{name}", advice=advice)
    return key


def _by_name(listed: Iterable[str]) -> Mapping[str, str]:
    by_name: dict[str, str] = {}
    for key in listed:
        for name in spellings(plain(key)):
            by_name.setdefault(name, key)
    return by_name
