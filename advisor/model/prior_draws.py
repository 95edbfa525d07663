"""What a preset believes before any log: draws of a cohort, and curves of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.common import DEFAULT_SEED
from advisor.model import equations as eq
from advisor.model.cohort import Cohort
from advisor.model.parameters import LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Posterior, make_posterior
from advisor.model.priors import SPECTRUM, NormalPrior, Priors
from advisor.theory import FloatArray, inertial_time

GROUP_SIZE, INTERVAL, MOMENTUM = 8, 1, 0.9
"""Reference configuration of a curve; its learning rate, prompts and model size are the
reference's as well, so no exponent of a law has anything to act on."""

REFERENCE = f"learning rate at the reference, G {GROUP_SIZE}, K {INTERVAL}, momentum {MOMENTUM}"

BANDS = (0.5, 0.8, 0.95)
"""Probabilities of the central bands."""

GAIN = 0.95
"""Share of the gain whose time is asked for."""

COLLAPSE_STEPS = 1000
"""Optimizer steps within which the share of collapses is stated."""

TIMES = 160
LONGEST = 1e6
"""Points of a curve; optimizer steps at which it ends at the latest."""

_LARGEST_LOG = 700.0
"""Below the logarithm of the largest float."""


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
        return (
            f"Before any log {self.preset} believes of a new model on a new task ({REFERENCE}): "
            f"start {self.span('start')}, plateau {self.span('plateau')}, steps to "
            f"{GAIN:.0%} of the gain {self.span('time')}; {self.collapsed:.0%} of such runs "
            f"collapse within {COLLAPSE_STEPS:,} steps. Rewards as a share of floor to ceiling, "
            "80 % intervals."
        )

    def span(self, name: str) -> str:
        """Median and central 80 % interval of ``start``, ``plateau`` or ``time`` as text."""
        write = _steps if name == "time" else "{:.2f}".format
        low, high = self.bands(name)[0.8]
        return f"{write(self.median(name))} [{write(low)}, {write(high)}]"


def prior_predictive(priors: Priors, *, draws: int = 4000, seed: int = 0) -> PriorPredictive:
    """Draw what a preset believes about a run at the reference configuration."""
    rng = np.random.default_rng(seed)

    def draw(name: str) -> FloatArray:
        prior: NormalPrior = getattr(priors, name)
        return np.asarray(prior.mean + prior.sd * rng.standard_normal(draws))

    population = {name: draw(name.replace(".", "_")) for name in POPULATION}
    log_onset = draw("log_onset")
    headroom, slope = draw("headroom_logit"), draw("log_slope")
    stiffness = eq.task_log_stiffness(headroom[:, None], slope[:, None])
    population = eq.at_reference(population, stiffness)
    group = eq.group_level(
        population,
        headroom,
        slope,
        draw("start_logit"),
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
        float(INTERVAL),
        1.0,
    )
    time = _time_of(GAIN, run)
    horizon = min(10 ** np.ceil(np.log10(np.quantile(time, 0.9))), LONGEST)
    steps = np.geomspace(1.0, horizon, TIMES)
    reward = eq.expected_reward(
        steps,
        eq.RunLevel(*(np.asarray(value)[:, None] for value in run)),
        MOMENTUM,
        (INTERVAL - 1) / 2,
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
    """Optimizer steps to a share of the gain, shape (draws,): the curve inverted, fresh rollouts.

    ``(1 + d x^o)^(-1/d) = 1 - share`` gives x, the progress k times the inertial time; the latter
    lags the steps by at most mu / (1 - mu), so bisection has its bracket.
    """
    log_left = np.minimum(-np.log1p(-share) * run.dispersion, _LARGEST_LOG)
    log_progress = np.log(np.expm1(log_left) / run.dispersion) / run.onset
    wanted = np.exp(np.minimum(log_progress - np.log(run.stiffness), _LARGEST_LOG / 2))
    low, high = wanted, wanted + MOMENTUM / (1 - MOMENTUM)
    for _ in range(60):
        middle = (low + high) / 2
        is_early = inertial_time(middle, MOMENTUM) < wanted
        low, high = np.where(is_early, middle, low), np.where(is_early, high, middle)
    return np.asarray((low + high) / 2)


def prior_posterior(
    cohort: Cohort, priors: Priors, *, draws: int = 2000, seed: int = DEFAULT_SEED
) -> Posterior:
    """Draw from a preset what a posterior of a cohort would hold had nothing been seen of it."""
    placed = priors.at(cohort.reference)
    rng = np.random.default_rng(seed)

    def drawn(names: Sequence[str], *size: int) -> FloatArray:
        """Draws of shape (1, draws, names, *size)."""
        given = [getattr(placed, name.replace(".", "_")) for name in names]
        parts = [prior.mean + prior.sd * rng.standard_normal((1, draws, *size)) for prior in given]
        return np.stack(parts, axis=2)

    groups, runs = len(cohort.groups), len(cohort.runs)
    levels = drawn(LEVELS[:3], len(cohort.tasks))
    population = drawn(POPULATION)
    # Levels of loss and collapse are those at the reference, given how fast the task is learned.
    shared = dict(zip(POPULATION, np.moveaxis(population, 2, 0), strict=True))
    stiffness = eq.task_log_stiffness(levels[:, :, 0], levels[:, :, 1])
    raw = {
        "population": np.stack(list(eq.at_reference(shared, stiffness).values()), axis=2),
        "task_level": levels,
        "start_logit": drawn(["start_logit"], groups)[:, :, 0],
        "eval_level": drawn(LEVELS[4:], groups),
        "group_offset": rng.standard_normal((1, draws, 2, groups)),
        "run_offset": rng.standard_normal((1, draws, len(RUN_EFFECTS), runs)),
    }
    return make_posterior(
        cohort,
        priors,
        SPECTRUM,
        raw,
        {name: np.zeros((1, draws)) for name in ("diverging", "n_steps")},
        {
            name: (np.ones(values.shape[2:]), np.full(values.shape[2:], float(draws)))
            for name, values in raw.items()
        },
        {},
        seed=seed,
    )
