"""Configuration of the site of documents: ``make docs``, which is Sphinx over the Markdown of the repository as it is.

The source folder is the root of the repository, not docs/, so that every relative link of a page (`../README.md`,
`../csrc/README.md`) leads to the same place in the repository and in the site. Only what `include_patterns` names is
read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mpiio_ext import __version__

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))

project = "mpiio_ext"
author = "The mpiio_ext developers"
project_copyright = f"{author}, BSD-3-Clause"
version = release = __version__
language = "en"
smartquotes = False  # "--" in a line of help is an option, not a dash

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click", "sphinx_copybutton", "mpiio_ext_site"]

root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = ["docs/**.md", "*.md", "csrc/README.md"]
exclude_patterns = [".*", "build", "bench-results", "dist", "tests", "docs/_*", "**/__pycache__"]

# ---- Markdown -------------------------------------------------------------------------------------------------------

myst_heading_anchors = 4  # [text](page.md#heading) as the hosts of repositories make them
myst_enable_extensions = ["attrs_block", "deflist"]
# Of the blocks without a language, drawings of boxes and outputs: what Pygments would guess is worse than nothing.
highlight_language = "none"
# Changes are listed under the same headings for every version; a page may begin below a heading of level 1.
suppress_warnings = ["myst.header"]

default_role = "code"  # text between single backticks in docstrings and comments

# ---- Python and C ---------------------------------------------------------------------------------------------------

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autosummary_generate = False  # numpydoc brings autosummary along; the modules of the reference are listed by hand
autodoc_typehints = "signature"
numpydoc_show_class_members = False  # the members themselves follow
numpydoc_xref_param_type = False  # "int64 array of shape (n, 4)" is prose, not a name
python_use_unqualified_type_names = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 90
c_maximum_signature_line_length = 90

# A link that leads nowhere is an error (`-n -W`). What other projects define has no target here: no network is needed.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!mpiio_ext).*"),
    (r"py:.*", r".*\._.*"),  # private modules, from which public names are re-exported
    (r"c:.*", r"u?int\d*_t|size_t"),
]

# ---- HTML -----------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"mpiio_ext {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
html_search_scorer = str(Path(__file__).resolve().parent / "_ext" / "search.js")
html_show_search_summary = False  # excerpts are made of search-texts.js: nothing can be fetched from a file
html_last_updated_fmt = None  # two builds of one commit are equal
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight > pre"
