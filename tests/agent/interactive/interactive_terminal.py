"""A terminal in which the installed command runs, and a user who reads and types."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pexpect

from tests.agent.interactive.interactive_display import Display

COMMAND = Path(sys.executable).with_name("llxprt-hooks")

DEADLINE = 40.0
"""Seconds after which something counts as hanging."""

CTRL_C, CTRL_D, UP, ENTER, ALT_ENTER = "\x03", "\x04", "\x1b[A", "\r", "\x1b\r"

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78M])|[\r\x07]")


class Project:
    """A folder with hooks, a home beside it, and recorded answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.home = folder / "home"
        (self.root / ".llxprt").mkdir(parents=True)
        self.home.mkdir()
        self._hooks: dict[str, list[dict[str, Any]]] = {}

    def hook(self, event: str, name: str, script: str, *, matcher: str = "") -> None:
        """Add a hook: a shell script that has its input on stdin."""
        config = {"type": "command", "name": name, "command": script}
        self._hooks.setdefault(event, []).append({"matcher": matcher, "hooks": [config]})
        settings = {"enableHooks": True, "hooks": self._hooks}
        (self.root / ".llxprt" / "settings.json").write_text(json.dumps(settings))

    def saying_hook(self, event: str, name: str, said: Mapping[str, Any], *, matcher: str = "") -> None:
        """Add a hook that says the same whatever it is given."""
        self.hook(event, name, f"cat > /dev/null; printf %s {shlex.quote(json.dumps(said))}", matcher=matcher)

    def noting_hook(self, event: str) -> None:
        """Add a hook that keeps what it is given."""
        self.hook(event, f"note-{event}", f"cat >> {shlex.quote(str(self.folder / event))}")

    def noted(self, event: str, field: str) -> list[Any]:
        """What the noting hook of an event was given, as far as one field goes."""
        file = self.folder / event
        decoder, text, found = json.JSONDecoder(), file.read_text() if file.exists() else "", []
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value[field])
            text = text[end:].lstrip()
        return found

    def session(self, *answers: Any, arguments: Sequence[str] = (), size: tuple[int, int] = (30, 100), **env: str):
        """An interactive session whose model gives these answers."""
        replay = self.folder / "answers.jsonl"
        lines = [json.dumps({"method": "generateContentStream", "response": answer}) + "\n" for answer in answers]
        replay.write_text("".join(lines))
        return Terminal(self, ["run", "--replay", str(replay), *arguments], size, env)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(self.folder / "no-such-file"),
            "LLXPRT_TRUST_PROJECT_HOOKS": "1",
        }


def answer(*pieces: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer in chunks: texts, and calls of tools."""
    chunks = [
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": piece} if isinstance(piece, str) else piece]}}
            ]
        }
        for piece in pieces
    ]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return chunks


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": tool, "args": args}}


class Terminal:
    """The command in a pseudo-terminal; ``raw`` is all that it wrote."""

    def __init__(
        self, project: Project, arguments: Sequence[str], size: tuple[int, int], environment: Mapping[str, str]
    ) -> None:
        self.raw = ""
        self.display = Display(*size)
        self._seen = 0
        self._flashed = 0
        self._child = pexpect.spawn(
            str(COMMAND),
            list(arguments),
            cwd=str(project.root),
            env={**project.environment(), **environment},
            dimensions=size,
            encoding="utf-8",
            codec_errors="replace",
            timeout=DEADLINE,
        )
        self._child.delaybeforesend = None

    @property
    def pid(self) -> int:
        pid: int = self._child.pid
        return pid

    def see(self, *texts: str) -> str:
        """Wait for texts to appear, one after another, below what was seen before; all that came up to the last."""
        begin = self._seen
        for text in texts:
            found = self._wait_for(lambda: self.display.text, text, self._seen)
            self._seen = found + len(text)
        return self.display.text[begin : self._seen]

    def see_flash(self, text: str) -> None:
        """Wait for a text that may not stay."""
        self._flashed = self._wait_for(lambda: _SEQUENCE.sub("", self.raw), text, self._flashed)

    def see_prompt(self) -> str:
        """Wait for an empty prompt; all that came up to it."""
        begin = self._seen
        give_up = time.monotonic() + DEADLINE
        while not self.display.text[begin:].rstrip("\n").endswith("\n>"):
            self._read_on(give_up, "the prompt")
        self._seen = len(self.display.text.rstrip("\n"))
        return self.display.text[begin : self._seen]

    def type(self, keys: str | bytes) -> None:
        os.write(self._child.child_fd, keys.encode() if isinstance(keys, str) else keys)

    def enter(self, line: str) -> None:
        self.type(line + ENTER)

    def ask(self, line: str) -> str:
        """Enter a line, and wait for the next prompt; all that came in between."""
        self.enter(line)
        self.see(line.strip())
        return self.see_prompt()

    def status(self) -> int | None:
        """Wait for the end; the exit status."""
        give_up = time.monotonic() + DEADLINE
        while self._read():
            assert time.monotonic() < give_up, f"it does not end: {self.display.text!r}"
        self._child.wait()
        self._child.close()
        status: int | None = self._child.exitstatus
        return status

    def hang_up(self) -> None:
        """The terminal is closed."""
        self._child.ptyproc.fileobj.close()
        self._child.ptyproc.closed = True
        self._child.wait()

    def _wait_for(self, shown: Callable[[], str], text: str, begin: int) -> int:
        give_up = time.monotonic() + DEADLINE
        while (found := shown().find(text, begin)) < 0:
            self._read_on(give_up, repr(text))
        return found

    def _read_on(self, give_up: float, what: str) -> None:
        goes_on = self._read()
        assert goes_on, f"it ended without {what}:\n{self.display.text}"
        assert time.monotonic() < give_up, f"{what} did not come:\n{self.display.text}"

    def _read(self) -> bool:
        """Read on for a moment; false at the end."""
        try:
            data = self._child.read_nonblocking(65536, timeout=0.1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self.display.write(data)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close(force=True)


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)


def pids_in(file: Path, count: int) -> list[int]:
    """The process ids that a script has written down; waits for them."""
    until(lambda: file.exists() and len(file.read_text().split()) == count)
    return [int(pid) for pid in file.read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] not in ("", "Z")
