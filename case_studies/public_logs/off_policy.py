"""The off-policy sweep: which refresh schedules are said to collapse, from how little of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instability import neutral
from sources import Labelled

from advisor.errors import InputError, NotConvergedError
from advisor.forecast.fitting import fit
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.survival import stability
from advisor.model.posterior import Posterior
from advisor.model.presets import preset_for
from advisor.model.priors import load_priors
from advisor.runs.pilot_run import PilotRun

SWEEP, EVERY = "off_policy_sweep", "every run, whole"


def _whole(run: PilotRun) -> PilotRun:
    return run


def designs(
    rows: Sequence[Labelled],
) -> dict[str, tuple[Sequence[Labelled], Callable[[PilotRun], PilotRun]]]:
    """Which runs are pilots, and how much of each is seen."""
    alive = [row for row in rows if row.label != "collapse"]
    found: dict[str, tuple[Sequence[Labelled], Callable[[PilotRun], PilotRun]]] = {
        "first quarter of every run": (rows, lambda run: run.first_part(0.25)),
        "first half of every run": (rows, lambda run: run.first_part(0.5)),
        "runs that lived, whole": (alive, _whole),
        EVERY: (rows, _whole),
    }
    for dead in rows:
        if dead.label == "collapse":
            settings = dead.run.hyperparameters
            schedule = (
                f"{settings.minibatches_per_refresh or 1} x {settings.epochs_per_refresh or 1}"
            )
            found[f"all but {schedule}, whole"] = ([row for row in rows if row is not dead], _whole)
    return found


def boundary(rows: Sequence[Labelled], *, only: Sequence[str] = ()) -> dict[str, Any]:
    """P(stable) of every schedule under every design, as the preset is and made neutral."""
    preset = load_priors(preset_for([row.run for row in rows])[0])
    asked = {
        "as the preset is": preset,
        "no knowledge of epochs": neutral(preset),
    }
    table = []
    for row in rows:
        settings = row.run.hyperparameters
        table.append(
            {
                "id": row.id,
                "minibatches": settings.minibatches_per_refresh or 1,
                "epochs": settings.epochs_per_refresh or 1,
                "steps": int(row.run.step[-1]),
                "label": row.label,
            }
        )
    said: dict[str, dict[str, Any]] = {}
    for name, (pilots, part) in designs(rows).items():
        if only and name not in only:
            continue
        for prior, chosen in asked.items():
            try:
                posterior = fit([part(row.run) for row in pilots], priors=chosen)
            except (NotConvergedError, InputError) as error:
                said.setdefault(name, {})[prior] = {"no_answer": str(error).split(":")[0]}
                continue
            said.setdefault(name, {})[prior] = _judged(rows, posterior)
    return {"schedules": table, "preset": preset.name, "said": said}


def _judged(rows: Sequence[Labelled], posterior: Posterior) -> dict[str, Any]:
    """P(stable) of every run by its last step, its parts, and how it divides the two kinds."""
    found, parts = [], []
    for row in rows:
        run = row.run
        target = Target(run.task or "task", run.model or "model", float(run.parameters or 0))
        settings = run.hyperparameters.completed()
        own = stability(Forecaster(posterior, target), settings, int(run.step[-1]))
        found.append(round(own.probability, 3))
        parts.append([round(v, 3) for v in (own.refresh, own.tolerance, own.fluctuation)])
    died = [row.label == "collapse" for row in rows]
    of_collapsed = [p for p, dead in zip(found, died, strict=True) if dead]
    of_stable = [p for p, dead in zip(found, died, strict=True) if not dead]
    pairs = [(s < w) + 0.5 * (s == w) for s in of_collapsed for w in of_stable]
    return {
        "collapses_in_pilots": sum(run.collapse_step is not None for run in posterior.meta.runs),
        "stable": found,
        "refresh_tolerance_fluctuation": parts,
        "collapsed_below_half": [sum(p < 0.5 for p in of_collapsed), len(of_collapsed)],
        "lived_above_half": [sum(p > 0.5 for p in of_stable), len(of_stable)],
        "auc": round(sum(pairs) / len(pairs), 3) if pairs else None,
    }
