"""Format numbers and untrusted text for messages."""

from __future__ import annotations

from llxprt_hooks.text import SPACES, escape_for_terminal, plural


def counted(number: int, noun: str, irregular: str = "") -> str:
    """
    >>> counted(1, "line"), counted(2, "line"), counted(1000, "match", "matches")
    ('1 line', '2 lines', '1,000 matches')
    """
    return f"{number:,} {plural(number, noun, irregular)}"


def escape_name(text: str) -> str:
    """Escape a file name or pattern for a message. Spaces of all kinds stay: the model has to repeat the name."""
    return escape_for_terminal(text, keep=SPACES)


def lines_of(text: str) -> int:
    """Count the lines of a text. The last line may lack a line ending."""
    ended = text.count("\n")
    return ended if not text or text.endswith("\n") else ended + 1


def size(number: int) -> str:
    """
    >>> size(512), size(64 * 1024), size(2_621_440)
    ('512 bytes', '64 KiB', '2.5 MiB')
    """
    for unit, bytes_of_unit in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if number >= bytes_of_unit:
            return f"{number / bytes_of_unit:.1f} {unit}".replace(".0 ", " ")
    return counted(number, "byte")
