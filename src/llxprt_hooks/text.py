"""A stranger's text as a terminal may be shown it."""

from __future__ import annotations


def printable(text: str) -> str:
    """All of a text on one line, with nothing in it that a terminal would act on or that would hide the rest.

    >>> print(printable("true\\r\\x1b[2Krm -rf ~"))
    true\\r\\x1b[2Krm -rf ~
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
