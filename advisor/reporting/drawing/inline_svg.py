"""A drawing as part of a page: its text is text, its colours follow the page's scheme."""

from __future__ import annotations

import re

from advisor.reporting.drawing import style

PAGE_COLOURS = {
    "#ffffff": "paper",
    style.INK: "ink",
    style.MUTED: "quiet",
    style.FAINT: "faint",
    style.WASH: "wash",
    style.RISK: "risk",
    style.BLUE: "blue",
    style.ALARM: "alarm",
}
"""Colour of a drawing -> name of the page's own: these would glare or vanish in the dark."""


def inline_svg(drawing: bytes, name: str, text: str, width: str = "wide") -> str:
    """Turn a drawing of matplotlib's into an element of a page.

    Parameters
    ----------
    drawing : bytes
        SVG with text as text; matplotlib escapes what it writes.
    name : str
        Of the figure: begins all identifiers, which are unique in a page only then.
    text : str
        What it shows, for those who do not see it.
    width : {"wide", "narrow"}
        Class of the element: the page shows the narrow one on a phone.

    Returns
    -------
    element : str
        ``<svg>`` without prolog, metadata, comments and names of namespaces.
    """
    from markupsafe import escape

    source = drawing.decode("utf-8")
    source = source[source.index("<svg") :]
    # Its style is that of the page, where a rule for everything would reach beyond it.
    source = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", source, flags=re.DOTALL
    )
    source = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", source).replace("xlink:href", "href")
    source = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', source)
    source = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', source)
    source = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", source)
    for colour, own in PAGE_COLOURS.items():
        # Within a style only, where a variable has a meaning; the text keeps its characters.
        source = re.sub(
            rf"((?:fill|stroke): ?){colour}\b",
            rf"\1var(--drawn-{own})",
            source,
            flags=re.IGNORECASE,
        )
    source = re.sub("<[^>]*>", lambda tag: _shortened(tag[0]), source)
    source = re.sub(r"\n\s*", "\n", source)
    label = escape(text)
    return source.replace(
        "<svg", f'<svg class="{width}" role="img" aria-label="{label}"', 1
    ).strip()


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
