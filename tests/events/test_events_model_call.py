"""A whole model call with its three hooks, in both SDKs' own types: order, messages, answers, stops, restriction."""

from __future__ import annotations

import asyncio
import copy

import pytest

from llxprt_hooks import (
    Config,
    GenerateContentParameters,
    HookedModelCall,
    ModelCallResult,
    Restriction,
    execute_model_with_hooks,
    execute_tool_with_hooks,
)

STOP = {"continue": False, "stopReason": "enough"}


def says(output=None, **specific):
    return {**(output or {}), "hookSpecificOutput": specific}


class GenAI:
    """google-genai's types: the requests and responses of the tests, and how to look at them."""

    translator = None

    def __init__(self, types):
        self.types = types

    def request(self, *, tools=True):
        declared = [self.types.Tool(function_declarations=[self.types.FunctionDeclaration(name="glob")])]
        config = self.types.GenerateContentConfig(tools=declared if tools else None)
        return GenerateContentParameters("large", [self.types.UserContent("Hello?")], config)

    def request_without_calls(self):
        request = self.request()
        config = request.config.model_copy(update={"tool_config": {"function_calling_config": {"mode": "NONE"}}})
        return GenerateContentParameters(request.model, request.contents, config)

    def response(self, text):
        candidate = self.types.Candidate(content=self.types.ModelContent(text), finish_reason="STOP")
        return self.types.GenerateContentResponse(candidates=[candidate])

    def texts(self, request):
        return [content.parts[0].text.removeprefix("[System] ") for content in request.contents]

    def model(self, request):
        return request.model

    def text(self, response):
        return response.text


class OpenAIChat:
    """The same as the dicts of Chat Completions."""

    translator = "openai-chat"

    def request(self, *, tools=True):
        declared = {"tools": [{"type": "function", "function": {"name": "glob"}}]} if tools else {}
        return {"model": "large", "messages": [{"role": "user", "content": "Hello?"}], **declared}

    def request_without_calls(self):
        return {**self.request(), "tool_choice": "none"}

    def response(self, text):
        message = {"role": "assistant", "content": text}
        return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def texts(self, request):
        return [message["content"] for message in request["messages"]]

    def model(self, request):
        return request["model"]

    def text(self, response):
        return response["choices"][0]["message"]["content"]


@pytest.fixture(params=["google-genai", "openai-chat"])
def sdk(request, genai):
    return GenAI(genai) if request.param == "google-genai" else OpenAIChat()


@pytest.fixture
def asked(lab, sdk):
    """Ask the model once with these hooks; the requests that it got are in ``asked.requests``."""

    async def asked(events, *, tools=True, notes=(), translator=sdk.translator):
        def call(request):
            asked.requests.append(request)
            return sdk.response("Hi.")

        return await execute_model_with_hooks(
            lab.config(events), sdk.request(tools=tools), call, translator=translator, notes=notes
        )

    asked.requests = []
    return asked


async def test_without_hooks_the_request_and_the_response_are_the_very_objects(sdk):
    request, response, sent = sdk.request(), sdk.response("Hi."), []

    async def call(given):
        sent.append(given)
        return response

    for config in (Config(), Config(enable_hooks=True)):
        result = await execute_model_with_hooks(config, request, call, translator=sdk.translator)
        assert result.response is response
        assert result == ModelCallResult(response=response)
    assert sent[0] is sent[1] is request


async def test_the_three_events_fire_in_order_and_each_sees_what_came_before_it(lab, asked, sdk):
    result = await asked(
        {
            "BeforeToolSelection": lab.hook("selection", says(toolConfig={"mode": "ANY"})),
            "BeforeModel": lab.hook("before", says(llm_request={"model": "small"})),
            "AfterModel": lab.hook("after", says(llm_response={"text": "Redacted."})),
        }
    )

    assert "toolConfig" not in lab.payload("selection")["llm_request"]
    assert lab.payload("before")["llm_request"]["toolConfig"]["mode"] == "ANY"
    assert lab.payload("before")["llm_request"]["model"] == "large"
    assert lab.payload("after")["llm_request"]["model"] == "small"
    assert [sdk.model(request) for request in asked.requests] == ["small"]
    assert (sdk.text(result.response), result.blocked, result.stop_reason) == ("Redacted.", False, None)


async def test_a_request_without_tools_selects_none(lab, asked):
    await asked({"BeforeToolSelection": lab.hook("selection")}, tools=False)

    assert lab.runs("selection") == 0
    assert len(asked.requests) == 1


@pytest.mark.requirement("HOOK-159")
async def test_messages_go_into_this_request_or_the_next(lab, asked, sdk):
    hooks = {
        "BeforeToolSelection": lab.hook("selection", "first"),
        "BeforeModel": lab.hook("before", "second"),
        "AfterModel": lab.hook("after", "third"),
    }

    result = await asked(hooks, notes=("kept",))

    assert sdk.texts(asked.requests[0]) == ["Hello?", "kept", "first", "second"]
    shown = lab.payload("after")["llm_request"]["messages"]
    assert [message["content"].removeprefix("[System] ") for message in shown] == sdk.texts(asked.requests[0])
    assert result.notes == ("third",)


@pytest.mark.requirement("HOOK-138", "HOOK-174")
async def test_an_answer_in_the_models_place(lab, asked, sdk):
    said = says({"decision": "deny", "suppressOutput": True, "systemMessage": "note"}, llm_response={"text": "cached"})

    result = await asked({"BeforeModel": lab.hook("b", said), "AfterModel": lab.hook("a")}, notes=("kept",))

    assert asked.requests == []
    assert lab.runs("a") == 0
    assert (sdk.text(result.response), result.blocked, result.suppress_output) == ("cached", True, True)
    assert (result.stop_reason, result.notes) == (None, ("kept", "note"))


@pytest.mark.requirement("HOOK-037", "HOOK-174")
async def test_a_block_without_an_answer(lab, asked):
    result = await asked({"BeforeModel": lab.hook(exit_code=2, stderr="not today")})

    assert asked.requests == []
    assert (result.response, result.blocked, result.reason, result.stop_reason) == (None, True, "not today", None)


@pytest.mark.parametrize(
    ("event", "blocked", "called"), [("BeforeToolSelection", False, 0), ("BeforeModel", True, 0), ("AfterModel", 0, 1)]
)
async def test_a_stop_at_each_event(lab, asked, event, blocked, called):
    result = await asked({event: lab.hook(says=STOP)}, notes=("kept",))

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
async def test_a_restriction_holds_for_the_calls_of_the_answer(lab, asked, event, tool_config, allowed):
    change = {"toolConfig": tool_config}
    change = change if event == "BeforeToolSelection" else {"llm_request": change}

    result = await asked({event: lab.hook(says=says(**change)), "BeforeTool": lab.hook("tool")})

    assert result.restriction == Restriction(None if allowed is None else frozenset(allowed))
    if allowed is not None:
        refused = await execute_tool_with_hooks(
            lab.config({"BeforeTool": lab.hook("tool")}),
            "write_file",
            {},
            lambda _: pytest.fail("the tool ran"),
            restriction=result.restriction,
        )
        assert refused.llm_content.startswith("write_file may not be called now. ")
        assert refused.error["type"] == "restricted"
    assert lab.runs("tool") == 0


async def test_an_allowed_call_runs_with_its_hooks(lab):
    config = lab.config({"BeforeTool": lab.hook("tool")})

    result = await execute_tool_with_hooks(
        config, "glob", {}, lambda _: "found", restriction=Restriction(frozenset({"glob"}))
    )

    assert (result.llm_content, lab.runs("tool")) == ("found", 1)


async def test_the_programs_own_tool_choice_is_not_enforced(lab, sdk):
    config = lab.config({"BeforeModel": lab.hook(says="note")})

    result = await execute_model_with_hooks(
        config, sdk.request_without_calls(), lambda _: sdk.response("Hi."), translator=sdk.translator
    )

    assert result.restriction == Restriction()


async def test_what_the_call_raises_passes_through_and_no_hook_sees_an_answer(lab, sdk):
    async def broken(request):
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        await execute_model_with_hooks(
            lab.config({"AfterModel": lab.hook()}), sdk.request(), broken, translator=sdk.translator
        )
    assert lab.runs() == 0


async def test_the_callers_request_is_never_changed(lab, sdk):
    request = sdk.request()
    before = copy.deepcopy(request)
    hooks = {
        "BeforeToolSelection": lab.hook("s", says({"systemMessage": "a"}, toolConfig={"mode": "NONE"})),
        "BeforeModel": lab.hook("b", says({"systemMessage": "b"}, llm_request={"config": {"temperature": 0}})),
    }

    await execute_model_with_hooks(
        lab.config(hooks), request, lambda _: sdk.response("Hi."), notes=["c"], translator=sdk.translator
    )

    assert request == before


async def test_the_two_halves_for_a_caller_that_streams(lab, sdk):
    hooks = {"BeforeModel": lab.hook("b", "note"), "AfterModel": lab.hook("a", says(llm_response={"text": "***"}))}
    call = HookedModelCall(lab.config(hooks), sdk.request(), translator=sdk.translator)

    assert call.holds_back
    assert await call.before() is None
    assert sdk.texts(call.request) == ["Hello?", "note"]
    assert sdk.text((await call.after(sdk.response("secret"))).response) == "***"


async def test_an_answer_may_be_shown_at_once_where_no_hook_will_see_it(lab, sdk):
    assert not HookedModelCall(lab.config({"BeforeModel": lab.hook()}), sdk.request()).holds_back
    assert not HookedModelCall(Config(), sdk.request()).holds_back


async def test_cancellation_passes_through(lab, sdk):
    config = lab.config({"BeforeModel": lab.endless()})
    call = execute_model_with_hooks(config, sdk.request(), sdk.response, translator=sdk.translator)
    task = asyncio.create_task(call)
    await lab.started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.requirement("HOOK-116")
async def test_a_request_that_no_translator_reads_is_sent_as_it_is(lab, warnings_of_engine):
    request = object()
    hooks = {event: lab.hook(event, exit_code=2) for event in ("BeforeToolSelection", "BeforeModel", "AfterModel")}

    result = await execute_model_with_hooks(lab.config(hooks), request, lambda given: given, notes=["note"])

    assert result == ModelCallResult(response=request)
    assert warnings_of_engine()


async def test_the_same_request_is_not_sent_where_a_hook_must_not_fail(lab):
    group = {"hooks": [{"type": "command", "command": lab.hook(), "failClosed": True}]}

    result = await execute_model_with_hooks(
        lab.config({"BeforeModel": [group]}), object(), lambda _: pytest.fail("the model was called")
    )

    assert result.blocked
    assert result.reason.startswith("blocked because failClosed is set: ")
