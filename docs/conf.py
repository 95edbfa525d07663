"""Sphinx: the documentation site, built offline with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from advisor import __version__  # noqa: E402

project = "GRPO advisor"
version = release = __version__
copyright = "the authors, Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "equations",
    "pages",
]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["dollarmath", "amsmath", "substitution", "colon_fence"]
myst_dmath_double_inline = False
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_default_options = {"exclude-members": "model_config"}
autodoc_typehints = "none"  # numpydoc's sections name the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {
    name: [] for name in ("index", "quickstart", "glossary", "logs", "model", "theory", "figures")
}
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 9,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
