"""All cards of a run, in the order in which they are to be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from advisor.diagnosis.card import CARDS, MODES, SEVERITY, Card, Status, printable
from advisor.diagnosis.collapse import (
    collapse,
    dead_at_once,
    dead_from_the_start,
    floor_of,
    has_collapsed,
    judged_series,
    too_short,
)
from advisor.diagnosis.dynamical_instability import dynamical_instability, find_lost
from advisor.diagnosis.levels import tamed
from advisor.diagnosis.reward_hacking import reward_hacking
from advisor.diagnosis.sampled import advantage_degeneracy, policy_concentration, truncation
from advisor.errors import InputError
from advisor.runs import PilotRun, Trainer
from advisor.text import html_table

NOT_THE_RATE = (
    *("kl_coefficient", "minibatches_per_refresh", "epochs_per_refresh", "group_size"),
    *("prompts_per_step", "clip_low", "clip_high", "momentum", "lag"),
)
"""Settings by which a run may die at a rate at which others live."""

JUDGES: dict[str, Callable[..., Card]] = {
    "reward_hacking": reward_hacking,
    "dynamical_instability": dynamical_instability,
    "policy_concentration": policy_concentration,
    "advantage_degeneracy": advantage_degeneracy,
    "truncation": truncation,
    "collapse": collapse,
    "too_short": too_short,
}
"""Function from a run to its card, by mode."""

AFTER = "began with or after the collapse: a consequence"
"""Witness of a card that speaks of what followed the collapse."""


class Diagnosis(BaseModel, frozen=True):
    """What is wrong with one run."""

    id: str
    path: str
    run: str  # Last part of `id`, as tables show it
    verdict: Status  # The worst among the cards
    collapse_step: float | None  # Logged step at which a lasting fall began
    cards: tuple[Card, ...]  # One per mode: the worst first, then causes before consequences

    def card(self, mode: str) -> Card:
        """Card of one mode."""
        return next(card for card in self.cards if card.mode == mode)

    @property
    def causes(self) -> list[Card]:
        """Cards of what did not begin with or after the collapse."""
        return [card for card in self.cards if not card.is_consequence]

    @property
    def shown_id(self) -> str:
        """Its id, as a terminal can print it."""
        return printable(self.id)

    @property
    def by_cause(self) -> list[Card]:
        """Cards, causes before consequences, whatever their status."""
        return [self.card(mode) for mode in MODES]

    @property
    def headline(self) -> str:
        """What to say of the run in one line."""
        bad = [card for card in self.cards if SEVERITY[card.status] >= SEVERITY["WARNING"]]
        if not bad:
            known = {card.mode: card for card in self.cards if card.status == "INFO"}
            if "collapse" in known:
                return printable(known["collapse"].headline)
            return "no change beyond noise so far" if "too_short" in known else "nothing wrong"
        named = sorted(bad, key=lambda card: (-SEVERITY[card.status], card.mode != "collapse"))
        more = f" ({len(bad) - 1} more)" if len(bad) > 1 else ""
        return printable(f"{named[0].title}: {named[0].headline}{more}")

    @classmethod
    def of_broken(cls, path: Path, reason: str) -> Diagnosis:
        """Of a run that cannot be read because most of its rewards are NaN or infinite."""
        said: dict[str, tuple[Status, str]] = {"dynamical_instability": ("FAIL", reason)}
        said |= {mode: ("NOT APPLICABLE", "no rewards") for mode in MODES if mode not in said}
        cards = [
            Card(mode=mode, title=CARDS[mode]["title"], status=status, headline=headline)
            for mode, (status, headline) in said.items()
        ]
        facts = {"id": str(path), "path": str(path), "run": path.name, "collapse_step": None}
        return cls(verdict="FAIL", cards=tuple(cards), **facts)

    @staticmethod
    def json_of(found: Sequence[Diagnosis]) -> str:
        """Diagnoses as a JSON list; what is missing or infinite is null."""
        return json.dumps([one.model_dump(mode="json") for one in found], indent=1, allow_nan=False)

    def __repr__(self) -> str:
        """Verdict, and a line for each card that is not passed."""
        bad = [card for card in self.cards if card.status in ("FAIL", "WARNING")]
        lines = [f"  {card.status} {card.title}: {card.headline}" for card in bad]
        return "\n".join([f"Diagnosis({self.id!r}: {self.verdict})", *lines])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Verdict, and a row for each card, as a notebook shows it."""
        rows = ((one.status, one.title, one.headline, one.change) for one in self.cards)
        title = f"{self.id}: {self.verdict}"
        return html_table(title, ("verdict", "mode", "what was seen", "what to change"), rows)


def diagnose(
    run: PilotRun,
    margin: npt.ArrayLike | None = None,
    damping: npt.ArrayLike | None = None,
    siblings: Sequence[PilotRun] = (),
) -> Diagnosis:
    """Judge one run by every failure mode.

    Parameters
    ----------
    run : PilotRun
    margin, damping : array_like of shape (draws,), optional
        Draws from a posterior (`advisor.forecast.survival`): stiffness over the largest that is
        stable at this schedule, and the damping ratio of the stiffest mode.
    siblings : sequence of PilotRun, optional
        Other runs. Those of the same model and task show whether this one was dead at once.

    Returns
    -------
    diagnosis : Diagnosis
        A mode that the log cannot show is NOT APPLICABLE, with the key that would show it.
    """
    if isinstance(run, Sequence):
        advice = "Judge each by itself: [diagnose(run, siblings=runs) for run in runs]"
        raise InputError("one run is judged at a time", argument="run", advice=advice)
    run = _tamed(run)
    judges = {**JUDGES, "collapse": dead_at_once} if _is_dead(run, siblings) else JUDGES
    drawn = {"dynamical_instability": (margin, damping)}
    found = {mode: judge(run, *drawn.get(mode, ())) for mode, judge in judges.items()}
    fallen = found["collapse"]
    onset = fallen.steps[0] if fallen.status == "FAIL" and fallen.steps else None
    # Numbers that are not finite come before a collapse, though the reward shows it a row earlier.
    lost = [one.since for name in run.not_finite if (one := find_lost(run, name))]
    places = run.step.searchsorted([onset, min(lost)]) if onset is not None and lost else (0, 3)
    is_first = places[1] - places[0] <= 2
    remedy = CARDS["collapse"]["remedy"]["not_finite"].format(step=onset) if is_first else ""
    if fallen.status == "FAIL" and (remedy := remedy or _other_remedy(run, siblings)):
        found["collapse"] = fallen.model_copy(update={"change": remedy})
    # One remedy at a time: a higher rate mends no run whose updates fail.
    idle, broken = found["too_short"], (found["dynamical_instability"], fallen)
    if idle.status == "WARNING" and any(SEVERITY[c.status] >= SEVERITY["WARNING"] for c in broken):
        found["too_short"] = idle.model_copy(update=CARDS["too_short"]["after_others"])
    causes = {"dynamical_instability"} if lost or run.frozen_since is not None else set()
    cards = [card if card.mode in causes else _placed(card, onset) for card in found.values()]
    cards.sort(key=lambda c: (-SEVERITY[c.status], c.is_consequence, MODES.index(c.mode)))
    return Diagnosis(
        id=run.id,
        path=run.path,
        run=run.id.rsplit("/", 1)[-1],
        verdict=cards[0].status,
        collapse_step=onset,
        cards=tuple(cards),
    )


def _is_dead(run: PilotRun, siblings: Sequence[PilotRun]) -> bool:
    """Whether a run never got near where other runs of its model and task began."""
    if run.model is None or run.is_eval_only:
        return False
    related = [one for one in siblings if (one.model, one.task) == (run.model, run.task)]
    known = [run, *(one for one in related if one.id != run.id and not one.is_eval_only)]
    return len(known) > 1 and run.id in dead_from_the_start(known, min(map(floor_of, known)))


def _other_remedy(run: PilotRun, siblings: Sequence[PilotRun]) -> str:
    """What to change in place of a rate at which a sibling lives; empty where none does."""
    own, fewest = run.hyperparameters, len(NOT_THE_RATE) + 1
    remedy, words = "", CARDS["collapse"]["remedy"]
    for one in siblings:
        other, step = one.hyperparameters, judged_series(one)[0]
        is_related = (one.id, one.path) != (run.id, run.path) and not one.is_eval_only
        is_related &= (one.model, one.task) == (run.model, run.task)
        rates = (own.learning_rate or np.inf, other.learning_rate or 0.0)
        is_longer = step.size and step[-1] >= run.step[-1]
        if not (is_related and rates[1] >= rates[0] and is_longer) or has_collapsed(one):
            continue
        pairs = {name: (getattr(own, name), getattr(other, name)) for name in NOT_THE_RATE}
        unlike = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if len(unlike) < fewest and not any(None in pair for pair in unlike.values()):
            names = Trainer.named(run.framework)
            listed = [
                f"{names.setting_name(name)} {b:g} in place of {a:g}"
                for name, (a, b) in unlike.items()
            ]
            kind = "differs" if listed else "same"
            fewest, remedy = len(unlike), words[kind].format(id=one.id, names=", ".join(listed))
    return remedy


def _tamed(run: PilotRun) -> PilotRun:
    """Run whose numbers can be squared and summed."""
    bounds = {name: getattr(run, name) for name in ("reward_floor", "reward_ceiling")}
    return run.model_copy(
        update={
            "series": {name: tamed(values) for name, values in run.series.items()},
            "parts": {name: tamed(values) for name, values in run.parts.items()},
            "eval_reward": tamed(run.eval_reward),
            **{name: at if at is None else float(tamed(at)) for name, at in bounds.items()},
        }
    )


def _placed(card: Card, onset: float | None) -> Card:
    """Card with a witness more where what it shows began no earlier than the collapse."""
    is_bad = SEVERITY[card.status] >= SEVERITY["WARNING"] and card.mode != "collapse"
    if onset is None or not is_bad or card.steps is None or card.steps[0] < onset:
        return card
    own = {"witnesses": (*card.witnesses, AFTER), "is_consequence": True}
    return card.model_copy(update=own)
