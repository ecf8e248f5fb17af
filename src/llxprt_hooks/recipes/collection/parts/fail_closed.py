from __future__ import annotations

import collections.abc
import sys


def decide(
    check: collections.abc.Callable[[], str | None], message: str = "{}", unchecked: str = "this call cannot be checked"
) -> None:
    """Block the call if a check returns a reason. Exit code 2 blocks, whatever goes wrong on the way."""
    try:
        reason = check()
    except BaseException as error:
        reason = f"{unchecked} ({type(error).__name__})"
    if reason:
        sys.stderr.buffer.write(f"{message.format(reason)}\n".encode("utf-8", "backslashreplace"))
        sys.exit(2)
