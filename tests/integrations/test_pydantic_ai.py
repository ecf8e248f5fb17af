"""Hooks in pydantic-ai: real agents with a scripted model; hooks are functions and scripts."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel, Field, SecretStr, field_serializer
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    ToolOutput,
    ToolReturn,
)
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
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import DeferredToolResults, ToolApproved
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage, UsageLimits

from llxprt_hooks import ask, deny, rewrite, stop
from llxprt_hooks.core.engine.session import current_session
from llxprt_hooks.integrations.pydantic_ai import HookedToolset, HooksCapability, HookStopped
from llxprt_hooks.integrations.pydantic_ai.capability import _HookedModel
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


@pytest.mark.parametrize("output", [ToolOutput, NativeOutput, PromptedOutput])
@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "AfterTool"])
async def test_a_stop_keeps_its_reason_whatever_the_form_of_the_output(output: Any, event: str) -> None:
    class Answer(BaseModel):
        number: int

    world = World(call(), '{"number": 1}', output_type=output(Answer))
    world.script.model = FunctionModel(world.script.answer, profile={"supports_json_schema_output": True})
    seen = world.payloads(event, lambda payload: stop("over budget"))
    with pytest.raises(HookStopped, match="over budget"):
        await world.run(model=world.script.model)
    assert len(seen) == 1


async def test_a_block_keeps_its_reason_in_a_run_whose_output_is_json() -> None:
    class Answer(BaseModel):
        number: int

    world = World('{"number": 1}', output_type=PromptedOutput(Answer))
    seen = world.payloads("BeforeModel", lambda payload: deny("not now"))
    with pytest.raises(HookStopped, match="not now"):
        await world.run()
    assert len(seen) == 1


async def test_output_tools_fire_no_event() -> None:
    class Answer(BaseModel):
        number: int

    world = World([ToolCallPart("final_result", {"number": 1})], output_type=Answer)
    seen = world.payloads("BeforeTool")
    assert (await world.run()).output == Answer(number=1)
    assert seen == []


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


async def test_sessions_of_concurrent_runs_stay_apart() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        has_run = any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
        return ModelResponse(parts=[TextPart("ok")] if has_run else call())

    world = World()
    seen = world.payloads("BeforeTool")
    with world.agent.override(model=FunctionModel(answer)):
        await asyncio.gather(*(world.agent.run("Go", conversation_id=f"c{number}") for number in range(8)))
    assert sorted(payload["session_id"] for payload in seen) == [f"c{number}" for number in range(8)]


# Being made.


@pytest.mark.usefixtures("own_loop")
def test_an_agent_can_be_specified_in_a_file(tmp_path: Path) -> None:
    spec = {"model": "test", "capabilities": [{"HooksCapability": {"project_dir": str(tmp_path)}}]}
    agent = Agent.from_spec(spec, custom_capability_types=[HooksCapability])
    assert agent.run_sync("Hi").output


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


class Note(BaseModel):
    """A model that prints less than it holds."""

    text: str = Field(alias="noteText", exclude=True)
    lines: list[bytes]

    @field_serializer("lines")
    def hide(self, lines: list[bytes]) -> str:
        return "nothing"


async def test_hooks_see_what_a_tool_gets_and_not_what_its_types_print() -> None:
    arguments = {"password": "hunter2", "data": "a key", "note": {"noteText": "a secret", "lines": ["one"]}}
    world = World(call("store", **arguments), "done")
    seen = world.payloads("BeforeTool")
    given: list[Any] = []

    @world.agent.tool_plain
    def store(password: SecretStr, data: bytes, note: Note) -> str:
        given.append((password.get_secret_value(), data, note.text, note.lines))
        return "ok"

    await world.run()
    assert seen[0]["tool_input"] == arguments
    assert given == [("hunter2", b"a key", "a secret", [b"one"])]


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


async def test_a_toolset_that_is_hooked_twice_runs_its_hooks_once_on_changed_arguments() -> None:
    script = Script(call("read", path="a"), "done")
    capability = HooksCapability(enable_hooks=True)
    seen: list[Any] = []

    def change(payload: dict[str, Any]) -> Any:
        seen.append(payload["tool_input"])
        return rewrite(path="b")

    capability.hooks.on("BeforeTool", change)
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    def read(path: str) -> str:
        return path

    hooked = HookedToolset(toolset, capability)
    await Agent(script.model, toolsets=[hooked], capabilities=[capability]).run("Go")
    assert (seen, script.results()) == ([{"path": "a"}], ["b"])


@pytest.mark.parametrize("tool_call_id", ["call_0", ""])
async def test_a_call_of_an_agent_in_a_tool_is_guarded_whatever_its_id_is(tool_call_id: str) -> None:
    """Some models count their calls, so the first call of each agent has the same id."""
    world = World([ToolCallPart("delegate", {}, tool_call_id)], "ok")
    world.on("BeforeTool", lambda payload: deny("no shell"), matcher="shell", fail_closed=True)
    seen = world.payloads("BeforeTool")
    told = Script([ToolCallPart("shell", {"command": "rm -rf /"}, tool_call_id)], "inner done")
    inner: Agent[None, str] = Agent(told.model, capabilities=[world.capability])

    @inner.tool_plain
    def shell(command: str) -> str:
        raise AssertionError

    @world.agent.tool_plain
    async def delegate() -> str:
        return (await inner.run("Please")).output

    await world.run()
    assert told.results() == ["no shell"]
    assert [payload["tool_name"] for payload in seen] == ["delegate", "shell"]


async def test_a_toolset_under_another_name_has_the_hooks_of_that_name() -> None:
    script = Script(call("files_remove", path="a"), "done")
    capability = HooksCapability(enable_hooks=True)
    capability.hooks.on("BeforeTool", lambda payload: None, matcher="^files_")
    capability.hooks.on("BeforeTool", lambda payload: deny("kept"), matcher="^remove$")
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    def remove(path: str) -> str:
        raise AssertionError

    hooked = HookedToolset(toolset, capability).prefixed("files")
    await Agent(script.model, toolsets=[hooked], capabilities=[capability]).run("Go")
    assert script.results() == ["kept"]


async def test_what_hooks_say_about_an_answer_is_for_the_agent_that_gave_it() -> None:
    world = World(call("delegate"), "ok")
    told = Script(call("look"), "inner done")
    inner: Agent[None, str] = Agent(told.model, capabilities=[world.capability])
    answers = iter(["outer", "inner", "inner again", "outer again"])
    world.on("AfterModel", lambda payload: {"systemMessage": f"about {next(answers)}"})

    @inner.tool_plain
    def look() -> str:
        return "seen"

    @world.agent.tool_plain
    async def delegate() -> str:
        return (await inner.run("Please")).output

    await world.run()
    assert [told.texts(number) for number in (0, 1)] == [["Please"], ["Please", "about inner"]]
    assert [world.script.texts(number) for number in (0, 1)] == [["Go"], ["Go", "about outer"]]


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


# Hooks that act.


def _asking(**fields: Any) -> tuple[HooksCapability, list[str], Any]:
    """Return hooks that ask before each tool, what the tool wrote, and a model that calls it."""
    capability = HooksCapability(profile="full", **fields)
    capability.hooks.on("BeforeTool", lambda payload: ask("sure?"))
    written: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("write", {"path": "a.txt"}, "call-1")])

    return capability, written, FunctionModel(answer)


async def _deferred(capability: HooksCapability, written: list[str], model: Any, answers: list[Any]) -> list[Any]:
    """Run an agent whose program answers deferred calls; return the outputs."""
    agent: Agent[None, Any] = Agent(model, output_type=[str, DeferredToolRequests], capabilities=[capability])
    agent.tool_plain(_written_to(written))
    result = await agent.run("go", conversation_id="c")
    outputs = [result.output]
    for given in answers:
        results = given(result.output)
        result = await agent.run(
            message_history=result.all_messages(), deferred_tool_results=results, conversation_id="c"
        )
        outputs.append(result.output)
    return outputs


async def test_a_hook_that_asks_defers_the_call() -> None:
    capability, written, model = _asking()
    first, last = await _deferred(
        capability, written, model, [lambda requests: DeferredToolResults(approvals={"call-1": True})]
    )
    assert isinstance(first, DeferredToolRequests)
    assert first.metadata["call-1"]["llxprt_hooks"]["reason"] == "sure?"
    assert (written, last) == (["a.txt"], "done")


async def test_a_call_that_a_person_denies_does_not_run() -> None:
    capability, written, model = _asking()
    _, last = await _deferred(
        capability, written, model, [lambda requests: DeferredToolResults(approvals={"call-1": False})]
    )
    assert (written, last) == ([], "done")


async def test_an_approval_of_other_arguments_is_asked_about_again() -> None:
    capability, written, model = _asking()
    other = ToolApproved(override_args={"path": "b.txt"})
    _, again = await _deferred(
        capability, written, model, [lambda requests: DeferredToolResults(approvals={"call-1": other})]
    )
    assert isinstance(again, DeferredToolRequests)
    assert written == []


@pytest.mark.parametrize("returned", [True, False])
async def test_another_process_needs_the_metadata_of_the_request(returned: bool) -> None:
    capability, written, model = _asking()

    def approve(requests: DeferredToolRequests) -> DeferredToolResults:
        capability._questions.close(("c", "call-1"))  # as in a process that has not asked
        return DeferredToolResults(approvals={"call-1": True}, metadata=requests.metadata if returned else {})

    await _deferred(capability, written, model, [approve])
    assert written == (["a.txt"] if returned else [])


async def test_nobody_is_asked_by_an_agent_that_cannot_defer_calls() -> None:
    capability, written, model = _asking()
    agent = Agent(model, capabilities=[capability])
    agent.tool_plain(_written_to(written))
    result = await agent.run("go")
    [part] = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert "nobody could be asked" in part.model_response_str()
    assert "DeferredToolRequests" in part.model_response_str()
    assert written == []


def _written_to(written: list[str]) -> Callable[[str], str]:
    def write(path: str) -> str:
        written.append(path)
        return f"wrote {path}"

    return write


async def test_a_refused_prompt_is_not_in_the_conversation() -> None:
    capability = HooksCapability(profile="full")
    capability.hooks.on("BeforeAgent", lambda payload: deny("no keys") if "sk-" in payload["prompt"] else None)
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(repr(messages))
        return ModelResponse(parts=[TextPart("hello")])

    agent = Agent(FunctionModel(answer), capabilities=[capability])
    refused = await agent.run("my key is sk-1")
    assert (refused.output, seen) == ("no keys", [])
    assert (await agent.run("hi", message_history=refused.all_messages())).output == "hello"
    assert "sk-1" not in seen[0]


async def test_the_program_is_told_that_the_conversation_should_be_cleared() -> None:
    capability = HooksCapability(profile="full")
    capability.hooks.on("AfterAgent", lambda payload: {"hookSpecificOutput": {"clearContext": True}})
    result = await Agent(Script("hello").model, capabilities=[capability]).run("hi")
    last = result.all_messages()[-1]
    assert isinstance(last, ModelResponse)
    assert (last.metadata or {})["llxprt_hooks"] == {"clear_context": True}
