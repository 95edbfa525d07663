"""The answer: what to run, how sure that is, what it rests on, and configs that run it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from advisor.advice.answer_fields import AnswerFields, NextPilot
from advisor.advice.promotion import goes_on
from advisor.advice.wording import (
    details_text,
    in_trainer_names,
    percent,
    summary_text,
    title_of,
)
from advisor.common import Kind, kinds
from advisor.errors import InputError
from advisor.runs import PartialSettings, PilotRun, Settings, Trainer

if TYPE_CHECKING:
    import pandas as pd


class Recommendation(AnswerFields):
    """What the advisor says, as numbers, table and text; its fields are those of `AnswerFields`."""

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration next to trade-offs and recipes."""
        import pandas as pd

        own = {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "nearest"}
        others = (*self.alternatives, *self.equal_completions, self.best_piloted, *self.recipes)
        rows = [
            (own[self.kind], self.settings, self.reward.mean, self.stability, self.cost),
            *((one.name, one.settings, one.reward, one.stability, one.cost) for one in others),
        ]
        return pd.DataFrame(
            [
                {
                    "learning rate": settings.learning_rate,
                    "group size": settings.group_size,
                    "prompts per step": settings.prompts_per_step,
                    "mini-batches": settings.minibatches_per_refresh,
                    "epochs": settings.epochs_per_refresh,
                    "steps": cost.steps,
                    "reward at the last step": reward,
                    "P(stable)": stability.probability,
                    "completions": cost.completions,
                    "GPU-hours": math.nan if cost.gpu_hours is None else cost.gpu_hours,
                }
                for _, settings, reward, stability, cost in rows
            ],
            index=pd.Index([name for name, *_ in rows], name="configuration"),
        )

    @property
    def title(self) -> str:
        """What the answer is headed by: the pilot to run first, where one is to be run."""
        return title_of(self)

    @property
    def summary(self) -> str:
        """The answer as a person would write it; its first line can be pasted into a config."""
        return summary_text(self)

    @property
    def text(self) -> str:
        """The answer, and what stands behind it."""
        return f"{self.summary}\n\n{details_text(self)}"

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)

    def __repr__(self) -> str:
        """Kind of answer, target, reward and P(stable), and a line to paste."""
        return (
            f"Recommendation({self.kind} for {self.target.model} on {self.target.task}, "
            f"{self.steps} steps: {self.measure} {self.reward.mean:.3f}, P(stable) "
            f"{percent(self.stability.probability)})\n"
            f"{in_trainer_names(self.settings, self.trainer)}"
        )

    def __str__(self) -> str:
        """The answer in full."""
        return self.text


def export(
    recommendation: Recommendation,
    trainer: str | None = None,
    devices: int | None = None,
    schedule: str | None = None,
) -> str:
    """Text of a trainer's configuration that runs what was advised: the run, or the next pilot.

    Parameters
    ----------
    recommendation : Recommendation
    trainer : str, optional
        ``trl``, ``verl``, ``openrlhf`` or a registered one; by default that of the pilots.
    devices : int, optional
        By default those that the advice was for.
    schedule : {"constant", "linear", "cosine"}, optional
        In place of the pilots', where a trainer has no such schedule.

    Returns
    -------
    text : str

    Raises
    ------
    InputError
        There is no such trainer, or it cannot run these settings; nothing is rounded.

    A decaying schedule keeps the length of the budget: cut short, it would be another schedule. A
    run with a goal is then stopped by hand where the goal is reached.
    """
    if recommendation.kind == "next_pilot" and recommendation.next_pilot is not None:
        return export_pilot(recommendation, recommendation.next_pilot, trainer, devices, schedule)
    settings, steps = recommendation.settings, recommendation.steps
    if not goes_on(settings):
        steps = settings.planned_steps or steps
    mark = ""
    if recommendation.kind != "recommendation":
        mark = f"NOT a recommendation ({recommendation.kind}): see recommendation.json.\n"
    if recommendation.promotion is not None:
        mark = f"{recommendation.promotion.text}\n"
    return _config(recommendation, settings, steps, trainer, devices, schedule, mark)


def export_pilot(
    recommendation: Recommendation,
    pilot: NextPilot,
    trainer: str | None = None,
    devices: int | None = None,
    schedule: str | None = None,
) -> str:
    """Text of a trainer's configuration that runs a next pilot; parameters as for `export`."""
    mark = f"A pilot of {pilot.steps} steps, not the full run: {pilot.reason}\n"
    settings = pilot.settings.planned_over(pilot.steps)
    return _config(recommendation, settings, pilot.steps, trainer, devices, schedule, mark)


def _config(
    advice: Recommendation,
    settings: Settings,
    steps: int,
    name: str | None,
    devices: int | None,
    schedule: str | None,
    mark: str,
) -> str:
    """Config of a run or a pilot for a trainer, with where it comes from after its mark."""
    own = Trainer.named(advice.trainer).export
    name = name or (own.name if own else None)
    if name is None:
        raise InputError(
            f"the pilots were trained with {advice.trainer}, for which no config is written",
            argument="to",
            advice=f"Choose one of {', '.join(Trainer.exports())}",
        )
    if schedule not in (None, settings.schedule):
        asked = PartialSettings.checked({"schedule": schedule}, argument="schedule")
        mark += f"A {schedule} schedule, as asked; the answer is for a {settings.schedule} one.\n"
        settings = settings.model_copy(update={"schedule": asked.schedule})
    if not goes_on(settings):
        mark += f"The learning rate decays to 0 over these {steps} steps: {settings.schedule}.\n"
    if len(advice.kl_coefficients) > 1:
        piloted = ", ".join(f"{one:g}" for one in advice.kl_coefficients)
        mark += f"The pilots differ in kl_coefficient ({piloted}): set it yourself. "
        mark += f"Here it is {settings.kl_coefficient:g}.\n"
    if Kind.KL_DOUBTED in kinds(advice.notes):
        mark += "kl_coefficient was not 0, and no log tells it: set it as your pilots had it.\n"
    return Trainer.export_config(
        settings,
        steps,
        name,
        devices=devices or advice.devices,
        model=None if advice.target.model == PilotRun.UNNAMED_MODEL else advice.target.model,
        note=f"{mark}Advised by grpo-advisor {advice.provenance.package} for "
        f"{advice.target.subject}, from pilots {advice.provenance.data_sha256[:8]} under priors "
        f"'{advice.priors}', seed {advice.seed}.",
    )


def trainer_configs(recommendation: Recommendation) -> dict[str, str]:
    """Config of every trainer that can run the advised settings; `missing_configs` has others."""
    found = _exported(recommendation)
    return {name: text for name, text in found.items() if not isinstance(text, InputError)}


def missing_configs(recommendation: Recommendation) -> dict[str, str]:
    """Trainers that cannot run the advised settings, and why."""
    found = _exported(recommendation)
    return {name: str(error) for name, error in found.items() if isinstance(error, InputError)}


def _exported(recommendation: Recommendation) -> dict[str, str | InputError]:
    found: dict[str, str | InputError] = {}
    for name in Trainer.exports():
        try:
            found[name] = export(recommendation, name)
        except InputError as error:
            found[name] = error
    return found
