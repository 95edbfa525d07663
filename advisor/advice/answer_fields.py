"""What an answer holds: settings, numbers, alternatives, evidence, and what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    SerializerFunctionWrapHandler,
    computed_field,
    field_serializer,
    model_serializer,
    model_validator,
)

from advisor.advice.cost import Cost, CostModel
from advisor.advice.promotion import Promotion
from advisor.advice.reasons import Binding, Leader, binding
from advisor.advice.request import Budget, Objective
from advisor.common import Kind, Note, stated
from advisor.forecast import SUPPORT, Interval, Stability, Target
from advisor.model import Provenance
from advisor.runs import Settings

WORTH_A_PILOT = 0.005
"""Expected rise of the final reward, as a share of its range, from which a pilot is suggested."""


class Alternative(BaseModel, frozen=True):
    """Another configuration under the same posterior: a recipe, a trade-off, the best pilot."""

    name: str
    settings: Settings
    reward: float  # expected at its last step, given a stable run
    stability: Stability
    cost: Cost
    # At which its mean curve has 95 % of the advised gain; None: never.
    steps_to_95: float | None
    p_beaten: float | None = None  # probability that the advised run is worth more


class NextPilot(BaseModel, frozen=True):
    """A pilot worth running before the full run.

    ``gain`` is the expected rise of the final reward by its result, as a share of the reward's
    range; where too little was piloted for a recommendation, over the best of what was piloted.
    ``loss`` is what the run would lose by being shorter by this price; None where not weighed.
    """

    settings: Settings
    steps: int
    stability: Stability
    gain: float
    cost: Cost
    reason: str
    loss: float | None = None

    @property
    def is_worth_its_price(self) -> bool:
        """Whether its result gains more than a run loses by being shorter by its price."""
        return self.gain >= WORTH_A_PILOT and (self.loss is None or self.gain > self.loss)


class PriorCheck(BaseModel, frozen=True):
    """The answer with every prior raised to a power: above 1 surer, below 1 less sure."""

    power: float
    reward: float  # of the advised configuration
    stability: float
    best: Settings | None  # that would be chosen of the best tried; None: none is stable enough
    pareto_k: float  # of the importance weights: above 0.7 the check cannot be trusted


class Terms(BaseModel, frozen=True):
    """What was asked, among what was chosen, and at which prices."""

    objective: Objective
    budget: Budget
    level: float  # P(stable) wanted
    devices: int  # among which the completions of a step divide
    choices: dict[str, tuple[float, ...]]  # what could be chosen for each setting
    cost_model: CostModel
    priors: str  # name of the preset
    seed: int  # of the search


class Evidence(BaseModel, frozen=True):
    """What the pilots contribute to an answer; older answers lack what has a default."""

    pilots: int  # how many it rests on
    collapsed: int  # how many of them collapsed
    kl_coefficients: tuple[float, ...] = ()  # of the pilots
    pilots_cost: float  # completions that the pilots generated
    longest_pilot: float  # optimizer steps
    reach: float = SUPPORT  # times as long a run as intervals were seen to hold elsewhere
    informed: dict[str, float]  # share of the prior's variance removed, of numbers that decide
    # Share of groups that score all alike and teach nothing, by group size, at the pilots' start;
    # empty where no log holds it, or rewards are more than right and wrong.
    silent_groups: dict[int, float] = {}
    prior_checks: tuple[PriorCheck, ...] = ()  # with the priors less and more sure
    outside: str | None  # in what the target lies outside the evidence of priors and pilots


class AnswerFields(BaseModel, frozen=True):
    """What an answer holds; older answers lack what has a default."""

    # In JSON the fields of these parts stand next to its own, as in answers of 1.0.
    PARTS: ClassVar[dict[str, type[BaseModel]]] = {"terms": Terms, "evidence": Evidence}

    kind: Literal["recommendation", "next_pilot", "infeasible"]  # whether the pilots hold an answer
    # The advised configuration; for "next_pilot" the best piloted one, as a bound; for "infeasible"
    # the nearest to feasible one found.
    settings: Settings
    target: Target
    steps: int  # planned optimizer steps of the advised run
    measure: Literal["reward", "held-out reward"]  # held-out where pilots of the target logged it
    # Of a run that stays stable, in units of the measure: the mean is the posterior mean at the
    # last step, which was maximised; the interval is that of the mean over the last tenth of one
    # run, with its seed noise, slow residual and noise of batches (`predictive.final_reward`).
    reward: Interval
    peak: Interval  # highest level that the run passes on the way, its slow wander included
    stability: Stability  # by the last step
    cost: Cost  # of the advised run
    steps_to_95: float  # step at which the mean curve has 95 % of its gain by the last step
    # Steps worth an evaluation: from the first on nothing more is expected.
    checkpoints: tuple[int, ...] = ()
    limit: Binding  # what keeps the advice from a better value, and what freeing it would give
    alternatives: tuple[Alternative, ...]  # cheaper, safer and faster, where there are any
    recipes: tuple[Alternative, ...]  # common defaults under the same posterior
    best_piloted: Alternative  # the pilot with the highest reward, carried on instead
    leader: Leader | None = None  # the same pilot, as logged
    beyond_pilots: tuple[str, ...] = ()  # settings outside what any pilot ran, each with what was
    next_pilot: NextPilot | None
    further_pilots: tuple[Settings, ...] = ()  # to run as well, as long: three pilots are needed
    promotion: Promotion | None = None  # a pilot that is the beginning of the advised run
    notes: tuple[Note, ...]  # cautions and assumptions, the weightiest first
    trainer: str = "TRL"  # of the pilots, in whose names settings are written
    provenance: Provenance  # of the posterior: data hash, versions, the sampler's seed
    terms: Terms
    evidence: Evidence

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Field of a part by the name that it had in 1.0, such as ``level``."""
            part = next((own for own, of in self.PARTS.items() if name in of.model_fields), None)
            return super().__getattr__(name) if part is None else getattr(vars(self)[part], name)

    @model_validator(mode="before")
    @classmethod
    def _of_sentences(cls, given: Any) -> Any:
        """An answer as saved: its parts flat, in 1.0 its limit and remarks as sentences."""
        if not isinstance(given, dict):
            return given
        read = dict(given)
        if "limit" not in read and "binding" in read:
            read["limit"] = binding("stated", text=read["binding"])
        if "notes" not in read:
            texts = [(Kind.CAUTION, one) for one in read.get("cautions", ())]
            texts += [(Kind.ASSUMPTION, one) for one in read.get("assumptions", ())]
            read["notes"] = [stated(str(text), kind) for kind, text in texts]
        if "p_better" in read and isinstance(best := read["best_piloted"], dict):
            read["best_piloted"] = {"p_beaten": read["p_better"]} | best
        parts = {own: read.keys() & of.model_fields.keys() for own, of in cls.PARTS.items()}
        return {own: {name: read[name] for name in names} for own, names in parts.items()} | read

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found = handler(self)
        return {**found, **{k: v for own in self.PARTS for k, v in found.pop(own).items()}}

    @field_serializer("notes", when_used="json")
    def _with_texts(self, notes: tuple[Note, ...]) -> list[dict[str, Any]]:
        """Remarks as JSON: kind, what each is about, values, and the sentence."""
        return [{**vars(one), "text": str(one)} for one in notes]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def p_better(self) -> float | None:
        """P(better than the best pilot)."""
        return self.best_piloted.p_beaten

    @computed_field  # type: ignore[prop-decorator]
    @property
    def binding(self) -> str:
        """What limits the answer, as a sentence."""
        return str(self.limit)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cautions(self) -> tuple[str, ...]:
        """Where the answer leans on the prior or leaves what was piloted, as sentences."""
        return tuple(str(one) for one in self.notes if one.audience != "assumption")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed rather than read, as sentences."""
        return tuple(str(one) for one in self.notes if one.audience == "assumption")
