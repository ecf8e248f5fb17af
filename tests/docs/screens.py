"""A screen of a page, compared with what was printed: paths, times and ids differ from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect

from tests.support.processes import DEADLINE

HOME = "/home/ada"
"""The reader's home directory, as the pages have it."""

VARYING = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "SESSION"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
    (r"(?m)^[0-9a-f]{8}  \d\d:\d\d:\d\d(?=  )", "ID AND TIME"),
    (r" \(warm\)", ""),  # in a log: the interpreter may be ready for the second call, or not yet
    (r"(?m)(?<=  )[0-9a-f]{8}( [0-9a-f]{8})*$", "IDS"),
    (r"(?m) +(?=p50 ms |p95 |max(?: ms)?$)", " "),
    (r"(?m) +\d+\.\d(?= ms$| ms  | ms, | +\d+\.\d|  █)", " DURATION"),
)
"""All that differs from one run to the next, besides folders; the page and the run are compared without it."""

TERMINAL = {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "1000", "LINES": "50"}
"""Without colours, and too wide for any line to be broken: where it is depends on the folder's name."""

QUESTION = "[y/N]: "
"""The reader's answer to a question is on the page's screen, after the question."""

LEFT_OUT = "…\n"
"""A line of a screen that stands for one line or more."""


def check_screen(screen: str, printed: str, *, folder: Path, home: Path) -> None:
    """Fail unless a screen shows what was printed. ``folder`` is in the reader's home directory on the page."""
    printed = printed.replace(str(folder), f"{HOME}/{folder.name}").replace(str(home), HOME)
    shown, printed = _constant(screen), _constant(printed)
    parts = re.split(f"(?m)^{LEFT_OUT}", shown)
    matches = re.fullmatch("(?:.*\n)+?".join(map(re.escape, parts)), printed)
    assert matches, f"the page has\n{shown}\nbut this was printed\n{printed}"


def typed(commands: str, replies: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> str:
    """What commands print on a terminal, replies to their questions included."""
    child = pexpect.spawn(
        "bash",
        ["-c", commands],
        cwd=str(folder),
        env={**environment, **TERMINAL},
        encoding="utf-8",
        timeout=DEADLINE,
    )
    printed = ""
    for reply in replies:
        child.expect_exact(QUESTION)
        printed += f"{child.before}{QUESTION}"
        child.sendline(reply)
    child.expect(pexpect.EOF)
    printed += child.before or ""
    child.close()
    printed = printed.replace("\r\n", "\n")
    assert child.exitstatus == 0, printed
    return printed


def _constant(text: str) -> str:
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text
