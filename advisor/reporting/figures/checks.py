"""Figures: whether forecasts from first halves held in second ones, and whether chains agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor import backtesting, model
from advisor.backtesting import Case, CohortCases, Prediction
from advisor.common import Progress, silent
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import begun_run_reward, central, fit
from advisor.model import Meta, Posterior, Priors, Sampling
from advisor.reporting import style
from advisor.reporting.figure import FigureKind
from advisor.runs import PilotRun
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SEEN = 0.5
"""Share of each pilot from which the rest is forecast."""

WINDOWS = 8
"""Windows into which the rest is cut: each is forecast and judged as a mean."""

MAX_CURVES = 4
"""Pilots whose curves are drawn: every rank of error from the best to the worst."""

LOW, HIGH = backtesting.QUANTILES.index(0.1), backtesting.QUANTILES.index(0.9)


@dataclass(frozen=True)
class Checked:
    """One pilot: what was seen, by bins; what was forecast, and what came, by windows of steps."""

    run: str
    label: str
    seen_step: FloatArray
    seen_reward: FloatArray
    step: FloatArray  # middles of the windows
    observed: FloatArray
    band: FloatArray  # ends and median of the central 80 % of the mean reward
    last_seen: float
    has_collapsed: bool
    final: Prediction  # of the mean over the last tenth of its steps, as a backtest judges it


@dataclass(frozen=True)
class ForecastCheck:
    """The whole figure: pilots by their error in the final level, the largest last."""

    checked: tuple[Checked, ...]
    bounds: tuple[float, float]  # least floor and largest ceiling of the reward
    left_out: tuple[str, ...]  # pilots that could not be asked about, and why
    failed: tuple[str, ...]  # cohorts whose fit did not converge

    @property
    def drawn(self) -> tuple[Checked, ...]:
        """Pilots whose curves are drawn: ranks of error from the least to the largest."""
        count = min(MAX_CURVES, len(self.checked))
        ranks = np.linspace(0, len(self.checked) - 1, count).round().astype(int)
        return tuple(self.checked[rank] for rank in ranks)

    @property
    def covered(self) -> int:
        """How many final levels lie in their 80 % interval."""
        return sum(one.final.covers(0.8) for one in self.checked)

    @property
    def error(self) -> float:
        """Mean absolute error of the final level, as a share of the reward's range."""
        return float(backtesting.score([one.final for one in self.checked])["mae"])

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        count = len(self.checked)
        return (
            f"Pilots forecast from the first {style.share_text(SEEN)} of their steps. "
            f"The 80 % interval of the final level holds {self.covered} of {count} "
            f"({style.share_text(self.covered / count)}); mean error {self.error:.3f}."
        )

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        parts = []
        hidden = len(self.checked) - len(self.drawn)
        if hidden:
            parts.append(f"Curves of {hidden} of {len(self.checked)} pilots not drawn.")
        if self.left_out:
            many = "s" if len(self.left_out) > 1 else ""
            parts.append(
                f"{len(self.left_out)} pilot{many} left out, for example {self.left_out[0]}."
            )
        if self.failed:
            parts.append(f"Not converged: {', '.join(self.failed)}.")
        return " ".join(parts)


def forecast_check_info(
    runs: Sequence[PilotRun],
    *,
    priors: Priors | str | None = None,
    sampling: Sampling | None = None,
    progress: Progress = silent,
) -> ForecastCheck:
    """Fit the first part of each pilot and forecast the rest, as `backtest` does."""
    cohorts, unusable = backtesting.make_cases(runs, SEEN)
    if not cohorts:
        raise backtesting.nothing_to_ask(unusable)
    whole = {(run.path, run.id): run for run in runs}
    presets = [
        backtesting.chosen_preset([case.seen for case in cohort.cases], priors)
        for cohort in cohorts
    ]
    checked: list[Checked] = []
    left_out, failed = list(unusable), []
    for done, (cohort, preset) in enumerate(zip(cohorts, presets, strict=True)):
        progress("Forecasting from the first part", done / len(cohorts), cohort.name)
        seen_parts = [case.seen for case in cohort.cases]
        try:
            posterior = fit(seen_parts, priors=preset, sampling=sampling or Sampling())
        except NotConvergedError:
            failed.append(cohort.name)
            continue
        except InputError as error:  # what is seen of it teaches nothing
            left_out += [f"{part.id}: {error.problem}" for part in seen_parts]
            continue
        place = {run.id: index for index, run in enumerate(posterior.meta.runs)}
        for number, case in enumerate(cohort.cases):
            if case.seen.id in place:
                run = whole[case.seen.path, case.seen.id]
                at = place[case.seen.id]
                checked.append(_check(posterior, at, run, case, cohort, number))
            else:
                left_out.append(f"{case.seen.id}: its first part is that of another run")
    if failed and not checked:
        raise NotConvergedError(
            f"no fit of the first {style.share_text(SEEN)} of the pilots converged"
        )
    if not checked:
        raise backtesting.nothing_to_ask(left_out)
    checked.sort(key=lambda one: one.final.error)
    floors, ceilings = zip(*(one.final.bounds for one in checked), strict=True)
    bounds = min(floors), max(ceilings)
    return ForecastCheck(tuple(checked), bounds, tuple(left_out), tuple(failed))


def _check(
    posterior: Posterior,
    index: int,
    run: PilotRun,
    case: Case,
    cohort: CohortCases,
    number: int,
) -> Checked:
    """Forecast one pilot; the seeds are those of a backtest."""
    question = backtesting.Question(cohort.name, run.id, SEEN, None, cohort.bounds, case.target)
    final = backtesting.predict(
        backtesting.ADVISOR,
        question,
        begun_run_reward(posterior, index, case.seen, case.steps, seed=number),
    )
    known = np.isfinite(run.reward)
    later = run.step[known & (run.step > case.seen.step[-1])]
    windows = [rows for rows in np.array_split(later, WINDOWS) if rows.size]
    reward = dict(zip(run.step[known].tolist(), run.reward[known].tolist(), strict=True))
    quantiles = np.array(
        [
            central(begun_run_reward(posterior, index, case.seen, rows, seed=number))
            for rows in windows
        ]
    )
    of_run = posterior.pilots["run"] == index
    summary = posterior.meta.runs[index]
    return Checked(
        run=run.id,
        label=style.settings_label(summary.settings),
        seen_step=posterior.pilots["step"][of_run],
        seen_reward=posterior.pilots["reward"][of_run],
        step=np.array([rows.mean() for rows in windows]),
        observed=np.array([np.mean([reward[step] for step in rows]) for rows in windows]),
        band=quantiles.T,
        last_seen=float(case.seen.step[-1]),
        has_collapsed=summary.collapse_step is not None,
        final=final,
    )


def draw_forecast_check(info: ForecastCheck) -> Figure:
    """Draw forecast against outcome of all pilots, and the curves of some beside it."""
    drawn = info.drawn
    rows = min(2, len(drawn))
    columns = -(-len(drawn) // rows)
    figure = style.new_figure(5.0 + 3.0 * columns, 5.4 if rows > 1 else 4.4)
    grid = figure.add_gridspec(rows, 1 + columns, width_ratios=[1.55] + [1.0] * columns)
    _draw_levels(figure.add_subplot(grid[:, 0]), info)
    shown = [(one.seen_reward, one.observed, *one.band) for one in drawn]
    values = np.concatenate([series for one in shown for series in one])
    limits = style.padded(values.tolist(), 0.05, 0.05 * (info.bounds[1] - info.bounds[0]))
    for index, one in enumerate(drawn):
        axes = figure.add_subplot(grid[index // columns, 1 + index % columns])
        style.tidy(
            axes,
            title=style.shorten(one.run, 22),
            note=one.label,
            x="optimizer step" if index + columns >= len(drawn) else "",
            y="train reward" if index % columns == 0 else "",
        )
        axes.title.set_fontsize(style.LABEL)
        axes.set_ylim(*limits)
        _draw_curve(axes, one, is_named=index == 0)
    return figure


def _draw_levels(axes: Axes, info: ForecastCheck) -> None:
    """Median and interval of each final level over what came; the line is where both agree."""
    floor, ceiling = info.bounds
    style.tidy(
        axes,
        title=f"Final level, forecast from the first {style.share_text(SEEN)}",
        note=f"80 % interval holds {info.covered} of {len(info.checked)}; mean error "
        f"{info.error:.3f}",
        x=f"reward that came, last tenth (range {floor:g} to {ceiling:g})",
        y=f"reward forecast, 80 % interval (range {floor:g} to {ceiling:g})",
    )
    for one in info.checked:
        final = one.final
        is_inside = final.covers(0.8)
        color = style.BLUE if is_inside else style.VERMILLION
        ends = [final.quantiles[LOW], final.quantiles[HIGH]]
        axes.plot([final.target] * 2, ends, color=color, linewidth=1.6, alpha=0.7)
        marker = {"marker": "o", "mfc": color} if is_inside else {"marker": "s", "mfc": "white"}
        axes.plot(final.target, final.median, ls="", ms=6, mec=color, mew=1.4, **marker)  # type: ignore[arg-type]
    values = [
        value
        for one in info.checked
        for value in (one.final.target, one.final.quantiles[LOW], one.final.quantiles[HIGH])
    ]
    low, high = style.padded(values, 0.06, 0.05 * (ceiling - floor))
    axes.plot([low, high], [low, high], color=style.FAINT, linewidth=1.0, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    corner: dict[str, Any] = {"xycoords": "axes fraction", "color": style.MUTED}
    style.write(axes, "forecast too high", (0.03, 0.97), va="top", **corner)
    style.write(axes, "forecast too low", (0.97, 0.03), ha="right", **corner)


def _draw_curve(axes: Axes, one: Checked, *, is_named: bool) -> None:
    """What was seen, the forecast with its band, and what came; the first says which is which."""
    axes.plot(one.seen_step, one.seen_reward, "o", color=style.MUTED, markersize=3.2, mew=0)
    style.band(axes, one.step, one.band, style.BLUE, alpha=0.16)
    is_inside = (one.observed >= one.band[0]) & (one.observed <= one.band[2])
    dots: dict[str, Any] = {"ls": "", "ms": 5, "mec": style.INK, "mew": 1.1}
    axes.plot(one.step[is_inside], one.observed[is_inside], "o", mfc=style.INK, **dots)
    axes.plot(one.step[~is_inside], one.observed[~is_inside], "s", mfc="white", **dots)
    axes.axvline(one.last_seen, color=style.MUTED, linewidth=0.8, linestyle=":")
    if one.has_collapsed:
        corner: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right"}
        style.write(axes, "had collapsed", (0.97, 0.6), color=style.ALARM, **corner)
    if not is_named:
        return
    is_high = float(np.median(one.band[1])) > sum(axes.get_ylim()) / 2
    for text, gap, side, color in (
        ("seen", -4, "right", style.MUTED),
        ("forecast", 4, "left", style.BLUE),
    ):
        look: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "ha": side, "color": color}
        look["va"] = "bottom" if is_high else "top"
        style.write(axes, text, (one.last_seen, 0.04 if is_high else 0.95), (gap, 0), **look)


FORECAST_CHECK = FigureKind("forecast_check", forecast_check_info, draw_forecast_check)
"""Needs the pilots' logs and fits again: not among the figures of a study."""


# Whether the chains agree -------------------------------------------------------------------------

MAX_PANELS, BARS = 3, 20


@dataclass(frozen=True)
class Mixed:
    """One parameter: draws of shape (chains, draws), rank-normalised split R-hat, bulk ESS."""

    name: str
    draws: FloatArray
    rhat: float
    ess: float


@dataclass(frozen=True)
class Ranks:
    """The whole figure: the worst parameters, largest R-hat first, out of how many."""

    worst: tuple[Mixed, ...]
    parameters: int
    overall: model.Convergence  # of the sampler's own coordinates, which the gate judges

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        listed = "; ".join(f"{one.name}: R-hat {one.rhat:.3f}" for one in self.worst)
        return f"Ranks of the draws by chain, of the parameters with the largest R-hat: {listed}."

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        rest = self.parameters - len(self.worst)
        return (
            (f"{rest} parameters that mixed better not drawn. " if rest else "")
            + f"Over all coordinates of the sampler: R-hat {self.overall.rhat:.3f}, at least "
            f"{self.overall.ess:,.0f} effective draws, {self.overall.divergent_share:.2%} diverged."
        ).replace("%", " %")


def convergence_info(posterior: Posterior) -> Ranks:
    """Find the parameters that mixed worst."""
    flat = _scalars(posterior.draws, posterior.meta)
    with np.errstate(invalid="ignore", divide="ignore"):  # a chain that never moved
        found = model.convergence(flat)
    # Of a parameter that moved in no chain R-hat is not a number: the worst there is.
    order = sorted(flat, key=lambda name: -float(np.nan_to_num(found[name][0], nan=np.inf)))
    return Ranks(
        tuple(
            Mixed(name, flat[name], float(found[name][0]), float(found[name][1]))
            for name in order[:MAX_PANELS]
        ),
        len(flat),
        posterior.convergence,
    )


def _scalars(draws: Mapping[str, FloatArray], meta: Meta) -> dict[str, FloatArray]:
    """Every parameter alone, by a name that says of what it is; constants left out."""
    tasks = [style.shorten(task) for task in meta.tasks]
    groups = [" on ".join(style.shorten(part, 16) for part in pair[::-1]) for pair in meta.groups]
    runs = [style.shorten(run.id) for run in meta.runs]
    out: dict[str, FloatArray] = {}
    for name, values in draws.items():
        # Not sampled: the same as another parameter, or a constant.
        if name in ("start", "is_oscillator"):
            continue
        law, _, term = name.replace("_", " ").rpartition(".")
        title = f"{law}: {term}" if law else term
        if values.ndim == 2:
            out[title] = values
            continue
        per_task = name in ("headroom_logit", "log_slope", "log_onset")
        owners = tasks if per_task else runs if name in model.RUN_EFFECTS else groups
        for index, owner in enumerate(owners):
            label = f"{title}\n{owner}"
            # Two runs may be called the same where only their folders differ.
            label += f" ({index + 1})" if label in out else ""
            out[label] = values[..., index]
    return {label: values for label, values in out.items() if np.ptp(values) > 0}


def draw_convergence(info: Ranks) -> Figure:
    """Draw one panel per parameter: of each chain, how many draws each slice of the ranks has."""
    from scipy.stats import rankdata

    count = len(info.worst)
    figure = style.new_figure(3.1 * count + 0.3, 2.9)
    for axes, one in zip(figure.subplots(1, count, squeeze=False).flat, info.worst, strict=True):
        chains, draws = one.draws.shape
        edges = np.linspace(0, one.draws.size, BARS + 1)
        for chain, ranks in enumerate(np.reshape(rankdata(one.draws), (chains, draws))):
            height = np.histogram(ranks, edges)[0] / (2 * draws / BARS)
            color = style.CYCLE[chain % len(style.CYCLE)]
            look = {"bottom": chain, "align": "edge", "color": color, "alpha": 0.8}
            axes.bar(edges[:-1], height, edges[1], **look)
            axes.axhline(chain + 0.5, color=style.MUTED, linewidth=0.8)
        axes.set_yticks(range(chains), [str(1 + chain) for chain in range(chains)])
        name, _, owner = one.name.partition("\n")
        mixed = f"R-hat {one.rhat:.3f}, {one.ess:,.0f} effective draws"
        note = f"{style.shorten(owner, 36) or 'all pilots'}\n{mixed}"
        y = "chain" if axes is figure.axes[0] else ""
        style.tidy(axes, title=name, note=note, x="rank among all draws", y=y)
        axes.title.set_fontsize(style.LABEL)
    return figure


CONVERGENCE = FigureKind(
    "convergence", lambda posterior, _: convergence_info(posterior), draw_convergence
)
