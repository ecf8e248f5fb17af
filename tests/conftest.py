"""What holds for all tests."""

import gc
import logging
import os
import signal
import sysconfig
from collections.abc import Generator, Iterator

import pytest

pytest_plugins = ["tests.support.engine", "tests.support.fixtures"]

# Workers that run tests in parallel inherit the size of a terminal, which programs under test would take for theirs.
# With PYTHONPATH no hook runs warm, and tests of warm hooks would wait forever.
for variable in ("COLUMNS", "LINES", "PYTHONPATH"):
    os.environ.pop(variable, None)

# Hooks say ``python3``. That is the one of this environment, and not a version manager's script, which starts slowly.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])

# ``nohup`` and a shell's ``&`` start pytest with SIGHUP, SIGINT or SIGQUIT ignored. Processes that tests start would
# inherit that. SIGPIPE and SIGXFSZ are ignored by Python itself, which restores them in its child processes.
for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All tests and what they import stay: no collection of garbage has to look through them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Commands that run in the test's own process quieten logging; the next test hears everything again."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
