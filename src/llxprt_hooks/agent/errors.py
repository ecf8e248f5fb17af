"""What ends a run early, as a sentence for the user."""

from __future__ import annotations


class AgentError(Exception):
    """Something that the user has to mend: a missing key, an unreachable API, a malformed file."""
