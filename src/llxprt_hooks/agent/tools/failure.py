"""A call that cannot be carried out, and how that is said."""

from __future__ import annotations

import errno
import os


class ToolFailure(Exception):
    """A tool cannot do what it was asked to; the message is a sentence for the model and the user."""


_SENTENCES = {
    errno.EACCES: "`{}` may not be accessed: permission denied.",
    errno.EEXIST: "`{}` exists already.",
    errno.EISDIR: "`{}` is a folder, not a file.",
    errno.ELOOP: "`{}` is a symbolic link that leads nowhere.",
    errno.ENAMETOOLONG: "`{}` is longer than the system allows.",
    errno.ENOENT: "`{}` does not exist.",
    errno.ENOSPC: "`{}` could not be written: there is no space left on the disk.",
    errno.ENOTDIR: "`{}` is not a folder, or lies below something that is not one.",
    errno.ENXIO: "`{}` is not a regular file.",
    errno.EPERM: "`{}` may not be accessed: permission denied.",
    errno.EROFS: "`{}` could not be written: the file system is read-only.",
}


def explained(error: OSError, name: str) -> ToolFailure:
    """What the system said about a file, as a sentence."""
    code = error.errno or 0
    return ToolFailure(_SENTENCES.get(code, "`{}` could not be used: " + f"{os.strerror(code)}.").format(name))
