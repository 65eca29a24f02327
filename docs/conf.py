"""The site: the Markdown pages of this folder, with a reference that is made from the package itself.

``make site`` builds it into ``build/site``. Every warning is an error: a link to a page or heading that is not there, a
page in no table of contents, a docstring that does not parse.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _reference import filled
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
html_show_sphinx = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Fill in what is made from the package before a page is read."""

    def fill(_app: Sphinx, _page: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    app.connect("source-read", fill)
