"""Shut the program down."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from llxprt_hooks.process import watchdog
from llxprt_hooks.triggers.lifecycle import settle

if TYPE_CHECKING:
    from llxprt_hooks.agent.session import Session

SETTLE_TIMEOUT = 5.0
"""Seconds that background events get to finish at exit."""


async def leave(session: Session, status: int, finish: Callable[[], None] = lambda: None) -> None:
    """Wait for background events, then call ``finish``. Hooks that still run are left to finish by themselves."""
    try:
        left = await settle(session.config, SETTLE_TIMEOUT)
    finally:
        finish()
    if left:
        sys.stdout.flush()
        sys.stderr.flush()
        watchdog.leave_running()
        os._exit(status)  # a normal exit would cancel them
