"""Text of models, tools and hooks as a terminal may show it: harmless, and not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import PROSE, escape_for_terminal, shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import ToolCall

_LONGEST_LINE = 500
_LONGEST_ARGUMENTS = 200


def excerpt(text: str, most_lines: int | None, *, keep: str = PROSE) -> str:
    """Escape a text and cut it to so many lines of limited length; None is all of it."""
    whole = escape_for_terminal(text, keep=keep).rstrip()
    if most_lines is None:
        return whole
    lines = [shorten(line, _LONGEST_LINE) for line in whole.split("\n")]
    more = len(lines) - most_lines
    return "\n".join(lines if more <= 0 else [*lines[:most_lines], f"… {more} more line{'s' if more > 1 else ''}"])


def call_words(call: ToolCall) -> str:
    """A call in a line: the tool's name and its arguments."""
    arguments = " ".join(f"{name}={decode_text(write_json(value))}" for name, value in call.args.items())
    return escape_for_terminal(f"{call.name} {shorten(arguments, _LONGEST_ARGUMENTS)}")
