"""What every figure is: an info object that tests assert on, and a function that draws it."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from advisor.reporting.style import RIM

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


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
    """One figure: its name (of its files), title and caption, and how it is made.

    ``info`` collects what is shown, for the figures of a study from posterior and recommendation;
    ``draw`` makes a matplotlib Figure of that.
    """

    name: str
    title: str
    caption: str
    info: Callable[..., Info]
    draw: Callable[..., Figure]

    def drawn(self, info: Info) -> Drawn:
        """Draw what was collected."""
        return Drawn(self.name, self.title, self.caption, info.text, info.note, self.draw(info))


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn, and its texts: what it shows, and what it leaves out."""

    name: str
    title: str
    caption: str
    text: str
    note: str
    figure: Figure
    _rendered: dict[str, bytes] = field(default_factory=dict, repr=False)

    def rendered(self, kind: str) -> bytes:
        """Bytes of a format ("png", "svg" or "pdf"), rendered once."""
        if kind not in self._rendered:
            self._rendered[kind] = render(self.figure, kind, self.name)
            self.figure.set_layout_engine("none")  # laid out once is enough
        return self._rendered[kind]


@dataclass(frozen=True)
class Missing:
    """A figure that could not be drawn, and why."""

    name: str
    title: str
    reason: str


def reason_of(error: Exception) -> str:
    """What went wrong, in one sentence."""
    text = str(error).strip() or type(error).__name__
    return f"{text.rstrip('.')}."


def render(figure: Figure, kind: str, name: str = "figure") -> bytes:
    """Bytes of a figure in one of ``FORMATS``, the same every time; ``name`` seeds identifiers."""
    import matplotlib

    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    # Text that is text can be searched, and read where the drawing is not seen.
    look = {"svg.hashsalt": name, "svg.fonttype": "none"}
    words = _without_rims(figure) if kind == "svg" else contextlib.nullcontext()
    with warnings.catch_warnings(), matplotlib.rc_context(look), words:
        # A model may be named in a script that the font lacks; a box in its place is no failure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=kind, dpi=160, metadata=undated)
    return _rimmed(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


@contextlib.contextmanager
def _without_rims(figure: Figure) -> Iterator[None]:
    """Take rims off words meanwhile: matplotlib would draw those as outlines of letters."""
    from matplotlib.text import Text

    rimmed = [one for one in figure.findobj(Text) if str(one.get_gid()).startswith(RIM)]
    effects = [one.get_path_effects() for one in rimmed]
    for one in rimmed:
        one.set_path_effects([])
    try:
        yield
    finally:
        for one, own in zip(rimmed, effects, strict=True):
            one.set_path_effects(own)


def _rimmed(drawing: bytes) -> bytes:
    """Give such words of an SVG their rims, as strokes painted before the letters."""
    numbers = itertools.count(1)

    def group(found: re.Match[bytes]) -> bytes:
        look = b"paint-order: stroke; stroke: #ffffff; stroke-linejoin: round; stroke-width: "
        return b'<g id="rim_%d" style="%s%s">' % (next(numbers), look, found[1])

    return re.sub(rb'<g id="%s([\d.]+)">' % RIM.encode(), group, drawing)
