"""The documentation as data: pages, their sections, and in these the fenced blocks, tables and links.

A block's info string says what is to be done with it; a reader sees only its first word, as highlighting:

==========================  ===========================================================================================
``python``                  a complete program: run by a fresh interpreter, must end well
``sh``                      run by bash, stderr shown with stdout, as a terminal does
``sh exits=N``              the same, with that exit status instead of 0
``sh answer=y``             run on a terminal, with this answer to the one question that is asked
``sh setup``                run at the start of every section of the page, which then has its folder and variables
``… file=PATH``             written to PATH (``~`` is a home of its own) and not run; a script with ``#!`` is executable
``… needs=PROGRAM``         the section is skipped where there is no such program
``text output``             what the program before printed; ``…`` alone on a line is lines left out
``text screen``             what a program prints that is not run here
``json stdin[=EVENT]``      what a hook gets, checked against what the engine sends; with EVENT, without base fields
``json fire=EVENT``         the event's own fields, for the ``result`` that follows
``json prints``             what one more hook of the section prints
``json result[=EVENT]``     the result of firing the event: the merged output
``json``, ``jsonc``         parsed; where it is a settings file, loaded, and it must have no problems
``… broken``                such a file that is meant to have problems
``console``                 not run: for the eye
==========================  ===========================================================================================

All blocks of a section, which is the text between two headings, share one fresh folder. The tutorials are
the exception: all blocks of one share a folder, from the first section to the last; test_tutorial.py runs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE_ONLY = {"index.md", "changes.md", "contributing.md", "conduct.md", "reporting.md"} | {
    "promises.md",
    "api.md",
    "api-integrations.md",
}
"""Pages for the site: they include other pages, or what docstrings say."""

PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in SITE_ONLY)]
RECIPES = sorted((ROOT / "src/llxprt_hooks/recipes/collection").glob("*/README.md"))
"""What each recipe says about itself, which the site adds to the page about recipes."""

WALKTHROUGHS = {ROOT / "docs" / "tutorial.md": "first-hook", ROOT / "docs" / "testing-hooks.md": "policy"} | {
    ROOT / "docs" / "day.md": "fleet"
}
"""Pages whose blocks are steps in one folder, and the name of that folder."""

_FENCE = re.compile(r"^(`{3,})(.*)$")
_HEADING = re.compile(r"^(#+) (.+)$")
_TABLE_ROW = re.compile(r"^\|(.*)\|$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def is_directive(self) -> bool:
        """Whether the block tells the builder of the site what to put here."""
        return self.language.startswith("{")

    @property
    def words(self) -> dict[str, str]:
        """The words after the language, ``file=x`` as a pair and a bare word with an empty value."""
        return {name: value for name, _, value in (word.partition("=") for word in self.info.split()[1:])}


@dataclass
class Section:
    """The text between one heading and the next."""

    page: Path
    title: str
    anchor: str
    blocks: list[Block] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.page.name}#{self.anchor}"


def sections(page: Path) -> list[Section]:
    """The sections of a page, the text above its first heading included."""
    found = [Section(page, "", "")]
    anchors: dict[str, int] = {}
    in_table = False
    paragraph = ""
    for line, block in _lines_and_blocks(page.read_text(encoding="utf-8")):
        section = found[-1]
        row = None if block else _TABLE_ROW.match(line)
        if block:
            section.blocks += [] if block.is_directive else [block]
        elif heading := _HEADING.match(line):
            found.append(Section(page, heading[2], _anchor(heading[2], anchors)))
        elif row:
            if not in_table:
                section.tables.append([])
            section.tables[-1].append(_cells(row[1]))
        in_table = row is not None
        if block or not line:
            section.links += _links(paragraph)
            paragraph = ""
        else:
            paragraph += f"{line}\n"
    found[-1].links += _links(paragraph)
    return found


def _links(paragraph: str) -> list[str]:
    """The targets of links, whose text may go on in the next line."""
    return _LINK.findall(_CODE.sub("", paragraph))


def every_section() -> list[Section]:
    """Of all pages with examples: the start page of the site has some of its own."""
    return [section for page in (*PAGES, ROOT / "docs" / "index.md", *RECIPES) for section in sections(page)]


def table(page: str, first_cell: str, *, anchor: str | None = None) -> list[dict[str, str]]:
    """The rows, by column, of the one table of a page, or of a section of it, whose header begins with a cell."""
    tables = [
        rows
        for section in sections(ROOT / page)
        for rows in section.tables
        if anchor in (None, section.anchor) and rows[0][0] == first_cell
    ]
    assert len(tables) == 1, f"{page} has {len(tables)} tables that begin with {first_cell!r}"
    header, _, *rows = tables[0]
    return [dict(zip(header, row, strict=True)) for row in rows]


def code(cell: str) -> list[str]:
    """The code spans of a table's cell."""
    return [span.strip() for _, span in re.findall(r"(`+)(.+?)\1", cell)]


def _lines_and_blocks(text: str) -> Iterator[tuple[str, Block | None]]:
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        fence = _FENCE.match(line)
        if not fence:
            yield line, None
            continue
        body = []
        for _, inner in lines:
            if inner == fence[1]:
                break
            body.append(inner)
        yield line, Block(fence[2], "".join(f"{each}\n" for each in body), number)


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def _anchor(title: str, seen: dict[str, int]) -> str:
    """As GitHub makes it."""
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    count = seen[anchor] = seen.get(anchor, -1) + 1
    return f"{anchor}-{count}" if count else anchor
