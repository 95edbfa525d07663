"""What the pilots support: what was piloted, what lies outside of it, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mode

import numpy as np

from advisor.advice.candidates import RATE_REACH
from advisor.common import counted
from advisor.forecast import SUPPORT, Forecaster, pilots_of, stability
from advisor.model import FIRST_LOOK, NONE_MOVED, Posterior, misfit_caution
from advisor.runs import PilotRun, Settings
from advisor.theory import PromptDifficulty, silent_group_share

KNOBS = {
    "learning_rate": "learning rate",
    "group_size": "group size",
    "minibatches_per_refresh": "mini-batches per refresh",
    "epochs_per_refresh": "epochs per refresh",
    "prompts_per_step": "prompts per step",
    "lag": "lag",
    "parameters": "model size",
}
"""What a pilot tells the effect of, in words."""

CHANCE = 0.05
"""By how much fewer groups may be silent in a few first rows than if all prompts were alike."""

SAME = 1.001
"""Factor within which two settings are one: rates are rounded when they are written."""

Ranges = Mapping[str, tuple[float, float]]
"""Setting -> least and most that any pilot ran, whatever became of it."""


def piloted(posterior: Posterior) -> dict[str, tuple[float, float]]:
    """Range of every setting among the pilots of all models and tasks, since all inform a curve."""
    had = [
        run.settings.model_dump()
        | {"parameters": run.parameters, "learning_rate": run.highest_rate}
        for run in posterior.meta.runs
    ]
    values = {name: [float(run[name]) for run in had] for name in KNOBS}
    return {name: (min(each), max(each)) for name, each in values.items()}


def outside(settings: Mapping[str, float], ranges: Ranges) -> list[str]:
    """Names of the settings that lie beyond what was piloted, in the order of ``KNOBS``."""
    return [
        name
        for name in KNOBS
        if name in settings
        and name in ranges
        and not ranges[name][0] / SAME <= settings[name] <= ranges[name][1] * SAME
    ]


def beyond_pilots(settings: Settings, forecaster: Forecaster) -> tuple[str, ...]:
    """What lies outside, each with what was piloted: ``lag 4 (piloted: 0)``."""
    ranges = piloted(forecaster.posterior)
    chosen = {**settings.model_dump(), "parameters": forecaster.target.parameters}
    return tuple(
        f"{KNOBS[name]} {chosen[name]:.3g} (piloted: {range_text(ranges[name])})"
        for name in outside(chosen, ranges)
    )


def range_text(ends: tuple[float, float]) -> str:
    """Least and most of a setting: ``1e-05``, or ``3e-05 to 0.001``."""
    low, high = ends
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def is_supported(steps: float, longest: float) -> bool:
    """Whether the longest pilot supports a run of so many steps."""
    return steps <= SUPPORT * longest


def silent_groups(forecaster: Forecaster) -> dict[int, float]:
    """Share of groups that teach nothing where the pilots began, by group size: half to fourfold.

    The first rows of the pilots of the most frequent group size tell how pass rates spread over
    prompts (`PromptDifficulty.of_silent_groups`). Empty where no log holds the share, all groups
    were silent, or right and wrong alone make more of them: partial credit makes fewer.
    """
    first = [
        (run.settings.group_size, run.first_reward, run.first_silent_share)
        for run in pilots_of(forecaster.posterior, forecaster.target)
        if run.first_silent_share is not None
    ]
    if not first:
        return {}
    size = mode(group for group, *_ in first)
    rewards, shares = np.mean([row[1:] for row in first if row[0] == size], axis=0)
    passed, share = forecaster.as_share(float(rewards)), float(shares)
    alike = silent_group_share(size, passed)
    if not (0 < passed < 1 and alike - CHANCE <= share < 1):
        return {}
    prompts: float | PromptDifficulty = passed
    if share > alike:
        prompts = PromptDifficulty.of_silent_groups(passed, share, size)
    sizes = [most for most in (size // 2, size, 2 * size, 4 * size) if most > 1]
    return {group: round(silent_group_share(group, prompts), 4) for group in sizes}


def reach_of(forecaster: Forecaster) -> float:
    """Length over that of the longest pilot up to which 80 % intervals held on other runs."""
    known = forecaster.posterior.meta.priors.extrapolation
    return known.times if known.gain or forecaster.next_run is not None else SUPPORT


def cautions(forecaster: Forecaster, steps: int, silent: Mapping[int, float]) -> tuple[str, ...]:
    """Sentences next to the answer about a run of so many steps; `silent_groups` are given."""
    posterior = forecaster.posterior
    meta, target = posterior.meta, forecaster.target
    settings = [run.settings for run in meta.runs]
    rates, sizes = ({getattr(s, n) for s in settings} for n in ("learning_rate", "group_size"))
    penalties = ", ".join(f"{one:g}" for one in sorted({one.kl_coefficient for one in settings}))
    found = [
        (FIRST_LOOK in meta.notes, f"This is {FIRST_LOOK}."),
        *((True, line) for line in (*PilotRun.weighty(meta.notes), *_mostly_silent(silent, sizes))),
        (
            not forecaster.is_piloted,
            f"No pilot ran {target.model} on {target.task}: its stiffness, start and tolerance "
            f"are extrapolated from {counted(posterior.sizes, 'model size')}.",
        ),
        (
            ", " in penalties,
            f"The pilots differ in kl_coefficient ({penalties}), whose effect no law tells: "
            "compare those of one, and set it yourself in the config.",
        ),
        (
            NONE_MOVED in meta.notes,
            f"{NONE_MOVED[0].upper()}{NONE_MOVED[1:]}: they tell that their settings are slow, and "
            "how high and how fast another rises is the prior's word.",
        ),
        (
            all(run.collapse_step is None for run in meta.runs),
            "No pilot counts as collapsed (of one that did say collapsed = true in pilots.toml): "
            f"the prior and {RATE_REACH:g} times the largest piloted learning rate bound it.",
        ),
        (
            meta.largest_surviving_rate is None,
            "Every pilot collapsed; nothing here is known to live.",
        ),
        (
            len(rates) == 1,
            f"All pilots ran at learning rate {min(rates):g}: what another learning rate does is "
            "the prior's word.",
        ),
        (
            len(sizes) == 1,
            f"Group size: the pilots, which all ran at {min(sizes)}, cannot tell what another "
            "does: keep it, or pilot the other first.",
        ),
        (
            not is_supported(steps, meta.longest),
            f"The run is {steps / meta.longest:.2g} times as long as the longest pilot. Beyond "
            f"{SUPPORT:g} times, {_beyond(forecaster)}.",
        ),
        ((misfit := misfit_caution(posterior)) != "", misfit),
        ((doubted := _doubted(forecaster, steps)) != "", doubted),
        (
            not all(one.importance_ratio for one in settings),
            "Some pilots ran without an importance ratio; all of their staleness counts.",
        ),
        (
            any(one.optimizer == "sgd" for one in settings),
            "The pilots ran with SGD: where it was tried on networks, staleness cost reward from a "
            "quarter of the limit on that is assumed here; keep refresh interval and lag as short.",
        ),
    ]
    return tuple(line for holds, line in found if holds)


def _mostly_silent(wasted: Mapping[int, float], sizes: set[int]) -> list[str]:
    """Whether the one group size of the pilots is the first thing to change: few groups taught."""
    size, *others = sorted(sizes)
    if others or wasted.get(size, 0.0) < 0.75:
        return []
    return [
        f"Of the first groups of {size}, {100 * wasted[size]:.0f} % scored all alike and taught "
        f"nothing; of groups of {max(wasted)} it would be {100 * wasted[max(wasted)]:.0f} %. Offer "
        "larger groups, or easier prompts."
    ]


def _doubted(forecaster: Forecaster, steps: int) -> str:
    """The living pilot of the highest rate, where a run of its settings is thought impossible."""
    own = pilots_of(forecaster.posterior, forecaster.target)
    had = [run for run in own if run.highest_rate >= run.settings.learning_rate / SAME]
    alive = [run for run in had if run.collapse_step is None]
    run = max(alive, key=lambda one: one.settings.learning_rate, default=None)
    if (
        run is None
        # Below it a pilot that lives contradicts the model.
        or stability(forecaster, run.settings.planned_over(steps), steps).least >= 0.01
    ):
        return ""
    return (
        f"Pilot '{run.id}' counts as alive after {counted(int(run.steps), 'step')} at learning "
        f"rate {run.settings.learning_rate:.3g}, where P(stable to step {steps}) is under 1 %: "
        "look whether it learns at all, or is about to fall."
    )


def _beyond(forecaster: Forecaster) -> str:
    """What forecasts rest on that the pilots do not support."""
    extrapolation = forecaster.posterior.meta.priors.extrapolation
    if forecaster.next_run is not None:
        return "most of it is what became of public runs that stood where the pilots stand"
    if extrapolation.gain:
        return (
            f"the curve is moved by how far runs of {extrapolation.groups} other worlds were ahead "
            "of theirs"
        )
    return "the interval of the reward is too narrow: of public runs, half lay in 80 %"
