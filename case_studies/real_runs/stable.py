"""The line on which the posterior's P(stable) of real runs lies, when a part of each is seen.

    python case_studies/real_runs/stable.py FOLDER... --interim FITS [--seen 0.25] [--out FILE]

Every run that had not collapsed by the cut is asked for the probability that it has not by its end.
The posterior of its cohort is asked, cut at --seen and fitted under a preset learned without the
repository. The line is what the preset ``full_finetuning`` ships. What `watch` says is scored in
`case_studies/stability`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from analogue_learning import update_norm_of
from run import Run, by_cohort, first_part, load, marks_of, presets

from advisor.backtesting.cases import is_lora
from advisor.common import EngineSettings, Item
from advisor.diagnosis.collapse import find_final_fall
from advisor.forecast import Forecaster, fitted_or_none, stabilities_and_draws
from advisor.model import Priors

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from engine_flags import add_engine_flags, on_engine, results  # noqa: E402
from manifest import write_result  # noqa: E402
from recalibration import learn_line  # noqa: E402

LEAST_SURVIVAL = 1e-9
"""Chance of having lived so far below which a draw counts as if it had that."""


def asked_of_cohort(task: tuple[Sequence[Run], float, Priors]) -> list[dict[str, Any]]:
    """P(stable) of the runs of a cohort that live at the cut, None where no curve is pooled."""
    members, share, priors = task
    warnings.simplefilter("ignore")
    parts = [first_part(run.pilot, share) for run in members]
    posterior, _ = fitted_or_none(parts, priors)
    places = {}
    if posterior is not None:
        places = {one.id: index for index, one in enumerate(posterior.meta.runs)}
    found = []
    for run, part in zip(members, parts, strict=True):
        floor = run.bounds[0]
        if find_final_fall(part.step, part.reward, floor)[0].unstable:
            continue
        said = None
        if posterior is not None and part.id in places:
            forecaster = Forecaster.of_pilot(posterior, places[part.id])
            settings = posterior.meta.runs[places[part.id]].settings
            steps = int(run.pilot.step[-1])
            planned = settings.or_planned_over(steps)
            # It has lived so far: only the rest can kill it.
            so_far = forecaster.survival(planned, int(part.step[-1]))
            whole = stabilities_and_draws(forecaster, planned, steps)[1]
            said = float((whole / np.maximum(so_far, LEAST_SURVIVAL)).mean())
        found.append(
            {
                "run": run.pilot.id,
                "repository": run.repository,
                "cohort": run.cohort,
                "said": said,
                "died": find_final_fall(run.pilot.step, run.pilot.reward, floor)[0].unstable,
            }
        )
    return found


def main() -> None:
    """Ask, learn, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, required=True, help="fits, made where missing")
    parser.add_argument("--seen", type=float, default=0.25)
    parser.add_argument("--out", type=Path, default=HERE / "real_stable.json")
    add_engine_flags(parser)
    given = parser.parse_args()
    runs, _ = load(given.folders)
    priors = presets(runs, None, given.interim)
    items = []
    for name, part in by_cohort(runs).items():
        preset = priors[part[0].repository, is_lora(part[0].pilot)]
        items.append(Item(name, (part, given.seen, preset), marks_of(part, given.seen, preset)))
    where: EngineSettings = {**on_engine(given), "keep": given.keep or given.interim}
    parts = results(asked_of_cohort, items, "Asking for stability", where)
    asked = [one for part in parts for one in part]
    norms = {run.pilot.id: update_norm_of(run.pilot) for run in runs}
    told = [one for one in asked if one["said"] is not None]
    line = learn_line(
        [one["said"] for one in told],
        [not one["died"] for one in told],
        [one["repository"] for one in told],
        log_norm=[norms[one["run"]] for one in told],
    )
    document = {
        "seen": given.seen,
        "runs": len(asked),
        "died": sum(one["died"] for one in asked),
        "line": line._asdict()
        | {"groups": len({one["repository"] for one in told}), "runs": len(told)},
        "asked": asked,
    }
    write_result(given.out, document, Path(__file__), [])
    print(document["line"])


if __name__ == "__main__":
    main()
