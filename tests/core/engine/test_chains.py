"""Hooks in parallel, and hooks as a chain, in which each sees the changes of those before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import HookEventName, HookExecutionResult
from llxprt_hooks.core.engine.runner import HookRunner
from tests.support.hooks import EVENT_FIELDS, handler_of, hook, payload, says, seen
from tests.support.replies import group

BEFORE_TOOL = HookEventName.BEFORE_TOOL


async def chain(project: Path, event_name: HookEventName, *commands: str, **fields: Any) -> list[HookExecutionResult]:
    """Run hooks one after another."""
    hooks = [hook(command) for command in commands]
    return await HookRunner(working_dir=lambda: str(project)).execute_hooks_sequential(
        hooks, event_name, payload(event_name, project, **fields)
    )


def alone(name: str) -> str:
    """A command that fails while another of its kind is at work, and notes when it ran."""
    return f"mkdir at-work || exit 9; sleep 0.05; echo {name} >> order; rmdir at-work"


def meets(own: str, other: str) -> str:
    """A command that ends well only if the other one is at work at the same time."""
    return f"touch {own}; for i in $(seq 500); do [ -e {other} ] && exit 0; sleep 0.02; done; exit 9"


class TestSideBySide:
    @pytest.mark.requirement("HOOK-108")
    async def test_hooks_run_at_the_same_time(self, folder: Path) -> None:
        groups = [group(meets("a", "b"), meets("b", "c")), group(meets("c", "a"))]
        handler = await handler_of({"BeforeTool": groups}, folder)

        result = await handler.fire_before_tool_event("write_file", {})

        assert [run.success for run in result.results] == [True, True, True]

    @pytest.mark.requirement("HOOK-108")
    async def test_all_see_the_same_input_whatever_the_others_say(self, folder: Path) -> None:
        changed = {"hookSpecificOutput": {"tool_input": {"path": "changed"}}}
        hooks = [hook(says(changed, saw=f"saw-{index}")) for index in range(3)]
        sent = payload(BEFORE_TOOL, folder)

        await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(hooks, BEFORE_TOOL, sent)

        assert [seen(folder, f"saw-{index}") for index in range(3)] == [sent] * 3


class TestOneAfterAnother:
    @pytest.mark.requirement("HOOK-103", "HOOK-109")
    async def test_a_sequential_group_makes_all_hooks_of_the_event_run_one_at_a_time(self, folder: Path) -> None:
        groups = [group(alone("a"), alone("b")), group(alone("c"), sequential=True), group(alone("d"))]
        handler = await handler_of({"BeforeTool": groups}, folder)

        result = await handler.fire_before_tool_event("write_file", {})

        assert result.success
        assert (folder / "order").read_text().split() == ["a", "b", "c", "d"]


BLOCKS = {
    "exit code 2": "cat > /dev/null; echo no >&2; exit 2",
    "exit code 2, nothing said": "exit 2",
    "block": says({"decision": "block", "reason": "no"}),
    "deny": says({"decision": "deny"}),
}


class TestBlocking:
    @pytest.mark.requirement("HOOK-107")
    @pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
    @pytest.mark.parametrize("event_name", HookEventName)
    async def test_a_block_ends_the_chain_of_any_event(
        self, event_name: HookEventName, block: str, folder: Path
    ) -> None:
        """D-08: also for events that cannot be blocked."""
        results = await chain(folder, event_name, "touch before", block, "touch after", "touch after")

        assert len(results) == 2
        assert results[1].output is not None
        assert results[1].output.is_blocking_decision()
        assert [path.name for path in folder.iterdir()] == ["before"]

    @pytest.mark.requirement("HOOK-107")
    @pytest.mark.parametrize(
        "output",
        [
            {"decision": "allow"},
            {"decision": "approve"},
            {"decision": "ask"},
            {"decision": "blocked"},
            {"continue": False, "stopReason": "enough"},
            {"hookSpecificOutput": {"permissionDecision": "deny"}},
            {"reason": "block"},
        ],
    )
    async def test_nothing_but_a_top_level_block_ends_the_chain(self, output: dict[str, Any], folder: Path) -> None:
        results = await chain(folder, BEFORE_TOOL, says(output), "touch after")

        assert len(results) == 2
        assert (folder / "after").exists()

    @pytest.mark.requirement("HOOK-107", "HOOK-104")
    @pytest.mark.parametrize("failing", ["exit 1", "kill -KILL $$", "no-such-program", f"{BLOCKS['deny']}; exit 3"])
    async def test_a_failed_hook_does_not_end_the_chain(self, failing: str, folder: Path) -> None:
        results = await chain(folder, BEFORE_TOOL, failing, "touch after")

        assert [result.success for result in results] == [False, True]
        assert (folder / "after").exists()


class TestToolInput:
    @pytest.mark.requirement("HOOK-024", "HOOK-106", "HOOK-104", "HOOK-155")
    async def test_the_next_hook_sees_the_changed_arguments_merged_into_the_original_ones(self, folder: Path) -> None:
        change = {"hookSpecificOutput": {"tool_input": {"path": "safe", "mode": "w"}}}

        await chain(
            folder, BEFORE_TOOL, says(change, saw="one"), says({}, saw="two"), tool_input={"path": "a", "text": "t"}
        )

        assert seen(folder, "one")["tool_input"] == {"path": "a", "text": "t"}
        assert seen(folder, "two")["tool_input"] == {"path": "safe", "text": "t", "mode": "w"}
        unchanged = [name for name in seen(folder, "one") if name != "tool_input"]
        assert [seen(folder, "two")[name] for name in unchanged] == [seen(folder, "one")[name] for name in unchanged]

    @pytest.mark.requirement("HOOK-216")
    async def test_changes_add_up_along_the_chain_and_nested_objects_are_replaced(self, folder: Path) -> None:
        first = {"hookSpecificOutput": {"tool_input": {"a": 1, "options": {"x": 1, "y": 1}}}}
        second = {"hookSpecificOutput": {"tool_input": {"b": 2, "options": {"z": 2}}}}

        await chain(
            folder,
            BEFORE_TOOL,
            says(first),
            says(second, saw="two"),
            says({}, saw="three"),
            tool_input={"a": 0, "b": 0, "c": 0, "options": {"w": 0}},
        )

        assert seen(folder, "two")["tool_input"] == {"a": 1, "b": 0, "c": 0, "options": {"x": 1, "y": 1}}
        assert seen(folder, "three")["tool_input"] == {"a": 1, "b": 2, "c": 0, "options": {"z": 2}}

    @pytest.mark.requirement("HOOK-104", "HOOK-024")
    @pytest.mark.parametrize(
        "first",
        [
            "cat > /dev/null",
            "cat > /dev/null; echo plain text",
            says({"systemMessage": "hello"}),
            says({"hookSpecificOutput": {}}),
            says({"hookSpecificOutput": {"tool_input": {}}}),
            says({"hookSpecificOutput": {"tool_input": "no object"}}),
            says({"hookSpecificOutput": {"tool_input": {"path": "changed"}}}) + "; exit 1",
            says({"hookSpecificOutput": {"tool_input": {"path": "changed"}}}) + "; kill -TERM $$",
        ],
    )
    async def test_a_hook_that_fails_or_changes_nothing_leaves_the_input_as_it_was(
        self, first: str, folder: Path
    ) -> None:
        await chain(folder, BEFORE_TOOL, first, says({}, saw="two"))

        assert seen(folder, "two") == payload(BEFORE_TOOL, folder)

    @pytest.mark.requirement("HOOK-104")
    async def test_the_callers_own_payload_is_not_touched(self, folder: Path) -> None:
        sent = payload(BEFORE_TOOL, folder)
        change = {"hookSpecificOutput": {"tool_input": {"path": "safe", "options": {"x": 9}}}}

        await HookRunner(working_dir=lambda: str(folder)).execute_hooks_sequential(
            [hook(says(change)), hook("true")], BEFORE_TOOL, sent
        )

        assert sent == payload(BEFORE_TOOL, folder)


class TestModelRequest:
    @pytest.mark.requirement("HOOK-105", "HOOK-155", "HOOK-211")
    async def test_the_next_hook_sees_the_changed_request_by_top_level_field(self, folder: Path) -> None:
        messages = [{"role": "user", "content": "redacted"}]
        first = {"hookSpecificOutput": {"llm_request": {"config": {"temperature": 0}}}}
        second = {"hookSpecificOutput": {"llm_request": {"messages": messages}}}

        await chain(
            folder,
            HookEventName.BEFORE_MODEL,
            says(first, saw="one"),
            says(second, saw="two"),
            says({}, saw="three"),
        )

        original = EVENT_FIELDS[HookEventName.BEFORE_MODEL]["llm_request"]
        assert seen(folder, "one")["llm_request"] == original
        assert seen(folder, "two")["llm_request"] == {**original, "config": {"temperature": 0}}
        assert seen(folder, "three")["llm_request"] == {
            **original,
            "config": {"temperature": 0},
            "messages": messages,
        }


class TestPrompt:
    @pytest.mark.requirement("HOOK-211")
    async def test_additional_context_is_added_to_the_prompt_for_the_next_hook(self, folder: Path) -> None:
        context = {"hookSpecificOutput": {"additionalContext": "mind the tests"}}

        await chain(folder, HookEventName.BEFORE_AGENT, says(context), says(context, saw="two"), says({}, saw="three"))

        two, three = seen(folder, "two")["prompt"], seen(folder, "three")["prompt"]
        assert two.startswith("tidy up")
        assert two.endswith("mind the tests")
        assert three.startswith(two)
        assert three.count("mind the tests") == 2


EVERYTHING = {
    "decision": "allow",
    "systemMessage": "hello",
    "hookSpecificOutput": {
        "additionalContext": "more",
        "tool_input": {"path": "changed"},
        "tool_response": {"llmContent": "changed"},
        "llm_request": {"messages": []},
        "llm_response": {"text": "changed"},
        "toolConfig": {"mode": "NONE"},
        "prompt": "changed",
        "source": "changed",
    },
}
CHAINED = {HookEventName.BEFORE_TOOL, HookEventName.BEFORE_MODEL, HookEventName.BEFORE_AGENT}
UNCHAINED = [event_name for event_name in HookEventName if event_name not in CHAINED]


class TestEventsWithoutAChain:
    @pytest.mark.requirement("HOOK-211")
    @pytest.mark.parametrize("event_name", UNCHAINED)
    async def test_the_next_hook_sees_the_input_as_it_was(self, event_name: HookEventName, folder: Path) -> None:
        await chain(folder, event_name, says(EVERYTHING), says({}, saw="two"))

        assert seen(folder, "two") == payload(event_name, folder)
