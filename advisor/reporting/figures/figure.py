"""What every figure is: an info object that tests assert on, and a function that draws it."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from advisor.reporting.drawing.rims import rimmed, without_rims

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    name : str
        Of its files, and of ``advisor plot``.
    title, caption : str
        For the report; the caption says how to read it.
    info : callable
        Collects what is shown: ``info(posterior, recommendation)`` for the figures of a study.
    draw : callable
        ``draw(info, is_narrow=False)`` returns a matplotlib Figure, narrow for a phone.
    """

    name: str
    title: str
    caption: str
    info: Callable[..., Info]
    draw: Callable[..., Figure]

    def drawn(self, info: Info) -> Drawn:
        """Draw what was collected."""
        return Drawn(
            self.name,
            self.title,
            self.caption,
            info.text,
            info.note,
            self.draw(info),
            lambda: self.draw(info, is_narrow=True),
        )


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
    narrow : callable
        Draws it again, for a phone.
    """

    name: str
    title: str
    caption: str
    text: str
    note: str
    figure: Figure
    narrow: Callable[[], Figure]
    _rendered: dict[str, bytes] = field(default_factory=dict, repr=False)

    def rendered(self, kind: str) -> bytes:
        """Bytes of a format ("png", "svg" or "pdf"), rendered once."""
        if kind not in self._rendered:
            self._rendered[kind] = render(self.figure, kind, self.name)
            self.figure.set_layout_engine("none")  # laid out once is enough
        return self._rendered[kind]


@dataclass(frozen=True)
class Missing:
    """A figure that could not be drawn, and why.

    Attributes
    ----------
    name, title : str
    reason : str
    """

    name: str
    title: str
    reason: str


def reason_of(error: Exception) -> str:
    """What went wrong, in one sentence."""
    said = str(error).strip() or type(error).__name__
    return f"{said.rstrip('.')}."


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
    # Text that is text can be searched, and read where the drawing is not seen.
    look = {"svg.hashsalt": name, "svg.fonttype": "none"}
    words = without_rims(figure) if kind == "svg" else contextlib.nullcontext()
    with warnings.catch_warnings(), matplotlib.rc_context(look), words:
        # A model may be named in a script that the font lacks; a box in its place is no failure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=kind, dpi=PNG_DPI, metadata=undated)
    return rimmed(buffer.getvalue()) if kind == "svg" else buffer.getvalue()
