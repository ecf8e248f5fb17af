"""The site that ``make docs`` builds from the pages in this folder."""

from __future__ import annotations

import builtins
import html
import itertools
import re
import statistics
import sys
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from docutils import nodes  # type: ignore[import-untyped]
from pygments.lexers.data import JsonLexer  # type: ignore[import-untyped]
from sphinx import addnodes

import llxprt_hooks
import llxprt_hooks.testing

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

HERE = Path(__file__).parent

FRAMEWORKS = ("agents", "claude_agent_sdk", "fastmcp", "google.adk", "langchain", "langchain_core", "langgraph", "mcp")
FRAMEWORKS += ("langsmith", "mcp_types", "pydantic_ai", "pydantic_graph")


class StandIn(type):
    """A class, function or constant of a framework: can be inherited from, called, decorate, and be part of a
    type.
    """

    def __new__(cls, name: str, bases: tuple[type, ...] = (), content: dict[str, Any] | None = None) -> Any:
        stand_in = {
            "__init__": lambda *_, **__: None,
            "__call__": lambda _, decorated: decorated,
            "__get_pydantic_core_schema__": lambda *_: {"type": "any"},
        }
        return super().__new__(cls, name, bases, {**stand_in, **(content or {})})

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __getitem__(cls, _: Any) -> Any:
        return cls


class Frameworks(MetaPathFinder, Loader):
    """Lets the reference describe the integrations without their frameworks, which need environments of their own."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if f"{name}.".startswith(PREFIXES) else None

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = lambda name: StandIn(name)  # type: ignore[method-assign]


PREFIXES = tuple(f"{name}." for name in FRAMEWORKS)
sys.meta_path.insert(0, Frameworks())
sys.path.insert(0, str(HERE))

# The pages link to files as a Git host has them. These are on the site under another name, as pages that
# include them. Another page outside this folder is an error, another file a download.
INCLUDED_BY = {
    HERE / "README.md": "index",
    HERE.parent / "README.md": "index",
    HERE.parent / "CHANGELOG.md": "changes",
    HERE.parent / "CONTRIBUTING.md": "contributing",
    HERE.parent / "CODE_OF_CONDUCT.md": "conduct",
    HERE.parent / "tests/promises.md": "promises",
    HERE.parent / "SECURITY.md": "reporting",
}

# The page about recipes ends with what each says about itself.
RECIPES = {
    file: file.parent.name for file in sorted(HERE.parent.glob("src/llxprt_hooks/recipes/collection/*/README.md"))
}

TITLES = {"reporting": "Reporting a vulnerability"}

project = "llxprt-hooks"
release = llxprt_hooks.__version__  # an editable installation may have the metadata of an older version

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["README.md"]  # `index.md` includes it; it is not to be a page twice
nitpicky = True
smartquotes = False  # quotation marks and hyphens are often part of what a user types
myst_enable_extensions = ["attrs_block"]  # the start page gives its parts a class
myst_heading_anchors = 6  # a Git host gives every heading an anchor

# The reference: what a docstring does not say is still shown, such as the fields of a result.
autodoc_default_options = {
    "members": True,
    "undoc-members": True,
    "show-inheritance": True,
    # What integrations implement for their framework, or for themselves.
    "exclude-members": "APIS, SDK_ERROR, hooked_call, state_schema, unsupported, before_tool_validate, running, "
    "model_of, tools_of, before_agent_callback",
}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
toc_object_entries = False
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages; links of pages are of another kind

# Colors with a contrast of at least 4.5 to the page, for the eyes that need it.
LINKS = {"color-brand-primary": "#0b6380", "color-brand-content": "#0b6380", "color-link--visited": "#5b3f9e"}
DARK_LINKS = {"color-brand-primary": "#67c7e2", "color-brand-content": "#67c7e2", "color-link--visited": "#b9a3f2"}
QUIET = {"color-sidebar-link-text": "var(--color-foreground-secondary)"}
QUIET |= {"color-sidebar-link-text--top-level": "var(--color-foreground-secondary)"}

html_theme = "furo"
html_theme_options = {"light_css_variables": LINKS | QUIET, "dark_css_variables": DARK_LINKS | QUIET}
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
copybutton_prompt_text = "$ "  # where a block has it, what is copied are these lines, without it
copybutton_selector = "div:not(.output) > div.highlight > pre"

LINES: dict[str, list[str]] = {}
"""The lines of each page, with its generated parts."""

# What a block is for, by a word after its language: it gets a label and another background, and no copy button.
SHOWN = {"output": "output", "screen": "output", "result": "output result", "stdin": "output payload"}
SHOWN |= {"fire": "output event", "prints": "output printed"}


def fill_in_what_the_code_says(app: Sphinx, page: str, content: list[str]) -> None:
    from generated import fill_in

    content[0] = fill_in(content[0])
    LINES[str(app.env.doc2path(page))] = content[0].splitlines()


def lead_to_the_including_page(app: Sphinx, document: nodes.document) -> None:
    pages = {app.env.path2doc(file): (page, None) for file, page in INCLUDED_BY.items()}
    pages |= {app.env.path2doc(file): ("recipes", name) for file, name in RECIPES.items()}
    for link in document.findall(addnodes.pending_xref):
        if link["reftarget"] in pages:
            link["reftarget"], anchor = pages[link["reftarget"]]
            link["reftargetid"] = anchor or link.get("reftargetid")


def name_included_pages(app: Sphinx, env: BuildEnvironment) -> None:
    """In lists and in links to the next page; the headings are those of the files."""
    for page, title in TITLES.items():
        if page in env.titles:
            env.titles[page] = nodes.title("", title)


def show_what_a_block_is(app: Sphinx, document: nodes.document) -> None:
    """Caption a block that is a file with its name, and mark one that is output.

    A Git host shows nothing of what follows the language of a block, so the pages name a file in the paragraph above.
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
    lines = LINES.get(block.source) or Path(block.source).read_text(encoding="utf-8").splitlines()
    opening = lines[block.line - 1].strip()
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


def lead_to_the_public_name(
    app: Sphinx, env: BuildEnvironment, link: addnodes.pending_xref, text: nodes.Element
) -> Any:
    """Annotations name the module where a class is defined; the reference has it under the name that users import."""
    name = link["reftarget"].rpartition(".")[2]
    if link.get("refdomain") != "py" or name not in llxprt_hooks.__all__:
        return None
    python = env.domains.python_domain
    return python.resolve_xref(env, link["refdoc"], app.builder, "obj", f"llxprt_hooks.{name}", link, text)


def link_names_to_the_reference(app: Sphinx, document: nodes.document) -> None:
    for link in list(document.findall(addnodes.pending_xref)):
        if link.get("refdomain") == "py" and hasattr(builtins, link["reftarget"]):
            link.replace_self(link.children)  # else `type` would lead to the field of a class that has this name
    page = app.env.docname
    pages = {"python-api", "settings", "api", "api-integrations"}
    for name in list(document.findall(nodes.literal) if page in pages else []):
        text = name.astext()
        is_linked = isinstance(name.parent, (nodes.reference, nodes.title, addnodes.pending_xref))
        is_word = text.islower() and "_" not in text and page != "python-api"  # such as `stop`
        public = text.partition(".")[0]  # of a method, such as `Hooks.on`, its class
        module = next((each for each in (llxprt_hooks, llxprt_hooks.testing) if public in each.__all__), None)
        if module and not is_linked and not is_word:
            target = f"{module.__name__}.{text}"
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=target, refdoc=page)
            name.replace_self(link)
            link += name


def leave_out_the_base_of_all(app: Sphinx, document: nodes.document) -> None:
    for content in document.findall(addnodes.desc_content):
        if content.children and content[0].astext() == "Bases: object":
            content.pop(0)


def write_defaults_as_code(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write `...` for a default without a literal: Sphinx cannot parse `<factory>`, and cuts at every comma."""
    if signature in {"(**__)", "(*args, **kwargs)"}:  # of a stand-in, of a protocol: says nothing
        return "", returns
    signature = signature and re.sub(r"<class '(\w+)'>", r"\1", signature)
    return signature and re.sub(r"<factory>|<function [\w.]+(?:<lambda>)?(?: at \w+)?>", "...", signature), returns


def leave_out_what_namedtuple_says(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, text: list[str]
) -> None:
    if text and text[0].startswith("Alias for field number"):
        text.clear()


def fit_narrow_screens(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Mark what a browser cannot know: where names and lines of code may break, and what the cells of a table are."""
    if "body" in context:
        body = re.sub(r'<span class="pre">([^<]+)</span>', break_between_words, context["body"])
        body = re.sub(r"\b(?:D|HOOK|DELTA-\w+)-\d+\w?\b(?![^<>]*>)", r'<span class="unbroken">\g<0></span>', body)
        body = re.sub(r"(?s)(<pre><span></span>)(.+?)(</pre>)", mark_lines, body)
        context["body"] = re.sub(r'(?s)<table class="docutils.+?</table>', label_cells, body)


def fold_groups(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Make each group of the sidebar one that opens and closes; that of the page is open."""
    title = r'<p class="caption"[^>]*><span class="caption-text">([^<]+)</span></p>'
    groups = rf"(?s){title}\s*(<ul.+?</ul>)(?=\s*(?:<p|</div>|$))"
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = re.sub(groups, partial(fold_group, page), tree)


def fold_group(page: str, group: re.Match[str]) -> str:
    title, pages = group.groups()
    is_open = "current" in pages or (page == "index" and title in GROUPS_TO_START_WITH)
    return f"<details{' open' * is_open}><summary>{title}</summary>{pages}</details>"


GROUPS_TO_START_WITH = {"Tutorials", "Concepts", "How-to guides"}


def break_between_words(code: re.Match[str]) -> str:
    """Keep options and short names in one piece, and break long ones at their punctuation."""
    if len(html.unescape(code[1])) <= 20 or code[1].startswith(("-", "[-")):
        return f'<span class="pre unbroken">{code[1]}</span>'
    breakable = re.sub(r"[_./(,=]+(?=.)", r"\g<0><wbr>", code[1])
    return f'<span class="pre">{breakable}</span>'


def mark_lines(block: re.Match[str]) -> str:
    """Give each line of code an element with its indentation, so that the rest of a wrapped line is indented too."""
    return block[1] + "".join(map(mark_line, block[2].splitlines(keepends=True))) + block[3]


def mark_line(line: str) -> str:
    text = text_of(line)
    indent = len(text) - len(text.lstrip(" "))
    # A browser prefers a break before a long word, here between the indentation and all the rest.
    kind = "line long" if indent and indent + longest_word(text.split()[:1]) > 36 else "line"
    line = re.sub(r"(?<=[ >])--?[A-Za-z][\w-]*(?![^<>]*>)", r'<span class="unbroken">\g<0></span>', line)
    return f'<span class="{kind}" style="--indent: {indent}">{line}</span>'


def label_cells(table: re.Match[str]) -> str:
    """Name the column in each cell. On a phone, the cells of a table that would be too wide are below each other."""
    head, end_of_head, body = table[0].partition("</thead>")
    titles = [text_of(title) for title in re.findall(r"(?s)<th\b.*?>(.*?)</th>", head)]
    cells = [text_of(cell) for cell in re.findall(r"(?s)<td\b.*?>(.*?)</td>", body)]
    label = itertools.cycle(html.escape(title) for title in titles)
    body = re.sub(r"<td\b", lambda cell: f'{cell[0]} data-label="{next(label)}"', body)
    if is_wide(len(titles), cells):
        head = head.replace('class="docutils', 'class="stacked docutils', 1)
    return head + end_of_head + body


def is_wide(columns: int, cells: list[str]) -> bool:
    names, others = cells[::columns], [cell for number, cell in enumerate(cells) if number % columns]
    if longest_word(names) > 20:
        return True
    if columns > 2:
        return statistics.mean(map(len, others)) > 12  # else figures, or "yes" and "no": to be compared in columns
    return statistics.mean(map(len, names)) > 20 and longest_word(others) > 28


def longest_word(texts: list[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def text_of(element: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", element))


def setup(app: Sphinx) -> None:
    app.add_lexer("jsonc", JsonLexer)  # which knows comments, but not this name
    app.connect("source-read", fill_in_what_the_code_says)
    app.connect("doctree-read", lead_to_the_including_page)
    app.connect("doctree-read", link_names_to_the_reference)
    app.connect("doctree-read", leave_out_the_base_of_all)
    app.connect("autodoc-process-signature", write_defaults_as_code)
    app.connect("autodoc-process-docstring", leave_out_what_namedtuple_says)
    app.connect("env-updated", name_included_pages)
    app.connect("html-page-context", fit_narrow_screens)
    app.connect("html-page-context", fold_groups, priority=900)  # after the theme
    app.connect("missing-reference", lead_to_the_public_name)
    app.connect("doctree-read", show_what_a_block_is)
