"""Figure: the series that one failure mode is judged by, with the steps that it speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from advisor.errors import InputError
from advisor.reporting import style
from advisor.reporting.figure import words
from advisor.runs import Card, Diagnosis, PilotRun, tamed, trailing_mean, window_rows
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Trace:
    """One series: name with unit, steps, values, and whether it is held out."""

    name: str
    step: FloatArray
    value: FloatArray
    is_sparse: bool = False


@dataclass(frozen=True)
class Symptom:
    """What one card rests on: the series of each panel, and where the run collapsed."""

    run: str
    card: Card
    panels: tuple[tuple[Trace, ...], ...]
    collapse_step: float | None
    step_unit: str

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        return f"{self.card.title} of {self.run}: {self.card.status}. {self.card.headline}"


def symptom_info(run: PilotRun, diagnosis: Diagnosis, mode: str) -> Symptom:
    """Collect the series of a mode; refused where it is unknown or the log holds none of them."""
    known = words()["series"]
    if mode not in known:
        raise InputError(
            f"there is no failure mode '{mode}'",
            advice=f"Choose among {', '.join(words()['series'])}",
        )
    panels: list[tuple[Trace, ...]] = []
    for name in known[mode]:
        values = run.series.get(name)
        if values is None or not np.isfinite(values).any():
            continue
        traces = [_trace(name, run.step, values)]
        if name == "reward" and np.isfinite(run.eval_reward).any():
            traces.append(_held_out(run))
        panels.append(tuple(traces))
    if run.is_eval_only and "reward" in known[mode]:
        panels.insert(0, (_held_out(run),))
    parts = {name: values for name, values in run.parts.items() if np.isfinite(values).any()}
    if mode == "reward_hacking" and parts:
        panels.insert(1, tuple(_trace(name, run.step, v) for name, v in parts.items()))
    if not panels:
        raise InputError(f"the log holds no series of '{mode}'", path=run.path)
    unit = "batch of rollouts" if run.step_unit == "refresh" else "optimizer step"
    return Symptom(
        diagnosis.run, diagnosis.card(mode), tuple(panels), diagnosis.collapse_step, unit
    )


def _trace(name: str, step: FloatArray, values: FloatArray) -> Trace:
    kept = np.isfinite(values)
    units = words()["units"]
    unit = f" ({units[name]})" if name in units else ""
    return Trace(name.replace("_", " ") + unit, step[kept], tamed(values[kept]))


def _held_out(run: PilotRun) -> Trace:
    kept = np.isfinite(run.eval_reward)
    return Trace("held-out reward", run.eval_step[kept], tamed(run.eval_reward[kept]), True)


WASHES = {"FAIL": style.VERMILLION, "WARNING": style.ORANGE}


def draw_symptom(info: Symptom) -> Figure:
    """Draw every panel over the same steps; what the card speaks of is tinted."""
    count = len(info.panels)
    figure = style.new_figure(7.0, 1.9 * count + 0.9)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for index, (panel, own) in enumerate(zip(info.panels, axes, strict=True)):
        is_first = index == 0
        style.tidy(
            own,
            title=f"{info.card.title}: {info.card.status}" if is_first else "",
            note=style.shorten(f"{info.run}: {info.card.headline}", 110) if is_first else "",
            x=info.step_unit if index == count - 1 else "",
            y=panel[0].name if len(panel) == 1 else "reward" if is_first else "parts",
        )
        for colour, trace in zip(cycle(style.CYCLE), panel, strict=False):
            _draw(own, trace, colour, is_named=len(panel) > 1)
        wash = WASHES.get(info.card.status)
        if wash is not None and info.card.steps is not None:
            own.axvspan(*info.card.steps, color=wash, alpha=0.1, linewidth=0)
        if info.collapse_step is not None:
            own.axvline(info.collapse_step, color=style.VERMILLION, linewidth=1, linestyle="--")
        own.margins(x=0.02)
    if info.collapse_step is not None:
        style.write(
            axes[0],
            f"collapse at {info.collapse_step:.0f}",
            (info.collapse_step, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            va="top",
            color=style.VERMILLION,
        )
    return figure


def _draw(axes: Axes, trace: Trace, colour: str, *, is_named: bool) -> None:
    if trace.is_sparse:
        axes.plot(trace.step, trace.value, "o-", color=colour, markersize=4, linewidth=1)
    else:
        axes.plot(trace.step, trace.value, ".", color=colour, alpha=0.35, markersize=4)
        width = window_rows(trace.value.size)
        if trace.value.size >= width:
            smooth = trailing_mean(trace.value, width)
            axes.plot(trace.step[width - 1 :], smooth, color=colour, linewidth=1.6)
    if is_named and trace.value.size:
        place = (float(trace.step[-1]), float(np.mean(trace.value[-5:])))
        name = style.shorten(trace.name, 24)
        style.write(axes, name, place, (4, 0), va="center", color=colour, annotation_clip=False)
