"""The site: the Markdown pages of this folder, with a reference that is made from the package itself.

``make site`` builds it into ``build/site``. Every warning is an error: a link to a page or heading that is not there, a
page in no table of contents, a docstring that does not parse.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from _reference import filled
from docutils import nodes
from sphinx.application import Sphinx

from rlm_mem import __version__

project = "RLM-MEM"
author = "The RLM-MEM authors"
copyright = "2026, the RLM-MEM authors. Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_*"]
language = "en"

# Markdown as on the forge: anchors of headings by the same rule, so that one link serves both.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = ["misc.highlighting_failure"]  # programs of a model are shown as it wrote them

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

copybutton_prompt_text = "$ "
copybutton_copy_empty_lines = False

html_theme = "furo"
html_title = f"RLM-MEM {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../src/rlm_mem/dashboard/static/icon.svg"
html_theme_options = {  # the colours of the dashboard
    "light_css_variables": {"color-brand-primary": "#17635f", "color-brand-content": "#17635f"},
    "dark_css_variables": {"color-brand-primary": "#77c9c1", "color-brand-content": "#77c9c1"},
}
html_show_sphinx = False

# `make links` asks for every address outside of the site. Those of this project are there once it is published.
linkcheck_ignore = [
    r"https://github\.com/rlm-mem/",
    r"https?://(?:localhost|127\.0\.0\.1)",
    r"https://[\w.]*\bexample\b",
]
linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_retries = 2
html_copy_source = False


#: What the theme leaves out for readers who use a keyboard or a screen reader.
_ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="Headings of this page" class="toc-drawer',
}


def setup(app: Sphinx) -> None:
    """Fill in what is made from the package before a page is read; complete the finished pages for assistive tools."""

    def fill(_app: Sphinx, _page: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    def describe(
        _app: Sphinx, _page: str, _template: str, context: dict[str, Any], tree: nodes.document | None
    ) -> None:
        """The first paragraph as the description of the page, for search engines and previews of links."""
        first = next(iter(tree.findall(nodes.paragraph)), None) if tree is not None else None
        said = first.astext() if first is not None else "An index of the documentation of RLM-MEM"
        content = escape(shorten(said, 160, placeholder="…"), quote=True)
        context["metatags"] = (
            f'{context.get("metatags", "")}\n<meta name="description" content="{content}" />'
        )

    def complete(built: Sphinx, problem: Exception | None) -> None:
        for page in Path(built.outdir).rglob("*.html") if problem is None else ():
            text = page.read_text(encoding="utf-8")
            for found, better in _ACCESSIBLE.items():
                text = text.replace(found, better)
            page.write_text(text, encoding="utf-8")

    app.connect("source-read", fill)
    app.connect("html-page-context", describe)
    app.connect("build-finished", complete)
