"""All figures by name: draw one, or write all of them to a folder."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from advisor.errors import InputError
from advisor.posterior import Posterior
from advisor.report.drawing.posteriors import draw_posteriors
from advisor.report.drawing.stability_map import draw_stability_map
from advisor.report.drawing.trajectories import draw_trajectories
from advisor.report.posteriors import posteriors_info
from advisor.report.stability_map import stability_map_info
from advisor.report.trajectories import trajectories_info

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from advisor.advice import Recommendation

FORMATS = ("png", "svg", "pdf")
PNG_DPI = 160


class Info(Protocol):
    """What every info object can do besides being drawn."""

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""


@dataclass(frozen=True)
class FigureKind:
    """One figure of the gallery.

    Attributes
    ----------
    title, caption : str
        For the report; the caption says how to read it.
    info : callable
        ``info(posterior, recommendation)`` collects what is shown.
    draw : callable
        ``draw(info)`` returns a matplotlib Figure.
    """

    title: str
    caption: str
    info: Callable[[Posterior, Recommendation], Info]
    draw: Callable[[Any], Figure]


FIGURES: dict[str, FigureKind] = {
    "stability": FigureKind(
        "Where a run stays stable",
        "Pale is safe. The thick line is the largest learning rate that keeps the probability "
        "wanted. Arrows at a border name common recipes that lie beyond it.",
        stability_map_info,
        draw_stability_map,
    ),
    "trajectories": FigureKind(
        "What the pilots did, and the forecast",
        "Dots are binned rewards, lines and bands the fitted curves with their central 80 % "
        "(means over one refresh cycle). Grey runs collapsed: a cross marks the onset, at the "
        "reward they fell to.",
        trajectories_info,
        draw_trajectories,
    ),
    "posteriors": FigureKind(
        "What was learned",
        "Blue is the posterior with its central 80 % interval, the thin grey line its prior. "
        "Where both agree the data said little.",
        lambda posterior, _: posteriors_info(posterior),
        draw_posteriors,
    ),
}
"""Figures in the order of the report: the decision first."""


def render(figure: Figure, kind: str, name: str = "figure") -> bytes:
    """Render a figure, the same bytes every time.

    Parameters
    ----------
    figure : matplotlib Figure
    kind : {"png", "svg", "pdf"}
    name : str
        Seed of the identifiers inside an SVG.
    """
    import matplotlib

    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": name}):
        # A model may be named in a script that the font lacks; a box in its place is no failure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=kind, dpi=PNG_DPI, metadata=undated)
    return buffer.getvalue()


def draw_all(
    posterior: Posterior,
    recommendation: Recommendation,
    folder: str | Path,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw every figure into a folder, which is made where it is missing.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    folder : path-like
    formats : sequence of {"png", "svg", "pdf"}

    Returns
    -------
    files : list of Path
        ``<name>.<format>`` for the names in ``FIGURES``.

    Raises
    ------
    InputError
        A format is unknown.
    """
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(
                f"no figure format '{kind}'",
                key="formats",
                advice=f"Choose among {', '.join(FORMATS)}",
            )
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, spec in FIGURES.items():
        figure = spec.draw(spec.info(posterior, recommendation))
        for kind in formats:
            files.append(out / f"{name}.{kind}")
            files[-1].write_bytes(render(figure, kind, name))
    return files
