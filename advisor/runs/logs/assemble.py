"""Logged rows of a file become runs; common to every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError, NoRewardError
from advisor.runs.arrays import BoolArray, FloatArray
from advisor.runs.logfiles.logged import Columns, Logged, Table
from advisor.runs.logs import row_kinds
from advisor.runs.logs.located_run import RawRun
from advisor.runs.logs.series import (
    RULE,
    Placed,
    add_derived,
    is_shuffled,
    measured_evaluations,
    one_row_a_step,
    place_rows,
    read_counts,
    read_rewards,
    read_series,
    row_window,
    stopped,
    unit_of,
)
from advisor.runs.logs.stated_settings import column_settings, place_row
from advisor.runs.pilot_run import IN_NO_RUN, Missing, PilotRun, Score
from advisor.runs.trainers import Derived, KeyTable, plain, spellings
from advisor.runs.trainers import generic as own_loop
from advisor.runs.trainers.derived import PPO
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import (
    EVALUATION,
    Keys,
    find_keys,
    has_evaluation_key,
    is_declared,
    no_reward,
    reward_key,
    words,
)
from advisor.text import counted


def assemble(
    logged: Logged, framework: KeyTable, path: Path, columns: Columns, known: Mapping[str, Any]
) -> list[RawRun]:
    """Turn what a reader handed over into runs."""
    runs = []
    for named in row_kinds.split_by_name(logged):
        columns_tell = column_settings(named.table, framework)
        observed = framework.observe(named.table)
        observed = Derived(
            {**columns_tell.facts, **observed.facts},
            {**columns_tell.arithmetic, **observed.arithmetic},
        )
        whole = _Attempt(named, framework, columns, {**observed.facts, **known}, path)
        for attempt in whole.split():
            fields = attempt.fields()
            assumptions = (*fields["assumptions"], *columns_tell.assumptions)
            values = row_kinds.value_model(attempt.table)
            marked = replace(observed, marks=frozenset({PPO} if values else ()))
            warnings = (*fields["warnings"], *values)
            own = {"observed": marked, "assumptions": assumptions, "warnings": warnings}
            runs.append(RawRun.model_construct(**fields | own))
    return runs


@dataclass(frozen=True)
class _Attempt:
    """One attempt: its rows, and what they mean."""

    logged: Logged
    framework: KeyTable
    columns: Columns
    known: Mapping[str, Any]
    path: Path

    @property
    def table(self) -> Table:
        """All its rows."""
        return self.logged.table

    @cached_property
    def kinds(self) -> row_kinds.RowKinds:
        """Kinds of its rows."""
        return row_kinds.row_kinds(self.table, self.framework, self.columns, self.path)

    @cached_property
    def trained(self) -> tuple[str | None, BoolArray]:
        """Key of the reward, and the rows that hold one."""
        rows = self.table.take(self.kinds.train)
        key = reward_key(rows.keys, rows.filled_keys, self.framework, self.columns, self.path)
        if key is None:
            return None, np.zeros(len(self.table), dtype=bool)
        holds = self.table.has(key)
        holds[list(self.table.text(key))] = True
        return key, holds & self.kinds.train

    def _find_keys(self, train: Table, reward: str | None) -> Keys:
        """Keys of rows with a train reward."""
        seen = self.table.filled_keys
        return find_keys(train.filled_keys, seen, reward, self.framework, self.columns, self.path)

    def _find_other_keys(self, rows: Table, columns: Columns) -> Keys:
        """Keys of rows without one."""
        return find_keys((), rows.filled_keys, None, self.framework, columns, self.path)

    def split(self) -> list[_Attempt]:
        """Split one named run where its counter starts again."""
        reward, train = self.trained
        if reward is None or not train.any():
            return [self]
        rows = self.table.take(train)
        key = self._find_keys(rows, reward).found.get("step")
        if key is None:
            return [self]
        count = read_counts(rows, key, self.path)
        if is_shuffled(count):
            return [self]
        window, _ = row_window(np.unique(count), self.logged.logging_steps)
        parts = row_kinds.split_restarts(self.logged, np.flatnonzero(train), count, window)
        return [replace(self, logged=part) for part in parts]

    def fields(self) -> dict[str, Any]:
        """Rows on their steps, and what they hold, as a run has them."""
        reward, holds = self.trained
        if not holds.any():
            return self._evaluations_only(reward)
        train, keys = self._train_keys(reward, holds)
        step_key = keys.found.get("step")
        train, count, sorted_ = one_row_a_step(train, step_key, self.path)
        rewards, absurd = read_rewards(train, keys.found["reward"], self.path)
        unit = unit_of(step_key, self.framework, self.columns, self.known)
        spacing = self.logged.logging_steps
        placed = place_rows(train, count, step_key, unit, self.known, self.path, spacing)
        if placed.kept != list(range(len(train))):
            train, rewards = train.take(placed.kept), rewards[placed.kept]
        series, missing, lost, unusable = read_series(train, rewards, keys.found, self.known)
        broken = {name: placed.step[rows] for name, rows in lost.items()}
        lasts = self.kinds.train.copy()
        if step_key is not None and not holds[lasts][-5:].any():
            lasts[lasts] = stopped(holds[lasts])
            counts = self.table.column(step_key)[lasts]
            late = placed.at(np.unique(counts[np.isfinite(counts)]))
            broken["reward"] = np.union1d(broken.get("reward", []), late)
        borrowed = self._borrow(series, missing, broken, train, step_key, placed)
        is_own_loop = self.framework in (COMMON_KEYS, own_loop.KEY_TABLE)
        add_derived(series, train, keys.found["reward"], times_parts=is_own_loop)
        # A hole has a reason; what was found elsewhere has none.
        whole = {name for name, values in series.items() if np.isfinite(values).all()}
        missing = {name: why for name, why in missing.items() if name not in whole}
        rate_step, rate = self._rates(placed, keys, series)
        parts = {name: train.column(key) for name, key in keys.parts.items()}
        raw = self._raw(keys, holds, placed, series, borrowed)
        return {
            **raw,
            "missing": missing,
            "not_finite": {name: at for name, at in broken.items() if at.size},
            "parts": {name: part for name, part in parts.items() if np.isfinite(part).any()},
            "scores": self._scores(keys, holds, placed),
            "rate_step": rate_step,
            "rate": rate,
            "planned_steps": self.logged.planned_steps,
            "assumptions": (
                *self.logged.assumptions,
                *self.kinds.assumptions,
                *placed.assumptions,
                *sorted_,
                *self._assumed_reward(keys),
                *_averaged(keys),
            ),
            "warnings": (*raw["warnings"], *placed.warnings, *self._cut(holds), *absurd, *unusable),
        }

    def _raw(
        self,
        keys: Keys,
        holds: BoolArray,
        placed: Placed,
        series: dict[str, FloatArray],
        borrowed: Mapping[str, str],
    ) -> dict[str, Any]:
        """Evaluations of a run, and the keys of the log: read, understood, and neither."""
        read = {name: key for name, key in keys.found.items() if name in (*series, "step")}
        read |= borrowed
        if keys.evaluations:
            read["eval_reward"] = ", ".join(keys.evaluations)
        left = {*self.table.keys} - {*read.values(), *keys.evaluations, *keys.parts.values()}
        tables = (self.framework, COMMON_KEYS)
        understood = {
            key for key in left for t in tables if any(map(t.understands, spellings(plain(key))))
        }
        eval_step, eval_reward = self._evaluations(keys, holds, placed)
        return {
            "path": str(self.path),
            "step": placed.step,
            "step_unit": placed.unit,
            "series": series,
            "missing": {"reward": "not logged"},
            "framework": self.framework.name,
            "label": self.logged.label,
            "has_own_id": self.logged.has_own_id,
            "eval_step": eval_step,
            "eval_reward": eval_reward,
            "logging_steps": placed.window,
            "stated_spacing": placed.logging_steps,
            "assumptions": (*self.logged.assumptions, *_averaged(keys)),
            "warnings": self.logged.warnings,
            "keys_read": read,
            "keys_understood": tuple(sorted(understood)),
            "keys_ignored": tuple(sorted(left - understood)),
        }

    def _cut(self, holds: BoolArray) -> list[str]:
        """Warning of lines that a logger cut before their reward."""
        lost = int(np.sum(self.table.cut & ~holds & self.kinds.train))
        if not lost:
            return []
        what = f"{counted(lost, 'line')}, cut before the reward (W&B keeps 4,096 characters)"
        if lost == 1 and self.table.cut[-1]:
            what = "the last line, cut before the reward"
        return [f"{what}: {IN_NO_RUN}"]

    def _assumed_reward(self, keys: Keys) -> tuple[str, ...]:
        key = keys.found["reward"]
        if key == "reward" or "reward" in self.columns.keys or is_declared(key):
            return ()
        return (f"reward = '{key}' assumed, by the words of its name",)

    def _train_keys(self, reward: str | None, holds: BoolArray) -> tuple[Table, Keys]:
        """Rows with a train reward and their keys; raises where they are no steps of training."""
        train = self.table.take(holds)
        row_kinds.refuse_rows(train, self.kinds, self.columns, self.path)
        keys = self._find_keys(train, reward)
        is_open = "step" not in keys.found and not self.columns.keys
        if what := row_kinds.not_steps(train, self.path) if is_open else "":
            advice = "Give the logs of the runs, or name the step in a column map"
            problem = f"each row is {what}, not a step of a run"
            raise InputError(problem, path=self.path, advice=advice)
        return train, keys

    def _borrow(
        self,
        series: dict[str, FloatArray],
        missing: dict[str, Missing],
        broken: dict[str, FloatArray],
        train: Table,
        step_key: str | None,
        placed: Placed,
    ) -> dict[str, str]:
        """Add series that stand in rows without a reward at the same steps, averaged by step."""
        evaluate, holds = self.kinds.evaluate, self.trained[1]
        kept = holds if evaluate.all() else holds | evaluate
        if step_key is None or kept.all():
            return {}
        others = self.table.take(~kept)
        found = self._find_other_keys(others, _without_keys(self.columns)).found
        count, counts = train.column(step_key), others.column(step_key)
        borrowed = {}
        for name, key in found.items():
            values = others.column(key)
            there = np.isfinite(values) & np.isfinite(counts)
            if name not in series and name in PilotRun.SERIES:
                lost = others.has(key) & ~np.isfinite(values) & np.isfinite(counts)
                broken[name] = placed.at(np.unique(counts[lost]))
            if name in series or name not in PilotRun.SERIES or not there.any():
                continue
            steps, place = np.unique(counts[there], return_inverse=True)
            means = np.bincount(place, values[there]) / np.bincount(place)
            at = np.minimum(np.searchsorted(steps, count), steps.size - 1)
            series[name] = np.where(steps[at] == count, means[at], np.nan)
            missing[name] = "not logged"
            borrowed[name] = key
        return borrowed

    def _evaluations_only(self, reward: str | None) -> dict[str, Any]:
        """Run without a train reward."""
        row_kinds.refuse_agents(self.table, self.columns, self.path)
        keys = self._find_other_keys(self.table, _without_keys(self.columns, "reward"))
        if not self.kinds.train.any() and reward is not None and not keys.evaluations:
            keys = replace(keys, evaluations=(reward,))
        unit = unit_of(keys.found.get("step"), self.framework, self.columns, self.known)
        placed = Placed([], np.zeros(0), unit, 1, 0, None, 1)
        raw = self._raw(keys, np.zeros(len(self.table), bool), placed, {}, {})
        if raw["eval_step"].size:
            return raw
        if reward is None:
            raise no_reward(self.table.keys, self.framework, self.path)
        advice = "Log the mean reward of each step, or name its key in a column map"
        problem, row = "no row has a reward", place_row(self.logged)
        raise NoRewardError(problem, path=self.path, row=row, key=reward, advice=advice)

    def _evaluations(
        self, keys: Keys, holds: BoolArray, placed: Placed
    ) -> tuple[FloatArray, FloatArray]:
        """Steps and held-out rewards; an evaluation comes after all steps of its refresh."""
        rows = self.table.take(self.kinds.evaluate)
        names: Sequence[str] = keys.evaluations
        if not names and not self.kinds.evaluate.all() and "reward" in keys.found:
            names = [keys.found["reward"]]
        if not names or not len(rows):
            return np.zeros(0), np.zeros(0)
        values = np.array([rows.column(name) for name in names])
        finite = np.isfinite(values)
        number = finite.sum(0)
        chosen = (number == number.max()) & (number > 0)
        reward = np.where(finite, values, 0.0).sum(0) / np.maximum(number, 1)
        for key in rows.filled_keys:
            # Where another held-out measure is blank, a 0 says that nothing was evaluated.
            there = rows.has(key)
            if not there.all() and has_evaluation_key([key]) and not reward[chosen & ~there].any():
                chosen &= there
        step_key = keys.found.get("step")
        # Not moved up where the counter starts at 0: an evaluation there precedes training.
        # Without a step it stands after the train rows above it.
        above = np.cumsum(holds)[self.kinds.evaluate].astype(float)
        step = (above if step_key is None else rows.column(step_key)) * placed.stretch
        chosen &= np.isfinite(step)
        if names == keys.evaluations and self.kinds.evaluate.all():
            chosen[chosen] = measured_evaluations(reward[chosen])
            # Evaluations that may all be 0; a longer column of nothing but zeros was never
            # computed.
            if chosen.sum() > 8 and not reward[chosen].any():
                return np.zeros(0), np.zeros(0)
        return _means_in_a_row(step[chosen], reward[chosen])

    def _scores(self, keys: Keys, holds: BoolArray, placed: Placed) -> dict[str, Score]:
        """Columns beside the reward that may score answers, by the words of their names."""
        evaluate = self.kinds.evaluate
        sources = {"": evaluate} if evaluate.all() else {"": holds, "held-out ": evaluate}
        step_key = keys.found.get("step")
        step = np.cumsum(holds).astype(float) if step_key is None else self.table.column(step_key)
        # Of several that are averaged, each by itself.
        benchmarks = keys.evaluations if len(keys.evaluations) > 1 else ()
        found = {}
        for prefix, rows in sources.items():
            for name in (*keys.scores, *benchmarks):
                values = self.table.column(name)
                there = rows & np.isfinite(values) & np.isfinite(step)
                if not EVALUATION.isdisjoint(words(name)) and there.any():
                    there[there] = measured_evaluations(values[there])
                score = Score(*_means_in_a_row(step[there] * placed.stretch, values[there]))
                # One that is 0 throughout was centred, or never computed.
                if score.step.size >= PilotRun.LEAST_REWARDS and np.abs(score.values).max() > 1e-6:
                    found[prefix + name] = score
        return found

    def _rates(
        self, placed: Placed, keys: Keys, series: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Steps and learning rates of every train row that logs a rate, also without a reward."""
        if "learning_rate" not in series:
            return np.zeros(0), np.zeros(0)
        step, rate = placed.step, series["learning_rate"]
        step_key, rate_key = keys.found.get("step"), keys.found.get("learning_rate")
        if step_key is not None and rate_key is not None:
            rows = self.table.take(self.kinds.train)
            count, rates = rows.column(step_key), rows.column(rate_key)
            there = np.isfinite(count) & np.isfinite(rates)
            ordered, rate = _last_of_each(count[there], rates[there])
            step = placed.at(ordered)
        there = np.abs(rate) < RULE.largest  # NaN is not
        return step[there], rate[there]


def _without_keys(columns: Columns, *names: str) -> Columns:
    """A column map without some of its keys, or without any."""
    keys = {n: key for n, key in columns.keys.items() if names and n not in names}
    return Columns(keys, columns.filter, columns.eval_filter, columns.step_unit)


def _means_in_a_row(step: FloatArray, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps in order and their mean rewards, over rows that stand together; of others the later."""
    if not step.size:
        return np.zeros(0), np.zeros(0)
    starts = np.flatnonzero(np.append(True, np.diff(step) != 0))
    sizes = np.diff(np.append(starts, step.size))
    means = np.add.reduceat(reward, starts) / sizes
    return _last_of_each(step[starts], means)


def _last_of_each(step: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps in order, each once, and the last of the values that stand there."""
    steps, last = np.unique(step[::-1], return_index=True)
    return steps, values[::-1][last]


def _averaged(keys: Keys) -> tuple[str, ...]:
    if len(keys.evaluations) < 2:
        return ()
    shown = ", ".join(keys.evaluations[:3]) + (", ..." if len(keys.evaluations) > 3 else "")
    return (f"held-out reward = mean of {len(keys.evaluations)} keys ({shown})",)
