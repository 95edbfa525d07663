"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.common import write_whole
from advisor.errors import InputError, writing
from advisor.model import Posterior
from advisor.reporting.figure import FORMATS, Drawn, FigureKind, Missing, reason_of
from advisor.reporting.figure import Came as Came
from advisor.reporting.figures import beliefs, decision, stability_map, trajectories
from advisor.reporting.page import html
from advisor.reporting.panels import plot_ends as plot_ends
from advisor.reporting.panels import plot_forecast as plot_forecast
from advisor.reporting.panels import plot_posterior as plot_posterior
from advisor.reporting.panels import plot_stability as plot_stability

if TYPE_CHECKING:
    from advisor.advice import Recommendation

FIGURES: dict[str, FigureKind] = {
    kind.name: kind
    for kind in (decision.FIGURE, trajectories.FIGURE, stability_map.FIGURE, beliefs.FIGURE)
}
"""Figures of a study by name, in the order of the report: the decision first."""


def drawings(
    posterior: Posterior,
    recommendation: Recommendation,
    names: Sequence[str] | None = None,
    came: Sequence[Came] = (),
) -> list[Drawn]:
    """Draw figures of ``FIGURES``, each once; by default those that these pilots give a meaning."""
    check_figures(names or ())
    meant = [name for name, kind in FIGURES.items() if kind.has_meaning(posterior)]
    kinds = [FIGURES[name] for name in (meant if names is None else names)]
    return [kind.drawn(kind.info(posterior, recommendation, came)) for kind in kinds]


def drawings_made(
    posterior: Posterior, recommendation: Recommendation, came: Sequence[Came] = ()
) -> list[Drawn | Missing]:
    """Draw the same; one that fails is named with its reason and costs no other."""
    out: list[Drawn | Missing] = []
    for name, kind in FIGURES.items():
        if not kind.has_meaning(posterior):
            continue
        try:
            out += drawings(posterior, recommendation, [name], came)
        except Exception as error:  # whatever it is, the other figures can be drawn
            out.append(Missing(kind.name, kind.title, reason_of(error)))
    return out


def plot(
    posterior: Posterior,
    recommendation: Recommendation,
    folder: str | Path,
    formats: Sequence[str] = ("png", "svg"),
    drawn: Sequence[Drawn | Missing] | None = None,
) -> list[Path]:
    """Draw every figure into a folder, which is made where it is missing.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    folder : path-like
    formats : sequence of {"png", "svg", "pdf"}
    drawn : sequence of Drawn or Missing, optional
        What :func:`drawings` or :func:`drawings_made` returned, where they are drawn already.

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
    out, files = Path(folder), []
    drawn = drawings(posterior, recommendation) if drawn is None else drawn
    with writing("the figures", out, "folder"):
        out.mkdir(parents=True, exist_ok=True)
        for one in (one for one in drawn if isinstance(one, Drawn)):
            for kind in formats:
                files.append(out / f"{one.name}.{kind}")
                write_whole(files[-1], one.rendered(kind))
    return files


def check_figures(names: Iterable[str]) -> None:
    """Refuse a figure that no study has."""
    for name in set(names) - set(FIGURES):
        advice = f"Choose among {', '.join(FIGURES)}, or all"
        raise InputError(f"there is no figure '{name}'", argument="name", advice=advice)


def check_format(kind: str, key: str = "formats") -> None:
    """Refuse a format that no figure has."""
    if kind not in FORMATS:
        advice = f"Choose among {', '.join(FORMATS)}"
        raise InputError(f"no figure format '{kind}'", key=key, advice=advice)


def report(
    posterior: Posterior,
    recommendation: Recommendation,
    path: str | Path,
    drawn: Sequence[Drawn | Missing] | None = None,
    **parts: Any,
) -> Path:
    """Write the report.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    path : path-like
        An ``.html`` file; its folder is made where it is missing.
    drawn : sequence of Drawn or Missing, optional
        The figures in their order [default: all that need no logs].
    **parts
        ``diagnoses`` of the pilots; ``configs``, texts by trainer; ``outcome`` of runs that were
        made since.

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
    figures = drawn or drawings_made(posterior, recommendation)
    page = html(posterior, recommendation, figures, **parts)
    with writing("the report", out, "path", "file"):
        write_whole(out, page)
    return out
