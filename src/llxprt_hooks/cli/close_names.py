"""What may have been meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to be put after "there is no such thing", or nothing.

    >>> did_you_mean("lits", ["list", "log"])
    ' Did you mean `list`?'
    """
    close = get_close_matches(name, list(known))
    return f" Did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else ""
