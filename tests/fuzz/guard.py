"""How an example is run: many of them, none for ever."""

from __future__ import annotations

import faulthandler
import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

HANG = 60.0
"""Seconds after which an example counts as hanging; it takes milliseconds."""

CORPUS = Path(__file__).with_name("corpus")

last_words = 2
"""The descriptor of the terminal's stderr, past pytest's capture."""


class _Hang(BaseException):
    """Not an Exception, so that nothing that fails open can take it for a failure."""


def unhanged(test: Callable[..., None]) -> Callable[..., None]:
    """The test as it is, but one that hangs fails; one that does not even notice the signal ends the process."""

    @functools.wraps(test)
    def limited(*arguments: Any, **named: Any) -> None:
        faulthandler.dump_traceback_later(2 * HANG, exit=True, file=last_words)
        before = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, HANG)
        try:
            test(*arguments, **named)
        except _Hang as hang:
            raise AssertionError(f"it took more than {HANG:g} seconds") from hang
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            faulthandler.cancel_dump_traceback_later()

    return limited


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _Hang


def fuzz(examples: int, **strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on so many examples, or on as many as FUZZ_EXAMPLES says."""
    limits = settings(
        max_examples=int(os.environ.get("FUZZ_EXAMPLES", examples)),
        deadline=None,
        derandomize=False,
        print_blob=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return limits(given(**strategies)(unhanged(test)))

    return decorate


def corpus(target: str, *, every: int = 1) -> pytest.MarkDecorator:
    """Run a test on the content of each file that is kept for a target, or some; ``case`` is the file's name."""
    files = sorted((CORPUS / target).iterdir())[::every]
    assert files, f"there are no files for {target}"
    return pytest.mark.parametrize(
        ("case", "data"), [pytest.param(file.name, file.read_bytes(), id=file.name) for file in files]
    )
