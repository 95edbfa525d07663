"""What the pilots support: what was piloted, what lies outside of it, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mode
from typing import Any

import numpy as np

from advisor.advice.candidates import RATE_REACH
from advisor.advice.cost import completions_trained
from advisor.common import Kind, Note, counted, note, stated
from advisor.forecast import SUPPORT, Forecaster, pilots_of, stability
from advisor.model import Posterior, misfit_caution
from advisor.runs import Settings
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

SAME = 1.001  # Factor within which two settings are one: rates are rounded when they are written

GRACE = 1.05
"""Factor by which a run may pass a limit on its length: such a limit is no cliff (ours)."""

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
    return steps <= GRACE * SUPPORT * longest


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


def cautions(
    forecaster: Forecaster, steps: int, silent: Mapping[int, float], beyond: Sequence[str] = ()
) -> list[Note]:
    """Cautions about a run of so many steps; `silent_groups` and `beyond_pilots` are given."""
    meta, target = forecaster.posterior.meta, forecaster.target
    settings = [run.settings for run in meta.runs]
    rates, sizes = ({getattr(s, n) for s in settings} for n in ("learning_rate", "group_size"))
    penalties = sorted({one.kl_coefficient for one in settings})
    found = []
    if not forecaster.is_piloted:
        counts = counted(forecaster.posterior.sizes, "model size")
        own = {"model": target.model, "task": target.task}
        if forecaster.is_small:
            found.append(note(Kind.UNPILOTED_TARGET, **own, sizes=counts))
        else:
            found.append(note(Kind.UNPILOTED_LANGUAGE_MODEL, **own))
    if len(penalties) > 1:
        named = ", ".join(f"{one:g}" for one in penalties)
        found.append(note(Kind.PENALTIES_DIFFER, penalties=named))
    if beyond:
        found.append(note(Kind.BEYOND_PILOTS, settings=", ".join(beyond)))
    if all(run.collapse_step is None for run in meta.runs):
        found.append(note(Kind.NONE_COLLAPSED, reach=RATE_REACH))
    if meta.largest_surviving_rate is None:
        found.append(note(Kind.ALL_COLLAPSED))
    pilots = pilots_of(forecaster.posterior, target)
    hottest = max((run.highest_rate for run in pilots if run.collapse_step is None), default=0.0)
    for run in pilots:
        if run.collapse_step is not None and run.highest_rate < 0.9 * hottest:
            found.append(note(Kind.FELL_BELOW_OTHERS, run=run.id, rate=run.highest_rate))
    if len(rates) == 1:
        found.append(note(Kind.ONE_RATE, rate=min(rates)))
    if len(sizes) == 1:
        found.append(note(Kind.ONE_GROUP, size=min(sizes)))
    if not is_supported(steps, meta.longest):
        found.append(_too_long(forecaster, steps))
    if misfit := misfit_caution(forecaster.posterior):
        found.append(stated(misfit, Kind.MISFIT))
    if not all(one.importance_ratio for one in settings):
        found.append(note(Kind.NO_RATIO))
    if any(one.optimizer == "sgd" for one in settings):
        found.append(note(Kind.SGD))
    return [*found, *_mostly_silent(silent, sizes), *_doubted(forecaster, steps)]


def memory_of(forecaster: Forecaster, settings: Settings) -> list[Note]:
    """Whether a step holds more tokens than any pilot's: then it may not fit."""
    if forecaster.is_small or not forecaster.is_piloted:
        return []

    def tokens(one: Settings) -> float:
        return completions_trained(one) * (one.max_completion_length or 1)

    own = [run.settings for run in pilots_of(forecaster.posterior, forecaster.target)]
    unknown = {one.max_completion_length is None for one in (settings, *own)}
    count = completions_trained if len(unknown) > 1 else tokens
    times = count(settings) / max(map(count, own))
    if times <= SAME:
        return [note(Kind.FITS_AS_PILOTED)]
    return [note(Kind.MAY_NOT_FIT, times=times)]


def _too_long(forecaster: Forecaster, steps: int) -> Note:
    """What the forecast of a run relies on that is longer than the pilots support."""
    meta = forecaster.posterior.meta
    times, enough = steps / meta.longest, int(-(-steps // SUPPORT))
    own: dict[str, Any] = {"times": times, "enough": enough}
    if times > GRACE * reach_of(forecaster):
        return note(Kind.TOO_LONG, **own, most=int(SUPPORT * meta.longest))
    if forecaster.next_run is not None:
        return note(Kind.LONG_BY_PUBLIC_RUNS, **own)
    if meta.priors.extrapolation.gain:
        groups = meta.priors.extrapolation.groups
        return note(Kind.LONG_BY_SIMULATION, **own, groups=groups)
    return note(Kind.LONG_UNMEASURED, **own)


def _mostly_silent(wasted: Mapping[int, float], sizes: set[int]) -> list[Note]:
    """Whether the one group size of the pilots is the first thing to change: few groups taught."""
    size, *others = sorted(sizes)
    if others or wasted.get(size, 0.0) < 0.75:
        return []
    larger = max(wasted)
    own: dict[str, Any] = {"size": size, "share": 100 * wasted[size]}
    return [note(Kind.SILENT_GROUPS, **own, larger=larger, larger_share=100 * wasted[larger])]


def _doubted(forecaster: Forecaster, steps: int) -> list[Note]:
    """The living pilot of the highest rate, where a run of its settings is thought impossible."""
    own = pilots_of(forecaster.posterior, forecaster.target)
    had = [run for run in own if run.highest_rate >= run.settings.learning_rate / SAME]
    alive = [run for run in had if run.collapse_step is None]
    run = max(alive, key=lambda one: one.settings.learning_rate, default=None)
    if (
        run is None
        # Below it a pilot that lives contradicts the model.
        or stability(forecaster, run.settings.planned_over(steps), steps).by_model >= 0.01
    ):
        return []
    ran, rate = counted(int(run.steps), "step"), run.settings.learning_rate
    return [note(Kind.DOUBTED_PILOT, run=run.id, steps=ran, rate=rate, planned=steps)]
