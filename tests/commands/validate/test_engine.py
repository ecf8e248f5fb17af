"""Validation and engine agree: what is clean for one is whole for the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from llxprt_hooks.commands.validate import Severity
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import HookSet, read_definitions
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.matcher import compile_matcher
from llxprt_hooks.settings.other_agents import KNOWN_TOOLS

if TYPE_CHECKING:
    from tests.commands.validate.marks import DiagnosedProject

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "command", "true", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["hooks", "type", "a"]), inner),
    max_leaves=4,
)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is expected, and now and then anything."""
    return st.integers(0, 9).flatmap(lambda chance: JSON if chance == 0 else usual)


NATS = st.fixed_dictionaries(
    {"servers": mostly(st.lists(mostly(st.sampled_from(["nats://h", "http://h"])), max_size=2))},
    optional={"stream": mostly(st.sampled_from(["A", "a.b"])), "credentials": mostly(st.just("/c"))},
)
HOOK = st.fixed_dictionaries(
    {},
    optional={
        "type": mostly(st.sampled_from(["command", "command", "command", "Command", "plugin"])),
        "command": mostly(st.sampled_from(["true", "cat", " "])),
        "timeout": mostly(st.sampled_from([5000, 0, -1, 600])),
        "name": mostly(st.sampled_from(["a", "b"])),
        "failClosed": mostly(st.booleans()),
        "description": mostly(st.just("d")),
    },
)
GROUP = st.fixed_dictionaries(
    {"hooks": mostly(st.lists(mostly(HOOK), max_size=2))},
    optional={"matcher": mostly(st.sampled_from(["glob", "*", "[", "Bash"])), "sequential": mostly(st.booleans())},
)
HOOKS = st.dictionaries(
    st.sampled_from(["BeforeTool", "AfterModel", "SessionStart", "PreToolUse"]),
    mostly(st.lists(mostly(GROUP), max_size=2)),
    max_size=2,
)
SETTINGS = st.fixed_dictionaries(
    {"hooks": mostly(HOOKS)},
    optional={
        "enableHooks": mostly(st.booleans()),
        "tools": mostly(st.fixed_dictionaries({"enableHooks": mostly(st.booleans())})),
        "hooksConfig": mostly(
            st.fixed_dictionaries(
                {},
                optional={
                    "disabled": mostly(st.lists(mostly(st.just("a")), max_size=1)),
                    "environment": mostly(st.fixed_dictionaries({}, optional={"deny": mostly(st.just(["A*"]))})),
                    "audit": mostly(
                        st.fixed_dictionaries({"nats": mostly(NATS)}, optional={"payloads": mostly(st.booleans())})
                    ),
                },
            )
        ),
    },
)


@given(SETTINGS)
@hypothesis_settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
def test_there_is_an_error_for_everything_that_the_engine_discards(
    place: DiagnosedProject, settings: dict[str, Any]
) -> None:
    text = json.dumps(settings, indent=1)
    errors = [each for each in place.diagnose_text(text) if each.severity is Severity.ERROR]

    loaded = load_settings(place.root)
    discarded = [problem for source in loaded.sources for problem in read_definitions(HookSet(source.hooks))[1]]

    assert {problem.line for problem in loaded.problems} <= {error.line for error in errors}
    if discarded:
        assert errors, discarded


@pytest.mark.parametrize("tool", KNOWN_TOOLS)
def test_what_is_said_to_match_does_match(tool: str) -> None:
    assert compile_matcher(HookEventName.BEFORE_TOOL, f"^{tool}$")(tool)
