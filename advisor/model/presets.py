"""Presets: which one suits some runs, where its evidence ends, and one as table and curves.

Tables state of every entry its central 80 % interval, read on its natural scale; curves are what a
preset believes of one run before any log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from advisor.common import counted
from advisor.model import equations as eq
from advisor.model.parameters import PARAMETERS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import INTERVAL
from advisor.model.priors import HalfNormalPrior, NormalPrior, Priors, say
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, inertial_time

SMALL = 1e7  # Parameters below which a model is small: the evidence of that preset ends there

DECADE = 10.0
"""Factor beyond the sizes of the evidence, or of the pilots, from which a model is far away."""


def preset_for(runs: Sequence[PilotRun]) -> tuple[str, str]:
    """Preset whose evidence the runs lie in, or most of those that state an adapter, and why."""
    silent = [f"'{run.id}'" for run in runs if run.hyperparameters.adapter is None]
    lora = [run for run in runs if run.hyperparameters.adapter == "lora"]
    full = len(runs) - len(silent) - len(lora)
    which = f"LoRA is stated by {len(lora)} of {counted(len(runs), 'run')}"
    which += f", full fine-tuning by {full}: the runs disagree" if full else ""
    more = f" and {len(silent) - 3} more" if len(silent) > 3 else ""
    which += f"; no adapter is stated by {', '.join(silent[:3])}{more}" if silent else ""
    if len(lora) > full:
        return "lora", which
    if all_small(run.parameters for run in runs):
        why = f"every model has fewer than {SMALL:.0e} parameters"
        return "small_models", f"{why}; {which}" if lora else why
    return "full_finetuning", which if lora else "neither adapters nor small models alone"


def all_small(parameters: Iterable[float | None]) -> bool:
    """Whether models of these sizes are small, every one."""
    sizes = list(parameters)
    return bool(sizes) and all(size is not None and size < SMALL for size in sizes)


def outside_evidence(
    preset: Priors, settings: Settings, parameters: float, piloted: Sequence[float]
) -> str | None:
    """Say in what a target lies outside of what shaped a preset and of what was piloted."""
    domain = preset.domain
    known = ("adamw",) if domain is None else domain.optimizers
    if settings.optimizer not in known:
        rests = "every preset rests" if domain is None else f"preset '{preset.name}' rests"
        return f"the optimizer is {settings.optimizer.upper()}, and {rests} on AdamW"
    if domain is not None:
        if settings.adapter not in domain.adapters:
            return f"preset '{preset.name}' rests on adapter '{domain.adapters[0]}' alone"
        if not domain.least_parameters <= parameters <= domain.most_parameters:
            return (
                f"preset '{preset.name}' rests on models of {domain.least_parameters:.0e} to "
                f"{domain.most_parameters:.0e} parameters"
            )
    if not min(piloted) / DECADE <= parameters <= max(piloted) * DECADE:
        return "the model is more than ten times larger or smaller than any that was piloted"
    return None


SCALES = {parameter.entry: parameter.scale for parameter in PARAMETERS}


@dataclass(frozen=True)
class PriorRow:
    """One entry of a preset."""

    name: str
    mean: float | None
    sd: float
    scale: str
    lower: float
    median: float
    upper: float
    source: str


def prior_table(priors: Priors) -> list[PriorRow]:
    """Every entry of a preset, in the order of the preset."""
    return [_row(name, entry) for name, entry in prior_entries(priors).items()]


def prior_entries(priors: Priors) -> dict[str, NormalPrior | HalfNormalPrior]:
    """Distributions of a preset by name."""
    values = {name: getattr(priors, name) for name in type(priors).model_fields}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, NormalPrior | HalfNormalPrior)
    }


def natural_scale(name: str) -> tuple[str, Callable[[Any], Any]]:
    """How an entry is read; what is no parameter of the table is a logarithm."""
    scale = SCALES.get(name, "exp")
    if scale == "logistic":
        return scale, lambda value: 0.5 * (1 + math.tanh(0.5 * value))
    return scale, math.exp if scale == "exp" else float


def _row(name: str, entry: NormalPrior | HalfNormalPrior) -> PriorRow:
    tail = (1 - INTERVAL) / 2
    shares, mean = [tail, 0.5, 1 - tail], None
    if isinstance(entry, NormalPrior):
        mean = entry.mean
    else:
        shares = [(1 + share) / 2 for share in shares]  # of the half that is not negative
    scale, to_natural = natural_scale(name)
    lower, median, upper = (
        to_natural((mean or 0.0) + entry.sd * NormalDist().inv_cdf(share)) for share in shares
    )
    return PriorRow(name, mean, entry.sd, scale, lower, median, upper, entry.source)


GROUP_SIZE, REFRESH_INTERVAL, MOMENTUM = 8, 1, 0.9
"""Reference configuration of a curve; its learning rate, prompts and model size are the
reference's as well, so no exponent of a law has anything to act on."""

REFERENCE = (
    f"learning rate at the reference, G {GROUP_SIZE}, K {REFRESH_INTERVAL}, momentum {MOMENTUM}"
)

BANDS = (0.5, 0.8, 0.95)  # Probabilities of the central bands
GAIN = 0.95  # Share of the gain whose time is asked for
COLLAPSE_STEPS = 1000  # Optimizer steps within which the share of collapses is stated

TIMES = 160
LONGEST = 1e6  # Points of a curve; optimizer steps at which it ends at the latest
_LARGEST_LOG = 700.0  # Below the logarithm of the largest float


@dataclass(frozen=True)
class PriorPredictive:
    """Prior draws of a run of a new model on a new task, at the reference configuration."""

    preset: str
    steps: FloatArray
    reward: FloatArray
    start: FloatArray
    plateau: FloatArray
    time: FloatArray
    collapsed: float

    def bands(self, name: str) -> dict[float, tuple[float, float]]:
        """Central bands of ``start``, ``plateau`` or ``time`` by probability."""
        values = getattr(self, name)
        ends = {s: np.quantile(values, [(1 - s) / 2, (1 + s) / 2]) for s in BANDS}
        return {share: (float(low), float(high)) for share, (low, high) in ends.items()}

    def median(self, name: str) -> float:
        """Median of ``start``, ``plateau`` or ``time``."""
        return float(np.median(getattr(self, name)))

    @property
    def text(self) -> str:
        """What the draws say, with central 80 % intervals."""
        return say("believed", self, REFERENCE, GAIN, COLLAPSE_STEPS)

    def span(self, name: str) -> str:
        """Median and central 80 % interval of ``start``, ``plateau`` or ``time`` as text."""
        write = _steps if name == "time" else "{:.2f}".format
        low, high = self.bands(name)[0.8]
        return f"{write(self.median(name))} [{write(low)}, {write(high)}]"


def prior_predictive(priors: Priors, *, draws: int = 4000, seed: int = 0) -> PriorPredictive:
    """Draw what a preset believes about a run at the reference configuration."""
    rng = np.random.default_rng(seed)
    names = (*POPULATION, "log_onset", "headroom_logit", "log_slope")
    population = {name: priors.drawn(name, rng, draws) for name in names}
    log_onset, headroom, slope = (population.pop(name) for name in names[-3:])
    stiffness = eq.task_log_stiffness(headroom[:, None], slope[:, None])
    population = eq.at_reference(population, stiffness)
    group = eq.group_level(
        population,
        headroom,
        slope,
        priors.drawn("start_logit", rng, draws),
        rng.standard_normal(draws),
        rng.standard_normal(draws),
        0.0,
    )
    luck = rng.standard_normal((len(RUN_EFFECTS), draws))
    run = eq.run_level(
        population,
        group,
        np.zeros(draws),
        population["plateau_loss.level"],
        (luck[0], luck[1], luck[2]),
        log_onset,
        float(REFRESH_INTERVAL),
        1.0,
    )
    time = _time_of(GAIN, run)
    horizon = min(10 ** np.ceil(np.log10(np.quantile(time, 0.9))), LONGEST)
    steps = np.geomspace(1.0, horizon, TIMES)
    reward = eq.expected_reward(
        steps,
        eq.RunLevel(*(np.asarray(value)[:, None] for value in run)),
        MOMENTUM,
        (REFRESH_INTERVAL - 1) / 2,
        eq.uncorrected(population, 1.0)[:, None],
    )
    return PriorPredictive(
        priors.name,
        steps,
        reward,
        np.asarray(run.start),
        np.asarray(run.plateau),
        time,
        float(1 - np.exp(-COLLAPSE_STEPS * eq.hazard(population["hazard.level"])).mean()),
    )


def _steps(value: float) -> str:
    """Two digits of a number of steps, which no prior knows better."""
    if value > LONGEST:
        return f"over {LONGEST:,.0f}"
    return f"{float(f'{value:.2g}'):,.0f}"


def _time_of(share: float, run: eq.RunLevel) -> FloatArray:
    """Steps to a share of the gain, (draws,): the curve inverted, by bisection for momentum."""
    log_left = np.minimum(-np.log1p(-share) * run.dispersion, _LARGEST_LOG)
    log_progress = np.log(np.expm1(log_left) / run.dispersion) / run.onset
    wanted = np.exp(np.minimum(log_progress - np.log(run.stiffness), _LARGEST_LOG / 2))
    low, high = wanted, wanted + MOMENTUM / (1 - MOMENTUM)
    for _ in range(60):
        middle = (low + high) / 2
        is_early = inertial_time(middle, MOMENTUM) < wanted
        low, high = np.where(is_early, middle, low), np.where(is_early, high, middle)
    return np.asarray((low + high) / 2)
