"""The site that ``make docs`` builds from the pages in this folder."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.data import JsonLexer  # type: ignore[import-untyped]
from sphinx import addnodes

if TYPE_CHECKING:
    from docutils import nodes  # type: ignore[import-untyped]
    from sphinx.application import Sphinx

HERE = Path(__file__).parent

# The pages link to files as a Git host has them. These are on the site under another name, as pages that
# include them. Another page outside this folder is an error, another file a download.
INCLUDED_BY = {
    HERE / "README.md": "index",
    HERE.parent / "README.md": "overview",
    HERE.parent / "CHANGELOG.md": "changes",
    HERE.parent / "CONTRIBUTING.md": "contributing",
    HERE.parent / "CODE_OF_CONDUCT.md": "conduct",
    HERE.parent / "SECURITY.md": "reporting",
}

project = "llxprt-hooks"
release = metadata.version(project)

extensions = ["myst_parser"]
exclude_patterns = ["README.md"]  # `index.md` includes it; it is not to be a page twice
nitpicky = True
smartquotes = False  # quotation marks and hyphens are often part of what a user types
myst_heading_anchors = 6  # a Git host gives every heading an anchor

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
html_use_index = False


def lead_to_the_including_page(app: Sphinx, document: nodes.document) -> None:
    pages = {app.env.path2doc(file): page for file, page in INCLUDED_BY.items()}
    for link in document.findall(addnodes.pending_xref):
        link["reftarget"] = pages.get(link["reftarget"], link["reftarget"])


def setup(app: Sphinx) -> None:
    app.add_lexer("jsonc", JsonLexer)  # which knows comments, but not this name
    app.connect("doctree-read", lead_to_the_including_page)
