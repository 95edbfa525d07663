"""Fit anew, with the run among its pilots, where importance weights say that they fail."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.common import Progress, silent
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import fit
from advisor.monitoring.update import Update
from advisor.monitoring.watcher import Watch
from advisor.runs import PilotRun

MORE_ROWS = 1.5
"""Times the rows of the last fit that a run must have before it is fitted again."""


class Refitter:
    """Keeps a watch fit for its run.

    Parameters
    ----------
    pilots : sequence of PilotRun
        That the posterior was fitted to.
    """

    def __init__(self, pilots: Sequence[PilotRun]) -> None:
        self.pilots = list(pilots)
        self._rows = 0.0

    def __call__(
        self, watch: Watch, run: PilotRun, update: Update, progress: Progress = silent
    ) -> tuple[Watch, str] | None:
        """Fit again where it is due and the run has grown enough: the watch, and what to say."""
        if not update.refit_due or run.step.size < MORE_ROWS * self._rows:
            return None
        self._rows = float(run.step.size)
        others = [pilot for pilot in self.pilots if pilot.id != run.id]
        own = run.with_updates(
            task=update.task,
            model=update.model,
            parameters=dict(
                zip(watch.posterior.meta.groups, watch.posterior.meta.group_parameters, strict=True)
            )[(update.task, update.model)],
            hyperparameters=update.settings,
        )
        try:
            posterior = fit([*others, own], priors=watch.posterior.meta.priors, progress=progress)
        except (InputError, NotConvergedError) as error:
            return watch, f"the pilots could not be fitted anew with this run: {error}"
        fresh = Watch(
            posterior,
            target_reward=watch.target_reward,
            planned_steps=watch.planned_steps,
            level=watch.level,
            draws=watch.draws,
            seed=watch.seed,
            fitted=own,
        )
        return fresh, f"fitted anew with this run (Pareto k was {update.pareto_k:.2f})"
