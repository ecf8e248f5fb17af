"""The extras of integrations: a framework that is not installed is reported with the command that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llxprt_hooks.text import missing_extra


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Import a framework in this block: if a module is missing, the error says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = missing_extra("this integration", extra, error)
        raise ModuleNotFoundError(message, name=error.name, path=error.path) from error
