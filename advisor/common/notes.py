"""A remark as a value: its kind, what it is about, and the values that its sentence is filled with.

Sentences, weights and audiences stand in ``notes.toml``. The program decides by kinds; it never
reads a sentence back.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any


class Kind(StrEnum):
    """Kinds of remarks, in the order of ``notes.toml``."""

    FIRST_LOOK = "first_look"
    PRESET_SWAPPED = "preset_swapped"
    CHAINS_LOOSE = "chains_loose"
    LOST_REWARDS = "lost_rewards"
    ADAPTER_DOUBTED = "adapter_doubted"
    KL_DOUBTED = "kl_doubted"
    CEILING_DOUBTED = "ceiling_doubted"
    ADAPTER_ASSUMED = "adapter_assumed"
    PRESET_UNSURE = "preset_unsure"
    REWARD_CEILING = "reward_ceiling"
    PLANNED_STEPS = "planned_steps"
    KNOWN_OPTIMUM = "known_optimum"
    KNOWN_RATE_DOES = "known_rate_does"
    KNOWN_RATE_BEATEN = "known_rate_beaten"
    RATES_CAPPED = "rates_capped"
    FIRST_PILOTS = "first_pilots"
    REFRESH_ASSUMED = "refresh_assumed"
    REWARD_FLOOR = "reward_floor"
    PRICE = "price"
    FITS_AS_PILOTED = "fits_as_piloted"
    PRESET_CHOSEN = "preset_chosen"
    TARGET = "target"
    RUN_WARNING = "run_warning"
    RUN_REMARK = "run_remark"
    SETTING_ASSUMED = "setting_assumed"
    NAME_ASSUMED = "name_assumed"
    ONLY_EVALUATIONS = "only_evaluations"
    COPY = "copy"
    FROZEN = "frozen"
    HELD_OUT_APART = "held_out_apart"
    ONE_SCALE = "one_scale"
    CHAINS_AGREE = "chains_agree"
    NO_PILOT = "no_pilot"
    ASSUMPTION = "assumption"
    WEIGHTY_WARNING = "weighty_warning"
    NONE_MOVED = "none_moved"
    ALL_COLLAPSED = "all_collapsed"
    BEYOND_PILOTS = "beyond_pilots"
    MAY_NOT_FIT = "may_not_fit"
    MISFIT = "misfit"
    SILENT_GROUPS = "silent_groups"
    DOUBTED_PILOT = "doubted_pilot"
    UNPILOTED_TARGET = "unpiloted_target"
    UNPILOTED_LANGUAGE_MODEL = "unpiloted_language_model"
    PENALTIES_DIFFER = "penalties_differ"
    TOO_LONG = "too_long"
    LONG_BY_PUBLIC_RUNS = "long_by_public_runs"
    LONG_BY_SIMULATION = "long_by_simulation"
    LONG_UNMEASURED = "long_unmeasured"
    NONE_COLLAPSED = "none_collapsed"
    ONE_RATE = "one_rate"
    ONE_GROUP = "one_group"
    NO_RATIO = "no_ratio"
    SGD = "sgd"
    CAUTION = "caution"


@cache
def words() -> dict[str, Any]:
    """Weight, audience and sentence of every kind: ``notes.toml``."""
    return tomllib.loads((files("advisor.common") / "notes.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Note:
    """A remark: an assumption, a warning or a caution."""

    kind: Kind
    about: str = ""  # A run, or how many; empty where it concerns all
    values: dict[str, Any] = field(default_factory=dict)  # Of its sentence, by name

    @property
    def audience(self) -> str:
        """Who needs it: ``headline``, ``caution`` or ``assumption``."""
        return str(words()[self.kind]["audience"])

    @property
    def weight(self) -> int:
        """Place among the remarks: 0 is shown first."""
        return list(Kind).index(self.kind)

    @property
    def sentence(self) -> str:
        """Words of its kind, filled with its values."""
        return str(words()[self.kind]["text"]).format(**self.values)

    def __str__(self) -> str:
        """Sentence, and what it is about."""
        return self.sentence + (f" [{self.about}]" if self.about else "")

    def __hash__(self) -> int:
        return hash((self.kind, str(self)))


def note(kind: Kind, about: str = "", **values: Any) -> Note:
    """Remark of a kind, with the values of its sentence by name."""
    return Note(kind, about, values)


def stated(text: str, kind: Kind = Kind.ASSUMPTION) -> Note:
    """Remark of which only the sentence is known."""
    return Note(kind, values={"text": text})


def of_saved(given: Any) -> Any:
    """Remark of a file, which held a sentence before remarks had kinds; one of them decides."""
    if not isinstance(given, str):
        return given
    is_known = given == words()[Kind.NONE_MOVED]["saved_as"]
    return Note(Kind.NONE_MOVED) if is_known else stated(given)


def by_weight(*notes: Note) -> tuple[Note, ...]:
    """Remarks, the weightiest first."""
    return tuple(sorted(notes, key=attrgetter("weight")))


def kinds(notes: Iterable[Note]) -> set[Kind]:
    """Kinds among some remarks."""
    return {one.kind for one in notes}
