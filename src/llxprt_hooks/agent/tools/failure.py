"""Tool failures, and messages for operating system errors."""

from __future__ import annotations

import errno
import os

from llxprt_hooks.agent.tools.wording import escape_name
from llxprt_hooks.protocol.tool_result import ToolResult


class ToolFailure(Exception):
    """A tool call failed. The message is a sentence for the model and the user."""


def failed(failure: ToolFailure) -> ToolResult:
    """Return a failure as the result of the call."""
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
