"""The site that is built from docs/: complete, searchable, loaded from one place, and not built over a broken link."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import llxprt_hooks
from tests.docs.docs_pages import PAGES, ROOT, SITE_ONLY, sections

LOADING = {"audio", "embed", "iframe", "img", "input", "script", "source", "track", "video"}
"""The elements that load what their ``src`` says; what a ``link`` names is loaded too, unless it is a page."""

PAGE_RELATIONS = {"next", "prev", "search"}

INDEX = """# Start

[next](next.md#a-heading)

```{toctree}
next
```
"""

NEXT = """# Next

## A heading

[start](index.md), [a heading](#a-heading)
"""


def build(pages: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build as ``make docs`` does."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(
        r"^SITE := \$\(BIN\)/sphinx-build (.+) --doctree-dir build/doctrees docs build/site$", makefile, re.MULTILINE
    )
    assert command, "the Makefile does not say how the site is built"
    arguments = [*shlex.split(command[1]), "--doctree-dir", str(site.with_name("doctrees")), str(pages), str(site)]
    return subprocess.run([sys.executable, "-m", "sphinx", *arguments], capture_output=True, text=True, timeout=600)


@dataclass
class Seen(HTMLParser):
    """What a page of the site links to, loads, and has anchors for."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and "src" in values:
            self.loads.append(values["src"])
        if tag == "link" and values["rel"] not in PAGE_RELATIONS:
            self.loads.append(values["href"])


def seen(page: Path) -> Seen:
    parser = Seen()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def loaded_by_text(text: str) -> list[str]:
    """The addresses in a style sheet, a picture or a script, without the names of XML vocabularies."""
    addresses = re.findall(r"""(?:url\(\s*|@import\s+|\bfrom\s+|(?:href|src)=)["']?([^"')\s]+)""", text)
    addresses += re.findall(r"""["'`]((?:https?:)?//[^"'`\s]+)["'`]""", text)
    return [each for each in addresses if not each.startswith("http://www.w3.org/")]


def is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    built = build(ROOT / "docs", folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Seen]:
    return {page: seen(page) for page in sorted(site.glob("**/*.html"))}


def test_every_page_can_be_reached_from_the_start(site: Path, html: dict[Path, Seen]) -> None:
    reached: set[Path] = set()
    waiting = [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page not in html or page in reached:
            continue
        reached.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in html[page].links]
    # README.md, of the repository and of the folder, are on the site what the pages for the site alone make of them
    expected = {page.stem for page in PAGES if page.name != "README.md"} | {Path(name).stem for name in SITE_ONLY}
    expected |= {page.stem for page in (ROOT / "docs" / "integrations").glob("*.md")}
    assert {page.stem for page in reached} == expected


def test_every_link_leads_somewhere(html: dict[Path, Seen]) -> None:
    broken = []
    for page, content in html.items():
        for link in content.links:
            address = urlsplit(link)
            target = (page.parent / unquote(address.path)).resolve() if address.path else page
            there = bool(address.netloc) or target.is_file()
            anchor = unquote(address.fragment)
            if not there or (anchor and target in html and anchor not in html[target].anchors):
                broken.append((page.name, link))
    assert broken == []


def test_the_reference_has_every_public_name(site: Path, html: dict[Path, Seen]) -> None:
    expected = {f"llxprt_hooks.{name}" for name in llxprt_hooks.__all__}
    expected |= {"llxprt_hooks.testing.check_translator", "llxprt_hooks.testing.Sample"}
    assert expected - html[site / "api.html"].anchors == set()
    of_the_page = {f"api.html#llxprt_hooks.{name}" for name in llxprt_hooks.__all__}
    assert of_the_page - set(html[site / "python-api.html"].links) == set()


def test_the_reference_has_every_integration(site: Path, html: dict[Path, Seen]) -> None:
    """Each module that a user imports, with the class or the function that its page begins with."""
    anchors = html[site / "api-integrations.html"].anchors
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("**/*.md"))
    imported = set(re.findall(r"from (llxprt_hooks\.integrations\.\w+) import (\w+)", text))
    assert len(imported) > 8
    assert {f"{module}.{name}" for module, name in imported} - anchors == set()


def test_a_file_has_its_name_once(site: Path) -> None:
    page = (site / "debugging.html").read_text(encoding="utf-8")
    captions = re.findall(r'<div class="code-block-caption[^"]*">\s*(.*?)\s*</div>', page, re.DOTALL)
    texts = [re.sub(r"<[^>]+>", "", caption) for caption in captions]
    assert ".llxprt/settings.json" in texts
    assert "guard.sh, made executable with chmod +x guard.sh" in texts
    assert not re.search(r"<p>(?:<[^>]+>)*\.llxprt/settings\.json(?:</[^>]+>)*:</p>", page)
    files = [
        block
        for section in sections(ROOT / "docs" / "debugging.md")
        for block in section.blocks
        if "file" in block.words
    ]
    assert len(texts) == len(files)


def test_output_is_marked(site: Path) -> None:
    page = (site / "debugging.html").read_text(encoding="utf-8")
    blocks = [block for section in sections(ROOT / "docs" / "debugging.md") for block in section.blocks]
    assert page.count('class="output highlight-') == sum("output" in block.words for block in blocks) > 0


def test_options_are_kept_in_one_piece(site: Path) -> None:
    page = (site / "commands.html").read_text(encoding="utf-8")
    assert '<span class="pre unbroken">--dry-run</span>' in page
    assert '<span class="pre">--' not in page


def test_names_break_between_words_or_not_at_all(site: Path) -> None:
    page = (site / "security.html").read_text(encoding="utf-8")
    assert '<span class="pre unbroken">LLXPRT_AGENT</span>' in page
    assert '<span class="unbroken">D-21</span>' in page
    assert (
        '<span class="pre">test_<wbr>only_<wbr>what_<wbr>was_<wbr>shown_<wbr>can_<wbr>be_<wbr>approved</span>' in page
    )


def test_the_rest_of_a_wrapped_line_is_indented(site: Path) -> None:
    """Each line is an element that knows its indentation, and the text that is copied stays the same."""
    page = (site / "index.html").read_text(encoding="utf-8")
    [block] = re.findall(r"<pre><span></span>([^\n]*#!/bin/sh.+?)</pre>", page, re.DOTALL)
    assert re.findall(r'<span class="line" style="--indent: (\d+)">', block) == ["0", "0", "0", "4", "4", "0"]
    [guard] = [
        block for each in sections(ROOT / "docs" / "index.md") for block in each.blocks if "#!/bin" in block.text
    ]
    assert unescape(re.sub(r"<[^>]+>", "", block)) == guard.text


def test_a_line_with_a_long_first_word_begins_on_its_own_line(site: Path) -> None:
    """Else a phone shows only the indentation there."""
    page = (site / "own-agent.html").read_text(encoding="utf-8")
    lines = re.findall(r'<span class="line long"[^>]*>(.+?)\n', page)
    texts = [unescape(re.sub(r"<[^>]+>", "", line)) for line in lines]
    assert "        self.history.append(types.UserContent(prompt))" in texts
    assert "        self.stop_reason = None" not in texts


def test_a_cell_of_a_wide_table_names_its_column(site: Path) -> None:
    """A phone shows the cells of a row below each other. Short figures stay in columns, where they can be compared."""
    page = (site / "recipes.html").read_text(encoding="utf-8")
    tables = re.findall(r'<table class="([^"]+)">(.+?)</table>', page, re.DOTALL)
    [(kind, recipes)] = [each for each in tables if "<p>use it</p>" in each[1]]
    assert "stacked" in kind.split()
    [row] = re.findall(r"<tr[^>]+>(<td[^\n]+>secret-scanning<.+?)</tr>", recipes, re.DOTALL)
    assert re.findall(r'data-label="(.*?)"', row) == ["recipe", "what it does", "events", "use it", "needs"]
    [kind] = [kind for kind, content in tables if "<p>with the parser</p>" in content]
    assert "stacked" not in kind.split()


def test_the_version_is_that_of_the_package(site: Path) -> None:
    assert f"<title>llxprt-hooks {llxprt_hooks.__version__}</title>" in (site / "index.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("package", ["mcp.server", "fastmcp"])
def test_code_in_a_docstring_is_shown_as_code(site: Path, package: str) -> None:
    page = (site / "api-integrations.html").read_text(encoding="utf-8")
    assert re.search(rf"<pre>.*<span class=\"nn\">{re.escape(package)}</span>", page)


def test_every_page_has_another_name_in_the_sidebar(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    names = re.findall(r'<li class="toctree-l1[^"]*"><a class="reference internal" href="[^"]+">(.*?)</a>', page)
    assert {"Overview", "Security", "Reporting a vulnerability"} <= set(names)
    assert len(names) == len(set(names)) > 30


def test_the_search_finds_the_words_of_a_page(site: Path) -> None:
    script = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
    found = index["terms"]["sigterm"]
    pages = {index["docnames"][number] for number in (found if isinstance(found, list) else [found])}
    assert {"architecture", "protocol"} <= pages
    assert "recipes" not in pages


def test_nothing_is_loaded_from_elsewhere(site: Path, html: dict[Path, Seen]) -> None:
    loads = [(page.name, address) for page, content in html.items() for address in content.loads]
    for file in sorted(site.glob("**/*")):
        if file.suffix in {".css", ".js", ".svg"}:
            loads += [(file.name, address) for address in loaded_by_text(file.read_text(encoding="utf-8"))]
    assert any(name == "architecture.html" and address.endswith("event.svg") for name, address in loads)
    assert [load for load in loads if is_elsewhere(load[1])] == []


@pytest.mark.parametrize(
    "text",
    [
        "@import 'https://fonts.example/a.css';",
        "@font-face { src: url(//fonts.example/a.woff2) }",
        "import('https://code.example/a.js')",
        '<image href="https://pictures.example/a.png"/>',
    ],
)
def test_what_would_be_loaded_from_elsewhere_is_noticed(text: str) -> None:
    assert any(is_elsewhere(address) for address in loaded_by_text(text))


@pytest.fixture
def two_pages(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    shutil.copytree(ROOT / "docs" / "_static", folder / "_static")
    shutil.copy(ROOT / "docs" / "conf.py", folder)
    (folder / "index.md").write_text(INDEX, encoding="utf-8")
    (folder / "next.md").write_text(NEXT, encoding="utf-8")
    (tmp_path / "LICENCE.md").write_text("# Licence\n", encoding="utf-8")
    (tmp_path / "src").mkdir()
    return folder


def test_a_file_outside_the_folder_can_be_downloaded(two_pages: Path, tmp_path: Path) -> None:
    (tmp_path / "hook.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    with (two_pages / "next.md").open("a", encoding="utf-8") as page:
        page.write("\n[the hook](../hook.sh)\n")
    built = build(two_pages, tmp_path / "site")
    assert built.returncode == 0, built.stderr
    assert [file.read_text(encoding="utf-8") for file in tmp_path.glob("site/_downloads/*/hook.sh")] == ["#!/bin/sh\n"]


MISTAKES = {
    "a page that is not there": ("[broken](gone.md)", "'gone.md'"),
    "a file that is not there": ("[broken](../gone.py)", "'../gone.py'"),
    "a page outside the folder": ("[broken](../LICENCE.md)", "LICENCE"),
    "a folder": ("[broken](../src/)", "'../src/'"),
    "a heading of the page": ("[broken](#gone-here)", "'gone-here'"),
    "a heading of another page": ("[broken](index.md#gone-there)", "'gone-there'"),
    "a picture": ("![broken](gone.svg)", "gone.svg"),
    "a language without highlighting": ("```gone\nx\n```", "'gone'"),
}


def test_a_mistake_fails_the_build(two_pages: Path, tmp_path: Path) -> None:
    """Each is a warning, and one warning is enough: a page that the sidebar does not have is alone here."""
    (two_pages / "orphan.md").write_text("# Orphan\n", encoding="utf-8")
    built = build(two_pages, tmp_path / "site")
    assert built.returncode == 1
    [line] = warnings_of(built)
    assert "orphan.md" in line
    assert "toctree" in line


def test_every_mistake_is_reported(two_pages: Path, tmp_path: Path) -> None:
    page = two_pages / "next.md"
    lines = {}
    for mistake, (added, _) in MISTAKES.items():
        text = page.read_text(encoding="utf-8")
        lines[mistake] = len(text.splitlines()) + 2
        page.write_text(f"{text}\n{added}\n", encoding="utf-8")
    built = build(two_pages, tmp_path / "site")
    assert built.returncode == 1
    reported = {int(re.search(r"next\.md:(\d+): ", line)[1]): line for line in warnings_of(built)}  # type: ignore[index]
    assert reported.keys() == set(lines.values())
    for mistake, (_, warning) in MISTAKES.items():
        assert warning in reported[lines[mistake]], mistake


def warnings_of(built: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in built.stderr.splitlines() if "WARNING" in line]


def test_the_picture_of_an_event_is_what_its_script_draws(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "docs" / "pictures" / "draw_event.py", tmp_path)
    subprocess.run([sys.executable, script], check=True, timeout=300)
    assert (tmp_path / "event.svg").read_bytes() == (ROOT / "docs" / "pictures" / "event.svg").read_bytes()
