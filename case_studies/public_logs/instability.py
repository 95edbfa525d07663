"""The hazard law as some repositories' collapses leave it, and what it says of other runs.

The hazard of `advisor.model` alone: its law, its priors, its definition of a collapse. Curves
are left out: one fit to the curves of all these tasks does not pass the package's own gate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sources import Labelled

from advisor.model import equations as eq
from advisor.model.cohort import Covariates, Reference, planned_factors
from advisor.model.parameters import LAWS
from advisor.model.presets import preset_for
from advisor.model.priors import Priors, load_priors
from advisor.model.sampling import cohort_of
from advisor.runs.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray

DRAWS, FREEDOM = 20_000, 5
TENFOLD = 10.0
"""Learning rate of an adapter over that of full fine-tuning at one speed (docs/theory, T39)."""


@dataclass(frozen=True)
class Hazard:
    """Draws of the hazard law with their weights, at a reference configuration."""

    law: FloatArray
    weight: FloatArray
    reference: Reference
    is_adapter_tenfold: bool

    @property
    def effective_draws(self) -> float:
        """Kish's number of equally weighted draws."""
        return float(1 / (self.weight**2).sum())

    def unstable(self, run: PilotRun) -> float:
        """Probability of a collapse within the steps that a run logged, from its settings."""
        settings = run.hyperparameters.completed()
        rate = settings.learning_rate
        if self.is_adapter_tenfold and settings.adapter == "lora":
            rate /= TENFOLD
        x = Covariates(
            np.log(rate / self.reference.learning_rate),
            np.log(settings.group_size / self.reference.group_size),
            np.log(settings.prompts_per_step / self.reference.prompts_per_step),
            np.log((run.parameters or 1) / self.reference.parameters),
            np.log(settings.minibatches_per_refresh),
            np.log(settings.epochs_per_refresh),
        )
        steps = int(run.step[-1])
        exposure = float((planned_factors(settings, steps) ** 2).sum())
        rate_per_step = eq.hazard(self.law @ eq.hazard_design(x))
        return float(self.weight @ -np.expm1(-rate_per_step * exposure))


def neutral(preset: Priors) -> Priors:
    """Preset that expects no more of epochs than of mini-batches.

    The package's own entry was read off one of these repositories, and says so in its source.
    """
    return preset.model_copy(update={"hazard_epochs": preset.hazard_minibatches})


def learned(
    rows: Sequence[Labelled], *, tenfold: bool = False, told: bool = True, draws: int = DRAWS
) -> Hazard:
    """Hazard law as the package's prior and the collapses of these runs leave it.

    Parameters
    ----------
    rows : sequence of Labelled
    tenfold : bool
        Whether an adapter's learning rate counts as a tenth of itself.
    told : bool
        Whether the prior knows of epochs what it read off a public sweep.
    draws : int
    """
    runs = [_tenth(row.run) if tenfold else row.run for row in rows]
    cohort = cohort_of(runs)
    prior = load_priors(preset_for([row.run for row in rows])[0])
    prior = prior if told else neutral(prior)
    rng = np.random.default_rng(0)

    def draw(name: str, *size: int) -> FloatArray:
        found = getattr(prior, name)
        return np.asarray(found.mean + found.sd * rng.standard_normal((draws, *size)))

    tasks = len(cohort.tasks)
    stiffness = eq.task_log_stiffness(draw("headroom_logit", tasks), draw("log_slope", tasks))
    names = ("plateau_loss.level", "plateau_loss.learning_rate", "hazard.level")
    population = {name: draw(name.replace(".", "_")) for name in names}
    level = eq.at_reference(population, stiffness)["hazard.level"]
    others = [getattr(prior, f"hazard_{term}") for term in LAWS["hazard"][1:]]
    mean = np.array([level.mean(), *(one.mean for one in others)])
    sd = np.array([level.std(), *(one.sd for one in others)])
    design = eq.hazard_design(cohort.covariates)

    def log_density(law: FloatArray) -> FloatArray:
        rate = eq.hazard(law @ design.T)
        events = np.log(rate) @ cohort.collapsed - rate @ cohort.exposure
        return np.asarray(events - (((law - mean) / sd) ** 2).sum(axis=-1) / 2)

    law, weight = _sampled(log_density, mean, draws)
    return Hazard(law, weight, cohort.reference, tenfold)


def _sampled(
    log_density: Callable[[FloatArray], FloatArray], start: FloatArray, draws: int
) -> tuple[FloatArray, FloatArray]:
    """Draws of a Student t round the mode, and weights that correct it."""
    found = minimize(lambda law: -float(log_density(law)), start)
    root = np.linalg.cholesky(found.hess_inv)
    rng = np.random.default_rng(1)
    tail = rng.chisquare(FREEDOM, draws) / FREEDOM
    away = rng.standard_normal((draws, start.size)) / np.sqrt(tail)[:, None]
    law = found.x + away @ root.T
    proposal = -(FREEDOM + start.size) / 2 * np.log1p((away**2).sum(axis=1) / FREEDOM)
    fit = log_density(law) - proposal
    weight = np.exp(fit - fit.max())
    return law, weight / weight.sum()


def _tenth(run: PilotRun) -> PilotRun:
    settings = run.hyperparameters
    if settings.adapter != "lora" or settings.learning_rate is None:
        return run
    rate = settings.learning_rate / TENFOLD
    series = {name: values for name, values in run.series.items() if name != "learning_rate"}
    factors = run.series.get("learning_rate")
    if factors is not None:
        series["learning_rate"] = factors / TENFOLD
    return run.with_updates(
        hyperparameters=settings.model_copy(update={"learning_rate": rate}), series=series
    )
