"""The posterior: draws, what they were drawn from, and how well they converged."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ValidationError, model_validator

from advisor.common import VERSION, Note, counted, html_table, of_saved, write_whole
from advisor.errors import StudyError
from advisor.model.cohort import Cohort, Reference
from advisor.model.likelihood import FittedDraws, observations, summaries_of
from advisor.model.parameters import (
    DIMS,
    GROUP_EFFECTS,
    GROUP_LEVELS,
    LAWS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
)
from advisor.model.priors import Family, Priors
from advisor.model.storage import (
    Variable,
    from_netcdf,
    inference_groups,
    labels,
    not_saved,
    one_by_one,
    to_netcdf,
)
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import xarray as xr

SCHEMA = 4  # Version of the saved format; another number is refused on loading
INTERVAL = 0.8  # Probability of every interval in tables and texts: central, from quantiles
FIRST_ROWS = 5  # Of a pilot, that tell how its policy began
MIN_SIZES = 4  # Model sizes below which the curvature exponent is called prior-dominated


class Convergence(BaseModel, frozen=True):
    """Convergence figures of one fit."""

    rhat: float  # largest rank-normalised split R-hat, of the variable `worst`
    ess: float  # smallest bulk effective sample size
    worst: str
    divergent_share: float
    draws: int  # over all chains
    steps_per_draw: float  # mean leapfrog steps
    disputed: tuple[str, ...] = ()  # runs over whose terms chains disagree, worst first, with R-hat

    @classmethod
    def of(
        cls,
        diagnostics: Mapping[str, tuple[FloatArray, FloatArray]],
        statistics: Mapping[str, FloatArray],
        runs: Sequence[str],
    ) -> Convergence:
        """Figures of draws, from R-hat and effective draws of each variable; runs by their id."""
        rhat = {name: np.max(pair[0]) for name, pair in diagnostics.items()}
        # NaN (a parameter that never moved) must fail the gate: max and min would pass it over.
        worst = max(rhat, key=lambda name: np.nan_to_num(rhat[name], nan=np.inf))
        return cls(
            rhat=float(rhat[worst]),
            ess=float(np.min([np.min(pair[1]) for pair in diagnostics.values()])),
            worst=worst,
            divergent_share=float(statistics["diverging"].mean()),
            draws=int(statistics["diverging"].size),
            steps_per_draw=float(statistics["n_steps"].mean()),
            disputed=_disputed(diagnostics, runs),
        )

    def complaint(self, rhat: float, ess: float, divergent_share: float) -> str | None:
        """Say what fails the gate, or None."""
        if not self.rhat < rhat:
            return f"R-hat {self.rhat:.3f} of {self.worst} is not below {rhat}"
        if not self.ess > ess:
            return f"only {self.ess:.0f} effective draws (at least {ess:.0f} wanted)"
        if self.divergent_share > divergent_share:
            return f"{self.divergent_share:.1%} of the draws diverged"
        return None


class RunSummary(BaseModel, frozen=True):
    """One pilot as the posterior remembers it; rewards in reward units, steps of the optimizer."""

    id: str
    task: str
    model: str
    parameters: float
    settings: Settings
    assumed: tuple[str, ...] = ()  # names of those that no log told
    steps: float
    completions: float
    first_reward: float
    last_reward: float
    collapse_step: float | None
    fell_from: float | None = None
    fingerprint: str
    seconds_per_step: float | None  # median wall-clock of an optimizer step, where the log tells
    completion_tokens: float | None  # mean length of a completion, where the log tells
    framework: str = ""  # trainer whose keys the log holds, empty where that is not known
    first_silent_share: float | None = None  # of the groups of its first rows, where logged
    logged_steps: tuple[float, ...] = ()  # of its finite rewards; studies of before had none
    logged_rewards: tuple[float, ...] = ()
    thinned: int = 1  # of so many rewards in a row the first is remembered

    @property
    def highest_rate(self) -> float:
        """Largest learning rate that it had: less than that of its settings within a warm-up."""
        own, steps = self.settings, self.steps
        return own.learning_rate * (own.share_of_peak(steps) if steps < own.warmup_steps else 1.0)

    @property
    def collapse_onset(self) -> float | None:
        """Step from which it fell, as its card says; studies of before it was kept: the event."""
        return self.collapse_step if self.fell_from is None else self.fell_from


def peaked(runs: Sequence[RunSummary]) -> Sequence[RunSummary]:
    """Runs whose warm-up was over; all where it was over in none."""
    return [run for run in runs if run.highest_rate >= run.settings.learning_rate] or runs


class Provenance(BaseModel, frozen=True):
    """What a posterior was made from."""

    schema_version: int
    package: str
    created: str
    data_sha256: str
    seed: int
    versions: dict[str, str]


class Meta(BaseModel, frozen=True, arbitrary_types_allowed=True):
    """Everything about a posterior but its draws; JSON inside the NetCDF file."""

    tasks: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    group_parameters: tuple[float, ...]
    task_of_group: tuple[int, ...]
    reference: Reference
    floor: float
    ceiling: float
    evaluated: tuple[bool, ...]
    eval_floor: float
    eval_ceiling: float
    longest: float
    family: str
    runs: tuple[RunSummary, ...]
    notes: tuple[Annotated[Note, BeforeValidator(of_saved)], ...]
    convergence: Convergence
    priors: Priors
    provenance: Provenance

    def as_share(self, reward: Any) -> Any:
        """Train reward as a share of its floor to its ceiling."""
        return (reward - self.floor) / (self.ceiling - self.floor)

    @model_validator(mode="after")
    def _agrees(self) -> Meta:
        """Refuse lists that do not belong together."""
        groups = len(self.groups)
        lengths = {len(self.group_parameters), len(self.task_of_group), len(self.evaluated)}
        if lengths != {groups} or not all(0 <= t < len(self.tasks) for t in self.task_of_group):
            raise ValueError("its groups do not belong together")
        if not all(map(math.isfinite, (self.floor, self.ceiling, self.longest))):
            raise ValueError("its bounds are not finite")
        return self

    @property
    def placed_priors(self) -> Priors:
        """Preset as it speaks of these pilots' reference: what the draws were updated from."""
        return self.priors.at(self.reference)

    @property
    def largest_surviving_rate(self) -> float | None:
        """Largest learning rate that a pilot had and did not collapse, or None where all did."""
        alive = [run.highest_rate for run in self.runs if run.collapse_step is None]
        return max(alive, default=None)


@dataclass(frozen=True)
class Posterior(FittedDraws):
    """Draws and provenance.

    Attributes
    ----------
    draws : dict of str to ndarray of shape (chains, draws, ...)
        Every parameter by name: scalars of the population (``curvature_exponent``,
        ``rate.learning_rate`` ...), per task, per group (task, model) and per run. ``plateau``
        (reward units) and ``stiffness`` (per optimizer step) are at the reference configuration.
    pilots : dict of str to ndarray
        The binned pilot curves: ``run``, ``step``, ``reward`` (reward units).
    meta : Meta
    statistics : dict of str to ndarray of shape (chains, draws)
        Of the sampler, by ArviZ's names (``diverging``, ``energy``, ``lp`` ...).
    observations : Observations or None
        What was fitted; None of a posterior that was made by hand.
    """

    meta: Meta

    def predict(
        self,
        settings: Settings | Sequence[Settings] | None,
        steps: npt.ArrayLike,
        *,
        given: PilotRun | None = None,
        **how: Any,
    ) -> xr.Dataset:
        """Draw the rewards of runs, and whether they stay stable: what answers are made of.

        Parameters
        ----------
        settings : Settings, sequence of Settings or None
            Of runs that have not begun, completed; None with ``given``.
        steps : int or array_like of shape (steps,)
            Optimizer steps of the run, or some on its way, of which the last is its end.
        given : PilotRun, optional
            A run that has begun: it goes on with its own settings, from its latest step.
        **how
            ``target`` (`Target`) [default: the largest piloted model, on its task], ``draws``
            [4000; at most 1000 of a begun run] and ``seed``.

        Returns
        -------
        predictions : xarray.Dataset
            In reward units, given that a run stays stable. Over ``configuration``, ``draw`` and
            ``step``: ``train_reward``, with the slow residual of one run and without the noise of
            batches, and ``held_out_reward`` where the pilots were evaluated. Over configuration
            and draw: ``final_train_reward`` and ``final_held_out_reward``, which are logged over
            the last tenth, as answers print them. ``is_stable`` is by the end of the run, and its
            mean is the printed P(stable).

        Raises
        ------
        InputError
            The steps are none of a run, or of one that has begun and is over; a target or a
            setting is unknown.

        Examples
        --------
        ``posterior.predict(settings, 300).final_train_reward.quantile([0.1, 0.5, 0.9], "draw")``
        """
        # By name: what predicts is built on this room, and this one door leads up to it.
        door = import_module("advisor.forecast").predict
        return door(self, settings, steps, given=given, **how)

    def to_arviz(self, predictions: xr.Dataset | None = None) -> Any:
        """Everything that ArviZ can work with, labelled by task, model and run.

        Parameters
        ----------
        predictions : xarray.Dataset, optional
            Of :meth:`predict`: they become the group of that name.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former under ArviZ 0.23, the latter under 1.x; groups as in
            `model.storage.inference_groups`. Every shared parameter is a variable, as in
            ``az.summary(data, var_names=["curvature_exponent", "plateau", "stiffness"])``; laws
            are vectors with labelled terms. ``az.loo(data)`` leaves out run by run. There are
            several observed variables: name one, as in
            ``az.plot_ppc(data, var_names=["train_reward"])``.
        """
        from advisor.model.compat import as_inference_data

        if self.observations is None:
            raise StudyError("this posterior was made by hand, without pilots", advice="Fit pilots")
        groups = inference_groups(self)
        named = {name: one_by_one(groups[name]) for name in ("posterior", "prior")}
        coordinates = labels(self.observations)
        if predictions is not None:
            moved = predictions.expand_dims("chain").transpose("chain", "draw", ...)
            named["predictions"] = {
                str(name): Variable(tuple(map(str, own.dims)), own.values)
                for name, own in moved.items()
            }
            coordinates = coordinates | {"step": predictions.step.values.tolist()}
        return as_inference_data(groups | named, coordinates)

    @property
    def convergence(self) -> Convergence:
        """Convergence figures."""
        return self.meta.convergence

    def with_note(self, remark: Note) -> Posterior:
        """Return the posterior with one more remark on how it was reached."""
        meta = self.meta.model_copy(update={"notes": (*self.meta.notes, remark)})
        return replace(self, meta=meta)

    @property
    def sizes(self) -> int:
        """Distinct model sizes among the pilots."""
        return len(set(self.meta.group_parameters))

    @property
    def table(self) -> pd.DataFrame:
        """Plateau, stiffness and exponents: mean and central 80 % interval."""
        import pandas as pd

        rows = []
        for index, (task, model) in enumerate(self.meta.groups):
            for name in ("plateau", "stiffness"):
                rows.append((f"{name} [{task} / {model}]", self.flat(name)[:, index]))
        rows.append(("curvature exponent", self.flat("curvature_exponent")))
        rows += [(f"rate exponent of {term}", self.flat(f"rate.{term}")) for term in LAWS["rate"]]
        ends = (1 - INTERVAL) / 2, (1 + INTERVAL) / 2
        return pd.DataFrame(
            [(values.mean(), *np.quantile(values, ends)) for _, values in rows],
            columns=["mean", "lower", "upper"],
            index=pd.Index([name for name, _ in rows], name="quantity"),
        )

    def to_json(self) -> str:
        """Table and provenance as JSON, without the draws."""
        found = {
            "table": json.loads(self.table.to_json(orient="index")),
            "convergence": self.convergence.model_dump(),
            "provenance": self.meta.provenance.model_dump(),
        }
        return json.dumps(found, indent=2)

    def __repr__(self) -> str:
        """Pilots, priors and convergence; ``posterior.table`` has the numbers."""
        runs, found = self.meta.runs, self.convergence
        collapsed = sum(run.collapse_step is not None for run in runs)
        groups = ", ".join(f"{model} on {task}" for task, model in self.meta.groups[:4])
        more = f" and {len(self.meta.groups) - 4} more" if len(self.meta.groups) > 4 else ""
        return (
            f"Posterior({counted(len(runs), 'pilot')} ({collapsed} collapsed) of {groups}{more}; "
            f"priors '{self.meta.priors.name}'; R-hat {found.rhat:.3f}, {found.draws:,} draws)"
        )

    def _repr_html_(self) -> str:
        """Pilots and priors, and the table, as a notebook shows it."""
        table = self.table
        return html_table(repr(self), [str(table.index.name), *table.columns], table.itertuples())

    def save(self, path: str | Path) -> None:
        """Write a NetCDF file that ArviZ and :meth:`load` both open; whole or not at all.

        Parameters
        ----------
        path : path-like
            Replaced where it exists; its folder is made where it is missing.

        Raises
        ------
        OSError
            It cannot be written; an older file stays as it was.
        """
        write_whole(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Bytes of the file that :meth:`save` writes."""
        return to_netcdf(self)

    @classmethod
    def load(cls, path: str | Path) -> Posterior:
        """Read a saved posterior; imports neither PyMC nor ArviZ.

        Raises
        ------
        StudyError
            The file is no saved posterior, or has another schema.

        Warns
        -----
        UserWarning
            Another version of the package fitted it.
        """
        file = Path(path)
        try:
            if file.exists() and not file.is_file():
                raise OSError("it is no file")
            return cls.from_bytes(file.read_bytes(), file)
        except OSError as error:
            why = f"it cannot be read ({error.strerror or error})"
            if isinstance(error, FileNotFoundError):
                why = "there is no such file"
            advice = "Give a posterior.nc that was saved"
            raise StudyError(why, path=path, advice=advice) from error

    @classmethod
    def from_bytes(cls, whole: bytes, path: Path) -> Posterior:
        """Read the bytes of a file; see :meth:`load`. Errors name the path."""
        draws, statistics, pilots, seen, text = from_netcdf(whole, path, SCHEMA)
        try:
            meta = Meta.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])[:80]
            why = f"its '{key}' is damaged" if key else first["msg"].removeprefix("Value error, ")
            raise not_saved(why, path) from error
        _check_shapes(draws, meta, path)
        if meta.provenance.package != VERSION:
            warnings.warn(
                f"{path} was fitted by version {meta.provenance.package}, this is {VERSION}: "
                "numbers may differ from a new fit",
                stacklevel=3,
            )
        return cls(draws, pilots, meta, statistics, seen)


def _check_shapes(draws: Mapping[str, FloatArray], meta: Meta, path: Path) -> None:
    """Refuse draws that do not belong to what the file says of itself."""
    sizes = {"task": len(meta.tasks), "group": len(meta.groups), "run": len(meta.runs)}
    kinds = {"group_offset": "group", "run_offset": "run"}
    first = draws["log_dispersion"].shape[:2]
    for name in dict.fromkeys(("start", "plateau", "stiffness", *draws)):
        kind = kinds.get(name.partition(".")[0])
        dims = DIMS.get(name, ()) if kind is None else (kind,)
        shape = (*first, *(sizes[dim] for dim in dims))
        if name not in draws or draws[name].shape != shape or 0 in shape:
            raise not_saved(f"its '{name}' is damaged", path)


STACKS = {
    "population": POPULATION,
    "task_level": TASK_LEVELS,
    "start_logit": GROUP_LEVELS[:1],
    "eval_level": GROUP_LEVELS[1:],
    "group_offset": GROUP_EFFECTS,
    "run_offset": RUN_EFFECTS,
}
"""Parameters that each vector of the sampler stacks."""


def _disputed(
    diagnostics: Mapping[str, tuple[FloatArray, FloatArray]], ids: Sequence[str]
) -> tuple[str, ...]:
    """Runs over whose own terms the chains disagree most."""
    found = np.asarray(diagnostics["run_offset"][0]) if "run_offset" in diagnostics else None
    if found is None or found.ndim < 2:
        return ()  # draws that no sampler made
    rhat = np.nan_to_num(found, nan=np.inf).max(axis=0)
    # Three at most are named, and from this R-hat on.
    worst = [run for run in np.argsort(-rhat)[:3].tolist() if rhat[run] > 1.01]
    return tuple(f"'{ids[run]}' (R-hat {rhat[run]:.2f})" for run in worst)


def make_posterior(
    cohort: Cohort,
    priors: Priors,
    family: Family,
    raw: Mapping[str, FloatArray],
    statistics: Mapping[str, FloatArray],
    diagnostics: Mapping[str, tuple[FloatArray, FloatArray]],
    versions: dict[str, str],
    *,
    seed: int,
) -> Posterior:
    """Name the sampled vectors and add start, plateau and stiffness per group.

    Long because: it names every draw and fills one record.
    """
    stacked = dict(raw) | {"start_logit": raw["start_logit"][:, :, None]}
    draws = {
        name: values
        for stack, names in STACKS.items()
        for name, values in zip(names, np.moveaxis(stacked[stack], 2, 0), strict=True)
    }
    seen, scale = observations(cohort), cohort.ceiling - cohort.floor
    draws["is_oscillator"] = np.full_like(draws["log_misfit"], float(family.is_oscillator))
    draws |= summaries_of(draws, seen)

    convergence = Convergence.of(diagnostics, statistics, [run.id for run in cohort.runs])
    pilots = {
        "run": cohort.run_of_bin.astype(float),
        "step": cohort.step,
        "reward": cohort.floor + scale * cohort.reward,
    }
    taken = Meta.model_fields.keys() & {*Cohort.__dataclass_fields__, "longest"}
    taken -= {"runs", "group_parameters", "task_of_group"}
    tested = cohort.group_of_run[cohort.run_of_eval]
    meta = Meta(
        **{name: getattr(cohort, name) for name in taken},
        group_parameters=tuple(cohort.group_parameters.tolist()),
        task_of_group=tuple(cohort.task_of_group.tolist()),
        evaluated=tuple(group in tested for group in range(len(cohort.groups))),
        family=family.name,
        runs=tuple(_summaries(cohort)),
        convergence=convergence,
        priors=priors,
        provenance=Provenance(
            schema_version=SCHEMA,
            package=VERSION,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            data_sha256=cohort.digest,
            seed=seed,
            versions=versions,
        ),
    )
    return Posterior(draws, pilots, meta, statistics, seen)


def _mean(series: FloatArray | None, rows: int | None = None) -> float | None:
    """Mean of the rows that hold a number, or of the first of them."""
    finite = np.zeros(0) if series is None else series[np.isfinite(series)]
    return float(finite[:rows].mean()) if finite.size else None


def _summaries(cohort: Cohort) -> list[RunSummary]:
    out = []
    for index, (run, settings) in enumerate(zip(cohort.runs, cohort.settings, strict=True)):
        finite = run.reward[np.isfinite(run.reward)]
        thinned = 1 + finite.size // 500
        steps = float(run.step[-1])
        prompts = steps * settings.prompts_per_step
        out.append(
            RunSummary(
                id=run.id,
                task=str(run.task),
                model=str(run.model),
                parameters=run.parameters or 0.0,
                settings=settings,
                assumed=tuple(run.hyperparameters.assumed),
                steps=steps,
                completions=prompts * settings.group_size / settings.epochs_per_refresh,
                first_reward=float(finite[:FIRST_ROWS].mean()),
                first_silent_share=_mean(run.series.get("silent_group_share"), FIRST_ROWS),
                last_reward=float(finite[-FIRST_ROWS:].mean()),
                collapse_step=cohort.collapse_step[index],
                fell_from=cohort.fell_from[index],
                fingerprint=run.fingerprint,
                seconds_per_step=run.seconds_per_step,
                completion_tokens=_mean(run.series.get("completion_length")),
                framework=run.framework,
                logged_steps=tuple(run.step[np.isfinite(run.reward)][::thinned].tolist()),
                logged_rewards=tuple(finite[::thinned].tolist()),
                thinned=thinned,
            )
        )
    return out
