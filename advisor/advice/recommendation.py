"""The answer: what to run, how sure that is, what it rests on, and configs that run it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from advisor.advice.answer_fields import AnswerFields, NextPilot
from advisor.advice.promotion import goes_on
from advisor.advice.wording import (
    headlines,
    in_trainer_names,
    launch_notes,
    leader_text,
    percent,
    pilot_lines,
    say_of_answer,
)
from advisor.common import Kind, html_table, kinds
from advisor.errors import InputError
from advisor.runs import PartialSettings, PilotRun, Settings, Trainer

if TYPE_CHECKING:
    import pandas as pd

MOST_WORDS = 150  # Of an answer on a terminal, its title and the line on its study included
FRAME_WORDS = 19  # Of these, for the title, that line and the heading of remarks
BULLETS = 3  # Remarks before a launch, at most


class Recommendation(AnswerFields):
    """What the advisor says, as numbers, table and text; its fields are those of `AnswerFields`."""

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration next to trade-offs and recipes."""
        import pandas as pd

        own = {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "nearest"}
        others = (*self.alternatives, self.best_piloted, *self.recipes)
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
        if self.next_pilot is not None:
            many = 1 + len(self.further_pilots)
            first = "Run this pilot first" if many == 1 else f"Run these {many} pilots first"
            none = "No feasible configuration. " if self.kind == "infeasible" else ""
            return f"{none}{first}"
        if self.kind == "infeasible":
            return "No feasible configuration"
        if self.kind == "next_pilot":
            return "More pilots are needed"
        known = kinds(self.notes)
        if Kind.UNPILOTED_LANGUAGE_MODEL in known:
            return "Best guess from another model's pilots"
        is_edge = self.limit.kind == "edge_of_rates"
        if self.beyond_pilots or is_edge or Kind.NONE_MOVED in known:
            return "Best setting found, outside your pilots"
        if Kind.TOO_LONG in known:
            return "Best setting found, for a run longer than the forecast was tested"
        return "Recommended configuration"

    @property
    def summary(self) -> str:
        """The answer as a person would write it; its first line can be pasted into a config."""
        own, lines = in_trainer_names(self.settings, self.trainer), pilot_lines(self)
        if lines and self.kind == "recommendation":
            where = ", outside your pilots" if self.beyond_pilots else ""
            lines += ["", f"To launch without it{where}: {own}"]
        elif self.kind == "infeasible":
            lines += [""] * bool(lines)
            lines += [f"No setting meets what was asked. Nearest: {own}", self.binding]
        elif self.kind == "next_pilot":
            has_lived = self.evidence.collapsed < self.evidence.pilots
            until = "Until then, the pilot with the best forecast"
            none = "Launch none of your pilots again. The gentlest, to compare"
            lines += [""] * bool(lines)
            lines += [f"{until if has_lived else none}: {own}"]
        else:
            lines = [own]
        lines += [*headlines(self), say_of_answer("expect", self)]
        left = MOST_WORDS - FRAME_WORDS - len(" ".join(lines).split())
        notes = launch_notes(self)
        if self.kind != "infeasible" and (why := leader_text(self)):
            # What the numbers rest on comes before what speaks for the leader.
            if len(" ".join([why, *notes[:1]]).split()) > left:
                why = leader_text(self, is_brief=True)
            lines.append(why)
            left -= len(why.split())
        bullets: list[str] = []
        for line in notes:
            words = len(line.split()) + 1
            if not bullets or (len(bullets) < BULLETS and words <= left):
                bullets.append(f"- {line}")
                left -= words
        return "\n".join([*lines, *(["Before you launch:"] if bullets else []), *bullets])

    @property
    def text(self) -> str:
        """The answer, and what it rests on."""
        shown, why, notes = self.summary, leader_text(self), launch_notes(self)
        more = [why] if why not in shown else []
        more += [f"Caution: {line}" for line in notes if line not in shown]
        return f"{shown}\n\n{say_of_answer('details', self, more)}"

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)

    def __dir__(self) -> list[str]:
        """Names without those that pydantic gives every model."""
        return [name for name in super().__dir__() if name[0] == "_" or name not in dir(BaseModel)]

    def __repr__(self) -> str:
        """Kind of answer, target, reward and P(stable), and a line to paste."""
        return (
            f"Recommendation({self.kind} for {self.target.model} on {self.target.task}, "
            f"{self.steps} steps: {self.measure} {self.reward.mean:.3f}, P(stable) "
            f"{percent(self.stability.probability)})\n"
            f"{in_trainer_names(self.settings, self.trainer)}"
        )

    def _repr_html_(self) -> str:
        """Kind of answer, and the advised configuration next to others, as a notebook shows it."""
        table = self.table
        return html_table(repr(self), [str(table.index.name), *table.columns], table.itertuples())

    def __str__(self) -> str:
        """The answer; ``text`` has what it rests on as well."""
        return self.summary


def export(
    recommendation: Recommendation,
    trainer: str | None = None,
    devices: int | None = None,
    schedule: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> str:
    """Text of a trainer's configuration that runs what was advised: the run, or the next pilot.

    Parameters
    ----------
    recommendation : Recommendation
    trainer : str, optional
        ``trl``, ``verl``, ``openrlhf``, ``prime-rl``, ``nemo-rl``, ``ms-swift`` or one that was
        registered; by default that of the pilots.
    devices : int, optional
        By default those that the advice was for.
    schedule : {"constant", "linear", "cosine"}, optional
        In place of the pilots', where a trainer has no such schedule.
    settings : mapping, optional
        Settings that no number of an answer depends on, in place of the pilots' or where no log
        holds them, such as ``adapter_rank=16``; by the names in `PartialSettings.CARRIED`.

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
    pilot = recommendation.next_pilot if recommendation.kind == "next_pilot" else None
    return export_pilot(recommendation, pilot, trainer, devices, schedule, settings)


def _with(own: Settings, stated: Mapping[str, Any] | None) -> Settings:
    """Settings of an answer with those that were stated and change no number of it."""
    checked = PartialSettings.checked(stated or {}, argument="overrides")
    for name in stated or {}:
        if name not in Settings.CARRIED:
            problem = f"the answer holds for its own {name.replace('_', ' ')}"
            able = f"Ask for advice with another, or give one of {', '.join(Settings.CARRIED)}"
            raise InputError(problem, argument="overrides", key=name, advice=able)
    return own.model_copy(update={name: getattr(checked, name) for name in stated or {}})


def export_pilot(
    advice: Recommendation,
    pilot: NextPilot | None,
    trainer: str | None = None,
    devices: int | None = None,
    schedule: str | None = None,
    stated: Mapping[str, Any] | None = None,
) -> str:
    """Text of a trainer's configuration of a pilot, or of the full run; see `export`."""
    if pilot is not None:
        settings, steps = _with(pilot.settings.planned_over(pilot.steps), stated), pilot.steps
        mark = f"A pilot of {steps} steps, not the full run: {pilot.reason}\n"
    else:
        settings, steps, mark = _with(advice.settings, stated), advice.steps, ""
        if not goes_on(settings):
            steps = settings.planned_steps or steps
        if advice.kind != "recommendation":
            mark = f"NOT a recommendation ({advice.kind}): see recommendation.json.\n"
        if advice.promotion is not None:
            mark = f"{advice.promotion.text}\n"
    own = Trainer.named(advice.trainer).export
    trainer = trainer or (own.name if own else None)
    if trainer is None:
        problem = f"the pilots were trained with {advice.trainer}, for which no config is written"
        raise InputError(
            problem, argument="to", advice=f"Choose one of {', '.join(Trainer.exports())}"
        )
    if schedule not in (None, settings.schedule):
        asked = PartialSettings.checked({"schedule": schedule}, argument="schedule")
        mark += f"A {schedule} schedule, as asked; the answer is for a {settings.schedule} one.\n"
        settings = settings.model_copy(update={"schedule": asked.schedule})
    if not goes_on(settings):
        mark += f"The learning rate decays to 0 over these {steps} steps: {settings.schedule}.\n"
    if len(advice.evidence.kl_coefficients) > 1:
        piloted = ", ".join(f"{one:g}" for one in advice.evidence.kl_coefficients)
        mark += f"The pilots differ in kl_coefficient ({piloted}): set it yourself. "
        mark += f"Here it is {settings.kl_coefficient:g}.\n"
    if Kind.KL_DOUBTED in kinds(advice.notes):
        mark += "kl_coefficient was not 0, and no log contains it: set it as your pilots had it.\n"
    return Trainer.export_config(
        settings,
        steps,
        trainer,
        devices=devices or advice.terms.devices,
        model=None if advice.target.model == PilotRun.UNNAMED_MODEL else advice.target.model,
        note=f"{mark}Advised by grpo-advisor {advice.provenance.package} for "
        f"{advice.target.subject}, from pilots {advice.provenance.data_sha256[:8]} under priors "
        f"'{advice.terms.priors}', seed {advice.terms.seed}.",
    )


def trainer_configs(recommendation: Recommendation) -> tuple[dict[str, str], dict[str, str]]:
    """Configs that a study holds, by trainer, and why other trainers cannot run the settings."""
    configs: dict[str, str] = {}
    missing: dict[str, str] = {}
    own = Trainer.named(recommendation.trainer).export
    for name, one in Trainer.exports().items():
        if not one.on_demand or (own is not None and own.name == name):
            try:
                configs[name] = export(recommendation, name)
            except InputError as error:
                missing[name] = str(error)
    return configs, missing
