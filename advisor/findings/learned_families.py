"""What past studies say of curve families: runs in favour of each, for the next study."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model.posterior import Posterior
from advisor.model.priors import Priors
from advisor.model.priors.loader import FamilyPrior

STUDY_RUNS = 4.0
"""Runs that one study counts for at most: runs of one task share the shape of their curves."""

DIGITS = 2


def learn_families(posteriors: Sequence[Posterior], base: Priors) -> FamilyPrior:
    """Add to a preset's runs those that spoke for each family in past studies.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Those fitted with every family tell (`fit(..., families=...)`); others say nothing.
    base : Priors

    Returns
    -------
    runs : FamilyPrior
        A weight is prior runs plus a study's own over their sum (`stacking`), so a study's own are
        its weight times that sum, less its prior's.
    """
    names = [name for name in FamilyPrior.model_fields if name != "source"]
    total = {name: float(getattr(base.family_runs, name)) for name in names}
    studies = [one for one in posteriors if set(one.meta.families) == set(names)]
    for study in studies:
        prior = {name: float(getattr(study.meta.priors.family_runs, name)) for name in names}
        runs = sum(run.collapse_step is None for run in study.meta.runs)
        everything = sum(prior.values()) + runs
        own = {
            name: max(0.0, study.meta.families[name] * everything - prior[name]) for name in names
        }
        share = min(1.0, STUDY_RUNS / max(sum(own.values()), 1e-9))
        for name in names:
            total[name] += share * own[name]
    if not studies:
        return base.family_runs
    source = (
        f"Forecasts of the last third of the logs in {len(studies)} stud"
        f"{'ies' if len(studies) > 1 else 'y'}, each counting for {STUDY_RUNS:g} runs at most, "
        f"added to {base.name}."
    )
    return FamilyPrior(
        **{name: round(value, DIGITS) for name, value in total.items()}, source=source
    )
