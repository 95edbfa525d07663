"""Advantage degeneracy: groups whose rewards are all equal have no advantage and teach nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.card import Card, Finding, card_of, not_applicable
from advisor.runs.diagnosis.levels import ends, series_of, since, steps_above
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import find_trainer, setting_name
from advisor.theory import (
    FloatArray,
    PromptDifficulty,
    drift_factor,
    group_deviation,
    silent_group_share,
)

SILENT_WARNING = 0.6
SOLVED = 0.9
"""Mean reward, as a share of its range, from which silent groups are mostly solved ones."""


SOURCE = (
    "ours; expected share E[p^G + (1-p)^G] for Beta-distributed difficulty with the logged mean "
    "and spread within groups (arXiv:2606.30789 names the mode; docs/theory, T32)"
)


class Silent(NamedTuple):
    """Share of silent groups: steps, values of shape (rows,), and what was counted."""

    step: FloatArray
    values: FloatArray
    unit: str

    @property
    def share(self) -> float:
        """Share over the last fifth of the run."""
        return ends(self.values)[1].mean

    @property
    def summary(self) -> str:
        """The share as the beginning of a sentence."""
        return f"{100 * self.share:.0f} % of groups have equal rewards"

    @property
    def steps(self) -> tuple[float, float]:
        """First and last step that a verdict on the share speaks of."""
        return steps_above(self.step, self.values, ends(self.values)[1], SILENT_WARNING)


def advantage_degeneracy(run: PilotRun) -> Card:
    """Judge the share of silent groups over the last fifth of the run."""
    silent = silent_share(run)
    if silent is None:
        return not_applicable(
            "advantage_degeneracy",
            "The log does not tell how many groups had equal rewards.",
            "TRL logs frac_reward_zero_std; elsewhere log the share of groups with zero "
            "standard deviation.",
        )
    last = ends(silent.values)[1]
    finding = _hopeless(run, silent) or _solved(run, silent) or _many_silent(run, silent)
    return card_of(
        "advantage_degeneracy",
        finding or Finding("PASS", f"{silent.summary}.", silent.steps),
        number=last.mean,
        unit=silent.unit,
        interval=last.share_interval,
        threshold=SILENT_WARNING,
        source=SOURCE,
        witnesses=_witnesses(run, last.mean),
        unknown=()
        if "all_right_share" in run.series
        else (
            "Whether silent groups are all right or all wrong: log both shares (prime-rl and "
            "Tinker do).",
        ),
    )


def _hopeless(run: PilotRun, silent: Silent) -> Finding | None:
    """Nearly every group silent because all of its completions fail."""
    mean, is_unit = share_of_range(run, run.reward)
    # Rewards below which a run is too young to fail.
    is_young = np.isfinite(run.reward).sum() < 10
    if silent.share < 0.95 or not is_unit or not mean < 0.2 or is_young:
        return None
    # Share from which a run has lost its signal: where that began is where the card begins.
    return Finding(
        "FAIL",
        f"{silent.summary} and the mean reward is {mean:.2f}: almost nothing is learned.",
        (since(silent.step, silent.values, 0.9), float(silent.step[-1])),
        f"Easier prompts, a shaped reward, or a larger {setting_name(run, 'group_size')}: "
        "nearly every group fails as a whole.",
    )


def _solved(run: PilotRun, silent: Silent) -> Finding | None:
    """Groups silent because their prompts are solved."""
    mean, is_unit = share_of_range(run, run.reward)
    if not is_unit or not mean >= SOLVED:
        return None
    is_many = silent.share >= SILENT_WARNING
    return Finding(
        "INFO" if is_many else "PASS",
        f"{silent.summary}, at a mean reward of {mean:.2f}: most prompts are solved.",
        silent.steps,
        "Harder prompts would teach more." if is_many else "",
    )


def _many_silent(run: PilotRun, silent: Silent) -> Finding | None:
    """Many silent groups, and why as far as the mean reward and the expected share tell."""
    if silent.share < SILENT_WARNING:
        return None
    mean, is_unit = share_of_range(run, run.reward)
    expected, group = expected_silent(run), run.hyperparameters.group_size
    is_mixed = expected is not None and silent.share > expected + 0.2
    if is_mixed:
        why = (
            "more than a smooth mix of difficulties explains: completions of a group may be "
            "copies of each other"
        )
    elif is_unit:
        kind = "most are solved" if mean > 0.5 else "most fail as a whole"
        why = f"{kind} (mean reward {mean:.2f})"
    else:
        why = "prompts are too easy or too hard for this group size"
    sizes = f"with {group} completions " if group else ""
    return Finding(
        "WARNING",
        f"{silent.summary} {sizes}and teach nothing; {why}.",
        silent.steps,
        f"Filter solved and hopeless prompts, raise {setting_name(run, 'group_size')}"
        + (f", or raise {setting_name(run, 'temperature')}." if is_mixed else "."),
    )


def _witnesses(run: PilotRun, share: float) -> tuple[str, ...]:
    """Expected share, groups that teach, drift lost, and what silent groups are."""
    prompts, group = run.hyperparameters.prompts_per_step, run.hyperparameters.group_size
    expected, lost = expected_silent(run), drift_lost(run)
    lines = []
    if expected is not None:
        lines.append(f"{expected:.2f} expected for a smooth mix of difficulties")
    if prompts is not None:
        lines.append(f"{prompts * (1 - share):.1f} of {prompts:g} groups a step teach")
    if lost is not None:
        lines.append(
            f"{lost:.2f} of the drift of an infinite group is lost at {group} completions, for the "
            "same mix"
        )
    for name, text in (("all_right_share", "all right"), ("all_wrong_share", "all wrong")):
        part = series_of(run, name)
        if part is not None:
            lines.append(f"{text} {ends(part[1])[1].mean:.2f}")
    return tuple(lines)


def silent_share(run: PilotRun) -> Silent | None:
    """Share of silent groups per row: as logged, or rows in which no group had any spread."""
    logged = series_of(run, "silent_group_share")
    if logged is not None:
        return Silent(*logged, "share of groups with equal rewards")
    spread = series_of(run, "reward_std_within_group")
    if spread is None:
        return None
    step, values = spread
    return Silent(step, (values <= 1e-6).astype(float), "share of rows without any spread")


def expected_silent(run: PilotRun) -> float | None:
    """Expected share of silent groups at the end for Beta-distributed difficulty, or None."""
    group, mix = run.hyperparameters.group_size, difficulty(run)
    if mix is None or group is None:
        return None
    return min(silent_group_share(group, mix), 1.0)  # beyond it by rounding alone


def drift_lost(run: PilotRun) -> float | None:
    """Share of an infinite group's drift that the group size costs (docs/theory, T33)."""
    group, mix = run.hyperparameters.group_size, difficulty(run)
    if mix is None or group is None:
        return None
    scaling, trainer = run.hyperparameters.advantage_scaling or "group", find_trainer(run.framework)
    return 1 - drift_factor(group, mix, scaling=scaling, bessel=bool(trainer and trainer.bessel))


def difficulty(run: PilotRun) -> PromptDifficulty | None:
    """Mix of prompts at the end; None where rewards are not 0 or 1 or their spread is unknown."""
    found, group = series_of(run, "reward_std_within_group"), run.hyperparameters.group_size
    mean, is_unit = share_of_range(run, run.reward)
    if found is None or not group or group < 2 or not is_unit or not 1e-9 < mean < 1 - 1e-9:
        return None
    # Logged is the mean of torch.std, silent groups included: its square is no variance.
    logged = ends(found[1])[1].mean / _bounds(run)[1]
    deviation = float(logged * np.sqrt((group - 1) / group))
    # Log concentrations of the mix between which one is sought: nearly all or nothing, all alike.
    low, high = (-9.0, 12.0)

    def excess(log_concentration: float) -> float:
        mix = PromptDifficulty(mean, float(np.exp(log_concentration)))
        return group_deviation(group, mix) - deviation

    if excess(low) > 0 or excess(high) < 0:
        return None
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return PromptDifficulty(mean, float(np.exp(0.5 * (low + high))))


def share_of_range(run: PilotRun, reward: FloatArray) -> tuple[float, bool]:
    """Mean reward at the end as a share of its range, and whether that range is known."""
    low, width = _bounds(run)
    shares = (reward[np.isfinite(reward)] - low) / width
    if shares.size < 1:
        return np.nan, False
    slack = 1e-9
    return ends(shares)[1].mean, bool(shares.min() >= -slack and shares.max() <= 1 + slack)


def _bounds(run: PilotRun) -> tuple[float, float]:
    """Floor and width of the reward's range: as given, else 0 and 1."""
    low, high = run.reward_floor, run.reward_ceiling
    if low is None or high is None or not low < high:
        return 0.0, 1.0
    return low, high - low
