"""Advice on mistakes that leave a guard without effect, from one run of a hook.

It is logged once per hook and mistake. ``inspection.hints`` has the advice of ``llxprt-hooks fire``, which is longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from llxprt_hooks.engine.results import is_refusal
from llxprt_hooks.protocol.outputs import FIELDS, SPECIFIC_FIELDS

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

Adviser: TypeAlias = "Callable[[HookExecutionResult], str | None]"
"""Returns what to say about a run, as a sentence about the hook; None if it does not have this mistake."""

_READ: Final = 64 * 1024
"""Characters of a stream that are searched."""

_LIKE_A_DECISION: Final = re.compile(
    r"""["'](?:decision|permissionDecision|continue)\\?["']\s*:|\bpermissionDecision\s*:"""
)
_NOT_FOUND: Final = re.compile(
    r"""^[^\n]*?:[ ](?:line[ ])?\d+:[ ](?P<name>[^\n:]+):[ ](?:command[ ])?not[ ]found$  # bash, dash, busybox
      | :\d+:[ ]command[ ]not[ ]found:[ ](?P<zsh>[^\n]+)$""",
    re.MULTILINE | re.VERBOSE,
)
_PROGRAM: Final = re.compile(r"[a-z][a-z+._-]{0,19}[0-9]{0,3}")
"""A usual name of a program. Others are not shown: a script that runs a variable by mistake could log a secret."""


def fields_not_read(result: HookExecutionResult) -> str | None:
    """A misspelled or misplaced decision, or an answer without effect because of fields that are not known."""
    output = result.answer
    if output is None or result.error is not None:
        return None
    if output.unclear is not None:
        return None if output.unclear in output.problems else output.unclear
    if not output.unknown or not result.event_name.spec.can_block or _has_effect(output):
        return None
    names, verb = ", ".join(f"`{name}`" for name in output.unknown), "are" if len(output.unknown) > 1 else "is"
    return f"its answer has no effect: {names} {verb} not read; known fields: {', '.join(FIELDS)}"


def _has_effect(output: DefaultHookOutput) -> bool:
    given = output.to_dict().keys() - {"reason", "stopReason", "hookSpecificOutput"}
    return bool(given or SPECIFIC_FIELDS.keys() & (output.hook_specific_output or {}).keys())


def text_like_a_decision(result: HookExecutionResult) -> str | None:
    """A decision that cannot be read, because it is not one JSON object."""
    output = result.answer
    if output is None or not output.implied or not result.success:
        return None
    if _LIKE_A_DECISION.search((output.system_message or "")[:_READ]) is None:
        return None
    return (
        "it printed text that looks like a decision, but is not one JSON object: "
        "that is passed on as a message, and nothing is blocked"
    )


def ask_asks_nobody(result: HookExecutionResult) -> str | None:
    """The answer ``ask``."""
    output = result.answer
    if output is None or not result.event_name.spec.can_block or is_refusal(output):
        return None
    if "ask" not in (output.decision, (output.hook_specific_output or {}).get("permissionDecision")):
        return None
    return "`ask` asks nobody, and the call goes ahead; to block it, answer `deny`"


def program_not_found(result: HookExecutionResult) -> str | None:
    """A script that went on without a program that its shell did not find."""
    if not result.stderr or not result.success or is_refusal(result.answer):
        return None
    found = _NOT_FOUND.search(result.stderr[:_READ])
    if found is None:
        return None
    name = found["name"] or found["zsh"]
    program = f"the program `{name}`" if _PROGRAM.fullmatch(name) else "a program"
    fail_closed = "" if result.hook_config.fail_closed else ' and set "failClosed": true'
    return (
        f"it did not find {program} and went on without it, so a check may have been skipped: install it. "
        f"If that is intended, send its stderr to /dev/null; otherwise begin the script with `set -eu`{fail_closed}"
    )


ADVISERS: Final[Sequence[Adviser]] = (fields_not_read, text_like_a_decision, ask_asks_nobody, program_not_found)
