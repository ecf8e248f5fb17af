"""What tools say: failures, operating system errors, and numbers and untrusted text in their messages."""

from __future__ import annotations

import errno
import os

from llxprt_hooks._support.text import SPACES, escape_for_terminal, plural
from llxprt_hooks.core.calls.tool import ToolNotRun
from llxprt_hooks.core.protocol.tool_result import ToolResult


class ToolFailure(ToolNotRun):
    """A tool call failed. The message is a sentence for the model and the user."""


def failed(failure: ToolFailure) -> ToolResult:
    return ToolResult.failure(escape_name(str(failure)))


_SENTENCES = {
    errno.EACCES: "`{}` cannot be accessed: permission denied.",
    errno.EEXIST: "`{}` already exists.",
    errno.EISDIR: "`{}` is a folder, not a file.",
    errno.ELOOP: "`{}` is a symbolic link that cannot be followed.",
    errno.ENAMETOOLONG: "`{}` is longer than the operating system allows.",
    errno.ENOENT: "`{}` does not exist.",
    errno.ENOSPC: "`{}` could not be written: there is no space left on the disk.",
    errno.ENOTDIR: "`{}` is not a folder, or one of its parents is not.",
    errno.ENXIO: "`{}` is not a regular file.",
    errno.EPERM: "`{}` cannot be accessed: permission denied.",
    errno.EROFS: "`{}` could not be written: the file system is read-only.",
}


def explained(error: OSError, name: str) -> ToolFailure:
    """Convert an operating system error about a file to a `ToolFailure`."""
    code = error.errno or 0
    return ToolFailure(_SENTENCES.get(code, "`{}` could not be used: " + f"{os.strerror(code)}.").format(name))


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
