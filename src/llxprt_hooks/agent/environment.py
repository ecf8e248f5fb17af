"""The environment of what the agent starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.environment import AGENT_VARIABLE

if TYPE_CHECKING:
    from llxprt_hooks.config import Config

KEY_VARIABLES: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""The first one that is set is used, as in the SDK, which warns if both are set."""

_CREDENTIALS: Final = (*KEY_VARIABLES, "GOOGLE_APPLICATION_CREDENTIALS")


@contextmanager
def marked_as_agent() -> Iterator[None]:
    """Set ``LLXPRT_AGENT`` for everything this process starts: commands that approve hooks refuse to run there."""
    before = os.environ.get(AGENT_VARIABLE)
    os.environ[AGENT_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(AGENT_VARIABLE, None)
        else:
            os.environ[AGENT_VARIABLE] = before


def tool_environment(config: Config) -> dict[str, str]:
    """Return the environment of programs that tools start.

    It is what hooks inherit, without the agent's own credentials: what a program prints is sent to the model. A
    credential is inherited only if ``hooksConfig.environment.allow`` has its full name.
    """
    settings = config.settings
    named = {name for rule in settings.environment.rules for name in rule.allow} if settings else set()
    hidden = set(_CREDENTIALS) - named
    inherited = {name: value for name, value in config.inherited_environment().items() if name not in hidden}
    return {**inherited, AGENT_VARIABLE: "1"}
