"""Equations by name: MathML without a script from elsewhere, and links from ``T8`` to equation T8.

Sphinx counts equations through; here an equation's number is its label, so that a citation in code
stays true when an equation is added before it. A citation of a number that does not exist warns.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.domains.math import MathDomain
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)

PAGES_OF_EQUATIONS = ("theory", "model")
"""Pages in which a bare ``T8`` or ``M3`` is a citation; elsewhere only ``docs/theory, T8`` is."""

BARE = re.compile(r"\b[TM]\d+\b")
FUNCTION = re.compile(r"\\(?:log|cosh|sinh|operatorname\{\w+\})(?![a-zA-Z^])")
CITED = re.compile(r"(?<=docs/theory, )T\d+\b|(?<=docs/model, )M\d+\b")


class NamedEquations(MathDomain):
    """The label of an equation is its number."""

    def note_equation(self, docname: str, labelid: str, location: Any = None) -> None:
        """Register an equation under its label."""
        if labelid in self.equations:
            logger.warning("equation %s is defined twice", labelid, location=location)
        self.equations[labelid] = (docname, labelid)  # type: ignore[assignment]


class Citations(SphinxPostTransform):
    """Turn equation numbers in running text into links."""

    default_priority = 20

    def run(self, **_: Any) -> None:
        """Replace each text node that cites equations."""
        docname = self.env.current_document.docname
        pattern = BARE if docname in PAGES_OF_EQUATIONS else CITED
        for text in list(self.document.findall(nodes.Text)):
            if _is_left_alone(text) or not pattern.search(text):
                continue
            text.parent.replace(text, list(self._parts(text, pattern, docname)))

    def _parts(self, text: nodes.Text, pattern: re.Pattern[str], docname: str) -> Any:
        """Yield text and links in their order."""
        end = 0
        for cited in pattern.finditer(text):
            place = self._place(cited.group())
            if place is None:
                logger.warning("no equation or table %s", cited.group(), location=text.parent)
                continue
            yield nodes.Text(text[end : cited.start()])
            child = nodes.Text(cited.group())
            yield make_refnode(self.app.builder, docname, *place, child)
            end = cited.end()
        yield nodes.Text(text[end:])

    def _place(self, name: str) -> tuple[str, str] | None:
        """Page and anchor of an equation or of a numbered table."""
        equations = self.env.domains.math_domain.equations
        if name in equations:
            return equations[name][0], nodes.make_id(f"equation-{name}")
        label = self.env.domains.standard_domain.anonlabels.get(name.lower())
        return label and (label[0], label[1])


def _is_left_alone(text: nodes.Text) -> bool:
    """Whether a text stands in a title, a caption, a link, code or a formula."""
    left = (nodes.title, nodes.strong, nodes.reference, nodes.literal, nodes.literal_block)
    parent: Any = text.parent
    while parent is not None:
        if isinstance(parent, (*left, nodes.math, nodes.math_block, nodes.raw)):
            return True
        parent = parent.parent
    return False


def _mathml(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    """Formula as MathML, with the space that TeX puts between a function and its argument."""
    spaced = FUNCTION.sub(r"\g<0>\\,", node.astext())
    return str(tex2mathml(spaced, as_block=as_block))


def inline(visitor: Any, node: nodes.math) -> None:
    """Write a formula that stands in a line."""
    visitor.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def block(visitor: Any, node: nodes.math_block) -> None:
    """Write a formula that stands by itself, with its number."""
    label = node.get("label")
    identifier = f' id="{node["ids"][0]}"' if node["ids"] else ""
    visitor.body.append(f'<div class="equation"{identifier}>')
    visitor.body.append(_mathml(node, as_block=True))
    if label:
        visitor.body.append(f'<a class="number" href="#{node["ids"][0]}">{label}</a>')
    visitor.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_domain(NamedEquations, override=True)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.add_post_transform(Citations)
    app.config.math_eqref_format = "{number}"
    return {"parallel_read_safe": True, "version": "1"}
