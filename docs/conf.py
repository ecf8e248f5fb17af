"""The site that ``make docs`` builds from the pages in this folder."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes  # type: ignore[import-untyped]
from pygments.lexers.data import JsonLexer  # type: ignore[import-untyped]
from sphinx import addnodes

if TYPE_CHECKING:
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

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["README.md"]  # `index.md` includes it; it is not to be a page twice
nitpicky = True
smartquotes = False  # quotation marks and hyphens are often part of what a user types
myst_enable_extensions = ["attrs_block"]  # the start page gives its parts a class
myst_heading_anchors = 6  # a Git host gives every heading an anchor

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
html_use_index = False
copybutton_selector = "div:not(.output) > div.highlight > pre"

# What a block is for, by a word after its language. Its class gives it a label and another background, and no copy button.
SHOWN = {"output": "output", "result": "output result", "stdin": "output payload"}


def lead_to_the_including_page(app: Sphinx, document: nodes.document) -> None:
    pages = {app.env.path2doc(file): page for file, page in INCLUDED_BY.items()}
    for link in document.findall(addnodes.pending_xref):
        link["reftarget"] = pages.get(link["reftarget"], link["reftarget"])


def show_what_a_block_is(app: Sphinx, document: nodes.document) -> None:
    """Caption a block that is a file with its name, and mark one that is output.

    A Git host shows nothing of what follows the language of a block, so the pages name a file in the paragraph above it.
    If that paragraph is only about the name, it becomes the caption.
    """
    for block in list(document.findall(nodes.literal_block)):
        for word in words_after_the_language(block):
            name, _, file = word.partition("=")
            if name == "file":
                add_caption(block, file)
            block["classes"] += SHOWN.get(name, "").split()


def words_after_the_language(block: nodes.literal_block) -> list[str]:
    if not block.source or not block.line or not Path(block.source).is_file():
        return []
    opening = Path(block.source).read_text(encoding="utf-8").splitlines()[block.line - 1].strip()
    return opening.split()[1:] if opening.startswith("```") else []


def add_caption(block: nodes.literal_block, file: str) -> None:
    words = [nodes.literal(file, file)]
    above = block.parent[block.parent.index(block) - 1]
    if isinstance(above, nodes.paragraph) and above[0].astext() == file and above.astext()[len(file)] in ":,":
        words = [*above.children[:-1], nodes.Text(above[-1].astext().removesuffix(":"))]
        above.parent.remove(above)
    caption = nodes.container("", *words, classes=["code-block-caption"])
    captioned = nodes.container("", caption, classes=["literal-block-wrapper"])
    block.replace_self(captioned)
    captioned += block


def setup(app: Sphinx) -> None:
    app.add_lexer("jsonc", JsonLexer)  # which knows comments, but not this name
    app.connect("doctree-read", lead_to_the_including_page)
    app.connect("doctree-read", show_what_a_block_is)
