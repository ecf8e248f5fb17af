"""Hooks in pydantic-ai: real agents with a scripted model; hooks are functions and scripts."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel, SecretStr
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, ModelRetry, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage, UsageLimits

from llxprt_hooks import Config, HookEventName, allow, context, deny, rewrite, stop
from llxprt_hooks.engine.session import current_session
from llxprt_hooks.integrations.pydantic_ai import HookedToolset, HooksCapability, HookStopped, _HookedModel
from tests.support.api_server import ANSWERS, APIServer
from tests.support.api_server import Reply as APIReply

Reply = str | list[ToolCallPart]


class Script:
    """A model that answers with these replies, one after the other, and keeps what it was sent."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(self.answer, stream_function=self.stream)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(messages)
        self.infos.append(info)
        reply = self.replies.pop(0)
        return ModelResponse(parts=[TextPart(reply)] if isinstance(reply, str) else list(reply))

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        response = self.answer(messages, info)
        for part in response.parts:
            assert isinstance(part, TextPart)
            for word in part.content.split(" "):
                yield word + " "

    def results(self, number: int = -1) -> list[Any]:
        """What the model was told about its calls."""
        return [p.content for m in self.requests[number] for p in m.parts if isinstance(p, ToolReturnPart)]

    def texts(self, number: int = -1) -> list[str]:
        return [
            part.content
            for message in self.requests[number]
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, (UserPromptPart, SystemPromptPart)) and isinstance(part.content, str)
        ]


def call(name: str = "write_file", **args: Any) -> list[ToolCallPart]:
    return [ToolCallPart(name, {"path": "a.txt"} if name == "write_file" and not args else args)]


class World:
    """An agent with one tool, its capability, and what ran."""

    def __init__(self, *replies: Reply, output_type: Any = str, **options: Any) -> None:
        self.script = Script(*replies)
        self.capability = HooksCapability(enable_hooks=True, **options)
        self.on = self.capability.hooks.on
        self.agent: Agent[None, Any] = Agent(
            self.script.model, output_type=output_type, capabilities=[self.capability], retries=0
        )
        self.runs: list[dict[str, Any]] = []

        @self.agent.tool_plain
        def write_file(path: str, day: datetime.date = datetime.date(2026, 1, 1)) -> str:
            self.runs.append({"path": path, "day": day})
            return f"wrote {path}"

    def payloads(self, event: str, answer: Callable[[dict[str, Any]], Any] = lambda payload: None) -> list[Any]:
        """Register a hook that answers, and return the list of what it will see."""
        seen: list[Any] = []

        def hook(payload: dict[str, Any]) -> Any:
            seen.append(payload)
            return answer(payload)

        self.on(event, hook)
        return seen

    async def run(self, prompt: str = "Go", **options: Any) -> Any:
        result = await self.agent.run(prompt, **options)
        assert await self.capability.hooks.settle() == 0
        return result


# Tools.


async def test_a_blocked_tool_does_not_run_and_the_model_gets_the_reason() -> None:
    world = World(call(), "ok")
    world.on("BeforeTool", lambda payload: deny("not here"))
    result = await world.run()
    assert (result.output, world.runs, world.script.results()) == ("ok", [], ["not here"])


async def test_blocks_spend_no_retries() -> None:
    world = World(call(), call(), call(), "ok")
    world.on("BeforeTool", lambda payload: deny("not here"))
    assert (await world.run()).output == "ok"


async def test_rewritten_arguments_are_validated_again() -> None:
    world = World(call(path="a", day="2026-02-03"), "ok")
    seen = world.payloads("BeforeTool", lambda payload: rewrite(path="b", day="2026-04-05"))
    await world.run()
    assert seen[0]["tool_input"] == {"path": "a", "day": "2026-02-03"}
    assert world.runs == [{"path": "b", "day": datetime.date(2026, 4, 5)}]


async def test_rewritten_arguments_that_the_tool_does_not_accept_do_not_run() -> None:
    world = World(call(), "ok")
    world.on("BeforeTool", lambda payload: rewrite(day="soon"))
    await world.run()
    assert world.runs == []
    assert "not valid" in world.script.results()[0]


async def test_context_is_appended_to_a_text() -> None:
    world = World(call(), "ok")
    world.on("BeforeTool", lambda payload: {"systemMessage": "be careful"})
    after = world.payloads("AfterTool", lambda payload: context("2 lines"))
    await world.run()
    assert world.script.results() == ["wrote a.txt\n\n2 lines\n\n[System] be careful"]
    assert after[0]["tool_response"]["llmContent"] == "wrote a.txt"


async def test_another_value_keeps_its_type_and_the_text_follows() -> None:
    world = World(call("count"), "ok")

    @world.agent.tool_plain
    def count() -> dict[str, int]:
        return {"files": 3}

    world.on("AfterTool", lambda payload: context("that is few"))
    await world.run()
    assert world.script.results() == [{"files": 3}]
    assert "that is few" in str(world.script.requests[-1][-1].parts[-1])


async def test_what_a_tool_returned_with_content_and_metadata_is_kept() -> None:
    world = World(call("look"), "ok")

    @world.agent.tool_plain
    def look() -> ToolReturn:
        return ToolReturn("seen", content=["a picture"], metadata={"own": 1})

    world.on("AfterTool", lambda payload: {"suppressOutput": True, "systemMessage": "note"})
    result = await world.run()
    part = next(p for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart))
    assert part.content == "seen\n\n[System] note"
    assert part.metadata == {"own": 1, "llxprt_hooks": {"suppress_output": True}}
    assert "a picture" in str(world.script.requests[-1])


async def test_exceptions_of_a_tool_pass_and_fire_no_after_tool() -> None:
    world = World(call("fail"), "ok")

    @world.agent.tool_plain(retries=1)
    def fail() -> str:
        raise ModelRetry("again")

    seen = world.payloads("AfterTool")
    await world.run()
    assert seen == []


async def test_parallel_calls_each_have_their_hooks() -> None:
    world = World([*call(path="a"), *call(path="secret"), *call(path="c")], "ok")
    world.on("BeforeTool", lambda payload: deny("no") if payload["tool_input"]["path"] == "secret" else allow())
    await world.run()
    assert sorted(run["path"] for run in world.runs) == ["a", "c"]
    assert sorted(world.script.results()) == ["no", "wrote a", "wrote c"]


async def test_a_stop_of_a_tool_hook_ends_the_run_with_its_reason() -> None:
    world = World(call())
    world.on("BeforeTool", lambda payload: stop("enough"))
    result = await world.run()
    assert (result.output, world.runs, len(world.script.requests)) == ("enough", [], 1)
    assert result.response.metadata["llxprt_hooks"]["stop_reason"] == "enough"


async def test_a_stop_ends_one_run_and_not_the_conversation() -> None:
    world = World(call(), "again")
    world.on("BeforeTool", lambda payload: stop("enough"))
    first = await world.run()
    second = await world.run(message_history=first.all_messages())
    assert second.output == "again"


async def test_a_stop_of_a_run_with_structured_output_raises() -> None:
    class Answer(BaseModel):
        number: int

    world = World(call(), output_type=Answer)
    world.on("BeforeTool", lambda payload: stop("enough"))
    with pytest.raises(HookStopped, match="enough"):
        await world.run()


async def test_output_tools_fire_no_event() -> None:
    class Answer(BaseModel):
        number: int

    world = World([ToolCallPart("final_result", {"number": 1})], output_type=Answer)
    seen = world.payloads("BeforeTool")
    assert (await world.run()).output == Answer(number=1)
    assert seen == []


async def test_hooks_see_a_tool_under_its_alias() -> None:
    world = World(call(), "ok", aliases={"write_file": "edit"})
    seen = world.payloads("BeforeTool")
    await world.run()
    assert seen[0]["tool_name"] == "edit"


async def test_a_real_script_from_settings_blocks(tmp_path: Path) -> None:
    script = tmp_path / "guard.sh"
    script.write_text("#!/bin/sh\ngrep -q a.txt && { echo 'a.txt is protected' >&2; exit 2; }\nexit 0\n")
    script.chmod(0o755)
    group = {"matcher": "write_.*", "hooks": [{"type": "command", "command": str(script)}]}
    config = Config(working_dir=tmp_path, enable_hooks=True, hooks={"BeforeTool": [group]})
    told = Script(call(), call(path="b.txt"), "ok")
    agent = Agent(told.model, capabilities=[HooksCapability(config)])
    runs: list[str] = []

    @agent.tool_plain
    def write_file(path: str) -> str:
        runs.append(path)
        return "done"

    await agent.run("Go")
    assert (runs, told.results()) == (["b.txt"], ["a.txt is protected", "done"])


@pytest.mark.usefixtures("own_loop")
def test_run_sync_has_the_same_hooks() -> None:
    world = World(call(), "ok")
    world.on("BeforeTool", lambda payload: deny("not here"))
    assert world.agent.run_sync("Go").output == "ok"
    assert world.runs == []


async def test_a_toolset_can_be_hooked_by_itself() -> None:
    runs: list[str] = []

    def remove(path: str) -> str:
        runs.append(path)
        return "removed"

    capability = HooksCapability(enable_hooks=True)
    capability.hooks.on("BeforeTool", lambda payload: deny("kept"))
    told = Script(call("remove", path="x"), "ok")
    agent = Agent(told.model, toolsets=[HookedToolset(FunctionToolset([remove]), capability.hooks)])
    await agent.run("Go")
    assert (runs, told.results()) == ([], ["kept"])


# Models.


async def test_a_blocked_request_is_answered_with_the_reason() -> None:
    world = World()
    world.on("BeforeModel", lambda payload: deny("over budget"))
    result = await world.run()
    assert (result.output, world.script.requests) == ("over budget", [])
    assert result.response.metadata["llxprt_hooks"]["blocked"] is True


async def test_a_hook_answers_in_place_of_the_model() -> None:
    world = World()
    answer = {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "cached"}}}
    world.on("BeforeModel", lambda payload: answer)
    assert (await world.run()).output == "cached"


async def test_changed_messages_and_settings_are_sent_and_the_history_keeps_what_was_said() -> None:
    world = World("ok")
    change = {"llm_request": {"messages": [{"role": "user", "content": "[hidden]"}], "config": {"temperature": 0.25}}}
    seen = world.payloads("BeforeModel", lambda payload: {"hookSpecificOutput": change})
    result = await world.run("my key is 123")
    assert seen[0]["llm_request"]["messages"] == [{"role": "user", "content": "my key is 123"}]
    assert world.script.texts() == ["[hidden]"]
    assert world.script.infos[0].model_settings == {"temperature": 0.25}
    first = result.all_messages()[0].parts[0]
    assert isinstance(first, UserPromptPart)
    assert first.content == "my key is 123"


async def test_the_system_prompt_is_not_shown() -> None:
    world = World("ok")
    agent: Agent[None, str] = Agent(
        world.script.model, instructions="secret rule", system_prompt="old rule", capabilities=[world.capability]
    )
    seen = world.payloads("BeforeModel")
    await agent.run("Hi")
    assert "rule" not in json.dumps(seen)


async def test_a_changed_model_is_resolved() -> None:
    other = TestModel(custom_output_text="from the other", call_tools=[])
    world = World(resolve_model=lambda name: {"other": other}[name])
    world.on("BeforeModel", lambda payload: {"hookSpecificOutput": {"llm_request": {"model": "other"}}})
    assert (await world.run()).output == "from the other"


async def test_a_model_that_does_not_exist_is_dropped_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = World("ok")
    change = {"model": "nowhere:x", "messages": [{"role": "user", "content": "[hidden]"}]}
    world.on("BeforeModel", lambda payload: {"hookSpecificOutput": {"llm_request": change}})
    assert (await world.run("secret")).output == "ok"
    assert world.script.texts() == ["[hidden]"]
    assert "nowhere:x" in caplog.text


async def test_an_answer_is_replaced_and_its_calls_do_not_run() -> None:
    world = World([TextPart("the key is hunter2"), *call()])  # type: ignore[list-item]
    world.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": "[redacted]"}}})
    result = await world.run()
    assert (result.output, world.runs) == ("[redacted]", [])
    assert "hunter2" not in str(result.all_messages())


async def test_a_message_after_the_model_goes_into_the_next_request() -> None:
    world = World("one", "two")
    world.on("AfterModel", lambda payload: {"systemMessage": "be brief"} if world.script.replies else None)
    first = await world.run(conversation_id="c1")
    await world.run(message_history=first.all_messages(), conversation_id="c1")
    assert (world.script.texts(0), world.script.texts(1)[-1]) == (["Go"], "be brief")


async def test_nothing_is_streamed_before_the_hook_has_seen_the_answer() -> None:
    world = World("the key is 123")
    world.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": "[redacted]"}}})
    async with world.agent.run_stream("Go") as result:
        shown = [text async for text in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(shown) == "[redacted]"


async def test_without_a_change_a_held_back_stream_has_the_same_pieces() -> None:
    pieces: list[list[str]] = []
    for hook in (False, True):
        world = World("one two three")
        if hook:
            world.payloads("AfterModel")
        else:
            world.payloads("BeforeModel")
        async with world.agent.run_stream("Go") as result:
            pieces.append([text async for text in result.stream_text(delta=True, debounce_by=None)])
    assert pieces[0] == pieces[1] == ["one ", "two ", "three "]


# Tool selection.


async def test_no_tool_may_be_called() -> None:
    world = World(call(), "ok")
    world.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}})
    await world.run()
    assert world.script.infos[0].model_settings == {"tool_choice": "none"}
    assert world.runs == []
    assert "may not be called now" in world.script.results()[0]


async def test_only_named_tools_may_be_called() -> None:
    world = World([*call("read_file", path="x"), *call()], "ok")

    @world.agent.tool_plain
    def read_file(path: str) -> str:
        return f"text of {path}"

    allowed = {"mode": "AUTO", "allowedFunctionNames": ["read_file", "unknown_tool"]}
    world.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": allowed}})
    seen = world.payloads("BeforeTool")
    await world.run()
    assert world.script.infos[0].model_settings == {"tool_choice": ToolOrOutput(["read_file"])}
    assert world.runs == []
    assert [payload["tool_name"] for payload in seen] == ["read_file"]


async def test_a_call_outside_the_restriction_asks_nobody() -> None:
    told = Script(call("erase", path="x"), "ok")
    capability = HooksCapability(enable_hooks=True)
    capability.hooks.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}})
    agent: Agent[None, Any] = Agent(told.model, capabilities=[capability], output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def erase(path: str) -> str:
        raise AssertionError

    assert (await agent.run("Go")).output == "ok"


# Watching events.


async def test_agent_and_session_events_with_the_conversation_as_session() -> None:
    world = World("one", "two")
    seen = {name: world.payloads(name) for name in ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")}
    await world.run("first", conversation_id="c1")
    await world.run("second", conversation_id="c1")
    world.capability.end_session("c1")
    await world.capability.hooks.settle()
    assert [len(payloads) for payloads in seen.values()] == [1, 2, 2, 1]
    assert {payload["session_id"] for payloads in seen.values() for payload in payloads} == {"c1"}
    assert [(p["prompt"], p["prompt_response"]) for p in seen["AfterAgent"]] == [("first", "one"), ("second", "two")]


async def test_sessions_of_concurrent_runs_stay_apart() -> None:
    world = World(*[call(path=str(number)) for number in range(8)], *["ok"] * 8)
    seen = world.payloads("BeforeTool")
    await asyncio.gather(*(world.agent.run("Go", conversation_id=f"c{number}") for number in range(8)))
    assert len({payload["session_id"] for payload in seen}) == 8


async def test_a_request_for_approval_is_a_notification() -> None:
    told = Script(call("erase", path="x"))
    capability = HooksCapability(enable_hooks=True)
    seen: list[Any] = []
    capability.hooks.on("Notification", seen.append)
    agent: Agent[None, Any] = Agent(told.model, capabilities=[capability], output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def erase(path: str) -> str:
        raise AssertionError

    assert isinstance((await agent.run("Go")).output, DeferredToolRequests)
    await capability.hooks.settle()
    assert seen[0]["notification_type"] == "ToolPermission"
    assert seen[0]["details"] == {"tool_name": "erase", "tool_input": {"path": "x"}}


# Being made.


@pytest.mark.usefixtures("own_loop")
def test_an_agent_can_be_specified_in_a_file(tmp_path: Path) -> None:
    spec = {"model": "test", "capabilities": [{"HooksCapability": {"project_dir": str(tmp_path)}}]}
    agent = Agent.from_spec(spec, custom_capability_types=[HooksCapability])
    assert agent.run_sync("Hi").output


async def test_disabled_hooks_wrap_nothing() -> None:
    capability = HooksCapability(Config())
    agent = Agent(Script("ok").model, capabilities=[capability])
    assert (await agent.run("Hi")).output == "ok"
    assert capability.get_wrapper_model(TestModel()) is None
    assert capability.get_wrapper_toolset(FunctionToolset()) is None


def test_hooks_that_cannot_run_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        HooksCapability(hooks={"PreCompress": [{"hooks": [{"type": "command", "command": "true"}]}]})
    assert HookEventName.PRE_COMPRESS in caplog.text


def test_importing_it_imports_no_other_framework() -> None:
    import subprocess

    code = "import sys, llxprt_hooks.integrations.pydantic_ai; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"langchain", "agents", "anthropic", "openai", "fastmcp", "google.adk"} & set(loaded)


# Runs, and what is stored of an answer.


def only(*names: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": [*names]}}}


def test_a_release_that_cannot_wrap_models_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AbstractCapability, "get_wrapper_model")
    with pytest.raises(RuntimeError, match="cannot wrap models"):
        HooksCapability(enable_hooks=True)


async def test_a_restriction_is_in_force_before_a_stream_has_ended() -> None:
    ran: list[str] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "text"
        yield {0: DeltaToolCall("write_file", '{"path": "a"}')}

    capability = HooksCapability(enable_hooks=True)
    capability.hooks.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}})
    model = FunctionModel(stream_function=stream)
    agent: Agent[None, str] = Agent(model, capabilities=[capability], end_strategy="exhaustive")

    @agent.tool_plain
    def write_file(path: str) -> str:
        ran.append(path)
        return "written"

    async with agent.run_stream("Go") as result:
        await result.get_output()
    assert ran == []
    assert current_session(capability.hooks.config) is None


async def test_after_a_stop_tools_without_hooks_do_not_run_either() -> None:
    world = World([*call("halt"), *call()], "went on")
    world.on("BeforeTool", lambda payload: stop("enough"), matcher="halt")

    @world.agent.tool_plain(sequential=True)
    def halt() -> str:
        return "never"

    assert (await world.run()).output == "enough"
    assert world.runs == []


async def test_a_stop_holds_while_another_run_of_the_conversation_begins() -> None:
    world = World(call("halt"), "went on")
    other = Script("other")
    world.on("AfterTool", lambda payload: stop("enough"), matcher="halt")

    @world.agent.tool_plain
    def halt() -> str:
        return "halted"

    async with world.agent.iter("Go", conversation_id="c1") as run:
        async for node in run:
            if Agent.is_call_tools_node(node) and not other.requests:
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
                another = world.agent.run("Go", conversation_id="c1", model=other.model)
                result = await contextvars.Context().run(asyncio.create_task, another)
                assert result.output == "other"
    assert run.result is not None
    assert run.result.output == "enough"


async def test_a_stop_inside_of_an_agent_that_a_tool_runs_ends_both() -> None:
    world = World(call("ask"), "went on")
    inner_script = Script(call(), "inner went on")
    world.on("BeforeTool", lambda payload: stop("enough"), matcher="write_file")
    started = world.payloads("BeforeAgent")
    inner: Agent[None, str] = Agent(inner_script.model, capabilities=[world.capability])

    @inner.tool_plain
    def write_file(path: str) -> str:
        raise AssertionError

    @world.agent.tool_plain
    async def ask() -> str:
        return (await inner.run("Please")).output

    assert (await world.run()).output == "enough"
    assert [payload["prompt"] for payload in started] == ["Go"]


@pytest.mark.parametrize("allowed", ["run_shell_command", "write_file"])
async def test_a_tool_with_an_alias_runs_if_it_is_allowed_by_one_of_its_names(allowed: str) -> None:
    world = World([*call(), *call("other")], "done", aliases={"write_file": "run_shell_command"})
    world.on("BeforeToolSelection", lambda payload: only(allowed))
    fired = world.payloads("BeforeTool")

    @world.agent.tool_plain
    def other() -> str:
        return "never"

    await world.run()
    assert [payload["tool_name"] for payload in fired] == ["run_shell_command"]
    assert len(world.runs) == 1
    assert world.script.results()[1] == "other may not be called now. Allowed tools: run_shell_command."


class Counting(WrapperModel):
    """A model whose provider counts tokens, and what it was sent for that."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        self.counted: list[str] = []

    async def count_tokens(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> RequestUsage:
        self.counted.append(str(messages))
        return RequestUsage(input_tokens=1)


@pytest.mark.parametrize("is_blocked", [False, True])
async def test_tokens_are_counted_of_what_hooks_left(is_blocked: bool) -> None:
    world = World("done")
    messages = [{"role": "user", "content": "***"}]
    redacted = {"hookSpecificOutput": {"llm_request": {"messages": messages}}}
    seen = world.payloads("BeforeModel", lambda payload: deny("no") if is_blocked else redacted)
    model = Counting(world.script.model)
    with world.agent.override(model=model):
        result = await world.run("a secret", usage_limits=UsageLimits(count_tokens_before_request=True))
    assert "a secret" not in str(model.counted)
    assert (len(seen), len(model.counted), result.output) == ((1, 0, "no") if is_blocked else (1, 1, "done"))


async def test_messages_are_compressed_with_the_changes_of_hooks() -> None:
    class Compressing(WrapperModel):
        async def compact_messages(self, request_context: Any, *, instructions: str | None = None) -> ModelResponse:
            return ModelResponse(parts=[TextPart(str(request_context.messages))])

    capability = HooksCapability(enable_hooks=True)
    messages = [{"role": "user", "content": "***"}]
    answers: list[Any] = [deny("no"), {"hookSpecificOutput": {"llm_request": {"messages": messages}}}]
    capability.hooks.on("BeforeModel", lambda payload: answers.pop())
    model = _HookedModel(Compressing(Script().model), capability)
    given = ModelRequestContext(
        model=model,
        messages=[ModelRequest(parts=[UserPromptPart("a secret")])],
        model_settings=None,
        model_request_parameters=ModelRequestParameters(),
    )
    (compressed,) = (await model.compact_messages(given)).parts
    assert isinstance(compressed, TextPart)
    assert "***" in compressed.content
    assert "a secret" not in compressed.content
    assert (await model.compact_messages(given)).parts == [TextPart("no")]


async def test_details_of_a_changed_answer_are_left_out() -> None:
    world = World()
    world.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": "***"}}})

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        details = {"logprobs": ["a", "secret"]}
        return ModelResponse(parts=[TextPart("a secret", provider_details=details)], provider_details=details)

    with world.agent.override(model=FunctionModel(answer)):
        result = await world.run()
    assert "secret" not in str(result.new_messages())


async def test_arguments_that_no_hook_changed_keep_their_value() -> None:
    world = World(call("login", user="a", password="hunter2"), "done")
    world.on("BeforeTool", lambda payload: rewrite(user="b"))
    given: list[Any] = []

    @world.agent.tool_plain
    def login(user: str, password: SecretStr) -> str:
        given.append((user, password.get_secret_value()))
        return "ok"

    await world.run()
    assert given == [("b", "hunter2")]


async def test_a_binary_result_reaches_hooks_and_the_model() -> None:
    world = World(call("screenshot"), "done")
    seen = world.payloads("AfterTool")

    @world.agent.tool_plain
    def screenshot() -> BinaryContent:
        return BinaryContent(b"\x89PNG\xff", media_type="image/png")

    assert (await world.run()).output == "done"
    assert "iVBOR" in str(seen[0]["tool_response"])


async def test_a_toolset_that_is_hooked_twice_runs_its_hooks_once() -> None:
    script = Script(call("read", path="a"), "done")
    capability = HooksCapability(enable_hooks=True)
    seen: list[Any] = []
    capability.hooks.on("BeforeTool", seen.append)
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    def read(path: str) -> str:
        return path

    agent: Agent[None, str] = Agent(
        script.model, toolsets=[HookedToolset(toolset, capability)], capabilities=[capability]
    )
    await agent.run("Go")
    assert len(seen) == 1


async def test_a_stop_in_a_toolset_without_the_capability_ends_the_run() -> None:
    capability = HooksCapability(enable_hooks=True)
    capability.hooks.on("BeforeTool", lambda payload: stop("enough"))
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    def read(path: str) -> str:
        raise AssertionError

    script = Script(call("read", path="a"), "went on")
    agent: Agent[None, str] = Agent(script.model, toolsets=[HookedToolset(toolset, capability.hooks)])
    with pytest.raises(HookStopped, match="enough"):
        await agent.run("Go")


async def test_hooks_see_an_answer_that_is_made_in_the_background_once_it_is_there() -> None:
    pending = {"id": "resp_1", "object": "response", "status": "queued", "output": [], "background": True, "model": "m"}
    pending |= {"created_at": 1, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    done = {**pending, **ANSWERS["openai-responses"]("the secret")}
    seen: list[str] = []

    def redact(payload: dict[str, Any]) -> dict[str, Any]:
        seen.append(payload["llm_response"]["text"])
        return {"hookSpecificOutput": {"llm_response": {"text": "redacted"}}}

    capability = HooksCapability()
    capability.hooks.on("AfterModel", redact)
    with APIServer().running() as server:
        server.will_say(*(APIReply(body=json.dumps(answer).encode()) for answer in (pending, pending, done)))
        settings = OpenAIResponsesModelSettings(openai_background=True)
        async with AsyncOpenAI(api_key="key", base_url=f"{server.url}/v1", max_retries=0) as client:
            model = OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client))
            result = await Agent(model, capabilities=[capability], model_settings=settings).run("hi")
    assert (result.output, seen) == ("redacted", ["the secret"])
    assert [path.partition("?")[0] for path in server.paths] == ["/v1/responses", *["/v1/responses/resp_1"] * 2]
