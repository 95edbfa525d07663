"""Where an answer leans on the prior or leaves the pilots' ground, in words."""

from __future__ import annotations

from advisor.advice.candidates import RATE_REACH, largest_surviving_rate
from advisor.findings import misfit_caution
from advisor.forecast import SUPPORT, Forecaster
from advisor.model import FIRST_LOOK, Posterior
from advisor.runs import NONE_MOVED


def cautions(posterior: Posterior, forecaster: Forecaster, steps: int) -> list[str]:
    """Sentences that belong beside the answer about a run of so many steps."""
    meta = posterior.meta
    out = []
    if not any(run.collapse_step is not None for run in meta.runs):
        out.append(
            "No pilot failed, so the tolerated learning rate is bounded by the prior and by "
            f"{RATE_REACH:g} times the largest piloted rate."
        )
    if largest_surviving_rate(posterior) is None:
        out.append("Every pilot collapsed; nothing here is known to live.")
    rates = {run.settings.learning_rate for run in meta.runs}
    if len(rates) == 1:
        out.append(
            f"All pilots ran at learning rate {rates.pop():g}: what another learning rate does is "
            "the prior's word."
        )
    sizes = {run.settings.group_size for run in meta.runs}
    if len(sizes) == 1:
        out.append(
            f"Group size: keep {sizes.pop()} unless you name others; your pilots, which all ran at "
            "it, cannot tell what another does."
        )
    if not forecaster.is_piloted:
        out.append(
            f"No pilot ran {forecaster.target.model} on {forecaster.target.task}: its stiffness, "
            f"start and tolerance are extrapolated from {posterior.sizes} model size"
            f"{'s' if posterior.sizes > 1 else ''}."
        )
    told = meta.priors.extrapolation
    if steps > SUPPORT * meta.longest:
        beyond = (
            f"the curve is moved by how far runs of {told.groups} other worlds were ahead of theirs"
            if told.groups
            else "the interval of the reward is too narrow: of public runs, half lay in 80 %"
        )
        out.append(
            f"The run is {steps / meta.longest:.2g} times as long as the longest pilot. Beyond "
            f"{SUPPORT:g} times, {beyond}."
        )
    if FIRST_LOOK in meta.notes:
        out.insert(0, f"This is {FIRST_LOOK}.")
    if NONE_MOVED in meta.notes:
        out.insert(
            0,
            f"{NONE_MOVED[0].upper()}{NONE_MOVED[1:]}: they tell that their settings are slow, and "
            "how high and how fast another rises is the prior's word.",
        )
    misfit = misfit_caution(posterior)
    if misfit:
        out.append(misfit)
    if any(not run.settings.importance_ratio for run in meta.runs):
        out.append("Some pilots ran without an importance ratio; all of their staleness counts.")
    if any(run.settings.optimizer == "sgd" for run in meta.runs):
        out.append(
            "The pilots ran with SGD: where it was tried on networks, staleness cost reward from a "
            "quarter of the limit on that is assumed here; keep refresh interval and lag as short."
        )
    return out
