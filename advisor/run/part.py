"""The first part of a run, as if it had been stopped there."""

from __future__ import annotations

from advisor.run.pilot_run import PilotRun


def first_part(run: PilotRun, share: float) -> PilotRun:
    """Cut a run after a share of its optimizer steps.

    Parameters
    ----------
    run : PilotRun
    share : float
        In (0, 1).

    Returns
    -------
    part : PilotRun
        Rows and evaluations up to that step.
    """
    last = share * run.step[-1]
    known, tested = run.step <= last, run.eval_step <= last
    return run.with_updates(
        step=run.step[known],
        series={name: values[known] for name, values in run.series.items()},
        parts={name: values[known] for name, values in run.parts.items()},
        eval_step=run.eval_step[tested],
        eval_reward=run.eval_reward[tested],
    )
