"""Prior presets: TOML files in which every number names its source."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, Field, ValidationError, create_model

from advisor.common import Words, counted
from advisor.errors import InputError
from advisor.model.parameters import PARAMETERS
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from advisor.model.cohort import Reference

_PACKAGED = Path(__file__).parents[1] / "_data" / "priors"
_CHECKOUT = Path(__file__).parents[2] / "priors"

Positive = Annotated[float, Field(gt=0)]

MOST = 100.0
"""No number of a preset is larger in size, counts of models and runs apart: they are logarithms,
log-odds and exponents."""

Bounded = Annotated[float, Field(ge=-MOST, le=MOST)]
PositiveBounded = Annotated[float, Field(gt=0, le=MOST)]


class _Entry(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    source: Annotated[str, Field(min_length=8)]


Share = Annotated[float, Field(ge=0, le=1)]


class NormalPrior(_Entry):
    """Normal distribution."""

    mean: Bounded
    sd: PositiveBounded


class HalfNormalPrior(_Entry):
    """Half-normal distribution, for a quantity that cannot be negative."""

    sd: PositiveBounded


class StabilityLine(_Entry):
    """What P(stable) of the model was in truth, as a line in log-odds."""

    intercept: Bounded  # of the log-odds of having lived on those that were stated, as the slope
    slope: PositiveBounded
    spread: Annotated[float, Field(ge=0, le=MOST)]  # sd of the intercept between groups
    groups: int  # distinct tables or repositories behind it
    runs: int  # distinct trained runs behind it
    # Log-odds per e-fold of the norm of an Adam update, learning rate times the square root of the
    # model's parameters: what kills a run in absolute units, which no pilot need have shown.
    update_norm: Bounded = 0.0
    only_lowers: bool = False  # as where too few were expected to die to tell of low ones
    counts_fluctuation: bool = True  # of a third of the level, as a way to die


NO_LINE = StabilityLine(
    intercept=0, slope=1, spread=0, groups=0, runs=0, source="What the model says, as it is."
)


class Extrapolation(_Entry):
    """How runs went on beyond what pilots of their length show."""

    # Log-odds of the reward per e-fold of steps beyond what the pilots support, for a run that has
    # gained all of its headroom; in proportion to that for others.
    gain: Bounded
    times: float = 3.0  # the longest pilot: as far beyond it 80 % intervals were seen to hold
    # Steps by stiffness, over those of the pilot in the middle, that count as further than pilots.
    shown: Positive = 1.5
    groups: int  # distinct worlds or repositories behind it
    runs: int  # distinct trained runs behind it


class Pool(_Entry):
    """How much each part of the forecast of a begun run's end counts, over the analogues."""

    curve: Positive  # pooled over the pilots
    exponential: Positive  # of the run alone, as its random walk and its growth
    random_walk: Positive
    growth: Positive
    evidence: Annotated[float, Field(ge=0, le=MOST)]  # natural log of weight by `missed_of`
    believed: Positive  # ranges seen from the analogues at which a part counts half
    believed_growth: Positive | None = None  # the same of growth; None is `believed`
    # Share by which log-odds above the median lie further off, for each e-fold of steps ahead and
    # in proportion to the growth that the present level allows: a run may still take off.
    take_off: Annotated[float, Field(ge=0, le=MOST)] = 0.0
    siblings: Share  # of the pool, by the gains of siblings that ended, of many that agree
    # Distance of a run's gain from its siblings' median, in ranges seen, after 10, 25 and 50 %:
    # counted as two siblings more.
    siblings_spread: tuple[Positive, Positive, Positive]


class GrowthLaw(_Entry):
    """Speed and plateau of the log-odds of a reward (`forecast.growth`)."""

    log_speed: Bounded  # natural log of log-odds a step, where half of the answers are right
    log_speed_spread: Positive  # standard deviation between projects
    log_speed_within: Positive  # and between runs of one
    plateau: Bounded  # log-odds of a share of floor to ceiling
    plateau_spread: Positive
    plateau_within: Positive
    wander: Share  # of the range, round the curve


class Discrepancy(_Entry):
    """How runs depart from the laws: of one run from its settings' mean, of a run from its curve.

    All of it was learned, in sight of the runs that ``source`` names; shares are of draws.
    """

    # Of the variance of a run's departure, what its configuration explains; the seed has the rest.
    configuration_share: Share
    configuration_reach: Positive  # natural logs of a setting over which departures are shared
    analogues: Share  # that follow, beyond a pilot's rows, what became of runs like it
    stands: Share  # that stay where the pilot stands, in a run twice as long
    # Log-odds by which a run comes out above curve and analogues, for each e-fold beyond twice the
    # pilot, in proportion to the share of its headroom that it gained.
    gain: Bounded
    # Spread of the natural log of the rate at which piloted models do what another does at 1.
    model_rate_spread: Annotated[float, Field(ge=0, le=MOST)] = 0.0
    small_parameters: Positive  # below which models are smaller than those of public runs
    small_rise: Bounded  # log-odds as `gain`, of any small model that does not fall
    small_spread: Positive  # factor on log-odds round their median, for each doubling
    odds_share: Share  # of analogues by what they gained in log-odds, where that forecast better
    unstable_fallen: Share  # P(unstable) of a run that has fallen
    fallen_spread: Positive  # log-odds of a collapsed run's end round its latest rows


class Elsewhere(_Entry):
    """What runs of other projects tell of P(stable): `forecast.elsewhere`."""

    pilots: Positive  # runs that what the pilots predict counts as, beside those elsewhere
    # What a pilot that fell at this rate or a lower one counts as, in shares of all else known.
    twin: Annotated[float, Field(ge=0, le=MOST)] = 0.0  # 0 in presets that were saved before 1.1
    rate_reach: Positive  # natural log of a learning rate over which outcomes are shared
    size_reach: Positive  # the same of the parameters of the model
    signals: dict[str, Bounded]  # log-odds of death by one unit of each, and "intercept"
    missing: dict[str, Bounded]  # log-odds where a signal is not logged
    spread: Annotated[float, Field(ge=0, le=MOST)]  # sd of the log-odds between repositories
    groups: int  # distinct repositories and tasks behind it
    runs: int  # distinct trained runs behind it
    deaths: int  # of them, those that died


AS_THE_CURVE = Extrapolation(gain=0, groups=0, runs=0, source="What the curve says, as it is.")


class DecisionRule(_Entry):
    """How forecasts are turned into advice; its numbers were chosen in sight of known outcomes."""

    # Share of its end that a run loses by a squared decade below the best value, and above it.
    loss_below: Positive
    loss_above: Positive
    optimum_spread: Positive  # sd of the best value between projects, in decades
    common_error: Positive  # Share of the reward's range by which one project's forecasts err alike
    worthwhile: Share  # P(better than the known rate) from which on pilots are said to tell more


class KnownOptimum(_Entry):
    """Where runs of a kind do best, known before any pilot."""

    learning_rate: Positive | None = None
    group_size: Positive | None = None
    refresh_interval: Positive | None = None
    projects: Annotated[int, Field(ge=1)]  # distinct ones behind it

    def __str__(self) -> str:
        """Settings and from how many projects, as a sentence needs them."""
        known = [f"{name} {value:.2g}" for name, value in self.places.items()]
        return f"{', '.join(known)} (from {counted(self.projects, 'project')})"

    @property
    def places(self) -> dict[str, float]:
        """What is known: values of settings by their names."""
        names = ("learning_rate", "group_size", "refresh_interval")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class SpeedLaw(_Entry):
    """How the prior mean of the speed moves with where the pilots ran."""

    learning_rate: Bounded  # change of `log_slope` per e-fold of the reference's learning rate
    parameters: Bounded  # the same, per e-fold of its parameters
    at_learning_rate: Positive  # reference of which `log_slope` speaks, as the next
    at_parameters: Positive

    def shift(self, learning_rate: float, parameters: float) -> float:
        """By how much the mean of ``log_slope`` lies above that of the preset."""
        by_rate = self.learning_rate * math.log(learning_rate / self.at_learning_rate)
        return by_rate + self.parameters * math.log(parameters / self.at_parameters)


class Domain(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Runs that shaped a preset: outside of it the evidence ends."""

    adapters: tuple[str, ...]  # "full" or "lora"
    optimizers: tuple[str, ...] = ("adamw",)  # "adamw" or "sgd"
    least_parameters: Positive  # of the models, as the next
    most_parameters: Positive


class _Preset(BaseModel, frozen=True, extra="forbid"):
    """What a preset holds besides the priors of single parameters."""

    name: str
    description: str
    evidence: str
    learned_from: tuple[str, ...] = ()
    log_stiffness_ratio: HalfNormalPrior
    stability_line: StabilityLine = NO_LINE
    speed_law: SpeedLaw | None = None
    extrapolation: Extrapolation = AS_THE_CURVE
    # Presets of saved studies may be older than this entry.
    discrepancy: Discrepancy = Field(default_factory=lambda: load_priors("theory").discrepancy)
    pool: Pool = Field(default_factory=lambda: load_priors("theory").pool)
    growth: GrowthLaw = Field(default_factory=lambda: load_priors("theory").growth)
    elsewhere: Elsewhere = Field(default_factory=lambda: load_priors("theory").elsewhere)
    decision: DecisionRule = Field(default_factory=lambda: load_priors("theory").decision)
    known_optimum: KnownOptimum | None = None
    domain: Domain | None = None

    def of(self, parameters: Iterable[str]) -> list[NormalPrior]:
        """Priors of some parameters, by their names in `model.parameters`."""
        return [getattr(self, parameter.replace(".", "_")) for parameter in parameters]

    def drawn(self, parameter: str, rng: np.random.Generator, *shape: int) -> FloatArray:
        """Draws of one parameter's prior."""
        (prior,) = self.of([parameter])
        return np.asarray(prior.mean + prior.sd * rng.standard_normal(shape))

    def at(self, reference: Reference) -> Self:
        """Preset as it speaks of pilots at a reference; what was placed before stays."""
        if self.speed_law is None:
            return self
        entry = self.log_slope  # type: ignore[attr-defined]
        mean = entry.mean + self.speed_law.shift(reference.learning_rate, reference.parameters)
        return self.model_copy(
            update={"log_slope": entry.model_copy(update={"mean": mean}), "speed_law": None}
        )

    def __repr__(self) -> str:
        """Name, and from how many runs it has learned; ``advisor priors show`` has the numbers."""
        return f"Priors({self.name!r}, learned from {len(self.learned_from)} runs)"

    __str__ = __repr__


if TYPE_CHECKING:

    class Priors(_Preset):
        """For type checkers; the class itself follows from the table of parameters."""

        def __getattr__(self, entry: str) -> NormalPrior:
            """Prior of one parameter."""
            raise NotImplementedError

else:
    Priors = create_model(
        "Priors",
        __base__=_Preset,
        __module__=__name__,
        __doc__=(
            "Every prior of the model, one entry for each row of `model.parameters`.\n\n"
            "Logs are natural; a step is an optimizer step. See the presets for what each number\n"
            "means and where it comes from. ``learned_from`` holds the fingerprints\n"
            "(`PilotRun.fingerprint`) of the runs that a preset learned from: on none of them\n"
            "may it be scored."
        ),
        **{parameter.entry: (NormalPrior, ...) for parameter in PARAMETERS},
    )


say = Words("advisor.model", "words.txt.j2", counted=counted)


def preset_folder() -> Path:
    """Presets of the installed wheel, else those of the checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def preset_names() -> list[str]:
    """Names of the presets that come with the package."""
    return sorted(path.stem for path in preset_folder().glob("*.toml"))


def load_priors(name: str | Path) -> Priors:
    """Load a preset by name, or a preset file by path.

    Parameters
    ----------
    name : str or Path
        A name out of :func:`preset_names`, or a path that ends in ``.toml``.

    Returns
    -------
    priors : Priors

    Raises
    ------
    InputError
        The preset does not exist, is no TOML, or lacks or mistypes an entry.
    """
    path = _preset_file(name, argument="priors")
    try:
        return Priors.model_validate(_entries(path))
    except RecursionError as error:
        raise InputError(
            "the preset is nested too deeply, or builds on itself", path=path, key="base"
        ) from error
    except OSError as error:
        raise InputError(f"the preset cannot be read ({error.strerror})", path=path) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        problem = f"the preset entry is wrong: {first['msg']}"
        advice = "Compare it with a preset that comes with the package"
        raise InputError(problem, path=path, key=key, advice=advice) from error
    except ValueError as error:  # of TOML, of text, of whole numbers with thousands of digits
        raise InputError(f"the preset is not valid TOML ({error!s:.200})", path=path) from error


def _entries(path: Path) -> dict[str, Any]:
    """Entries of a preset; where it names a base, only what differs from the base is written."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    base = entries.pop("base", None)
    if base is None:
        return entries
    named = path.parent / base if str(base).endswith(".toml") else base
    return {**_entries(_preset_file(named, key="base")), **entries}


def _preset_file(name: str | Path, **where: Any) -> Path:
    """File of a preset that exists; ``where`` says what named it."""
    path = Path(name) if str(name).endswith(".toml") else preset_folder() / f"{name}.toml"
    if not path.is_file():
        advice = f"Choose one of {', '.join(preset_names())}, or give a path to a .toml file"
        raise InputError(f"there is no prior preset '{name}'", **where, advice=advice)
    return path


class Family(NamedTuple):
    """A family of reward curves: the model with some of its parameters pinned, to 1 %."""

    name: str
    title: str
    pins: dict[str, float]
    is_oscillator: bool = False

    def priors(self, preset: Priors) -> Priors:
        """Preset with this family's parameters pinned."""
        pinned = {
            name: NormalPrior(mean=mean, sd=0.01, source=f"{self.title}, by definition")
            for name, mean in self.pins.items()
        }
        return preset.model_copy(update=pinned)


SPECTRUM = Family("spectrum", "the oscillator over a spectrum of stiffness", {})

OSCILLATOR = Family(
    "oscillator",
    "the one-mode damped oscillator",
    # A full slope at the start; a dispersion within 0.001 of none; one shape for all runs.
    {"log_onset": 0.0, "log_dispersion": -6.0, "log_run_shape_spread": -4.0},
    is_oscillator=True,
)

FAMILIES = {family.name: family for family in (SPECTRUM, OSCILLATOR)}
"""The relaxation over a spectrum is fitted unless the closed form of arXiv:2606.30789 is asked for:
one damped mode, which overshoots when it is underdamped."""


def family_of(name: str) -> Family:
    """Family of a name."""
    if name not in FAMILIES:
        advice = f"Choose among {', '.join(FAMILIES)}"
        raise InputError(f"there is no family of curves '{name}'", argument="family", advice=advice)
    return FAMILIES[name]
