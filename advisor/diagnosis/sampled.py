"""What is sampled: groups of equal rewards, completions cut at the limit, a policy without choice.

Groups whose rewards are all equal have no advantage and teach nothing; what a cut completion says
is not rewarded; a policy with hardly any choice left stops exploring.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from advisor.diagnosis import card, levels
from advisor.diagnosis.collapse import has_collapsed, judged_series
from advisor.runs import PilotRun
from advisor.theory import FloatArray, PromptDifficulty, group_deviation, silent_group_share

GROUPS = SimpleNamespace(**card.CARDS["advantage_degeneracy"]["rule"])
CUT = SimpleNamespace(**card.CARDS["truncation"]["rule"])
LEFT = SimpleNamespace(**card.CARDS["policy_concentration"]["rule"])


class Silent(NamedTuple):
    """Share of silent groups: steps, values of shape (rows,), and what was counted."""

    step: FloatArray
    values: FloatArray
    unit: str


def advantage_degeneracy(run: PilotRun) -> card.Card:
    """Judge the share of silent groups over the last fifth of the run."""
    value, step = run.constant_reward, run.step
    if value is not None:
        ceiling = 1.0 if run.reward_ceiling is None else run.reward_ceiling
        kind = "solved_at_once" if value == ceiling else "no_signal"
        span, facts = (float(step[0]), float(step[-1])), {"value": value, "rows": step.size}
        status: card.Status | None = None if step.size >= GROUPS.fewest else "WARNING"
        found = card.finding(f"advantage_degeneracy.{kind}", run, span, status, **facts)
        return card.card_of("advantage_degeneracy", found)
    silent = silent_share(run)
    if silent is None:
        return card.not_applicable("advantage_degeneracy.absent", run)
    last = levels.ends(silent.values)[1]
    found, table = _silent_groups(run, silent, last), card.CARDS["advantage_degeneracy"]
    is_told = "all_right_share" in run.series or found.status == "FAIL"
    return card.card_of(
        "advantage_degeneracy",
        found,
        number=last.mean,
        unit=silent.unit,
        interval=last.share_interval,
        threshold=GROUPS.warning,
        witnesses=_witnesses(run, last.mean),
        unknown=() if is_told else (table["unknown"],),
    )


def _silent_groups(run: PilotRun, silent: Silent, last: levels.Level) -> card.Finding:
    """How many groups teach nothing, and why as far as mean reward and expected share tell."""
    share, steps = last.mean, levels.steps_above(*silent[:2], last, GROUPS.warning)
    mean, is_unit = share_of_range(run, run.reward)
    summary = f"{100 * share:.0f} % of groups have equal rewards"
    facts: dict[str, Any] = {"summary": summary, "mean": mean}
    # With fewer rewards a run is too young to fail.
    is_young = np.isfinite(run.reward).sum() < GROUPS.fewest
    if share >= 0.95 and is_unit and mean < 0.2 and not is_young:
        # Where the share began from which a run has lost its signal is where the card begins.
        steps = (levels.since(silent.step, silent.values, 0.9), float(silent.step[-1]))
        return card.finding("advantage_degeneracy.hopeless", run, steps, **facts)
    is_many = share >= GROUPS.warning
    if is_unit and mean >= GROUPS.solved:
        kind = "solved" if is_many else "nearly_solved"
        return card.finding(f"advantage_degeneracy.{kind}", run, steps, **facts)
    if not is_many:
        return card.finding("advantage_degeneracy.few", run, steps, **facts)
    expected, group = expected_silent(run), run.hyperparameters.group_size
    why = "prompts are too easy or too hard for this group size"
    if is_unit:
        which = "most are solved" if mean > 0.5 else "most fail as a whole"
        why = f"{which} (mean reward {mean:.2f})"
    is_mixed = expected is not None and share > expected + 0.2
    return card.finding(
        "advantage_degeneracy.copies" if is_mixed else "advantage_degeneracy.silent",
        run,
        steps,
        sizes=f"with {group} completions " if group else "",
        why=why,
        **facts,
    )


def _witnesses(run: PilotRun, share: float) -> tuple[str, ...]:
    """Expected share, groups that teach, drift lost, and what silent groups are."""
    prompts = run.hyperparameters.prompts_per_step
    expected = expected_silent(run)
    lines = []
    if expected is not None:
        lines.append(f"{expected:.2f} expected for a smooth mix of difficulties")
    if prompts is not None:
        lines.append(f"{prompts * (1 - share):.1f} of {prompts:g} groups a step teach")
    for name, text in (("all_right_share", "all right"), ("all_wrong_share", "all wrong")):
        part = levels.series_of(run, name)
        if part is not None:
            lines.append(f"{text} {levels.ends(part[1])[1].mean:.2f}")
    return tuple(lines)


def silent_share(run: PilotRun) -> Silent | None:
    """Share of silent groups per row: as logged, or rows in which no group had any spread."""
    logged = levels.series_of(run, "silent_group_share")
    if logged is not None:
        return Silent(*logged, "share of groups with equal rewards")
    spread = levels.series_of(run, "reward_std_within_group")
    if spread is None:
        return None
    step, values = spread
    return Silent(step, (values <= 1e-6).astype(float), "share of rows without any spread")


def expected_silent(run: PilotRun) -> float | None:
    """Expected share of silent groups at the end for Beta-distributed difficulty, or None."""
    group, mix = run.hyperparameters.group_size, difficulty(run)
    # Beyond 1 by rounding alone.
    return None if mix is None or group is None else min(silent_group_share(group, mix), 1.0)


def difficulty(run: PilotRun) -> PromptDifficulty | None:
    """Mix of prompts at the end; None where rewards are not 0 or 1 or their spread is unknown."""
    from scipy.optimize import brentq

    found, group = levels.series_of(run, "reward_std_within_group"), run.hyperparameters.group_size
    mean, is_unit = share_of_range(run, run.reward)
    if found is None or not group or group < 2 or not is_unit or not 1e-9 < mean < 1 - 1e-9:
        return None
    # Logged is the mean of torch.std, silent groups included: its square is no variance.
    logged = levels.ends(found[1])[1].mean / _bounds(run)[1]
    deviation = float(logged * np.sqrt((group - 1) / group))
    # Log concentrations of the mix between which one is sought: nearly all or nothing, all alike.
    low, high = (-9.0, 12.0)

    def excess(log_concentration: float) -> float:
        mix = PromptDifficulty(mean, float(np.exp(log_concentration)))
        return group_deviation(group, mix) - deviation

    if excess(low) > 0 or excess(high) < 0:
        return None
    return PromptDifficulty(mean, float(np.exp(brentq(excess, low, high, xtol=1e-4))))


def share_of_range(run: PilotRun, reward: FloatArray) -> tuple[float, bool]:
    """Mean reward at the end as a share of its range, and whether that range is known."""
    low, width = _bounds(run)
    shares = (reward[np.isfinite(reward)] - low) / width
    if shares.size < 1:
        return np.nan, False
    slack = 1e-9
    return levels.ends(shares)[1].mean, bool(shares.min() >= -slack and shares.max() <= 1 + slack)


def _bounds(run: PilotRun) -> tuple[float, float]:
    """Floor and width of the reward's range: as given, else 0 and 1."""
    low, high = run.reward_floor, run.reward_ceiling
    if low is None or high is None or not low < high:
        return 0.0, 1.0
    return low, high - low


def truncation(run: PilotRun) -> card.Card:
    """Judge the share of completions cut at the limit, over the last fifth of the run."""
    found = _cut_share(run)
    if found is None:
        return card.not_applicable("truncation.absent", run)
    step, values, what = found
    first, last = levels.ends(values)
    has_risen = last.mean - first.mean >= 0.3 and last.above(first) > 2
    kind = "most" if last.mean >= CUT.warning else "few"
    status: card.Status | None = "INFO" if 0.1 <= last.mean < CUT.warning else None
    if last.mean >= 0.9 and has_risen and has_collapsed(run):
        kind = "fell"
    steps = levels.steps_above(step, values, last, CUT.warning)
    facts: dict[str, Any] = {"share": 100 * last.mean}
    lengths, limit = (
        levels.series_of(run, "completion_length"),
        run.hyperparameters.max_completion_length,
    )
    if last.mean < CUT.warning and lengths and limit and np.median(lengths[1]) > 1.05 * limit:
        kind, status = "over", None
        facts |= {"length": float(np.median(lengths[1])), "limit": float(limit)}
    return card.card_of(
        "truncation",
        card.finding(f"truncation.{kind}", run, steps, status, **facts),
        number=last.mean,
        unit=what,
        interval=last.share_interval,
        threshold=CUT.warning,
        witnesses=(f"{first.mean:.2f} at the start",),
    )


def _cut_share(run: PilotRun) -> tuple[FloatArray, FloatArray, str] | None:
    logged = levels.series_of(run, "truncated_share")
    if logged is not None:
        return (*logged, "share of completions cut")
    limit = run.hyperparameters.max_completion_length
    lengths = levels.series_of(run, "completion_length")
    if limit is None or lengths is None:
        return None
    step, values = lengths
    # A mean length this near the limit leaves room for few completions that ended by themselves.
    near = (values >= 0.95 * limit).astype(float)
    return step, near, "share of rows with a mean length at the limit"


class Choice(NamedTuple):
    """How much choice a policy has left by one series."""

    summary: str
    unit: str
    step: FloatArray
    values: FloatArray
    first: levels.Level
    last: levels.Level

    @property
    def left(self) -> float:
        """Share at the end of what was there at the start."""
        return self.last.mean / self.first.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """Two standard errors around ``left``, where the errors are known."""
        start, left = self.first.mean, self.left
        spread = float(np.hypot(self.last.error / start, left * self.first.error / start))
        return (left - 2 * spread, left + 2 * spread) if np.isfinite(spread) else None

    @property
    def is_lower(self) -> bool:
        """Whether the end lies below the start beyond noise."""
        return self.first.above(self.last) > 2


def policy_concentration(run: PilotRun) -> card.Card:
    """Judge entropy and distinct answers at the end against the start, by what fell most."""
    logged, answers = levels.series_of(run, "entropy"), _distinct(run)
    if logged is None and answers is None:
        return card.not_applicable("policy_concentration.absent", run)
    entropy = None
    if logged is not None:
        first, last = levels.ends(logged[1], 0.1)[0], levels.ends(logged[1])[1]
        summary = f"Entropy went from {first.mean:.3g} to {last.mean:.3g} nats"
        unit = "entropy at the end over that at the start"
        entropy = Choice(summary, unit, *logged, first, last)
    is_entropy = entropy is None or (entropy.first.mean > 0 and entropy.last.mean >= 0)
    if entropy is not None and not is_entropy and answers is None:
        ends_at = {"first": entropy.first, "last": entropy.last}
        return card.not_applicable("policy_concentration.no_entropy", run, **ends_at)
    choices = [one for one in (entropy if is_entropy else None, answers) if one is not None]
    least = min(choices, key=lambda choice: choice.left)
    return card.card_of(
        "policy_concentration",
        _concentration(run, least),
        number=least.left,
        unit=least.unit,
        interval=least.interval,
        threshold=LEFT.warning,
        witnesses=tuple(choice.summary for choice in choices if choice is not least),
        unknown=() if answers is not None else (card.CARDS["policy_concentration"]["unknown"],),
    )


def _concentration(run: PilotRun, least: Choice) -> card.Finding:
    """How far the choice has gone, and whether the reward could still use it."""
    step, left = least.step, least.left
    is_lost, begins = least.is_lower and left <= LEFT.warning, float(step[0])
    if is_lost:
        begins = levels.since(step, least.values, LEFT.warning * least.first.mean, below=True)
    kind = "kept"
    status: card.Status | None = "INFO" if least.is_lower and left <= 0.2 else None
    reward = judged_series(run)[1]
    if is_lost and share_of_range(run, reward)[0] < GROUPS.solved:
        half = reward[reward.size // 2 :]
        # Whether the reward gained nothing over the last half.
        has_stalled = half.size >= 12 and levels.rise(half, 0.5) < 2
        can_stall = left <= 0.05 and (has_stalled or has_collapsed(run))
        kind, status = "stalled" if can_stall else "lost", None
    steps = (begins, float(step[-1]))
    return card.finding(f"policy_concentration.{kind}", run, steps, status, summary=least.summary)


def _distinct(run: PilotRun) -> Choice | None:
    """Distinct answers per group, beyond the one that any group has."""
    found = levels.series_of(run, "distinct_answers")
    if found is None:
        return None
    step, values = found
    first, last = levels.ends(values, 0.1)[0], levels.ends(values)[1]
    # A count leaves one answer, a share one in a group.
    least = 1.0 if first.mean > 1 else 1 / (run.hyperparameters.group_size or np.inf)
    # By how much a mean of distinct answers may lie below one answer: rounding.
    if first.mean <= least or last.mean < least - 1e-6:
        return None
    summary = f"Distinct answers per group went from {first.mean:.3g} to {last.mean:.3g}"
    unit = "distinct answers at the end over those at the start, beyond the first"
    above = values - least
    ends_above = (first._replace(mean=first.mean - least), last._replace(mean=last.mean - least))
    return Choice(summary, unit, step, above, *ends_above)
