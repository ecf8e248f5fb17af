"""Local logging (nothing leaves the machine), enabled with ``DEBUG=llxprt:core:hooks:*``.

Each part of the engine logs under its own namespace with the standard library's ``logging``. All loggers have one
parent, ``llxprt_hooks``: a program sets its level, handlers, ``propagate`` or ``disabled`` to control them together.
The ``DEBUG`` variable works as in Node's ``debug`` package: patterns separated by commas or spaces, ``*`` as a
wildcard, a leading ``-`` to exclude.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase

from llxprt_hooks._support.text import PROSE, escape_for_terminal

ROOT = "llxprt:core:hooks"
PARENT = logging.getLogger("llxprt_hooks")

_loggers: dict[str, logging.Logger] = {}
_stderr_handler: logging.Handler | None = None
_only_errors: ContextVar[bool] = ContextVar("_only_errors", default=False)


class GuardedLogger(logging.Logger):
    """The engine's logger: passes records to a logger of the same name, which a program may configure.

    The engine does not use that logger itself, because a handler that raises would undo what a hook decided (HOOK-111).
    """

    def __init__(self, target: logging.Logger) -> None:
        super().__init__(target.name)
        self.parent = self._target = target

    def isEnabledFor(self, level: int) -> bool:  # the standard library's name
        """Whether a record would be handled; unlike in the standard library, a disabled parent disables it too."""
        if PARENT.disabled or not self._target.isEnabledFor(level):
            return False
        is_chosen = self._target.level or PARENT.level  # by ``DEBUG``, or by the program
        return level >= logging.ERROR or bool(is_chosen) or not _only_errors.get()

    def handle(self, record: logging.LogRecord) -> None:
        try:
            if not self._target.hasHandlers():  # the standard library then prints nothing but the message
                record.msg, record.args = f"llxprt-hooks: {_escaped(record.getMessage())}", None
            self._target.handle(record)
        except Exception:
            _handler().handleError(record)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Let the engine log only errors inside the block, in this task or thread: the caller shows the warnings itself.

    Levels that ``DEBUG`` or the program has set for the engine's loggers still apply.
    """
    token = _only_errors.set(True)
    try:
        yield
    finally:
        _only_errors.reset(token)


def debug_logger(part: str) -> logging.Logger:
    """Return the logger of one part of the engine, for example ``debug_logger("runner")``."""
    logger = logging.getLogger(f"{ROOT}:{part}")
    if logger.name not in _loggers:
        logger.parent = PARENT  # names with colons have no hierarchy of their own
        _loggers[logger.name] = logger
    _switch(logger, os.environ.get("DEBUG", ""))
    return GuardedLogger(logger)


def apply_debug_variable() -> None:
    """Read ``DEBUG`` again and enable or disable every logger of the engine accordingly."""
    patterns = os.environ.get("DEBUG", "")
    for logger in _loggers.values():
        _switch(logger, patterns)


def selects(patterns: str, namespace: str) -> bool:
    """Whether a ``DEBUG`` value selects a namespace.

    >>> selects("llxprt:core:*,-llxprt:core:hooks:bus", "llxprt:core:hooks:runner")
    True
    """
    chosen = False
    for pattern in re.split(r"[\s,]+", patterns):
        if pattern.startswith("-") and fnmatchcase(namespace, pattern[1:]):
            return False
        chosen = chosen or (pattern != "" and fnmatchcase(namespace, pattern))
    return chosen


def _switch(logger: logging.Logger, patterns: str) -> None:
    if selects(patterns, logger.name):
        logger.setLevel(logging.DEBUG)
        if _handler() not in logger.handlers:
            logger.addHandler(_handler())
    elif _stderr_handler is not None and _stderr_handler in logger.handlers:
        logger.removeHandler(_stderr_handler)
        logger.setLevel(logging.NOTSET)


class _StderrHandler(logging.Handler):
    """Writes to the current ``sys.stderr``, also after a program replaced it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(_escaped(self.format(record)), file=sys.stderr)
        except Exception:  # the standard library reports a record that cannot be written the same way
            self.handleError(record)


def _escaped(text: str) -> str:
    """A hook's words must not control a terminal (D-33)."""
    return escape_for_terminal(text, keep=PROSE)


def is_printed(record: logging.LogRecord) -> bool:
    """Whether ``DEBUG`` selects a record, so that it is on stderr already."""
    logger = _loggers.get(record.name)
    return logger is not None and _stderr_handler in logger.handlers


def _handler() -> logging.Handler:
    global _stderr_handler
    if _stderr_handler is None:
        _stderr_handler = _StderrHandler()
        _stderr_handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    return _stderr_handler
