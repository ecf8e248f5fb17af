"""Escape and shorten text from models, tools and hooks for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import PROSE, escape_for_terminal, shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import ToolCall

_MAX_LINE_LENGTH = 500
_MAX_ARGUMENTS_LENGTH = 200
_MAX_NAME_LENGTH = 100


def excerpt(text: str, most_lines: int) -> str:
    """Escape a text and cut it to ``most_lines`` lines of limited length."""
    lines = [shorten(line, _MAX_LINE_LENGTH) for line in escape_for_terminal(text, keep=PROSE).rstrip().split("\n")]
    more = len(lines) - most_lines
    return "\n".join(lines if more <= 0 else [*lines[:most_lines], f"… {more} more line{'s' if more > 1 else ''}"])


def call_words(call: ToolCall) -> str:
    """Describe a call in one line: the tool's name and its arguments."""
    arguments = " ".join(f"{name}={decode_text(write_json(value))}" for name, value in call.args.items())
    return escape_for_terminal(f"{shorten(call.name, _MAX_NAME_LENGTH)} {shorten(arguments, _MAX_ARGUMENTS_LENGTH)}")
