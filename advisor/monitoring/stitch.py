"""Join the rows of a log that was rotated, or of a run that was resumed into a new file."""

from __future__ import annotations

import numpy as np

from advisor.run.pilot_run import PilotRun
from advisor.run.settings import PartialSettings
from advisor.theory.arrays import BoolArray, FloatArray


def stitched(earlier: PilotRun, later: PilotRun) -> tuple[PilotRun, bool]:
    """Put the rows of an earlier file before those of a later one.

    Parameters
    ----------
    earlier, later : PilotRun
        Where they overlap, the later rows count: a run that was resumed repeats steps.

    Returns
    -------
    run : PilotRun
    is_joined : bool
        False where the later file starts no later than the earlier one: it holds all, or the run
        was started from scratch.
    """
    if not later.step.size or not earlier.step.size or earlier.step_unit != later.step_unit:
        return later, False
    kept = earlier.step < later.step[0]
    if not kept.any():
        return later, False
    tested = earlier.eval_step < (later.eval_step[0] if later.eval_step.size else np.inf)
    return (
        later.with_updates(
            step=np.concatenate([earlier.step[kept], later.step]),
            series=_joined(earlier.series, later.series, kept, later.step.size),
            parts=_joined(earlier.parts, later.parts, kept, later.step.size),
            eval_step=np.concatenate([earlier.eval_step[tested], later.eval_step]),
            eval_reward=np.concatenate([earlier.eval_reward[tested], later.eval_reward]),
            hyperparameters=_settings(earlier.hyperparameters, later.hyperparameters),
        ),
        True,
    )


def _joined(
    earlier: dict[str, FloatArray],
    later: dict[str, FloatArray],
    kept: BoolArray,
    rows: int,
) -> dict[str, FloatArray]:
    return {
        name: np.concatenate(
            [
                earlier.get(name, np.full(kept.size, np.nan))[kept],
                later.get(name, np.full(rows, np.nan)),
            ]
        )
        for name in {**earlier, **later}
    }


def _settings(earlier: PartialSettings, later: PartialSettings) -> PartialSettings:
    """Settings of the later file; what it does not tell, as before."""
    told = {name: value for name, value in later.model_dump().items() if value is not None}
    return PartialSettings.model_validate({**earlier.model_dump(), **told})
