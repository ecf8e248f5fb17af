"""What a user sees of what a program writes to a terminal: the window, and what was scrolled out of it."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\x1b\[([0-?]*)([@-~])|\x1b\]([^\x07\x1b]*)(?:\x07|\x1b\\)|([\r\n\b\x07])|([^\x00-\x1f\x7f-\x9f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*|\][^\x07\x1b]*)?$")

_WITHOUT_TRACE = "mhlnu"
"""Colours, modes such as the cursor's visibility, and questions to the terminal."""


class Display:
    """A terminal of so many rows and columns, as far as line-oriented programs use one; all else is an error."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = rows
        self.columns = columns
        self.lines = [""]
        self._row = 0
        self._column = 0
        self._rest = ""

    @property
    def text(self) -> str:
        """All lines, without the blanks at their ends."""
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def window(self) -> list[str]:
        return self.lines[-self.rows :]

    def write(self, data: str) -> None:
        data = self._rest + data
        unfinished = _UNFINISHED.search(data)
        self._rest = unfinished.group() if unfinished else ""
        data = data.removesuffix(self._rest)
        position = 0
        while position < len(data):
            token = _TOKEN.match(data, position)
            assert token, f"unknown to this terminal: {data[position : position + 20]!r}"
            parameters, command, title, control, text = token.groups()
            assert title is None, f"the terminal got a command: {title!r}"
            if command:
                self._obey(parameters, command)
            elif control:
                self._move(control)
            else:
                self._print(text)
            position = token.end()

    def _print(self, text: str) -> None:
        for character in text:
            if self._column == self.columns:
                self._column = 0
                self._line_feed()
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1

    def _move(self, control: str) -> None:
        if control == "\n":
            self._line_feed()
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)

    def _line_feed(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")

    def _obey(self, parameters: str, command: str) -> None:
        number = int(parameters) if parameters.isdigit() else 0
        line = self.lines[self._row]
        if command == "A":
            self._row = max(self._row - (number or 1), len(self.lines) - self.rows, 0)
        elif command == "B":
            self._row = min(self._row + (number or 1), len(self.lines) - 1)
        elif command == "C":
            self._column = min(self._column + (number or 1), self.columns - 1)
        elif command == "D":
            self._column = max(0, self._column - (number or 1))
        elif command == "K":
            self.lines[self._row] = "" if number == 2 else line[: self._column]
        elif command == "J":
            assert number == 0, "the screen was cleared"
            self.lines[self._row] = line[: self._column]
            self.lines[self._row + 1 :] = [""] * (len(self.lines) - self._row - 1)
        else:
            assert command in _WITHOUT_TRACE, f"unknown to this terminal: CSI {parameters} {command}"
