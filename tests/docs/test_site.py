"""The site that is built from docs/: complete, and without a broken link."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click
import pytest

import llxprt_hooks
import llxprt_hooks.testing
from llxprt_hooks.cli.main import COMMANDS, cli
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.validate import Rule
from llxprt_hooks.events import EVENTS, HookEventName
from llxprt_hooks.integrations.unsupported import LIMITED, NOT_HONORED, UNSUPPORTED
from llxprt_hooks.settings.hook_fields import HOOKS_CONFIG
from llxprt_hooks.settings.schema import GROUPS, hook_shape, settings_executors, supported_types
from tests.docs.pages import PAGES, ROOT, SITE_ONLY

if TYPE_CHECKING:
    from tests.support.fixtures import Once


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
    """What a page of the site links to and has anchors for."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


def seen(page: Path) -> Seen:
    parser = Seen()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def site(once: Once) -> Path:
    def make(folder: Path) -> None:
        built = build(ROOT / "docs", folder / "site")
        assert built.returncode == 0, built.stderr

    return once("built", make) / "site"


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


def test_the_site_has_the_help_of_every_command(site: Path) -> None:
    page = (site / "commands.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        section = page.partition(f'<section id="{name}">')[2].partition("<section")[0]
        text = re.sub(r"[\s`#]", "", unescape(re.sub(r"<[^>]+>", "", section)))
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        spellings = {spelling for option in options for spelling in option.opts}
        assert spellings - set(re.findall(r"-[\w-]+", re.sub(r"<[^>]+>", "", section))) == set()
        for paragraph in (command.help or "").split("\n\n"):
            assert re.sub(r"[\s`#\b]", "", paragraph) in text, (name, paragraph)


def test_the_site_lists_every_command_and_exit_status(site: Path) -> None:
    shown = rows_of(site / "commands.html", "commands")
    listed = [f"{name} {does}" for name, does in COMMANDS.items()]
    listed += [f"{int(status)} {status.meaning}".replace("`", "") for status in ExitStatus]
    assert [each for each in listed if not any(row.endswith(each) for row in shown)] == []


def rows_of(page: Path, section: str) -> list[str]:
    """The text of each row of the tables in a section, and of those in its subsections."""
    text = page.read_text(encoding="utf-8").partition(f'<section id="{section}">')[2]
    rows = re.findall(r"(?s)<tr.+?</tr>", text)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", row)).split()) for row in rows]


def test_the_site_has_everything_that_validate_finds(site: Path) -> None:
    expected = [f"{rule.code} {rule.severity.value} {rule.example} {rule.why}".replace("`", "") for rule in Rule]
    assert [row for row in expected if row not in rows_of(site / "validate.html", "what-is-found")] == []


def test_the_site_has_every_event_with_its_fields(site: Path) -> None:
    shown = rows_of(site / "protocol.html", "what-arrives-on-stdin")
    for event, spec in EVENTS.items():
        [row] = [row for row in shown if row.startswith(f"{event} {spec.description} ")]
        assert [name for name in spec.fields if f"{name} " not in row] == []


def test_the_site_has_every_field_of_settings_with_its_meaning(site: Path) -> None:
    shown = rows_of(site / "settings.html", "hook-groups-and-hooks")
    declared = [GROUPS[HookEventName.BEFORE_TOOL].fields, hook_shape("command").fields, HOOKS_CONFIG.fields]
    declared += [executor.fields or {} for name, executor in settings_executors().items() if name in supported_types()]
    for name, declaration in (each for fields in declared for each in fields.items()):
        meaning = declaration.description.replace("`", "")
        assert [row for row in shown if row.startswith(f"{name} ") and meaning in row], name


def test_the_reference_has_every_public_name(site: Path, html: dict[Path, Seen]) -> None:
    expected = {f"llxprt_hooks.{name}" for name in llxprt_hooks.__all__}
    expected |= {f"llxprt_hooks.testing.{name}" for name in llxprt_hooks.testing.__all__}
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


def test_the_site_has_what_hooks_cannot_do_in_an_integration(site: Path) -> None:
    shown = unescape(re.sub(r"<[^>]+>", "", (site / "integrations.html").read_text(encoding="utf-8")))
    tables = [*UNSUPPORTED.values(), *LIMITED.values(), *NOT_HONORED.values()]
    reasons = {reason.replace("`", "") for events in tables for reason in events.values()}
    assert [reason for reason in reasons if reason not in shown] == []


def test_the_picture_of_an_event_is_what_its_script_draws(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "docs" / "pictures" / "draw_event.py", tmp_path)
    subprocess.run([sys.executable, script], check=True, timeout=300)
    assert (tmp_path / "event.svg").read_bytes() == (ROOT / "docs" / "pictures" / "event.svg").read_bytes()
