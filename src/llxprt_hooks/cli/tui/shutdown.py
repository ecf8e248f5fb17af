"""The end of the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from llxprt_hooks.triggers.lifecycle import settle

if TYPE_CHECKING:
    from llxprt_hooks.agent.session import Session

LAST_MOMENT = 5.0
"""Seconds that events nobody awaits are given at exit."""


async def leave(session: Session, status: int, last_words: Callable[[], None] = lambda: None) -> None:
    """Wait a last moment for events that nobody awaits; those still running then are left to finish by themselves."""
    try:
        left = await settle(session.config, LAST_MOMENT)
    finally:
        last_words()
    if left:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # an orderly exit would cancel them
