"""A terminal in which a program runs, and a user who reads and types."""

from __future__ import annotations

import codecs
import re
import select
import time
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Self

from tests.support import preloaded
from tests.support.display import Display
from tests.support.processes import DEADLINE

CTRL_C, CTRL_D, UP, ENTER, ALT_ENTER = "\x03", "\x04", "\x1b[A", "\r", "\x1b\r"

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78M])|[\r\x07]")


class Terminal:
    """A program in a pseudo-terminal; ``raw`` is all that it wrote."""

    def __init__(
        self, command: str, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], size: tuple[int, int]
    ) -> None:
        self.raw = ""
        self.display = Display(*size)
        self._seen = 0
        self._flashed = 0
        self._process, fd = preloaded.start_in_terminal([command, *arguments], cwd=cwd, env=env, size=size)
        self._terminal = FileIO(fd, "r+")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def pid(self) -> int:
        return self._process.pid

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
        self._terminal.write(keys.encode() if isinstance(keys, str) else keys)

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
        status = self._process.wait(DEADLINE)
        self._terminal.close()
        return status if status >= 0 else None

    def hang_up(self) -> None:
        """The terminal is closed."""
        self._terminal.close()
        self._process.wait(DEADLINE)

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
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return True
        try:
            read = self._terminal.read(65536)
        except OSError:  # on Linux, that is how a terminal ends
            read = b""
        data = self._decoder.decode(read)
        self.raw += data
        self.display.write(data)
        return read != b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
