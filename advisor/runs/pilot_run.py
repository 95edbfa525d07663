"""A pilot run as its log tells it, with units, bounds and why a value is missing."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, Field, ValidationError, model_validator

from advisor.errors import InputError
from advisor.runs.arrays import BoolArray, FloatArray
from advisor.runs.frames import run_fields
from advisor.runs.settings import REQUIRED, TABLES, PartialSettings, Positive, PositiveInt
from advisor.text import html_table

if TYPE_CHECKING:
    import pandas as pd

Missing = Literal["not logged", "not applicable", "not finite", "cut"]
"""Why a value is absent: never written, meaningless here, NaN or inf, lost by the logger."""

IN_NO_RUN = "part of no run"  # How a warning ends of rows or files that became part of none

IN_WARMUP = "the log stops within the warm-up, at a learning rate of"
"""How a warning begins of runs that never had the learning rate that was set."""

NOT_GRPO = "PPO with a value model, not GRPO: what is advised of groups was not learned from it"
"""How a warning ends of runs of the older method."""

NO_GROUP = "one completion is no group: those of a prompt were miscounted, or this is not GRPO"
"""What is wrong with a group size of 1, but for runs of the older method."""

LEAST_DISTINCT = 4  # Distinct values of the reward below which two runs may agree by chance
DIGITS = 3  # Decimals and significant digits of a reward that count: consoles print four

DIGESTED = {"id", "model", "task", "parameters", "hyperparameters", "missing", "copy_of"}
DIGESTED |= {"logging_steps", "step_unit", "reward_floor", "reward_ceiling", "path"}
"""What a digest of a run is made of, next to its rows."""

NO_PILOT = (
    "a later stage or a resumed run is no pilot of its own: join the logs of a resumed run, name a "
    "task for each stage in pilots.toml, or leave the later ones out"
)
"""How a warning ends of a run that begins where another one ends."""

STARTS_APART = "runs that count as one model on one task start at"
"""How a warning begins of runs that are pooled though their rewards may mean other things."""

WHY: dict[str, str] = REQUIRED | TABLES["asked"]  # Setting -> what is wrong without it

StepUnit = Literal["optimizer", "refresh", "unknown"]
"""What ``PilotRun.step`` counts: optimizer steps; or, as long as the refresh interval is not known,
batches of rollouts; or what only the user can say."""


class Score(NamedTuple):
    """A measure of answers that is logged beside the reward: steps and values, finite, in order."""

    step: FloatArray
    values: FloatArray


class PilotRun(BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """One training run, read from its log.

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
    not_finite : dict of str to ndarray
        Series -> steps of the rows that log it as NaN or infinite.
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
    gpus : int or None
        GPUs that the run was trained on, where its settings contain them.
    format, framework : str
        Reader of the file, and trainer whose keys it holds.
    rewards_are_held_out : bool
        Whether the rewards are held-out evaluations, for the log has no train rewards.
    copy_of : str or None
        Id of another run with the same numbers; only that one is fitted.
    keys_read, keys_understood, keys_ignored : dict, tuple, tuple
        Series name -> key of the log; keys whose meaning is known and that were not needed; keys
        that were seen and not understood.
    derivations : dict of str to str
        Hyperparameter -> where it was read, or the arithmetic by which it was reached.
    assumptions, warnings, left_out : tuple of str
        What was assumed, what looked wrong but stopped nothing, what was not read (first run only).
    """

    SERIES: ClassVar[tuple[str, ...]] = tuple(TABLES["series"])
    """Names of the per-row series that the package understands, in reading order."""

    LEAST_REWARDS: ClassVar = 3
    """Finite rewards below which a run shows no curve: start, direction, noise need three."""

    UNNAMED_MODEL: ClassVar = "model"
    UNNAMED_TASK: ClassVar = "task"  # What runs are grouped under whose logs name none

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
    not_finite: dict[str, FloatArray] = Field(default_factory=dict)
    eval_step: FloatArray = Field(default_factory=lambda: np.zeros(0))
    eval_reward: FloatArray = Field(default_factory=lambda: np.zeros(0))
    logging_steps: PositiveInt = 1
    reward_floor: float | None = None
    reward_ceiling: float | None = None
    collapsed: bool | None = None
    collapsed_at: float | None = None
    gpus: PositiveInt | None = None
    format: str = ""
    framework: str = ""
    rewards_are_held_out: bool = False
    copy_of: str | None = None
    keys_read: dict[str, str] = Field(default_factory=dict)
    keys_understood: tuple[str, ...] = ()
    keys_ignored: tuple[str, ...] = ()
    derivations: dict[str, str] = Field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

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

    def _repr_html_(self) -> str:
        """Settings, length and ends of the reward, as a notebook shows them."""
        known = self.hyperparameters.model_dump(exclude_none=True)
        ends = {"train reward": self.reward_ends, "held-out reward": self.eval_ends}
        rewards = {k: f"{v[0]:.3g} -> {v[1]:.3g}" for k, v in ends.items() if v is not None}
        named = {"model": self.model, "parameters": self.parameters, "task": self.task}
        length = {"rows": self.step.size, "last step": self.step[-1] if self.step.size else "-"}
        rows = {**named, **known, **length, **rewards, "missing": ", ".join(self.missing)}
        return html_table(self.id, ("", ""), ((k, v) for k, v in rows.items() if v is not None))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        settings: Mapping[str, Any],
        *,
        columns: Mapping[str, str] | None = None,
        **about: Any,
    ) -> PilotRun:
        """Make a run of the rows of a DataFrame.

        Parameters
        ----------
        frame : pandas.DataFrame
            A row for each logged optimizer step, counted from 1 in a column ``step`` or in the
            index. Columns by the names in ``SERIES``, of which ``reward`` is needed; held-out
            rewards in ``eval_reward``. Other columns are kept by name in ``keys_ignored``.
        settings : mapping
            Of the run, such as ``{"learning_rate": 1e-6, "group_size": 8}``.
        columns : mapping, optional
            Name of ours -> column, where the frame has other names: ``{"reward": "train/acc"}``.
        **about
            Other attributes, such as ``model="Qwen2.5-7B"``, ``task="gsm8k"``, ``parameters=7e9``,
            ``reward_ceiling=1.0``. Runs that are fitted together need an ``id`` each.

        Returns
        -------
        run : PilotRun

        Raises
        ------
        InputError
            There is no reward, a step is missing or there twice, or a setting is wrong.

        Examples
        --------
        ``run = PilotRun.from_frame(frame, {"learning_rate": 1e-6, "group_size": 8,
        "prompts_per_step": 16}, model="Qwen2.5-7B", task="gsm8k")``
        """
        made = {
            "id": "frame",
            "path": "a DataFrame",
            "parameters": cls.parameters_in(about.get("model") or ""),
            "hyperparameters": PartialSettings.checked(dict(settings), argument="settings"),
            **run_fields(frame, cls.SERIES, columns or {}),
            **about,
        }
        try:
            return cls(**made)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"]) or None
            raise InputError(first["msg"], argument="from_frame", key=key) from error

    def to_frame(self) -> pd.DataFrame:
        """Rows of the run, which :meth:`from_frame` takes back: a column for each series.

        Returns
        -------
        frame : pandas.DataFrame
            With optimizer steps as its index; held-out rewards are in ``eval_reward``.
        """
        import pandas as pd

        frame = pd.DataFrame(self.series, index=pd.Index(self.step, name="step"))
        if self.eval_step.size:
            at = pd.Index(self.eval_step, name="step")
            frame = frame.join(pd.Series(self.eval_reward, at, name="eval_reward"), how="outer")
        return frame

    def with_updates(self, **updates: Any) -> PilotRun:
        """Copy with some attributes replaced, validated again."""
        names = PilotRun.model_fields  # of a run as users have it, not of one that is being read
        return PilotRun(**{name: updates.get(name, getattr(self, name)) for name in names})

    def until(self, step: float) -> PilotRun:
        """Return the run as if stopped after an optimizer step: later rows and evaluations go."""
        known, tested = self.step <= step, self.eval_step <= step
        return self.with_updates(
            step=self.step[known],
            series={name: values[known] for name, values in self.series.items()},
            parts={name: values[known] for name, values in self.parts.items()},
            scores={k: Score(at[at <= step], v[at <= step]) for k, (at, v) in self.scores.items()},
            not_finite={name: at[at <= step] for name, at in self.not_finite.items()},
            eval_step=self.eval_step[tested],
            eval_reward=self.eval_reward[tested],
        )

    def first_part(self, share: float) -> PilotRun:
        """Return the run as if it had been stopped after a share, in (0, 1), of its last step."""
        return self.until(share * self.step[-1])

    def before(self, row: int) -> PilotRun:
        """Return the run as it was before one of its rows, counted from 0, was written."""
        return self.until(self.step[row - 1] if row else 0.0)

    def on_optimizer_steps(self, interval: int) -> Self:
        """Return a run whose row n counts refreshes of K steps on optimizer steps: row n at n K."""
        times: dict[str, Any] = {
            name: getattr(self, name) * interval for name in ("step", "eval_step", "logging_steps")
        }
        # A row then takes as long as K steps do, with the time of one of them.
        if (seconds := self.series.get("step_time_seconds")) is not None:
            times["series"] = self.series | {"step_time_seconds": seconds / interval}
        times["not_finite"] = {name: at * interval for name, at in self.not_finite.items()}
        times["scores"] = {name: Score(at * interval, v) for name, (at, v) in self.scores.items()}
        return self.model_copy(update=times | {"step_unit": "optimizer"})

    @property
    def reward_ends(self) -> tuple[float, float] | None:
        """Means of the first and of the last tenth of the rewards; None where none is finite."""
        return _ends(self.reward)

    @property
    def eval_ends(self) -> tuple[float, float] | None:
        """The same of the held-out rewards."""
        return _ends(self.eval_reward)

    @property
    def has_moved(self) -> bool:
        """Whether the last third of the train rewards differs from the first."""
        gap, error, _ = self._change
        # Standard errors between the ends of a run below which it has not moved.
        return abs(gap) > max(2.0 * error, 1e-9)

    @property
    def has_risen(self) -> bool:
        """Whether the last third of the train rewards, or any few rows, lie above the first."""
        gap, error, rise = self._change
        return gap > max(2.0 * error, 1e-9) or rise > 4.0

    @property
    def _change(self) -> tuple[float, float, float]:
        """Last third less the first, its error, and the highest rows above the first in errors."""
        reward = self.reward[np.isfinite(self.reward)]
        if reward.size < 2:
            return 0.0, 0.0, 0.0
        third, few = max(1, reward.size // 3), max(1, reward.size // 10)
        noise = np.std(np.diff(reward)) / np.sqrt(2) if reward.size > 2 else 0.0
        levels = np.convolve(reward, np.full(few, 1 / few), "valid")
        rise = (levels.max() - levels[0]) / max(noise * np.sqrt(2 / few), 1e-9)
        gap = reward[-third:].mean() - reward[:third].mean()
        return float(gap), float(noise * np.sqrt(2 / third)), float(rise)

    @property
    def is_at_floor(self) -> bool:
        """Whether the run shows nothing but the lowest reward after its first row: may be dead."""
        reward = self.reward[np.isfinite(self.reward)][1:]
        return bool(reward.size and (reward <= (self.reward_floor or 0.0)).all())

    @property
    def constant_reward(self) -> float | None:
        """The one reward of all rows and, where logged, of all completions; else None."""
        reward = self.reward[np.isfinite(self.reward)]
        is_one = reward.size > self.LEAST_REWARDS and np.all(reward == reward[0])
        return float(reward[0]) if is_one and not self._groups_differ.any() else None

    @property
    def _groups_differ(self) -> BoolArray:
        """Rows in which a group is logged whose rewards differ, shape (rows,)."""
        nothing = np.full(self.step.size, np.nan)
        spread = self.series.get("reward_std_within_group", nothing)
        silent = self.series.get("silent_group_share", nothing)
        return np.asarray((spread > 1e-6) | (silent < 1 - 1e-6))

    @property
    def frozen_since(self) -> float | None:
        """Step from which the gradient is exactly 0 though groups differ: no weight moves."""
        if self.is_eval_only or self.constant_reward is not None:
            return None
        gradient = self.series.get("gradient_norm", self.reward * np.nan)
        rows = np.isfinite(gradient)
        step, moves = self.step[rows], gradient[rows] != 0
        # A few rows may be odd ones.
        is_whole = moves.size > 0 and moves.mean() <= 0.05
        first = 0 if is_whole else int(np.flatnonzero(moves)[-1]) + 1 if moves.size else 0
        if moves.size - first < 5 or self._moves_after(step[first]):
            return None
        # Chance that none of so many steps met a group that differs.
        chance = np.log(self._silent_chance[rows][first:]).sum()
        return float(step[first]) if chance < np.log(1e-9) else None

    @property
    def _silent_chance(self) -> FloatArray:
        """Chance of a step without a group that differs, guessed high; shape (rows,)."""
        low = 0.0 if self.reward_floor is None else self.reward_floor
        share = (self.reward - low) / ((self.reward_ceiling or 1.0) - low or 1.0)
        chance = np.where((share >= 0) & (share <= 1), 1 - 4 * share * (1 - share), 0.5)
        if (spread := self.series.get("reward_std_within_group")) is not None:
            chance = np.where(spread > 1e-6, 0.3, 1.0)
        chance = self.series.get("silent_group_share", chance)
        return np.clip(np.nan_to_num(chance, nan=1.0), 0.05, 1.0)

    def _moves_after(self, step: float) -> bool:
        """Whether reward or KL rise from a step on: the policy moves, whatever the gradient."""
        for name in ("reward", "kl"):
            values = self.series.get(name, np.zeros(0))
            values = values[np.isfinite(values) & (self.step[: values.size] >= step)]
            third = values.size // 3
            if third > 1:
                first, last = values[:third], values[-third:]
                error = np.hypot(first.std(ddof=1), last.std(ddof=1)) / math.sqrt(third)
                if last.mean() - first.mean() > max(6 * error, 1e-9):
                    return True
        return False

    @property
    def lost_rewards(self) -> list[str]:
        """How many rewards are not finite, and the row of the first."""
        lost = np.flatnonzero(~np.isfinite(self.reward))
        many = f"{lost.size} of {self.reward.size} rewards are not finite or absurd: left out"
        return [f"{many}, the first in row {at + 1} at step {self.step[at]:g}" for at in lost[:1]]

    @property
    def seconds_per_step(self) -> float | None:
        """Median wall-clock seconds of an optimizer step, or None where no times were logged."""
        times = self.series.get("step_time_seconds", np.zeros(0))
        known = np.isfinite(times) & (times > 0)
        if not known.any():
            return None
        spacing = float(np.median(np.diff(self.step))) if self.step.size > 1 else 1.0
        steps_per_time = max(1.0, spacing / self.logging_steps)
        return float(np.median(times[known])) / steps_per_time

    @property
    def needs(self) -> dict[str, str]:
        """Unknown settings without which the run cannot be fitted -> what is wrong without each."""
        if self.is_eval_only:
            return {}
        lacking = self.hyperparameters.lacking
        if self.parameters is None:
            lacking.append("parameters")
        if self.step_unit == "refresh":
            factors = ("minibatches_per_refresh", "epochs_per_refresh")
            lacking += [name for name in factors if getattr(self.hyperparameters, name) is None]
        if self.step_unit == "unknown":
            lacking.append("step_unit")
        return {name: WHY[name] for name in lacking}

    @property
    def questions(self) -> dict[str, str]:
        """What the run needs, and what is worth giving though a fit works without it."""
        asked = ["adapter"] if self.parameters is not None and self.may_be_lora else []
        # OpenRLHF logs a KL whatever its coefficient.
        is_known = self.framework == "OpenRLHF" or self.hyperparameters.kl_coefficient is not None
        if not is_known and np.any(np.nan_to_num(self.series.get("kl", 0.0))):
            asked.append("kl_coefficient")
        return self.needs | {name: WHY[name] for name in asked}

    @property
    def may_be_lora(self) -> bool:
        """Whether a log without an adapter has a rate of LoRA, or a name, its folder's included."""
        known = self.hyperparameters
        rate, size = TABLES["like_lora"]["learning_rate"], TABLES["like_lora"]["parameters"]
        is_fast = (known.learning_rate or 0) > rate and (self.parameters or math.inf) > size
        is_named = "lora" in "/".join([*re.split(r"[\\/]", self.path)[-3:], self.id]).lower()
        return known.adapter is None and (is_fast or is_named) and not self.is_eval_only

    @property
    def fingerprint(self) -> str:
        """Hash of first rows and settings, which a longer or shorter log of the run shares."""
        known = np.isfinite(self.reward)
        rewards = [f"{round(float(r), DIGITS) + 0.0:.{DIGITS}g}" for r in self.reward[known]]
        distinct = list(dict.fromkeys(rewards))
        if len(distinct) < LEAST_DISTINCT:
            return ""
        count = rewards.index(distinct[LEAST_DISTINCT - 1]) + 1
        settings = self.hyperparameters
        steps = [f"{step:g}" for step in self.step[known][:count]]
        rate = f"{settings.learning_rate:.3g}" if settings.learning_rate else ""
        parts = ((rate, settings.group_size), steps, rewards[:count])
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """Hash of the rows and settings."""
        fields = self.model_dump(mode="json", include=DIGESTED)
        # Only where they are stated: digests of other runs are what they were.
        fields |= self.model_dump(include={"collapsed", "collapsed_at"}, exclude_none=True)
        fields["missing"].pop("kl_max", None)
        fields["path"] = fields["path"].replace("\\", "/").rpartition("/")[2]
        sha = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
        rows = {"step": self.step, "eval_step": self.eval_step, "eval_reward": self.eval_reward}
        for kind in (rows, self.series, self.parts):
            for name in sorted(kind):
                sha.update(f"|{name}|".encode())
                sha.update(np.ascontiguousarray(kind[name], dtype=float).tobytes())
        return sha.hexdigest()

    @staticmethod
    def parameters_in(model: str) -> float | None:
        """Parameter count in a model's name: 7e9 of ``Qwen/Qwen2.5-7B-Instruct``, or None."""
        # An underscore between digits may stand for a point: 1_5b.
        at = r"(?<![a-zA-Z0-9.])(?:(?<!\d_)|(?<=\.\d_))"
        found = re.search(at + r"(\d+(?:\.\d+)?)\s*([bBmM])(?![a-zA-Z0-9])", model)
        if found is None:
            return None
        return float(found.group(1)) * {"b": 1e9, "m": 1e6}[found.group(2).lower()]

    @property
    def to_check(self) -> list[str]:
        """Warnings of rows that are part of no run, and of what its settings or rewards mean."""
        last = "|".join((IN_NO_RUN, NOT_GRPO, NO_GROUP, NO_PILOT))
        shown = re.compile(f"({last})$|^({STARTS_APART}|{IN_WARMUP})")
        return [*filter(shown.search, self.warnings), *self.lost_rewards]

    @staticmethod
    def weighty(warnings: Iterable[str]) -> list[str]:
        """Sentences of those warnings of runs that bear on the answer, each once."""
        bearing = (STARTS_APART, NOT_GRPO, IN_WARMUP, NO_PILOT)
        found = dict.fromkeys(n for n in warnings if any(part in n for part in bearing))
        return [f"{note[0].upper()}{note[1:]}." for note in found]


def model_name(named: str) -> str:
    """Name of a model, where a path into the cache of a hub is given; else what is given."""
    named = re.sub(r"(.*kagglehub.*)/\d+/?$", r"\1", named)  # the number of its version
    found = re.search(r"(?:^|[/\\])models--([^/\\]+)", named)
    return found[1].replace("--", "/", 1) if found else named


def _ends(values: FloatArray) -> tuple[float, float] | None:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    share = max(1, finite.size // 10)
    return float(finite[:share].mean()), float(finite[-share:].mean())
