"""Errors that end a run early. The message is for the user."""

from __future__ import annotations


class AgentError(Exception):
    """A problem that the user has to fix: a missing key, an unreachable API, a malformed file."""
