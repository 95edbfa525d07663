"""Rims round words of an SVG: matplotlib would draw such words twice, as outlines of letters."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from advisor.reporting.drawing.style import RIM

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def without_rims(figure: Figure) -> Iterator[None]:
    """Draw words without their rims meanwhile, so that they stay text."""
    from matplotlib.text import Text

    def has_rim(artist: object) -> bool:
        return isinstance(artist, Text) and str(artist.get_gid()).startswith(RIM)

    effects = [(one, one.get_path_effects()) for one in figure.findobj(has_rim)]
    for one, _ in effects:
        one.set_path_effects([])
    try:
        yield
    finally:
        for one, own in effects:
            one.set_path_effects(own)


def rimmed(drawing: bytes) -> bytes:
    """Give such words of an SVG their rims, as strokes painted before the letters."""
    numbers = itertools.count(1)

    def group(found: re.Match[bytes]) -> bytes:
        look = b"paint-order: stroke; stroke: #ffffff; stroke-linejoin: round; stroke-width: "
        return b'<g id="rim_%d" style="%s%s">' % (next(numbers), look, found[1])

    return re.sub(rb'<g id="%s([\d.]+)">' % RIM.encode(), group, drawing)
