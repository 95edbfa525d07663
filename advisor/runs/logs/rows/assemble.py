"""Logged rows of a file become runs; common to every format."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.table import Table
from advisor.runs.logs.rows.raw_run import RawRun
from advisor.runs.logs.rows.row_kinds import (
    RowKinds,
    Segment,
    are_results,
    refuse_episodes,
    refuse_kinds,
    row_kinds,
    split_by_name,
    split_restarts,
)
from advisor.runs.logs.rows.series import (
    is_batch_spread,
    join_rows,
    measured_evaluations,
    measured_rows,
    read_rewards,
    read_series,
)
from advisor.runs.logs.rows.steps import Placed, place_rows, read_counts, row_window, unit_of
from advisor.runs.logs.settings.stated_settings import column_settings
from advisor.runs.pilot_run import LEAST_REWARDS, SERIES, Missing, Score
from advisor.runs.trainers import KeyTable, plain, spellings
from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.key_table import COMMON_KEYS, PARTS_OF_A_STEP
from advisor.runs.trainers.keys import (
    Keys,
    find_keys,
    has_evaluation_key,
    is_declared,
    no_reward,
    reward_key,
)
from advisor.runs.trainers.likely import EVALUATION, words
from advisor.theory import BoolArray, FloatArray

MOST_ZEROS = 8
"""Evaluations that may all be 0; a longer column of nothing but zeros was never computed."""


def assemble(
    logged: Logged, framework: KeyTable, path: Path, columns: Columns, known: Mapping[str, Any]
) -> list[RawRun]:
    """Turn what a reader handed over into runs."""
    runs = []
    for named in split_by_name(logged.table):
        observed = framework.observe(named.table)
        beside = column_settings(named.table, framework)
        facts = {**beside.facts, **observed.facts}
        settings = {**facts, **known}
        for segment in _attempts(named, logged, framework, columns, settings, path):
            reader = _Assembly(logged, segment, framework, columns, settings, path)
            run = reader.run()
            runs.append(
                dataclasses.replace(
                    run,
                    facts=facts,
                    derivations={**beside.arithmetic, **observed.arithmetic},
                    assumptions=(*run.assumptions, *beside.assumptions),
                )
            )
    return runs


def _attempts(
    named: Segment,
    logged: Logged,
    framework: KeyTable,
    columns: Columns,
    known: Mapping[str, Any],
    path: Path,
) -> list[Segment]:
    """Split one named run where its counter starts anew."""
    table = named.table
    kinds = row_kinds(table, framework, columns, path)
    reward, train = _train_rows(table, kinds, framework, columns, path)
    if reward is None or not train.any():
        return [named]
    rows = table.take(train)
    key = find_keys(
        rows.filled_keys, table.filled_keys, reward, framework, columns, path
    ).found.get("step")
    if key is None:
        return [named]
    count = read_counts(rows, key, path)
    window, _ = row_window(np.unique(count), logged.logging_steps)
    attempts = split_restarts(table, np.flatnonzero(train), count, window)
    return [
        Segment(
            attempt.table,
            _join(named.label, attempt.label),
            named.has_own_id and attempt.label is None,
            attempt.warnings,
        )
        for attempt in attempts
    ]


def _join(name: str | None, place: str | None) -> str | None:
    return ":".join(part for part in (name, place) if part is not None) or None


def _train_rows(
    table: Table, kinds: RowKinds, framework: KeyTable, columns: Columns, path: Path
) -> tuple[str | None, BoolArray]:
    """Key of the reward, and the rows that hold one."""
    rows = table.take(kinds.train)
    key = reward_key(rows.keys, rows.filled_keys, framework, columns, path)
    if key is None:
        return None, np.zeros(len(table), dtype=bool)
    holds = table.has(key)
    holds[list(table.text(key))] = True
    return key, holds & kinds.train


class _Assembly:
    """One attempt: its rows, and what they mean."""

    def __init__(
        self,
        logged: Logged,
        segment: Segment,
        framework: KeyTable,
        columns: Columns,
        known: Mapping[str, Any],
        path: Path,
    ) -> None:
        self.logged, self.segment, self.framework = logged, segment, framework
        self.columns, self.known, self.path = columns, known, path
        self.table = segment.table
        self.kinds = row_kinds(self.table, framework, columns, path)

    def run(self) -> RawRun:
        reward, holds = _train_rows(self.table, self.kinds, self.framework, self.columns, self.path)
        if not holds.any():
            return self._evaluations_only(reward)
        train, keys = self._train_keys(reward, holds)
        step_key = keys.found.get("step")
        train, rewards, remarks = self._measured_rows(train, keys, step_key)
        placed = place_rows(
            train,
            step_key,
            unit_of(step_key, self.framework, self.columns, self.known),
            self.known,
            self.path,
            self.logged.logging_steps,
            train.column(keys.found.get("learning_rate")) if step_key is None else np.zeros(0),
        )
        if placed.kept != list(range(len(train))):
            train, rewards = train.take(placed.kept), rewards[placed.kept]
        series, missing = read_series(train, rewards, keys.found)
        warnings = [
            *self.logged.warnings,
            *self.segment.warnings,
            *placed.warnings,
            *self._cut(holds),
            *_drop_unusable(series, missing, train, keys.found, self.known),
        ]
        borrowed = self._borrow(series, missing, holds, train.column(step_key), step_key)
        _add_silent_share(series, missing)
        if self.framework in (COMMON_KEYS, own_loop.KEY_TABLE):
            _add_step_time(series, missing, train)
        rate_step, rate = self._rates(placed, keys, series)
        eval_step, eval_reward = self._evaluations(keys, holds, placed)
        return RawRun(
            path=self.path,
            step=placed.step,
            step_unit=placed.unit,
            series=series,
            missing=missing,
            parts=_parts(train, keys),
            scores=self._scores(keys, holds, placed),
            framework=self.framework.name,
            label=_join(self.logged.label, self.segment.label),
            has_own_id=self._has_own_id(),
            eval_step=eval_step,
            eval_reward=eval_reward,
            rate_step=rate_step,
            rate=rate,
            planned_steps=self.logged.planned_steps,
            logging_steps=placed.logging_steps,
            window=placed.window,
            assumptions=(
                *self.logged.assumptions,
                *self.kinds.assumptions,
                *placed.assumptions,
                *remarks,
                *self._assumed_reward(keys),
                *_averaged(keys),
            ),
            warnings=tuple(warnings),
            **self._keys(keys, series, borrowed),
        )

    def _cut(self, holds: BoolArray) -> list[str]:
        """Warning of lines that a logger cut before their reward."""
        lost = int(np.sum(self.table.cut & ~holds & self.kinds.train))
        if not lost:
            return []
        lines = "1 line was" if lost == 1 else f"{lost} lines were"
        return [f"{lines} cut before the reward (W&B keeps 4,096 characters), and left out"]

    def _measured_rows(
        self, train: Table, keys: Keys, step_key: str | None
    ) -> tuple[Table, FloatArray, tuple[str, ...]]:
        """Rows that were measured, one per step, their rewards, and what was done to get there."""
        reward = keys.found["reward"]
        rewards = read_rewards(train, reward, self.path)
        measured, repeated = measured_rows(train, rewards, _measured(keys))
        if repeated is not None:
            train = train.take(measured)
        train, joined = join_rows(train, step_key)
        remarks = tuple(remark for remark in (repeated, joined) if remark is not None)
        return train, read_rewards(train, reward, self.path) if remarks else rewards, remarks

    def _assumed_reward(self, keys: Keys) -> tuple[str, ...]:
        key = keys.found["reward"]
        if key == "reward" or "reward" in self.columns.keys or is_declared(key):
            return ()
        return (f"reward = '{key}' assumed, by the words of its name",)

    def _train_keys(self, reward: str | None, holds: BoolArray) -> tuple[Table, Keys]:
        """Rows with a train reward and their keys; raises where they are no steps of training."""
        train = self.table.take(holds)
        refuse_kinds(train, self.kinds, self.columns, self.path)
        refuse_episodes(train, self.columns, self.path)
        keys = find_keys(
            train.filled_keys,
            self.table.filled_keys,
            reward,
            self.framework,
            self.columns,
            self.path,
        )
        if "step" not in keys.found and not self.columns.keys and are_results(train):
            raise InputError(
                "each row is the result of a run, not a step of one",
                path=self.path,
                advice="Give the logs of the runs, or name the step in a column map",
            )
        return train, keys

    def _borrow(
        self,
        series: dict[str, FloatArray],
        missing: dict[str, Missing],
        holds: BoolArray,
        count: FloatArray,
        step_key: str | None,
    ) -> dict[str, str]:
        """Add series that stand in rows without a reward at the same steps, averaged by step."""
        evaluate = self.kinds.evaluate
        kept = holds if evaluate.all() else holds | evaluate
        if step_key is None or kept.all():
            return {}
        others = self.table.take(~kept)
        found = find_keys(
            (), others.filled_keys, None, self.framework, _without_keys(self.columns), self.path
        ).found
        counts = others.column(step_key)
        borrowed = {}
        for name, key in found.items():
            if name in series or name not in SERIES:
                continue
            values = others.column(key)
            there = np.isfinite(values) & np.isfinite(counts)
            if not there.any():
                continue
            steps, place = np.unique(counts[there], return_inverse=True)
            means = np.bincount(place, values[there]) / np.bincount(place)
            at = np.minimum(np.searchsorted(steps, count), steps.size - 1)
            series[name] = np.where(steps[at] == count, means[at], np.nan)
            missing.pop(name, None)
            if np.isnan(series[name]).any():
                missing[name] = "not logged"
            borrowed[name] = key
        return borrowed

    def _has_own_id(self) -> bool:
        if self.segment.label is None:
            return self.logged.has_own_id
        return self.segment.has_own_id and self.logged.label is None

    def _evaluations_only(self, reward: str | None) -> RawRun:
        table = self.table
        keys = find_keys(
            (),
            table.filled_keys,
            None,
            self.framework,
            _without_keys(self.columns, "reward"),
            self.path,
        )
        if not self.kinds.train.any() and reward is not None and not keys.evaluations:
            keys = dataclasses.replace(keys, evaluations=(reward,))
        unit = unit_of(keys.found.get("step"), self.framework, self.columns, self.known)
        placed = Placed([], np.zeros(0), unit, 1, 0, None, 1, (), ())
        eval_step, eval_reward = self._evaluations(keys, np.zeros(len(table), bool), placed)
        if not eval_step.size and reward is not None:
            raise InputError(
                "no row has a reward",
                path=self.path,
                key=reward,
                advice="Log the mean reward of each step, or name its key in a column map",
            )
        if not eval_step.size:
            raise no_reward(table.keys, self.framework, self.path)
        return RawRun(
            path=self.path,
            step=np.zeros(0),
            step_unit=unit,
            series={},
            missing={"reward": "not logged"},
            framework=self.framework.name,
            label=_join(self.logged.label, self.segment.label),
            has_own_id=self._has_own_id(),
            eval_step=eval_step,
            eval_reward=eval_reward,
            assumptions=(*self.logged.assumptions, *_averaged(keys)),
            warnings=(*self.logged.warnings, *self.segment.warnings),
            **self._keys(keys, {}, {}),
        )

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
        whole = finite.sum(0) == finite.sum(0).max()
        chosen = whole & finite.any(0)
        reward = np.where(finite, values, 0.0).sum(0) / np.maximum(finite.sum(0), 1)
        for key in rows.filled_keys:
            # Where another held-out measure is blank, a 0 says that nothing was evaluated.
            there = rows.has(key)
            if not there.all() and has_evaluation_key([key]) and not reward[chosen & ~there].any():
                chosen &= there
        step_key = keys.found.get("step")
        if step_key is not None:
            # Not moved up where the counter starts at 0: an evaluation there precedes training.
            step = rows.column(step_key) * placed.stretch
        else:
            # Without a step an evaluation stands after the train rows above it.
            above = np.cumsum(holds)[np.flatnonzero(self.kinds.evaluate)]
            step = above.astype(float) * placed.stretch
        chosen &= np.isfinite(step)
        if names == keys.evaluations and self.kinds.evaluate.all():
            chosen[chosen] = measured_evaluations(reward[chosen])
            if chosen.sum() > MOST_ZEROS and not reward[chosen].any():
                return np.zeros(0), np.zeros(0)
        by_step = _means_in_a_row(step[chosen], reward[chosen])
        ordered = sorted(by_step)
        return np.array(ordered, dtype=float), np.array([by_step[at] for at in ordered])

    def _scores(self, keys: Keys, holds: BoolArray, placed: Placed) -> dict[str, Score]:
        """Columns beside the reward that may score answers, by the words of their names."""
        if not keys.scores:
            return {}
        evaluate = self.kinds.evaluate
        sources = {"": holds if not evaluate.all() else np.ones(len(self.table), dtype=bool)}
        if not evaluate.all():
            sources["held-out "] = evaluate
        step_key = keys.found.get("step")
        step = np.cumsum(holds).astype(float) if step_key is None else self.table.column(step_key)
        found = {}
        for prefix, rows in sources.items():
            for name in keys.scores:
                values = self.table.column(name)
                there = rows & np.isfinite(values) & np.isfinite(step)
                if not EVALUATION.isdisjoint(words(name)) and there.any():
                    there[there] = measured_evaluations(values[there])
                by_step = _means_in_a_row(step[there] * placed.stretch, values[there])
                if len(by_step) >= LEAST_REWARDS:
                    ordered = sorted(by_step)
                    found[prefix + name] = Score(
                        np.array(ordered), np.array([by_step[at] for at in ordered])
                    )
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
            last = dict(zip(count[there].tolist(), rates[there].tolist(), strict=True))
            ordered = sorted(last)
            step, rate = placed.at(ordered), np.array([last[at] for at in ordered])
        there = np.isfinite(rate)
        return step[there], rate[there]

    def _keys(
        self, keys: Keys, series: Mapping[str, FloatArray], borrowed: Mapping[str, str]
    ) -> dict[str, Any]:
        """Keys of the log: read, understood, and neither."""
        read = {name: key for name, key in keys.found.items() if name in (*series, "step")}
        read.update(borrowed)
        if keys.evaluations:
            read["eval_reward"] = ", ".join(keys.evaluations)
        used = {*read.values(), *keys.evaluations, *keys.parts.values()}
        left = [key for key in self.table.keys if key not in used]
        understood = [key for key in left if _is_understood(key, self.framework)]
        return {
            "keys_read": read,
            "keys_understood": tuple(sorted(understood)),
            "keys_ignored": tuple(sorted(set(left) - set(understood))),
        }


def _is_understood(key: str, framework: KeyTable) -> bool:
    return any(
        known.understands(name)
        for known in (framework, COMMON_KEYS)
        for name in spellings(plain(key))
    )


def _without_keys(columns: Columns, *names: str) -> Columns:
    """A column map without some of its keys, or without any."""
    keys = {n: key for n, key in columns.keys.items() if names and n not in names}
    return Columns(keys, columns.filter, columns.eval_filter, columns.step_unit)


def _means_in_a_row(step: FloatArray, reward: FloatArray) -> dict[float, float]:
    """Mean reward of each step, over rows that stand together; of rows apart the later count."""
    if not step.size:
        return {}
    starts = np.flatnonzero(np.append(True, np.diff(step) != 0))
    sizes = np.diff(np.append(starts, step.size))
    means = np.add.reduceat(reward, starts) / sizes
    return dict(zip(step[starts].tolist(), means.tolist(), strict=True))


def _averaged(keys: Keys) -> tuple[str, ...]:
    if len(keys.evaluations) < 2:
        return ()
    shown = ", ".join(keys.evaluations[:3]) + (", ..." if len(keys.evaluations) > 3 else "")
    return (f"held-out reward = mean of {len(keys.evaluations)} keys ({shown})",)


def _measured(keys: Keys) -> list[str]:
    """Keys of what each row measures anew."""
    names = ("reward", "learning_rate", "step", "step_time_seconds", "tokens")
    found = [key for name, key in keys.found.items() if name not in names]
    return [*found, *keys.parts.values()]


def _parts(train: Table, keys: Keys) -> dict[str, FloatArray]:
    columns = {name: train.column(key) for name, key in keys.parts.items()}
    return {name: column for name, column in columns.items() if np.isfinite(column).any()}


def _add_silent_share(series: dict[str, FloatArray], missing: dict[str, Missing]) -> None:
    """Groups that are all right or all wrong are the ones without spread."""
    if "silent_group_share" in series or not {"all_right_share", "all_wrong_share"} <= set(series):
        return
    series["silent_group_share"] = series["all_right_share"] + series["all_wrong_share"]
    missing.pop("silent_group_share", None)


def _add_step_time(
    series: dict[str, FloatArray], missing: dict[str, Missing], train: Table
) -> None:
    """A step that is not timed as a whole takes as long as its rollouts and its training."""
    if "step_time_seconds" in series:
        return
    names = {name: key for key in train.filled_keys for name in spellings(plain(key))}
    pair = next((p for p in PARTS_OF_A_STEP if all(name in names for name in p)), None)
    if pair is None:
        return
    total = np.sum([train.column(names[name]) for name in pair], axis=0)
    if np.isfinite(total).all():
        series["step_time_seconds"] = total
        missing.pop("step_time_seconds", None)


def _drop_unusable(
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
    train: Table,
    keys: Mapping[str, str],
    known: Mapping[str, Any],
) -> list[str]:
    """Take out series that do not mean what their key says; the warnings say which."""
    warnings = []
    if "reward_std_within_group" in series and is_batch_spread(
        train, keys, known, series["reward"]
    ):
        del series["reward_std_within_group"]
        missing["reward_std_within_group"] = "not applicable"
        warnings.append(
            f"'{keys['reward_std_within_group']}' is the spread over the whole batch "
            "(TRL >= 0.27), not within groups, and was left out"
        )
    if "entropy" in series and not np.any(np.nan_to_num(series["entropy"])):
        del series["entropy"]
        missing["entropy"] = "not logged"
        warnings.append(f"'{keys['entropy']}' is 0 in every row: not computed, not collapsed")
    rate = series.get("learning_rate")
    if rate is not None and np.nanmax(rate) <= 0:
        del series["learning_rate"]
        missing["learning_rate"] = "not logged"
        warnings.append(f"'{keys['learning_rate']}' is 0 in every row (too few digits printed?)")
    return warnings
