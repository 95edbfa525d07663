"""What past studies say of curve families: runs in favour of each, for the next study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.model.posterior import Posterior
from advisor.model.priors import Priors
from advisor.model.priors.loader import FamilyPrior

STUDY_RUNS = 4.0
"""Runs that one study counts for at most: runs of one task share the shape of their curves."""

DIGITS = 2

_NAMES = tuple(name for name in FamilyPrior.model_fields if name != "source")


def learn_families(studies: Sequence[Mapping[str, float]], base: Priors) -> FamilyPrior:
    """Add to a preset's runs those that spoke for each family in past studies.

    Parameters
    ----------
    studies : sequence of dict of str to float
        From :func:`runs_of_families`; empty ones say nothing.
    base : Priors

    Returns
    -------
    runs : FamilyPrior
    """
    total = {name: float(getattr(base.family_runs, name)) for name in _NAMES}
    told = [runs for runs in studies if runs]
    if not told:
        return base.family_runs
    for runs in told:
        for name in _NAMES:
            total[name] += runs[name]
    source = (
        f"Forecasts of the last third of the logs in {len(told)} stud"
        f"{'ies' if len(told) > 1 else 'y'}, each counting for {STUDY_RUNS:g} runs at most, "
        f"added to {base.name}."
    )
    return FamilyPrior(
        **{name: round(value, DIGITS) for name, value in total.items()}, source=source
    )


def runs_of_families(study: Posterior) -> dict[str, float]:
    """Runs of a study that spoke for each family of curves.

    Parameters
    ----------
    study : Posterior

    Returns
    -------
    runs : dict of str to float
        Empty where not every family was fitted (`fit(..., families=...)`).

    Notes
    -----
    A weight is prior runs plus a study's own over their sum (`stacking`), so a study's own are its
    weight times that sum, less its prior's.
    """
    if set(study.meta.families) != set(_NAMES):
        return {}
    prior = {name: float(getattr(study.meta.priors.family_runs, name)) for name in _NAMES}
    runs = sum(run.collapse_step is None for run in study.meta.runs)
    everything = sum(prior.values()) + runs
    own = {name: max(0.0, study.meta.families[name] * everything - prior[name]) for name in _NAMES}
    share = min(1.0, STUDY_RUNS / max(sum(own.values()), 1e-9))
    return {name: share * own[name] for name in _NAMES}
