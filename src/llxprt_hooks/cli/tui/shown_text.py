"""Text of models, tools and hooks as a terminal may show it: harmless, and not too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from llxprt_hooks.protocol.json_codec import decode_text, write_json

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import ToolCall

_LONGEST_LINE = 500
_LONGEST_ARGUMENTS = 200

_COMMANDING: Mapping[int, str | None] = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"},
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))},
    ord("\r"): None,
}


def visible(text: str) -> str:
    r"""The text with all that could command the terminal, or change the order of what it shows, written out.

    >>> visible("\x1b]0;title\x07")
    '\\x1b]0;title\\x07'
    """
    return text.translate(_COMMANDING)


def excerpt(text: str, most_lines: int | None) -> str:
    """The text, made visible and cut to so many lines of bearable length; None is all of it."""
    whole = visible(text).rstrip()
    if most_lines is None:
        return whole
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in whole.split("\n")]
    more = len(lines) - most_lines
    return "\n".join(lines if more <= 0 else [*lines[:most_lines], f"… {more} more line{'s' if more > 1 else ''}"])


def call_words(call: ToolCall) -> str:
    """A call in a line: the tool's name and its arguments."""
    arguments = " ".join(f"{name}={decode_text(write_json(value))}" for name, value in call.args.items())
    cut = arguments if len(arguments) <= _LONGEST_ARGUMENTS else arguments[: _LONGEST_ARGUMENTS - 1] + "…"
    return visible(f"{call.name} {cut}")
