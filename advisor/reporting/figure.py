"""What every figure is: an info object that tests assert on, and a function that draws it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from advisor.advice import level_text
from advisor.common import Words, counted, scientific
from advisor.reporting import style
from advisor.text import read_toml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from advisor.model import Posterior
    from advisor.runs import Settings

FORMATS = ("png", "svg", "pdf")


words = partial(read_toml, __file__, "figures.toml")  # Titles and captions


class Info:
    """What a figure collects before it is drawn; its words stand in ``figures.txt.j2``."""

    name: ClassVar[str]

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        return _TEXTS(f"{self.name}_text", self)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return _TEXTS(f"{self.name}_note", self)


_known: dict[str, Any] = {"is_nan": np.isnan, "infinite": np.inf, "counted": counted}
_known |= {"level_text": level_text, "scientific": scientific}
_known |= {"settings_label": style.settings_label, "subject": style.subject}
_TEXTS = Words("advisor.reporting", "figures.txt.j2", **_known)


class Came(NamedTuple):
    """What a finished run came to: mean of its last tenth, in units of the measure."""

    settings: Settings
    steps: int
    reward: float
    has_collapsed: bool


@dataclass(frozen=True)
class FigureKind:
    """One figure: its name (of its files, and in figures.toml), and how it is made."""

    name: str
    info: Callable[..., Info]  # collects what is shown, from posterior, answer and finished runs
    draw: Callable[..., Figure]
    # Whether these pilots give it a meaning.
    has_meaning: Callable[[Posterior], bool] = lambda _: True

    @property
    def title(self) -> str:
        """What stands above it."""
        return str(words()[self.name]["title"])

    @property
    def caption(self) -> str:
        """What stands below it."""
        return str(words()[self.name]["caption"])

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
    with warnings.catch_warnings(), matplotlib.rc_context(look):
        # A model may be named in a script that the font lacks; a box in its place is no failure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=kind, dpi=160, metadata=undated)
    return buffer.getvalue()
