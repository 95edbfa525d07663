"""What one look at a growing log says about the rest of the run."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from advisor.forecast import Band, Interval
from advisor.runs import Settings


class Update(BaseModel):
    """Forecast of a run from its log so far; rewards in reward units.

    Attributes
    ----------
    step, planned_steps : int
        Optimizer steps done and planned.
    reward : float
        Mean of the latest rows.
    start : float
        Expected reward before training.
    band : Band
        From now to the end.
    final : Interval
        Mean reward over the last tenth of the run, as a backtest judges it, given that it stays
        stable; of a language model pooled with what became of runs like it
        (`advisor.forecast.begun`), while the band is the curve's alone.
    final_eval : Interval or None
        Held-out reward at the end, where pilots of this model were evaluated.
    p_reach : float or None
        Probability of reaching the target by the end; None without a target.
    p_unstable : float
        Probability of being unstable at the end (`advice.stability`), given the run so far.
    p_little_left : float
        Probability that less than a hundredth of the reward range is still to be gained.
    share_made : float
        Share of the expected gain from start to end that is made, in [0, 1].
    surprise : float or None
        Probability, by what was logged before, of latest rows as low as they are; None as long as
        there are too few.
    lost_rows : int
        Latest rows in a row without a finite reward.
    fallen_since : float or None
        Optimizer step since which the reward lies a third below its best (`diagnosis.collapse`).
    gentler_rate : float or None
        Largest tried learning rate that keeps the rest of the run stable with the probability
        wanted, where the present one does not.
    pareto_k : float
        Of the importance weights.
    refit_due : bool
        Whether ``pareto_k`` says that only a new fit can tell.
    seconds : float
        Wall-clock time of this update.
    settings : Settings
        Of the run, completed.
    notes : tuple of str
        What was assumed, or differs from the pilots.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    task: str
    model: str
    step: int
    planned_steps: int
    reward: float
    start: float
    band: Band
    final: Interval
    final_eval: Interval | None
    p_reach: float | None
    p_unstable: float
    p_little_left: float
    share_made: float
    surprise: float | None
    lost_rows: int
    fallen_since: float | None
    gentler_rate: float | None
    pareto_k: float
    refit_due: bool
    seconds: float
    settings: Settings
    notes: tuple[str, ...] = ()
