"""Figure: what is decided, end rewards of what could be run and P(stable) over the rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from advisor import model
from advisor.advice import level_text, number, percent, run_ends
from advisor.forecast import Forecaster, final_reward, pilots_of
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import Came, FigureKind, Info
from advisor.runs import Settings
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from advisor.advice import Alternative, Recommendation

RATES = 33
DRAWS = 1000  # Draws behind P(stable): it is good to 0.015


@dataclass(frozen=True)
class End:
    """Reward at the end of one run at some settings that stays stable, in units of the measure."""

    name: str
    settings: str
    value: FloatArray
    height: FloatArray  # density
    mean: float
    span: str  # mean and 80 % interval
    stable: str
    better: str  # P(better) of the advised run, empty where it is that run
    came: tuple[Came, ...]  # finished runs of these settings and this length

    @property
    def label(self) -> str:
        """Name, reward, P(stable) and P(better), in lines."""
        return "\n".join(
            filter(None, [self.name, self.settings, self.span, self.stable, self.better])
        )


@dataclass(frozen=True)
class DecisionFigure(Info):
    """The whole figure."""

    name: ClassVar = "decision"
    measure: str
    steps: int
    ends: tuple[End, ...]  # advised, best pilot, recipe
    learning_rate: FloatArray
    stable: FloatArray  # lower end, P(stable), upper end, of shape (3, rates)
    level: float
    advised: tuple[float, str]  # learning rate, and what those settings are called
    leader: float | None  # learning rate of the best pilot, where it is another one
    known: float | None  # that is known to do best
    pilots: tuple[tuple[float, bool], ...]  # learning rate, and whether it collapsed
    others: str  # settings that stay as they are along the curve


def decision_info(
    posterior: Posterior, recommendation: Recommendation, came: Sequence[Came] = ()
) -> DecisionFigure:
    """Collect end rewards, and P(stable) along the learning rate at the advised other settings."""
    advice, own, meta = recommendation, recommendation.settings, posterior.meta
    forecaster = Forecaster(posterior, advice.target, seed=advice.terms.seed)
    role = style.role_of(advice.kind, is_dead=advice.evidence.collapsed == advice.evidence.pilots)
    others: list[Alternative] = []
    is_same = advice.leader is None or advice.leader.is_followed
    others += [] if is_same else [advice.best_piloted]
    others += sorted(advice.recipes, key=lambda one: -one.reward)[:1]
    rows = [(role, own, advice.reward.mean, advice.stability.probability, None)] + [
        (
            one.name,
            one.settings.planned_over(one.cost.steps),
            one.reward,
            one.stability.probability,
            one.p_beaten,
        )
        for one in others
    ]
    pilots = pilots_of(posterior, advice.target)
    known = meta.priors.known_optimum
    known_rate = None if known is None else known.learning_rate
    shown = [own.learning_rate, *(run.highest_rate for run in pilots)]
    shown += [known_rate] if known_rate else []
    rates = np.geomspace(min(shown) / 2, max(shown) * 3, RATES)
    few = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.terms.seed)
    _, _, chances, _ = run_ends(few, own.model_copy(update={"learning_rate": rates}), advice.steps)
    leading = advice.best_piloted.settings.learning_rate
    return DecisionFigure(
        measure=advice.measure,
        steps=advice.steps,
        ends=tuple(_end(forecaster, advice, came, *row) for row in rows),
        learning_rate=rates,
        stable=np.array([(one.low, one.probability, one.high) for one in chances]).T,
        level=advice.terms.level,
        advised=(own.learning_rate, role),
        leader=None if is_same else leading,
        known=known_rate,
        pilots=tuple((run.highest_rate, run.collapse_step is not None) for run in pilots),
        others=f"G {own.group_size}, K {own.refresh_interval}, {advice.steps:,} steps",
    )


def _end(
    forecaster: Forecaster,
    advice: Recommendation,
    finished: Sequence[Came],
    name: str,
    settings: Settings,
    mean: float,
    stable: float,
    p_beaten: float | None,
) -> End:
    """Density of one run's end, and its numbers in words.

    Many parameters because: they are the columns of one row.
    """
    draws = final_reward(forecaster, settings, settings.planned_steps or advice.steps)
    value, height = model.density(draws)
    low, high = np.quantile(draws, (0.1, 0.9))
    if settings == advice.settings:
        low, high = advice.reward.low, advice.reward.high
    label = style.settings_label(settings)
    return End(
        name=name,
        settings=label,
        value=value,
        height=height,
        mean=mean,
        span=f"{number(advice, mean)} [{number(advice, low)}, {number(advice, high)}]",
        stable=f"P(stable) {percent(stable)}",
        better="" if p_beaten is None else f"P(advice better) {percent(p_beaten)}",
        came=tuple(one for one in finished if style.settings_label(one.settings) == label),
    )


def draw_decision(info: DecisionFigure) -> Figure:
    """Draw the densities on one axis, and P(stable) over the learning rate."""
    figure = style.new_figure(10.2, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
    draw_ends(left, info)
    draw_stable(right, info)
    return figure


COLOURS = {"best pilot": style.ALARM}  # Of what is compared with the advice; others are grey


def draw_ends(axes: Axes, info: DecisionFigure) -> None:
    """One density above the other on a common axis, the advised one on top."""
    style.tidy(
        axes,
        title="What could be run, if it stays stable",
        x=f"{info.measure} after {info.steps:,} steps",
    )
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    low, high = (end([one.value[at] for one in info.ends]) for end, at in ((min, 0), (max, -1)))
    axes.set_xlim(low, high)
    axes.set_ylim(len(info.ends) - 0.8, -0.9)
    for row, one in enumerate(info.ends):
        colour = COLOURS.get(one.name, style.MUTED) if row else style.BLUE
        top = row - 0.8 * one.height / one.height.max()
        axes.fill_between(one.value, row, top, color=colour, alpha=0.22, linewidth=0)
        axes.plot(one.value, top, color=colour, linewidth=1.5)
        axes.plot([one.mean, one.mean], [row, row - 0.12], color=colour, linewidth=2.2)
        axes.axhline(row, color=style.FAINT, linewidth=0.6, zorder=0)
        for run in one.came:
            look: dict[str, Any] = {"color": style.INK, "ms": 8, "ls": "", "zorder": 5}
            look |= {"marker": "X" if run.has_collapsed else "D", "mec": "white"}
            axes.plot([run.reward], [row], clip_on=False, **look)
        axes.annotate(
            style.plain(one.label),
            xy=(1.02, row),
            xycoords=axes.get_yaxis_transform(),
            fontsize=style.NOTE,
            color=style.INK if row else style.BLUE,
            va="bottom",
            annotation_clip=False,
        )
    came = [run for one in info.ends for run in one.came]
    if came:
        has_fallen = any(run.has_collapsed for run in came)
        dead = {"marker": "X", "color": style.INK, "ls": "", "ms": 7}
        style.legend(
            axes,
            [("how a run ended", dead | {"marker": "D"})]
            + [("how one that collapsed ended", dead)] * has_fallen,
            loc="upper left",
        )


def draw_stable(axes: Axes, info: DecisionFigure) -> None:
    """P(stable) with its 80 % band, what was piloted as dots on the floor, and the rates named."""
    style.tidy(axes, title="P(stable) by learning rate", note=info.others, x="peak learning rate")
    axes.set_xscale("log")
    rates = info.learning_rate
    axes.set_xlim(rates[0], rates[-1])
    axes.set_ylim(-0.06, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    style.band(axes, rates, info.stable, style.BLUE, alpha=0.18)
    axes.axhline(info.level, color=style.MUTED, linewidth=0.9, linestyle="--")
    at = (rates[0], info.level)
    wanted = f"wanted: {level_text(info.level)}"
    style.write(axes, wanted, at, (4, -4), is_on_marks=True, va="top", color=style.MUTED)
    for rate, has_collapsed in info.pilots:
        look: dict[str, Any] = {"color": style.INK, "ms": 6, "zorder": 4, "clip_on": False}
        look |= {"marker": "x", "mew": 1.8} if has_collapsed else {"marker": "o", "mec": "white"}
        axes.plot([rate], [0], ls="", **look)
    marks = [(*info.advised, style.BLUE, "-")]
    marks += [] if info.leader is None else [(info.leader, "best pilot", style.ALARM, "-")]
    marks += [] if info.known is None else [(info.known, "known best", style.MUTED, ":")]
    for row, (rate, name, colour, line) in enumerate(marks):
        axes.axvline(rate, color=colour, linewidth=1.2, linestyle=line, zorder=1)
        is_right = rate > (rates[0] * rates[-1]) ** 0.5
        place, side = ((-4, 0), "right") if is_right else ((4, 0), "left")
        where = (rate, 0.12 + 0.1 * row)
        style.write(axes, name, where, place, is_on_marks=True, ha=side, va="center", color=colour)
    style.write(axes, "pilots", (rates[0], 0), (4, 6), color=style.MUTED)
    style.log_ticks(axes.xaxis, *axes.get_xlim())


FIGURE = FigureKind("decision", decision_info, draw_decision)
