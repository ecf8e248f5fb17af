"""Checks for programs that use llxprt-hooks, and for extensions of it.

``prove`` drives an agent with a scripted model, and shows which of its tool calls hooks guard. ``check_translator``
tests a translator against the common contract.
"""

from llxprt_hooks.testing.proof import CanaryError, Outcome, Scene, Verdict, prove
from llxprt_hooks.testing.translators import Sample, check_translator

__all__ = ["CanaryError", "Outcome", "Sample", "Scene", "Verdict", "check_translator", "prove"]
