"""Fits made up, so that what surrounds them can be tested in no time."""

from __future__ import annotations

import importlib

import pytest
from simulated_runs import Plan, made_up_posterior, with_meta

from advisor.errors import NotConvergedError
from advisor.model import cohort_of

STUCK = "stuck"
"""Task on which no fit converges."""


@pytest.fixture
def fits(monkeypatch):
    """What was fitted; a posterior made up of runs with the same settings is given in return."""
    asked = []

    def _fit(runs, *, priors, sampling):
        asked.append((runs, priors, sampling))
        if runs[0].task == STUCK:
            raise NotConvergedError("no")
        # As a fit does: copies are dropped, and a cohort that is flat is refused.
        kept = {run.id for run in cohort_of(runs).runs}
        # In another order: runs must be found by their ids.
        order = sorted((run for run in runs if run.id in kept), key=lambda run: run.id)
        posterior = made_up_posterior([_plan(run) for run in order], width=0.1, draws=100)
        named = [
            summary.model_copy(update={"id": run.id})
            for summary, run in zip(posterior.meta.runs, order, strict=True)
        ]
        fitted = {"runs": tuple(named)}
        if order[0].eval_reward.size:
            ends = [end for run in order for end in (run.eval_reward.min(), run.eval_reward.max())]
            fitted |= {"evaluated": (True,), "eval_floor": min(ends), "eval_ceiling": max(ends)}
        return with_meta(posterior, **fitted)

    for name in ("forecast", "forecast.fitting"):
        monkeypatch.setattr(importlib.import_module(f"advisor.{name}"), "fit", _fit)
    return asked


def _plan(run):
    settings = run.hyperparameters
    return Plan(
        settings.learning_rate,
        settings.group_size,
        task=run.task,
        model=run.model,
        parameters=run.parameters,
    )
