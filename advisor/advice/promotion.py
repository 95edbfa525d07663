"""Going on from a pilot: where the advised run is one that was begun, its steps are not lost."""

from __future__ import annotations

from pydantic import BaseModel

from advisor.advice.candidates import place_of
from advisor.advice.cost import Cost, CostModel
from advisor.advice.reasons import ending
from advisor.forecast import Target, pilots_of
from advisor.model import Posterior, RunSummary
from advisor.runs import Settings

RESUMED = {
    "TRL": "resume_from_checkpoint: <its output_dir>/checkpoint-{step}",
    "verl": "trainer.resume_mode=resume_path "
    "trainer.resume_from_path=<its default_local_dir>/global_step_{refresh}",
    "OpenRLHF": "--ckpt.load_enable --ckpt.path <its ckpt.path>",
}
"""How trainers go on from the state of a run, optimizer included; own loops have own ways."""


class Promotion(BaseModel, frozen=True):
    """A pilot that has the advised settings, and what is left of the run if it goes on."""

    pilot: str
    step: int  # optimizer steps that its log shows
    left: Cost  # of the rest of the run
    resume: str  # in the words of its trainer
    why_not: str | None = None  # where its state cannot go on as the advised run

    @property
    def text(self) -> str:
        """What to do, in a sentence."""
        if self.why_not is not None:
            return f"Pilot '{self.pilot}' has these settings, but cannot go on: {self.why_not}."
        return (
            f"Pilot '{self.pilot}' is the beginning of this run. If its checkpoint at step "
            f"{self.step} was kept, resume it for {self.left.steps} steps more ({self.resume})."
        )


def promotion(
    posterior: Posterior, target: Target, settings: Settings, steps: int, cost: CostModel
) -> Promotion | None:
    """Longest living pilot of these settings that a run of so many steps may go on from."""
    alive = (one for one in pilots_of(posterior, target) if one.collapse_step is None)
    same = (one for one in alive if place_of(one.settings) == place_of(settings))
    run = max((one for one in same if one.steps < steps), key=lambda one: one.steps, default=None)
    if run is None:
        return None
    step = int(run.steps)
    resumed = RESUMED.get(run.framework.partition(" ")[0], "with the state of its optimizer")
    if "schedule" in run.assumed:
        resumed += "; its learning rate is assumed to have been constant"
    return Promotion(
        pilot=run.id,
        step=step,
        left=cost(settings, steps - step),
        resume=resumed.format(step=step, refresh=step // settings.refresh_interval),
        why_not=_why_not(run, settings, steps),
    )


def goes_on(settings: Settings) -> bool:
    """Whether a longer run can go on from a pilot: a decaying schedule is over with it."""
    return settings.schedule == "constant"


def _why_not(run: RunSummary, settings: Settings, steps: int) -> str | None:
    """Why the state of a pilot is not that of the advised run at the same step."""
    own, advised, planned = run.settings.model_dump(), settings.model_dump(), "planned_steps"
    free = (*Settings.CARRIED, planned)
    if differ := [name for name in own if name not in free and own[name] != advised[name]]:
        return f"its {', '.join(differ)} differs"
    if not goes_on(run.settings) and own[planned] != steps:
        over = f"{own[planned]} steps" if own[planned] else "the pilot's own length"
        return (
            f"its learning rate followed a {run.settings.schedule} schedule over {over}; "
            "pilots at a constant rate can"
        )
    end = ending(run)
    if end.fell_from is not None:
        return f"its reward fell from {end.peak:.3g} after step {end.fell_from:.0f}"
    return None
