"""The lists of names hold what they should."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llxprt_hooks._support.text import closest
from llxprt_hooks.agent.tools import TOOLS
from llxprt_hooks.commands.validate import Rule
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.did_you_mean import meant_event
from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS, CLAUDE_TOOLS, KNOWN_TOOLS
from llxprt_hooks.settings.schema import GROUPS


def test_all_tools_of_the_agent_are_known() -> None:
    assert list(TOOLS) == list(KNOWN_TOOLS[: len(TOOLS)])
    assert len(set(KNOWN_TOOLS)) == len(KNOWN_TOOLS)


def test_what_claudes_tools_are_called_here_is_known() -> None:
    assert {ours for ours in CLAUDE_TOOLS.values() if ours} <= set(KNOWN_TOOLS)


def test_no_event_of_ours_is_taken_for_claudes() -> None:
    assert not CLAUDE_EVENTS.keys() & set(HookEventName)


def test_every_event_is_declared() -> None:
    assert set(GROUPS) == set(HookEventName)


def test_codes_are_distinct_and_reasons_are_sentences() -> None:
    assert len({rule.code for rule in Rule}) == len(Rule)
    assert all(rule.why.endswith(".") and not rule.why[0].islower() for rule in Rule)


def test_the_agent_and_its_sdk_are_not_imported() -> None:
    program = (
        "import sys, llxprt_hooks.cli.commands.validate, llxprt_hooks.commands.validate;"
        "print([name for name in sys.modules if name.startswith(('google', 'llxprt_hooks.agent'))])"
    )

    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert run.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("PreToolUse", "BeforeTool"),
        ("preToolUse", "BeforeTool"),
        ("PostToolUse", "AfterTool"),
        ("UserPromptSubmit", "BeforeAgent"),
        ("Stop", "AfterAgent"),
        ("PreCompact", "PreCompress"),
        ("SubagentStop", None),
        ("before_tool", "BeforeTool"),
        ("BEFORETOOL", "BeforeTool"),
        ("BeforeTools", "BeforeTool"),
        ("PostTool", "AfterTool"),
        ("BeforeLLM", "BeforeModel"),
        ("BeforeModelCall", "BeforeModel"),
        ("OnSessionStart", "SessionStart"),
        ("SessionStop", "SessionEnd"),
        ("SessionBegin", "SessionStart"),
        ("PreCompaction", "PreCompress"),
        ("Notifications", "Notification"),
        ("Whenever", None),
        ("", None),
    ],
)
def test_the_event_that_was_meant(name: str, event: str | None) -> None:
    assert meant_event(name) == event


def test_a_slip_is_recognised_and_a_stranger_is_not() -> None:
    assert closest("time_out", ["type", "timeout"]) == "timeout"
    assert closest("banana", ["type", "timeout"]) is None
