"""The report: one HTML page that needs no network, no server and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from advisor.advice import (
    KNOBS,
    NEARLY_ALL,
    TITLES,
    evidence_text,
    explanation_text,
    gpu_time,
    in_trainer_names,
    level_text,
    outside,
    percent,
    pilot_reason,
    piloted,
    saving,
    stability_interval,
    weightiest,
)
from advisor.common import write_whole
from advisor.forecast import SUPPORT
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import Missing, reason_of
from advisor.reporting.gallery import drawings_made
from advisor.reporting.page.explorer import explorer_data, paid
from advisor.runs import Diagnosis, card_lines, exports, worst

if TYPE_CHECKING:
    from advisor.advice import Cost, NextPilot, Recommendation
    from advisor.reporting.figure import Drawn

T = TypeVar("T")

SLIDERS = {
    "learning_rate": "Learning rate",
    "group_size": "Group size G",
    "minibatches_per_refresh": "Mini-batches per refresh",
    "planned_steps": "Optimizer steps",
}


def report(
    posterior: Posterior, recommendation: Recommendation, path: str | Path, **parts: Any
) -> Path:
    """Write the report.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    path : path-like
        An ``.html`` file; its folder is made where it is missing.
    **parts
        As for :func:`report_html`.

    Returns
    -------
    path : Path

    Notes
    -----
    Names and texts are escaped, also within figures, and the page forbids itself everything but
    inline style, images and its own script, identified by its hash. What cannot be made (a figure,
    the what-if panel, the gains) costs its own section, which says why, and never the page.
    """
    out = Path(path)
    write_whole(out, report_html(posterior, recommendation, **parts))
    return out


def report_html(
    posterior: Posterior,
    recommendation: Recommendation,
    *,
    diagnoses: Sequence[Diagnosis] = (),
    configs: Mapping[str, str] | None = None,
    drawn: Sequence[Drawn | Missing] | None = None,
    outcome: Mapping[str, Any] | None = None,
) -> str:
    """Return the page that :func:`report` writes.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    diagnoses : sequence of Diagnosis
        Of the pilots.
    configs : mapping of str to str, optional
        Trainer -> text of its configuration.
    drawn : sequence of Drawn or Missing, optional
        Figures in their order, the decision first [default: all that need no logs]; in place of one
        that is missing stands the reason.
    outcome : mapping, optional
        What came of runs that were made since: title, columns, rows and notes.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("advisor.reporting.page", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    meta, target = posterior.meta, recommendation.target
    explorer, no_explorer = _tried(lambda: explorer_data(posterior, recommendation))
    gains, no_gains = _tried(lambda: _gains(posterior, recommendation))
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    pilot = recommendation.next_pilot
    is_dead = recommendation.collapsed == recommendation.pilots
    whose = {
        "recommendation": "advised",
        "next_pilot": f"{'gentlest' if is_dead else 'best'} that was piloted",
        "infeasible": "nearest found",
    }
    labels = {name: export.label for name, export in exports().items()}
    figures = [_figure(one) for one in drawn or drawings_made(posterior, recommendation)]
    return environment.get_template("report.html.j2").render(
        title=TITLES[recommendation.kind],
        whose=whose[recommendation.kind],
        kind=recommendation.kind,
        subject=f"{target.subject}, {recommendation.steps:,} optimizer steps",
        style=Markup(_asset("report.css")),
        script=Markup(script),
        # By its digest the page allows this script and no other.
        script_hash=f"sha256-{digest}",
        model=Markup(_inert(explorer)) if explorer else "",
        no_explorer=no_explorer,
        no_gains=no_gains,
        tiles=_tiles(recommendation),
        gains=gains,
        beyond=_beyond(posterior, recommendation),
        measure=recommendation.measure,
        sliders=_sliders(explorer, recommendation) if explorer else [],
        paste=in_trainer_names(recommendation.settings, recommendation.trainer),
        answer=explanation_text(recommendation),
        cards=_cards_of(recommendation),
        details=evidence_text(recommendation),
        figures=figures,
        learned=_table(posterior.table),
        diagnoses=[
            {
                "row": (one.id, one.verdict, _step(one.collapse_step), worst(one)),
                "findings": "\n".join(line for card in one.cards for line in card_lines(card)),
            }
            for one in diagnoses
        ],
        pilot=None if pilot is None else _pilot(pilot, recommendation),
        configs=[
            {"name": labels.get(name, name), "text": text} for name, text in (configs or {}).items()
        ],
        assumptions=weightiest(recommendation.assumptions, len(recommendation.assumptions))[0],
        outcome=outcome,
        priors=f"{meta.priors.name}: {meta.priors.description}",
        sampled=posterior.convergence,
        made=meta.provenance,
    )


def _tried(make: Callable[[], T]) -> tuple[T | None, str]:
    """A part of the page, or why it cannot be made: whatever that is, the rest can be."""
    try:
        return make(), ""
    except Exception as error:
        return None, reason_of(error)


def _asset(name: str) -> str:
    return (files("advisor.reporting.page") / "assets" / name).read_text(encoding="utf-8")


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _beyond(posterior: Posterior, advice: Recommendation) -> str:
    """In what the numbers leave the ground of the pilots; empty where they do not."""
    ranges = piloted(posterior)
    chosen = {**advice.settings.model_dump(), "parameters": advice.target.parameters}
    parts = [
        f"{KNOBS[name]} {_short(chosen[name])} (piloted: {_range(*ranges[name])})"
        for name in outside(chosen, ranges)
    ]
    text = f"Outside what was piloted: {', '.join(parts)}. " if parts else ""
    if advice.steps > SUPPORT * advice.longest_pilot:
        text += (
            f"The run is more than {SUPPORT:g} times as long as the longest pilot "
            f"({advice.longest_pilot:.0f} steps). "
        )
    return f"{text}Grey numbers are extrapolated." if text else ""


def _tiles(advice: Recommendation) -> list[dict[str, str]]:
    """Numbers of one configuration: the one whose line stands below them."""
    reward, stability = advice.reward, advice.stability
    note = stability_interval(stability)
    least = percent(stability.least, advice.level)
    if least != percent(stability.probability, advice.level):
        note = f"the model alone says {least}, and that decides"
    given = "" if stability.least >= advice.level else ", if it stays stable"
    return [
        {
            "name": f"{advice.measure.capitalize()} after {advice.steps:,} steps{given}",
            "value": f"{reward.mean:.3f}",
            "note": f"80 % of runs: {reward.low:.3f} to {reward.high:.3f}",
        },
        {
            "name": f"P(stable), wanted {level_text(advice.level)}",
            "value": percent(stability.probability, advice.level),
            "note": note,
        },
        {
            "name": "Cost",
            "value": paid(advice.cost),
            "note": f"{advice.cost.completions:,.0f} completions"
            if advice.steps_to_95 > NEARLY_ALL * advice.steps
            else f"95 % of the gain by step {advice.steps_to_95:.0f}",
        },
        {
            "name": "Rests on",
            "value": f"{advice.pilots} pilot" + ("" if advice.pilots == 1 else "s"),
            "note": f"of up to {advice.longest_pilot:.0f} steps, {advice.collapsed} collapsed",
        },
    ]


def _saved(whole: Cost, part: Cost) -> str:
    if whole.gpu_hours is None or part.gpu_hours is None:
        return f"{whole.completions - part.completions:,.0f}"
    return gpu_time(whole.gpu_hours - part.gpu_hours)


def _gains(posterior: Posterior, advice: Recommendation) -> list[dict[str, str]]:
    """What the advice is expected to gain over what one would run without it."""
    if advice.kind != "recommendation":
        return []
    out = []
    for other in (advice.best_piloted, *advice.recipes):
        if other.settings.planned_over(advice.steps) == advice.settings.planned_over(advice.steps):
            continue
        saved = saving(posterior, advice, other)
        note = ""
        if saved is not None:
            note = (
                f"has its {other.reward:.3f} by step {saved.step:,.0f} and so saves "
                f"{_saved(other.cost, saved.cost)} of {paid(other.cost)}"
            )
        out.append(
            {
                "name": f"Over {'the ' if other is advice.best_piloted else ''}{other.name}",
                "value": f"{advice.reward.mean - other.reward:+.3f}",
                "note": note,
            }
        )
    return out


def _cards_of(advice: Recommendation) -> list[dict[str, Any]]:
    """The configuration and its alternatives, each with its settings and numbers."""
    out = []
    for name, row in zip(advice.table.index, advice.table.to_dict(orient="records"), strict=True):
        hours = row.pop("GPU-hours")
        rows = [(str(column), _cell(column, value)) for column, value in row.items()]
        if not math.isnan(hours):
            rows.append(("price", gpu_time(hours)))
        out.append({"name": str(name), "rows": rows})
    return out


def _sliders(explorer: dict[str, Any], advice: Recommendation) -> list[dict[str, Any]]:
    # A pilot of some steps also informs about all shorter runs.
    ranges = {**explorer["piloted"], "planned_steps": (0.0, advice.longest_pilot)}
    out = []
    for name, label in SLIDERS.items():
        values, (low, high) = explorer["choices"][name], ranges[name]
        places = np.linspace(0.0, 100.0, len(values))
        left, right = (float(np.interp(end, values, places)) for end in (low, high))
        out.append(
            {
                "name": name,
                "label": label,
                "last": len(values) - 1,
                "at": values.index(explorer["start"][name]),
                "shown": _short(explorer["start"][name]),
                "left": f"{left:.1f}",
                "width": f"{right - left:.1f}",
                "piloted": f"up to {high:g}" if low == 0 < high else _range(low, high),
            }
        )
    return out


def _short(value: float) -> str:
    """A setting as the sliders write it."""
    is_plain = value == 0 or 1e-3 <= abs(value) < 1000 or value == int(value) < 1e4
    return f"{value:.3g}" if is_plain else style.scientific(value)


def _range(low: float, high: float) -> str:
    return _short(low) if low == high else f"{_short(low)} to {_short(high)}"


def _pilot(pilot: NextPilot, advice: Recommendation) -> dict[str, Any]:
    """A pilot with numbers of its own: by its end, not by that of the run."""
    gain = f"{100 * pilot.gain:.1f} %"
    return {
        "paste": in_trainer_names(pilot.settings, advice.trainer),
        "steps": f"{pilot.steps:,}",
        "text": pilot_reason(pilot)[:1].upper() + pilot_reason(pilot)[1:],
        "tiles": [
            {
                "name": f"P(stable) by its step {pilot.steps:,}",
                "value": percent(pilot.stability.probability),
                "note": stability_interval(pilot.stability),
            },
            {
                "name": "Cost of the pilot",
                "value": paid(pilot.cost),
                "note": f"{100 * pilot.cost.paid / advice.cost.paid:.3g} % of the run's"
                if advice.cost.paid
                else "",
            },
            {
                "name": "Expected to raise the final reward by",
                "value": gain if pilot.gain >= 0.001 else "under 0.1 %",
                "note": "of the reward's range",
            },
        ],
    }


def _step(step: float | None) -> str:
    return "–" if step is None else f"{step:.0f}"


def _figure(one: Drawn | Missing) -> dict[str, str]:
    shown = {"id": f"figure-{one.name}", "title": one.title, "svg": "", "missing": ""}
    if isinstance(one, Missing):
        return {**shown, "missing": one.reason}
    svg, reason = _tried(lambda: inline_svg(one.rendered("svg"), one.name, one.text))
    caption = f"{one.caption} {one.note}".rstrip()
    return {**shown, "caption": caption, "svg": svg or "", "missing": reason}


PAGE_COLOURS = {
    "#ffffff": "paper",
    style.INK: "ink",
    style.MUTED: "quiet",
    style.FAINT: "faint",
    style.RISK: "risk",
    style.BLUE: "blue",
    style.ALARM: "alarm",
}
"""Colour of a drawing -> name of the page's own: these would glare or vanish in the dark."""


def inline_svg(drawing: bytes, name: str, text: str) -> str:
    """Drawing of matplotlib's as an element of a page: its colours follow the page's scheme.

    Its identifiers begin with the figure's name, which makes them unique in a page; ``text`` says
    what it shows to those who do not see it.
    """
    from markupsafe import escape

    source = drawing.decode("utf-8")
    source = source[source.index("<svg") :]
    # Its style is that of the page, where a rule for everything would reach beyond it.
    source = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", source, flags=re.DOTALL
    )
    source = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", source).replace("xlink:href", "href")
    source = re.sub(r'\b(id="|href="#)([^"]+)"', rf'\1{name}-\2"', source)
    source = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", source)
    for colour, own in PAGE_COLOURS.items():
        # Within a style only, where a variable has a meaning; the text keeps its characters.
        rule = rf"((?:fill|stroke): ?){colour}\b"
        source = re.sub(rule, rf"\1var(--drawn-{own})", source, flags=re.IGNORECASE)
    source = re.sub("<[^>]*>", lambda tag: _shortened(tag[0]), source)
    source = re.sub(r"\n\s*", "\n", source)
    return source.replace("<svg", f'<svg role="img" aria-label="{escape(text)}"', 1).strip()


def _shortened(tag: str) -> str:
    """Tag without the font, which is the page's rule, and with places to a hundredth of a point."""
    tag = re.sub(r"font-family: [^;\"]*(; |(?=\"))", "", tag)
    return re.sub(
        r'\b(?:d|x|y|transform)="[^"]*"',
        lambda places: re.sub(r"-?\d+\.\d{3,}(?=[\s\"),])", _rounded, places[0]),
        tag,
    )


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):z.2f}".rstrip("0").rstrip(".")


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    """Cells as text, with the index as the first column."""
    return {
        "columns": [str(frame.index.name or ""), *map(str, frame.columns)],
        "rows": [
            [str(label), *map(_cell, frame.columns, row)]
            for label, row in zip(frame.index, frame.itertuples(index=False), strict=True)
        ],
    }


def _cell(column: object, value: object) -> str:
    """Whole numbers whole, others to three digits; probabilities never round to certainty."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "–"
    if str(column).startswith("P("):
        return percent(value)
    if column == "completions":
        return f"{value:,.0f}"
    if str(column).startswith("reward"):
        return f"{value:.3f}"
    return style.scientific(value) if 0 < abs(value) < 1e-3 else f"{value:.3g}"
