"""All figures by name: draw one, or write all of them to a folder."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from advisor.errors import InputError
from advisor.model.posterior import Posterior
from advisor.reporting.convergence import convergence_info
from advisor.reporting.drawing.convergence import draw_convergence
from advisor.reporting.drawing.exponents import draw_exponents
from advisor.reporting.drawing.forecast_check import draw_forecast_check
from advisor.reporting.drawing.frontier import draw_frontier
from advisor.reporting.drawing.posteriors import draw_posteriors
from advisor.reporting.drawing.stability_map import draw_stability_map
from advisor.reporting.drawing.trajectories import draw_trajectories
from advisor.reporting.exponents import exponents_info
from advisor.reporting.forecast_check import ForecastCheck
from advisor.reporting.frontier import frontier_info
from advisor.reporting.posteriors import posteriors_info
from advisor.reporting.stability_map import stability_map_info
from advisor.reporting.trajectories import trajectories_info

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
    "frontier": FigureKind(
        "What more money would buy",
        "Dots are configurations that none beats in reward, price and P(stable) together; the line "
        "is the most reward for its price among those stable enough. Hollow marks are not.",
        frontier_info,
        draw_frontier,
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
    "exponents": FigureKind(
        "How the settings act",
        "Blue is the posterior with its central 80 % interval, thin grey below it the prior, "
        "vermillion what the theory says. The last column is the share of the prior's variance "
        "that the pilots removed.",
        lambda posterior, _: exponents_info(posterior),
        draw_exponents,
    ),
    "convergence": FigureKind(
        "Whether the chains agree",
        "Ranks of the draws of each chain among those of all, for the parameters with the largest "
        "R-hat. Where all chains found the same posterior they are spread evenly.",
        lambda posterior, _: convergence_info(posterior),
        draw_convergence,
    ),
}
"""Figures in the order of the report: the decision first."""


FORECAST_CHECK = "forecast_check"
"""The figure that needs the pilots' logs and fits anew: not among those of a study."""


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn, and what stands beside it in a report.

    Attributes
    ----------
    name, title, caption : str
    text : str
        What it shows, for those who do not see it.
    note : str
        What it leaves out, if anything.
    figure : matplotlib Figure
    """

    name: str
    title: str
    caption: str
    text: str
    note: str
    figure: Figure
    _rendered: dict[str, bytes] = field(default_factory=dict, repr=False)

    def rendered(self, kind: str) -> bytes:
        """Bytes of a format, rendered once.

        Parameters
        ----------
        kind : {"png", "svg", "pdf"}
        """
        if kind not in self._rendered:
            self._rendered[kind] = render(self.figure, kind, self.name)
            self.figure.set_layout_engine("none")  # laid out once is enough
        return self._rendered[kind]


def drawings(
    posterior: Posterior, recommendation: Recommendation, names: Sequence[str] | None = None
) -> list[Drawn]:
    """Draw figures, each once.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    names : sequence of str, optional
        Of ``FIGURES`` [default: all].
    """
    out = []
    for name in FIGURES if names is None else names:
        spec = FIGURES[name]
        info = spec.info(posterior, recommendation)
        out.append(Drawn(name, spec.title, spec.caption, info.text, info.note, spec.draw(info)))
    return out


def drawn_check(info: ForecastCheck) -> Drawn:
    """Draw the check of forecasts, from what `forecast_check_info` found."""
    return Drawn(
        FORECAST_CHECK,
        "Whether the forecasts held",
        "Each pilot was forecast from its first part, together with the others. Bands are central "
        "80 % intervals of what the log should show, dots what came; hollow squares lie outside.",
        info.text,
        info.note,
        draw_forecast_check(info),
    )


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
    drawn: Sequence[Drawn] | None = None,
) -> list[Path]:
    """Draw every figure into a folder, which is made where it is missing.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    folder : path-like
    formats : sequence of {"png", "svg", "pdf"}
    drawn : sequence of Drawn, optional
        What :func:`drawings` returned, where the figures are drawn already.

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
        check_format(kind)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for one in drawings(posterior, recommendation) if drawn is None else drawn:
        for kind in formats:
            files.append(out / f"{one.name}.{kind}")
            files[-1].write_bytes(one.rendered(kind))
    return files


def check_format(kind: str, key: str = "formats") -> None:
    """Refuse a format that no figure has.

    Raises
    ------
    InputError
    """
    if kind not in FORMATS:
        raise InputError(
            f"no figure format '{kind}'", key=key, advice=f"Choose among {', '.join(FORMATS)}"
        )
