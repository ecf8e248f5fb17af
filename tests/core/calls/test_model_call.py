"""A whole model call with its three hooks, in each SDK's own types: order, messages, answers, stops, restriction."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    GenerateContentParameters,
    HookedModelCall,
    HookFormat,
    ModelCallResult,
    Restriction,
    execute_model_with_hooks,
    execute_tool_with_hooks,
    fire_before_model_hook,
)
from tests.support.replies import STOP, says

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tests.support.engine_project import EngineProject


class GenAI:
    """google-genai's types: the requests and responses of the tests, and how to look at them."""

    translator = None

    def __init__(self, types: Any) -> None:
        self.types = types

    def request(self, *, tools: Any = True) -> Any:
        declared = [self.types.Tool(function_declarations=[self.types.FunctionDeclaration(name="glob")])]
        config = self.types.GenerateContentConfig(tools=declared if tools else None)
        return GenerateContentParameters("large", [self.types.UserContent("Hello?")], config)

    def request_without_calls(self) -> Any:
        request = self.request()
        config = request.config.model_copy(update={"tool_config": {"function_calling_config": {"mode": "NONE"}}})
        return GenerateContentParameters(request.model, request.contents, config)

    def response(self, text: str) -> Any:
        candidate = self.types.Candidate(content=self.types.ModelContent(text), finish_reason="STOP")
        return self.types.GenerateContentResponse(candidates=[candidate])

    def texts(self, request: Any) -> list[str]:
        return [content.parts[0].text.removeprefix("[System] ") for content in request.contents]

    def model(self, request: Any) -> Any:
        return request.model

    def text(self, response: Any) -> Any:
        return response.text


class OpenAIChat:
    """The same as the dicts of Chat Completions."""

    translator = "openai-chat"

    def request(self, *, tools: Any = True) -> Any:
        names = ("glob", "read_file") if tools else ()
        declared = {"tools": [{"type": "function", "function": {"name": name}} for name in names]} if tools else {}
        return {"model": "large", "messages": [{"role": "user", "content": "Hello?"}], **declared}

    def request_without_calls(self) -> Any:
        return {**self.request(), "tool_choice": "none"}

    def response(self, text: str) -> Any:
        message = {"role": "assistant", "content": text}
        return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def texts(self, request: Any) -> list[str]:
        return [message["content"] for message in request["messages"]]

    def model(self, request: Any) -> Any:
        return request["model"]

    def text(self, response: Any) -> Any:
        return response["choices"][0]["message"]["content"]


class OpenAIResponses(OpenAIChat):
    """The same as the dicts of the Responses API."""

    translator = "openai-responses"

    def request(self, *, tools: Any = True) -> Any:
        declared = {"tools": [{"type": "function", "name": name} for name in ("glob", "read_file")]} if tools else {}
        return {"model": "large", "input": "Hello?", **declared}

    def response(self, text: str) -> Any:
        message = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": text}]}
        return {"id": "1", "object": "response", "status": "completed", "output": [message]}

    def texts(self, request: Any) -> list[str]:
        return [item["content"] for item in request["input"]]

    def text(self, response: Any) -> Any:
        return response["output"][0]["content"][0]["text"]


class AnthropicMessages(OpenAIChat):
    """The same as the dicts of the Messages API."""

    translator = "anthropic-messages"

    def request(self, *, tools: Any = True) -> Any:
        declared = {"tools": [{"name": "glob"}, {"name": "read_file"}, {"name": "write_file"}]} if tools else {}
        return {"model": "large", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello?"}], **declared}

    def request_without_calls(self) -> Any:
        return {**self.request(), "tool_choice": {"type": "none"}}

    def response(self, text: str) -> Any:
        content = [{"type": "text", "text": text}]
        return {"id": "1", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}

    def texts(self, request: Any) -> list[str]:
        return [text.removeprefix("[System] ") for text in super().texts(request)]

    def text(self, response: Any) -> Any:
        return response["content"][0]["text"]


@pytest.fixture(params=["google-genai", OpenAIChat, OpenAIResponses, AnthropicMessages])
def sdk(request: pytest.FixtureRequest, genai: ModuleType) -> Any:
    return GenAI(genai) if request.param == "google-genai" else request.param()


class Asked:
    """A model that answers with a greeting, and the requests that it got."""

    def __init__(self, project: EngineProject, sdk: Any) -> None:
        self._project = project
        self._sdk = sdk
        self.requests: list[Any] = []

    async def __call__(
        self, events: dict[str, Any], *, tools: bool = True, notes: Sequence[str] = (), **options: Any
    ) -> ModelCallResult[Any]:
        config, request = self._project.config(events), self._sdk.request(tools=tools)
        options = {"translator": self._sdk.translator, **options}
        return await execute_model_with_hooks(config, request, self._call, notes=notes, **options)

    def _call(self, request: Any) -> Any:
        self.requests.append(request)
        return self._sdk.response("Hi.")


@pytest.fixture
def asked(project: EngineProject, sdk: Any) -> Asked:
    """Ask the model once with these hooks; the requests that it got are in ``asked.requests``."""

    return Asked(project, sdk)


async def test_without_hooks_the_request_and_the_response_are_the_very_objects(sdk: Any) -> None:
    request, response, sent = sdk.request(), sdk.response("Hi."), []

    async def call(given: Any) -> Any:
        sent.append(given)
        return response

    for config in (Config(), Config(enable_hooks=True)):
        result = await execute_model_with_hooks(config, request, call, translator=sdk.translator)
        assert result.response is response
        assert result == ModelCallResult(response=response)
    assert sent[0] is sent[1] is request


async def test_the_three_events_fire_in_order_and_each_sees_what_came_before_it(
    project: EngineProject, asked: Asked, sdk: Any
) -> None:
    result = await asked(
        {
            "BeforeToolSelection": project.hook("selection", says(toolConfig={"mode": "ANY"})),
            "BeforeModel": project.hook("before", says(llm_request={"model": "small"})),
            "AfterModel": project.hook("after", says(llm_response={"text": "Redacted."})),
        }
    )

    assert "toolConfig" not in project.payload("selection")["llm_request"]
    assert project.payload("before")["llm_request"]["toolConfig"]["mode"] == "ANY"
    assert project.payload("before")["llm_request"]["model"] == "large"
    assert project.payload("after")["llm_request"]["model"] == "small"
    assert [sdk.model(request) for request in asked.requests] == ["small"]
    assert (sdk.text(result.response), result.blocked, result.stop_reason) == ("Redacted.", False, None)


async def test_a_request_without_tools_selects_none(project: EngineProject, asked: Asked) -> None:
    await asked({"BeforeToolSelection": project.hook("selection")}, tools=False)

    assert project.runs("selection") == 0
    assert len(asked.requests) == 1


@pytest.mark.requirement("HOOK-159")
async def test_messages_go_into_this_request_or_the_next(project: EngineProject, asked: Asked, sdk: Any) -> None:
    hooks = {
        "BeforeToolSelection": project.hook("selection", "first"),
        "BeforeModel": project.hook("before", "second"),
        "AfterModel": project.hook("after", "third"),
    }

    result = await asked(hooks, notes=("kept",))

    assert sdk.texts(asked.requests[0]) == ["Hello?", "kept", "first", "second"]
    shown = project.payload("after")["llm_request"]["messages"]
    assert [message["content"].removeprefix("[System] ") for message in shown] == sdk.texts(asked.requests[0])
    assert result.notes == ("third",)


@pytest.mark.requirement("HOOK-138", "HOOK-174")
async def test_an_answer_in_the_models_place(project: EngineProject, asked: Asked, sdk: Any) -> None:
    said = says({"decision": "deny", "suppressOutput": True, "systemMessage": "note"}, llm_response={"text": "cached"})

    result = await asked({"BeforeModel": project.hook("b", said), "AfterModel": project.hook("a")}, notes=("kept",))

    assert asked.requests == []
    assert project.runs("a") == 0
    assert (sdk.text(result.response), result.blocked, result.suppress_output) == ("cached", True, True)
    assert (result.stop_reason, result.notes) == (None, ("kept", "note"))


@pytest.mark.parametrize("sdk", [OpenAIChat(), OpenAIResponses(), AnthropicMessages()], ids=lambda sdk: sdk.translator)
async def test_an_answer_in_the_models_place_is_a_complete_response(project: EngineProject, sdk: Any) -> None:
    said = says({"decision": "deny"}, llm_response={"text": "cached"})
    config = project.config({"BeforeModel": project.hook(says=said)})

    result = await fire_before_model_hook(config, sdk.request(), translator=sdk.translator)

    response = result.synthetic_response
    assert response is not None
    counts = {name: count for name, count in response["usage"].items() if not name.endswith("_details")}
    assert (response["model"], set(counts.values())) == ("large", {0})
    assert "hook_" in response["id"]
    assert sdk.text(response) == "cached"


async def test_data_in_hook_format_is_answered_too(project: EngineProject) -> None:
    said = says({"decision": "deny"}, llm_response={"text": "cached"})
    request = HookFormat({"messages": [{"role": "user", "content": "Hello?"}]})
    config = project.config({"BeforeModel": project.hook(says=said)})

    result = await fire_before_model_hook(config, request, translator="openai-chat")

    assert OpenAIChat().text(result.synthetic_response) == "cached"


@pytest.mark.requirement("HOOK-037", "HOOK-174")
async def test_a_block_without_an_answer(project: EngineProject, asked: Asked) -> None:
    result = await asked({"BeforeModel": project.hook(exit_code=2, stderr="not today")})

    assert asked.requests == []
    assert (result.response, result.blocked, result.reason, result.stop_reason) == (None, True, "not today", None)


@pytest.mark.parametrize(
    ("event", "blocked", "called"), [("BeforeToolSelection", False, 0), ("BeforeModel", True, 0), ("AfterModel", 0, 1)]
)
async def test_a_stop_at_each_event(
    project: EngineProject, asked: Asked, event: str, blocked: bool | int, called: int
) -> None:
    result = await asked({event: project.hook(says=STOP)}, notes=("kept",))

    assert (result.stop_reason, bool(result.blocked), len(asked.requests)) == ("enough", bool(blocked), called)
    assert result.notes == (() if called else ("kept",))


@pytest.mark.requirement("HOOK-140")
@pytest.mark.parametrize(
    ("tool_config", "allowed"),
    [
        ({"mode": "NONE"}, frozenset()),
        ({"mode": "ANY", "allowedFunctionNames": ["glob"]}, {"glob"}),
        ({"allowedFunctionNames": ["glob", "read_file"]}, {"glob", "read_file"}),
        ({"mode": "ANY"}, None),
    ],
)
@pytest.mark.parametrize("event", ["BeforeToolSelection", "BeforeModel"])
async def test_a_restriction_applies_to_the_calls_of_the_answer(
    project: EngineProject, asked: Asked, event: str, tool_config: dict[str, Any], allowed: Any
) -> None:
    change = {"toolConfig": tool_config}
    change = change if event == "BeforeToolSelection" else {"llm_request": change}

    result = await asked({event: project.hook(says=says(**change)), "BeforeTool": project.hook("tool")})

    assert result.restriction == Restriction(None if allowed is None else frozenset(allowed))
    if allowed is not None:
        refused = await execute_tool_with_hooks(
            project.config({"BeforeTool": project.hook("tool")}),
            "write_file",
            {},
            lambda _: pytest.fail("the tool ran"),
            restriction=result.restriction,
        )
        assert refused.llm_content.startswith("write_file may not be called now. ")
        assert refused.error["type"] == "restricted"
    assert project.runs("tool") == 0


async def test_the_tool_choice_of_the_request_as_it_is_sent_applies_to_the_answer(
    project: EngineProject, sdk: Any
) -> None:
    config = project.config({"BeforeModel": project.hook(says="note")})

    result = await execute_model_with_hooks(
        config, sdk.request_without_calls(), lambda _: sdk.response("Hi."), translator=sdk.translator
    )

    assert result.restriction == Restriction(frozenset())


async def test_what_the_call_raises_passes_through_and_no_hook_sees_an_answer(project: EngineProject, sdk: Any) -> None:
    async def broken(request: Any) -> Any:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        await execute_model_with_hooks(
            project.config({"AfterModel": project.hook()}), sdk.request(), broken, translator=sdk.translator
        )
    assert project.runs() == 0


async def test_the_callers_request_is_never_changed(project: EngineProject, sdk: Any) -> None:
    request = sdk.request()
    before = copy.deepcopy(request)
    hooks = {
        "BeforeToolSelection": project.hook("s", says({"systemMessage": "a"}, toolConfig={"mode": "NONE"})),
        "BeforeModel": project.hook("b", says({"systemMessage": "b"}, llm_request={"config": {"temperature": 0}})),
    }

    await execute_model_with_hooks(
        project.config(hooks), request, lambda _: sdk.response("Hi."), notes=["c"], translator=sdk.translator
    )

    assert request == before


async def test_the_two_halves_for_a_caller_that_streams(project: EngineProject, sdk: Any) -> None:
    hooks = {
        "BeforeModel": project.hook("b", "note"),
        "AfterModel": project.hook("a", says(llm_response={"text": "***"})),
    }
    call = HookedModelCall(project.config(hooks), sdk.request(), translator=sdk.translator)

    assert call.holds_back
    assert await call.before() is None
    assert sdk.texts(call.request) == ["Hello?", "note"]
    assert sdk.text((await call.after(sdk.response("secret"))).response) == "***"


async def test_an_answer_may_be_shown_at_once_where_no_hook_will_see_it(project: EngineProject, sdk: Any) -> None:
    assert not HookedModelCall(project.config({"BeforeModel": project.hook()}), sdk.request()).holds_back
    assert not HookedModelCall(Config(), sdk.request()).holds_back
