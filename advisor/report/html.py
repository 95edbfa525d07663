"""The report: one HTML page that needs no network, no script and no other file."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from advisor.advice.wording import percent
from advisor.posterior import Posterior
from advisor.report.gallery import FIGURES, FigureKind, render
from advisor.report.names import scientific

if TYPE_CHECKING:
    from advisor.advice import Recommendation

MAX_SVG_BYTES = 1_000_000
"""A larger drawing goes into the page as pixels, to keep the page below 3 MB."""

TITLES = {
    "recommendation": "Advised GRPO settings",
    "next_pilot": "Run another pilot first",
    "infeasible": "No settings reach the stability wanted",
}


def write_report(posterior: Posterior, recommendation: Recommendation, path: str | Path) -> Path:
    """Write the report.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    path : path-like
        An ``.html`` file; its folder is made where it is missing.

    Returns
    -------
    path : Path

    Notes
    -----
    Names and texts are escaped, figures are images (an image cannot run a script), and the page
    forbids itself everything but inline style and images.
    """
    out = Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(report_html(posterior, recommendation), encoding="utf-8")
    return out


def report_html(posterior: Posterior, recommendation: Recommendation) -> str:
    """Return the page that :func:`write_report` writes."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("advisor.report", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    meta, target = posterior.meta, recommendation.target
    return environment.get_template("report.html.j2").render(
        title=TITLES[recommendation.kind],
        kind=recommendation.kind,
        subject=f"{target.model} on {target.task}, {recommendation.steps:,} optimizer steps",
        answer=recommendation.text,
        recommended=_table(recommendation.table),
        figures=[_figure(name, spec, posterior, recommendation) for name, spec in FIGURES.items()],
        learned=_table(posterior.table),
        convergence=_convergence(posterior),
        assumptions=recommendation.assumptions,
        priors=f"{meta.priors.name}: {meta.priors.description}",
        provenance=[
            ("Package", f"grpo-advisor {meta.provenance.package}"),
            ("Fitted", meta.provenance.created),
            ("Data (SHA-256)", meta.provenance.data_sha256),
            ("Seed", str(meta.provenance.seed)),
            *meta.provenance.versions.items(),
        ],
    )


def _figure(
    name: str, spec: FigureKind, posterior: Posterior, recommendation: Recommendation
) -> dict[str, str]:
    info = spec.info(posterior, recommendation)
    figure = spec.draw(info)
    data, mime = render(figure, "svg", name), "image/svg+xml"
    if len(data) > MAX_SVG_BYTES:
        data, mime = render(figure, "png", name), "image/png"
    return {
        "id": name,
        "title": spec.title,
        "caption": f"{spec.caption} {info.note}".rstrip(),
        "alt": info.text,
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
