"""A pilot run as its log tells it, with units, bounds and why a value is missing; its copies."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, Field, model_validator

from advisor.runs.settings import PartialSettings, Positive, PositiveInt
from advisor.theory import FloatArray

Missing = Literal["not logged", "not applicable", "not finite", "cut"]
"""Why a value is absent: never written, meaningless here, NaN or inf, lost by the logger."""

UNNAMED_MODEL, UNNAMED_TASK = "model", "task"
"""What runs are grouped under whose logs name none."""

SERIES = (
    "reward",
    "reward_std_within_group",
    "silent_group_share",
    "entropy",
    "gradient_norm",
    "clip_share",
    "learning_rate",
    "kl",
    "completion_length",
    "truncated_share",
    "step_time_seconds",
    "policy_kl",
    "mismatch_kl",
    "mismatch_difference",
    "importance_ess",
    "distinct_answers",
    "all_right_share",
    "all_wrong_share",
    "loss",
    "tokens",
)
"""Names of the per-row series that the package understands, in reading order."""

LEAST_REWARDS = 3
"""Finite rewards below which a run shows no curve: start, direction and noise need three."""

IN_NO_RUN = "part of no run"
"""How a warning ends of rows or files that became part of none."""

IN_WARMUP = "the log stops within the warm-up, at a learning rate of"
"""How a warning begins of runs that never had the learning rate that was set."""

NOT_GRPO = "PPO with a value model, not GRPO: what is advised of groups was not learned from it"
"""How a warning ends of runs of the older method."""

LEAST_DISTINCT = 4
"""Distinct values of the reward below which two runs may agree by chance."""

DIGITS = 3
"""Decimals and significant digits of a reward that count: consoles print four."""

DIGESTED = {"id", "model", "task", "parameters", "hyperparameters", "missing", "copy_of"}
DIGESTED |= {"logging_steps", "step_unit", "reward_floor", "reward_ceiling", "path"}
"""What a digest of a run is made of, next to its rows."""

StepUnit = Literal["optimizer", "refresh", "unknown"]
"""What ``PilotRun.step`` counts: optimizer steps; or, as long as the refresh interval is not known,
batches of rollouts; or what only the user can say."""


class Score(NamedTuple):
    """A measure of answers that is logged beside the reward: steps and values, finite, in order."""

    step: FloatArray
    values: FloatArray


class PilotRun(BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """One training run as its log tells it.

    Attributes
    ----------
    id : str
        Unique within a folder.
    path : str
        File it was read from.
    model, task : str or None
        Names; runs pool within (model, task).
    parameters : float or None
        All parameters of the base model, N.
    step : ndarray of shape (rows,)
        Optimizer step at which a row was logged, one-based, strictly increasing.
    step_unit : {"optimizer", "refresh", "unknown"}
        What ``step`` counts; only runs on optimizer steps can be fitted.
    series : dict of str to ndarray of shape (rows,)
        Per-row series by the names in ``SERIES``; NaN where a cell is missing. "reward" is there
        unless the log holds evaluations only; then ``step`` is empty.
    parts : dict of str to ndarray of shape (rows,)
        Means of the single reward functions, by their names.
    scores : dict of str to Score
        Other columns that may score answers, by key; nothing is fitted to them. Those of rows of
        evaluations begin with "held-out ".
    missing : dict of str to str
        Why a series is absent, or why cells of it are NaN.
    eval_step, eval_reward : ndarray of shape (evaluations,)
        Held-out reward, kept apart from train reward; step 0 is before training.
    logging_steps : int
        Optimizer steps that one row averages.
    reward_floor, reward_ceiling : float
        Bounds of the reward, in its own units.
    collapsed : bool or None
        Whether the run collapsed, where its user says so: it comes before what the rewards show.
    collapsed_at : float or None
        Optimizer step from which it had, as its user says.
    format, framework : str
        Reader of the file, and trainer whose keys it holds.
    copy_of : str or None
        Id of another run with the same numbers; only that one is fitted.
    keys_read, keys_understood, keys_ignored : dict, tuple, tuple
        Series name -> key of the log; keys whose meaning is known and that were not needed; keys
        that were seen and not understood.
    derivations : dict of str to str
        Hyperparameter -> where it was read, or the arithmetic by which it was reached.
    assumptions, warnings : tuple of str
        What was assumed, and what looked wrong but did not stop the reading.
    """

    id: str
    path: str
    model: str | None = None
    task: str | None = None
    parameters: Positive | None = None
    hyperparameters: PartialSettings = PartialSettings()
    step: FloatArray
    step_unit: StepUnit = "optimizer"
    series: dict[str, FloatArray]
    parts: dict[str, FloatArray] = Field(default_factory=dict)
    scores: dict[str, Score] = Field(default_factory=dict)
    missing: dict[str, Missing] = Field(default_factory=dict)
    eval_step: FloatArray = Field(default_factory=lambda: np.zeros(0))
    eval_reward: FloatArray = Field(default_factory=lambda: np.zeros(0))
    logging_steps: PositiveInt = 1
    reward_floor: float | None = None
    reward_ceiling: float | None = None
    collapsed: bool | None = None
    collapsed_at: float | None = None
    format: str = ""
    framework: str = ""
    copy_of: str | None = None
    keys_read: dict[str, str] = Field(default_factory=dict)
    keys_understood: tuple[str, ...] = ()
    keys_ignored: tuple[str, ...] = ()
    derivations: dict[str, str] = Field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _shapes_agree(self) -> PilotRun:
        if "reward" not in self.series and (self.step.size or not self.eval_step.size):
            raise ValueError("series has no 'reward'")
        for name, values in (*self.series.items(), *self.parts.items()):
            if values.shape != self.step.shape:
                raise ValueError(f"series '{name}' has {values.size} rows, step {self.step.size}")
        if self.eval_step.shape != self.eval_reward.shape:
            raise ValueError("eval_step and eval_reward differ in length")
        if np.any(np.diff(self.step) <= 0):
            raise ValueError("step must increase strictly")
        return self

    @property
    def is_eval_only(self) -> bool:
        """Whether the log holds evaluations and no train reward: it can be shown, not fitted."""
        return "reward" not in self.series

    @property
    def reward(self) -> FloatArray:
        """Train reward per row, shape (rows,), in the log's own units; empty if eval-only."""
        return self.series.get("reward", np.zeros(0))

    def __repr__(self) -> str:
        """Model, task, settings that tell runs apart, and length."""
        own = self.hyperparameters
        step = self.eval_step if self.is_eval_only else self.step
        last = f"{step[-1]:g}" if step.size else "none"
        known = (own.learning_rate, own.group_size, own.refresh_interval)
        rate, group, interval = ("unknown" if one is None else one for one in known)
        return (
            f"PilotRun({self.id!r}: {self.model or 'model'} on {self.task or 'task'}; learning "
            f"rate {rate}, group size {group}, K {interval}; {step.size} rows to step {last})"
        )

    __str__ = __repr__

    def with_updates(self, **updates: Any) -> PilotRun:
        """Copy with some attributes replaced, validated again."""
        names = PilotRun.model_fields  # of a run as users have it, not of one that is being read
        return PilotRun(**{name: updates.get(name, getattr(self, name)) for name in names})

    def until(self, step: float) -> PilotRun:
        """Return the run as if it had been stopped after an optimizer step.

        Parameters
        ----------
        step : float
            Rows and evaluations beyond it are left out.
        """
        known, tested = self.step <= step, self.eval_step <= step
        return self.with_updates(
            step=self.step[known],
            series={name: values[known] for name, values in self.series.items()},
            parts={name: values[known] for name, values in self.parts.items()},
            scores={
                name: Score(at[at <= step], values[at <= step])
                for name, (at, values) in self.scores.items()
            },
            eval_step=self.eval_step[tested],
            eval_reward=self.eval_reward[tested],
        )

    def first_part(self, share: float) -> PilotRun:
        """Return the run as if it had been stopped after a share, in (0, 1), of its last step."""
        return self.until(share * self.step[-1])

    def before(self, row: int) -> PilotRun:
        """Return the run as it was before one of its rows, counted from 0, was written."""
        return self.until(self.step[row - 1] if row else 0.0)


def first_and_last(values: FloatArray) -> tuple[float, float] | None:
    """Means of the first and of the last tenth of a series, or None where nothing is finite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    share = max(1, finite.size // 10)
    return float(finite[:share].mean()), float(finite[-share:].mean())


def parameters_from_name(model: str) -> float | None:
    """Read a parameter count off a model's name: 7e9 of ``Qwen/Qwen2.5-7B-Instruct``, or None."""
    # An underscore between digits may stand for a point: 1_5b.
    at = r"(?<![a-zA-Z0-9.])(?:(?<!\d_)|(?<=\.\d_))"
    found = re.search(at + r"(\d+(?:\.\d+)?)\s*([bBmM])(?![a-zA-Z0-9])", model)
    if found is None:
        return None
    return float(found.group(1)) * {"b": 1e9, "m": 1e6}[found.group(2).lower()]


def model_name(named: str) -> str:
    """Name of a model, where a path into the cache of the hub is given; else what is given."""
    found = re.search(r"(?:^|[/\\])models--([^/\\]+)", named)
    return found[1].replace("--", "/", 1) if found else named


def mark_copies(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Say of each run that repeats another one's numbers which that is."""
    richness = [len(r.series) + len(r.hyperparameters.model_dump(exclude_none=True)) for r in runs]
    order = sorted(range(len(runs)), key=lambda i: (-richness[i], i))
    originals: dict[tuple[bool, int], list[tuple[float, PilotRun]]] = {}
    marked = list(runs)
    for i in order:
        run, curve = runs[i], _curve(runs[i])
        same = originals.setdefault((run.is_eval_only, curve.size), [])
        known = curve[np.isfinite(curve)]
        # Means differ by no more than rows do, and of a thousand runs they are quickly compared.
        level, reach = (float(known.mean()), _reach(known)) if known.size else (0.0, 0.0)
        near = (other for mean, other in same if abs(mean - level) <= 1.01 * reach)
        agreeing = (other for other in near if _agree(curve, _curve(other)))
        twin = next((other for other in agreeing if _is_proof(run, other, curve)), None)
        if twin is None:
            same.append((level, run))
        else:
            marked[i] = run.with_updates(copy_of=twin.id)
    return marked


def _curve(run: PilotRun) -> FloatArray:
    return run.eval_reward if run.is_eval_only else run.reward


def _is_proof(one: PilotRun, other: PilotRun, curve: FloatArray) -> bool:
    """Whether two runs whose rewards agree cannot have come to that by chance."""
    if _is_varied(curve):
        return True
    # A flat reward proves nothing; what else was logged may.
    shared = set(one.series) & set(other.series) - {"reward", "learning_rate"}
    pairs = [(one.series[name], other.series[name]) for name in shared]
    return any(_is_varied(a) for a, _ in pairs) and all(_agree(a, b) for a, b in pairs)


def _is_varied(values: FloatArray) -> bool:
    return np.unique(values[np.isfinite(values)]).size >= LEAST_DISTINCT


def _agree(a: FloatArray, b: FloatArray) -> bool:
    """Whether two series agree up to printing, missing cells included."""
    with np.errstate(invalid="ignore"):
        worst = np.fmax.reduce(np.abs(a - b))
    return bool(worst <= _reach(a)) and np.array_equal(np.isfinite(a), np.isfinite(b))


def _reach(values: FloatArray) -> float:
    """By how much copies of a series may differ: a share of its range, as consoles print it."""
    with np.errstate(over="ignore"):
        return 2e-3 * max(float(np.fmax.reduce(values) - np.fmin.reduce(values)), 1e-12)


def fingerprint(run: PilotRun) -> str:
    """Hash of a run's first rows and its settings, which a longer or shorter log of it shares."""
    known = np.isfinite(run.reward)
    rewards = [f"{round(float(r), DIGITS) + 0.0:.{DIGITS}g}" for r in run.reward[known]]
    distinct = list(dict.fromkeys(rewards))
    if len(distinct) < LEAST_DISTINCT:
        return ""
    count = rewards.index(distinct[LEAST_DISTINCT - 1]) + 1
    settings = run.hyperparameters
    steps = [f"{step:g}" for step in run.step[known][:count]]
    rate = f"{settings.learning_rate:.3g}" if settings.learning_rate else ""
    parts = ((rate, settings.group_size), steps, rewards[:count])
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def run_digest(run: PilotRun) -> str:
    """Hash of a run's rows and settings."""
    fields = run.model_dump(mode="json", include=DIGESTED)
    # Only where they are stated: digests of other runs are what they were.
    fields |= run.model_dump(include={"collapsed", "collapsed_at"}, exclude_none=True)
    fields["path"] = fields["path"].replace("\\", "/").rpartition("/")[2]
    sha = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    rows = {"step": run.step, "eval_step": run.eval_step, "eval_reward": run.eval_reward}
    for kind in (rows, run.series, run.parts):
        for name in sorted(kind):
            sha.update(f"|{name}|".encode())
            sha.update(np.ascontiguousarray(kind[name], dtype=float).tobytes())
    return sha.hexdigest()
