"""The report: one HTML page that needs no network, no server and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from advisor.advice.wording import (
    evidence_text,
    in_trainer_names,
    percent,
    price,
    stability_interval,
)
from advisor.diagnosis import Diagnosis
from advisor.diagnosis.text import card_lines, worst
from advisor.model.posterior import Posterior
from advisor.reporting.gallery import drawings
from advisor.reporting.names import scientific
from advisor.reporting.page.explorer import explorer_data
from advisor.run.saving import write_whole
from advisor.trainers.registry import exports

if TYPE_CHECKING:
    from advisor.advice import Recommendation
    from advisor.reporting.figures.figure import Drawn

MAX_SVG_BYTES = 1_000_000
"""A larger drawing goes into the page as pixels, to keep the page below 5 MB."""

TITLES = {
    "recommendation": "Advised GRPO settings",
    "next_pilot": "Run another pilot first",
    "infeasible": "No settings reach the stability wanted",
}

SLIDERS = {
    "learning_rate": "Learning rate",
    "group_size": "Group size G",
    "minibatches_per_refresh": "Mini-batches per refresh",
    "epochs_per_refresh": "Epochs per refresh",
    "prompts_per_step": "Prompts per step",
    "lag": "Lag, optimizer steps",
    "planned_steps": "Optimizer steps",
    "parameters": "Model size, parameters",
}

GUIDE = [
    (
        "Reward",
        "Expected at the last step of a run that stays stable; the interval holds 80 % of single "
        "runs, the effect of the seed included.",
    ),
    (
        "P(stable)",
        "Probability that the trailing mean reward does not end more than a third below its best. "
        "Its parts: rollouts refreshed often enough, learning rate tolerated, fluctuation small.",
    ),
    (
        "Refresh interval K",
        "Optimizer steps per batch of rollouts: mini-batches times epochs.",
    ),
    (
        "Stiffness",
        "Share of the remaining distance to the plateau that one step covers, early on.",
    ),
    (
        "Prior and posterior",
        "Thin grey is what was believed before the pilots, blue is after. Where both agree, the "
        "pilots said little.",
    ),
    (
        "Not supported",
        "A run more than three times as long as the longest pilot: survival is extrapolated.",
    ),
]


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
    Names and texts are escaped, figures are images (an image cannot run a script), and the page
    forbids itself everything but inline style, images and its own script, identified by its hash.
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
    drawn: Sequence[Drawn] | None = None,
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
    drawn : sequence of Drawn, optional
        Figures in their order, the decision first [default: all that need no logs].
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
    explorer = explorer_data(posterior, recommendation)
    script = _asset("forecast.js") + _asset("page.js")
    paste, answer = _opening(recommendation)
    labels = {name: export.label for name, export in exports().items()}
    figures = [_figure(one) for one in drawn or drawings(posterior, recommendation)]
    return environment.get_template("report.html.j2").render(
        title=TITLES[recommendation.kind],
        kind=recommendation.kind,
        subject=f"{target.model} on {target.task}, {recommendation.steps:,} optimizer steps",
        style=Markup(_asset("report.css")),
        script=Markup(script),
        script_hash=_hash(script),
        model=Markup(_inert(explorer)),
        draws=explorer["draws"],
        tiles=_tiles(recommendation),
        measure=recommendation.measure,
        sliders=_sliders(explorer["choices"], recommendation),
        paste=paste,
        answer=answer.strip(),
        contents=_contents(figures, has_configs=bool(configs), outcome=outcome),
        recommended=_table(recommendation.table),
        details=evidence_text(recommendation),
        figures=figures,
        learned=_table(posterior.table),
        verdicts=_verdicts(diagnoses),
        diagnoses=[_cards(one) for one in diagnoses if one.verdict != "PASS"],
        pilot=_pilot(recommendation),
        configs=[
            {"name": labels.get(name, name), "text": text} for name, text in (configs or {}).items()
        ],
        assumptions=recommendation.assumptions,
        outcome=outcome,
        priors=f"{meta.priors.name}: {meta.priors.description}",
        convergence=_convergence(posterior),
        guide=GUIDE,
        provenance=[
            ("Package", f"grpo-advisor {meta.provenance.package}"),
            ("Fitted", meta.provenance.created),
            ("Data (SHA-256)", meta.provenance.data_sha256),
            ("Seed", str(meta.provenance.seed)),
            *meta.provenance.versions.items(),
        ],
    )


def _contents(
    figures: list[dict[str, str]], *, has_configs: bool, outcome: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """Identifiers and titles of the sections: the decision's figure first."""
    first, *others = ((one["id"], one["title"]) for one in figures)
    return [
        first,
        ("what-if", "What if"),
        ("settings", "Alternatives"),
        *others,
        ("diagnosis", "Diagnosis"),
        ("next", "Next pilot"),
        *([("configs", "Configs")] if has_configs else []),
        ("guide", "How to read this page"),
        *([("outcome", outcome["title"])] if outcome else []),
    ]


def _verdicts(diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    return {
        "columns": ["run", "verdict", "collapse at step", "says"],
        "rows": [[one.id, one.verdict, _step(one.collapse_step), worst(one)] for one in diagnoses],
    }


def _cards(one: Diagnosis) -> dict[str, str]:
    lines = [line for card in one.cards for line in card_lines(card)]
    return {"id": one.id, "verdict": one.verdict, "text": "\n".join(lines)}


def _opening(advice: Recommendation) -> tuple[str, str]:
    """Line to copy, and the answer below it: of the next pilot where that is the answer."""
    if advice.kind == "recommendation":
        paste, _, answer = advice.summary.partition("\n")
        return paste, answer
    pilot = advice.next_pilot if advice.kind == "next_pilot" else None
    settings = advice.settings if pilot is None else pilot.settings
    return in_trainer_names(settings), advice.summary


def _asset(name: str) -> str:
    return (files("advisor.reporting.page") / "assets" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Source expression by which the page allows this script and no other."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _tiles(advice: Recommendation) -> list[dict[str, str]]:
    reward = advice.reward
    paid = advice.cost
    cost = f"{paid.completions:,.0f}" if paid.gpu_hours is None else f"{paid.gpu_hours:.3g}"
    return [
        {
            "name": f"{advice.measure.capitalize()} after {advice.steps:,} steps",
            "value": f"{reward.mean:.3f}",
            "note": f"80 % of runs: {reward.low:.3f} to {reward.high:.3f}",
        },
        {
            "name": f"P(stable), wanted {percent(advice.level)}",
            "value": percent(advice.stability.probability),
            "note": stability_interval(advice.stability),
        },
        {
            "name": "Cost, completions" if paid.gpu_hours is None else "Cost, GPU-hours",
            "value": cost,
            "note": f"95 % of the gain by step {advice.steps_to_95:.0f}",
        },
        {
            "name": "Rests on",
            "value": f"{advice.pilots} pilots",
            "note": f"of up to {advice.longest_pilot:.0f} steps, {advice.collapsed} collapsed",
        },
    ]


def _sliders(choices: dict[str, list[float]], advice: Recommendation) -> list[dict[str, Any]]:
    chosen = {
        **advice.settings.model_dump(),
        "planned_steps": advice.steps,
        "parameters": advice.target.parameters,
    }
    return [
        {
            "name": name,
            "label": SLIDERS[name],
            "last": len(values) - 1,
            "at": values.index(chosen[name]),
            "shown": f"{chosen[name]:.3g}",
        }
        for name, values in choices.items()
    ]


def _pilot(advice: Recommendation) -> dict[str, str] | None:
    pilot = advice.next_pilot
    if pilot is None:
        return None
    return {
        "paste": in_trainer_names(pilot.settings),
        "text": f"{pilot.steps} steps, {price(pilot.cost)}. {pilot.reason} It stays stable with "
        f"probability {percent(pilot.stability.probability)}.",
    }


def _step(step: float | None) -> str:
    return "" if step is None else f"{step:.0f}"


def _figure(one: Drawn) -> dict[str, str]:
    data, mime = one.rendered("svg"), "image/svg+xml"
    if len(data) > MAX_SVG_BYTES:
        data, mime = one.rendered("png"), "image/png"
    return {
        "id": f"figure-{one.name}",
        "title": one.title,
        "caption": f"{one.caption} {one.note}".rstrip(),
        "alt": one.text,
        "source": f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}",
    }


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
    return scientific(value) if 0 < abs(value) < 1e-3 else f"{value:.3g}"


def _convergence(posterior: Posterior) -> list[tuple[str, str]]:
    found = posterior.convergence
    return [
        ("Largest R-hat (1 is best)", f"{found.rhat:.3f} ({found.worst})"),
        ("Smallest effective sample size", f"{found.ess:,.0f}"),
        ("Divergent draws", f"{100 * found.divergent_share:.2f} %"),
        ("Draws over all chains", f"{found.draws:,}"),
        ("Leapfrog steps per draw", f"{found.steps_per_draw:.0f}"),
    ]
