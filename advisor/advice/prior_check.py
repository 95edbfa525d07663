"""How far the priors decide an answer: asked again with the priors a little less and more sure.

Raising every prior to a power re-weights the draws, so the advised configuration and those that it
was chosen among are judged again without a new fit.
"""

from __future__ import annotations

import numpy as np

from advisor.advice.answer_fields import PriorCheck
from advisor.advice.evaluate import Evaluation, Evaluator
from advisor.findings import log_prior
from advisor.forecast import line_for, log_update_norm, recalibrated, stability_draws
from advisor.model import smoothed_weights

POWERS = (0.8, 1.25)
"""Powers of the priors (arXiv:2107.14054, which goes closer to 1 for a derivative): what an eighth
less or more of spread would do."""

COMPARED = 24
"""Configurations with the best values among which the choice is asked again."""


def prior_checks(
    evaluate: Evaluator, chosen: Evaluation, level: float, indifference: float
) -> tuple[PriorCheck, ...]:
    """Answer under the priors at other powers."""
    forecaster = evaluate.forecaster
    compared = sorted(evaluate.tried, key=lambda e: e.value, reverse=True)[:COMPARED]
    if chosen not in compared:
        compared.append(chosen)
    # A price or a time does not turn on the draws: there the choice stands or falls with P.
    is_reward = evaluate.objective.kind == "reward" and evaluate.objective.quantile is None
    rewards, stable, norms = [], [], []
    for one in compared:
        planned, steps = evaluate.planned(one.settings), one.cost.steps
        norms.append(log_update_norm(planned.learning_rate, forecaster.target.parameters))
        scaled = forecaster.scaled_reward(planned, steps)
        rewards.append(forecaster.outcome_of(scaled)[:, 0])
        stable.append(stability_draws(forecaster, planned, steps, level=scaled[:, 0]))
    logs = log_prior(forecaster.posterior)[forecaster.indices]
    at, (low, high) = compared.index(chosen), forecaster.outcome_bounds
    slack = indifference * (high - low) if is_reward else 0.0
    line = line_for(forecaster.posterior.meta.priors, chosen.settings)
    fixed = np.array([one.value for one in compared])
    found = []
    for power in POWERS:
        weights, k = smoothed_weights((power - 1) * logs)
        means = np.array([float(weights @ draws) for draws in rewards])
        worth = np.array(
            [low + float(weights @ (p * (r - low))) for r, p in zip(rewards, stable, strict=True)]
        )
        said = [float(weights @ draws) for draws in stable]
        probabilities = np.array(
            [recalibrated(one, line, norm) for one, norm in zip(said, norms, strict=True)]
        )
        is_enough = np.minimum(said, probabilities) >= level
        values = np.where(is_enough, worth if is_reward else fixed, -np.inf)
        if values[at] >= values.max() - slack > -np.inf:
            best: Evaluation | None = chosen
        else:
            best = compared[int(values.argmax())] if np.isfinite(values).any() else None
        found.append(
            PriorCheck(
                power=power,
                reward=float(means[at]),
                stability=float(probabilities[at]),
                best=None if best is None else evaluate.planned(best.settings),
                pareto_k=float(k),
            )
        )
    return tuple(found)
