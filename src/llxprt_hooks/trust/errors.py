"""What can go wrong with approvals."""

from __future__ import annotations


class ScriptsError(Exception):
    """The content of scripts cannot be determined. The message is for the user."""
