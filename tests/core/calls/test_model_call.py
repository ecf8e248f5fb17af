"""A whole model call with its three hooks: order, messages, answers, stops, restriction."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
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

    from tests.support.engine_project import EngineProject


CHAT = "openai-chat"


def request_with(*, tools: bool = True, **fields: Any) -> Any:
    declared = {"tools": [{"type": "function", "function": {"name": name}} for name in ("glob", "read_file")]}
    return {
        "model": "large",
        "messages": [{"role": "user", "content": "Hello?"}],
        **(declared if tools else {}),
        **fields,
    }


def response_with(text: str) -> Any:
    message = {"role": "assistant", "content": text}
    return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def texts(request: Any) -> list[str]:
    return [message["content"] for message in request["messages"]]


def text_of(response: Any) -> Any:
    return response["choices"][0]["message"]["content"]


class Asked:
    """A model that answers with a greeting, and the requests that it got."""

    def __init__(self, project: EngineProject) -> None:
        self._project = project
        self.requests: list[Any] = []

    async def __call__(
        self, events: dict[str, Any], *, tools: bool = True, notes: Sequence[str] = ()
    ) -> ModelCallResult[Any]:
        config, request = self._project.config(events), request_with(tools=tools)
        return await execute_model_with_hooks(config, request, self._call, notes=notes, translator=CHAT)

    def _call(self, request: Any) -> Any:
        self.requests.append(request)
        return response_with("Hi.")


@pytest.fixture
def asked(project: EngineProject) -> Asked:
    """Ask the model once with these hooks; the requests that it got are in ``asked.requests``."""

    return Asked(project)


async def test_without_hooks_the_request_and_the_response_are_the_very_objects() -> None:
    request, response, sent = request_with(), response_with("Hi."), []

    async def call(given: Any) -> Any:
        sent.append(given)
        return response

    for config in (Config(), Config(enable_hooks=True)):
        result = await execute_model_with_hooks(config, request, call, translator=CHAT)
        assert result.response is response
        assert result == ModelCallResult(response=response)
    assert sent[0] is sent[1] is request


async def test_the_three_events_fire_in_order_and_each_sees_what_came_before_it(
    project: EngineProject, asked: Asked
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
    assert [request["model"] for request in asked.requests] == ["small"]
    assert (text_of(result.response), result.blocked, result.stop_reason) == ("Redacted.", False, None)


async def test_a_request_without_tools_selects_none(project: EngineProject, asked: Asked) -> None:
    await asked({"BeforeToolSelection": project.hook("selection")}, tools=False)

    assert project.runs("selection") == 0
    assert len(asked.requests) == 1


@pytest.mark.requirement("HOOK-159")
async def test_messages_go_into_this_request_or_the_next(project: EngineProject, asked: Asked) -> None:
    hooks = {
        "BeforeToolSelection": project.hook("selection", "first"),
        "BeforeModel": project.hook("before", "second"),
        "AfterModel": project.hook("after", "third"),
    }

    result = await asked(hooks, notes=("kept",))

    assert texts(asked.requests[0]) == ["Hello?", "kept", "first", "second"]
    shown = project.payload("after")["llm_request"]["messages"]
    assert [message["content"].removeprefix("[System] ") for message in shown] == texts(asked.requests[0])
    assert result.notes == ("third",)


@pytest.mark.requirement("HOOK-138", "HOOK-174")
async def test_an_answer_in_the_models_place(project: EngineProject, asked: Asked) -> None:
    said = says({"decision": "deny", "suppressOutput": True, "systemMessage": "note"}, llm_response={"text": "cached"})

    result = await asked({"BeforeModel": project.hook("b", said), "AfterModel": project.hook("a")}, notes=("kept",))

    assert asked.requests == []
    assert project.runs("a") == 0
    assert (text_of(result.response), result.blocked, result.suppress_output) == ("cached", True, True)
    assert (result.stop_reason, result.notes) == (None, ("kept", "note"))


@pytest.mark.parametrize(
    ("translator", "request_given"),
    [
        ("openai-chat", request_with()),
        ("openai-responses", {"model": "large", "input": "Hello?"}),
        ("anthropic-messages", request_with(tools=False, max_tokens=9)),
    ],
)
async def test_an_answer_in_the_models_place_is_a_complete_response(
    project: EngineProject, translator: str, request_given: Any
) -> None:
    said = says({"decision": "deny"}, llm_response={"text": "cached"})
    config = project.config({"BeforeModel": project.hook(says=said)})

    result = await fire_before_model_hook(config, request_given, translator=translator)

    response = result.synthetic_response
    assert response is not None
    counts = {name: count for name, count in response["usage"].items() if not name.endswith("_details")}
    assert (response["model"], set(counts.values())) == ("large", {0})
    assert "hook_" in response["id"]
    assert "'cached'" in str(response)


async def test_data_in_hook_format_is_answered_too(project: EngineProject) -> None:
    said = says({"decision": "deny"}, llm_response={"text": "cached"})
    request = HookFormat({"messages": [{"role": "user", "content": "Hello?"}]})
    config = project.config({"BeforeModel": project.hook(says=said)})

    result = await fire_before_model_hook(config, request, translator=CHAT)

    assert text_of(result.synthetic_response) == "cached"


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


async def test_the_tool_choice_of_the_request_as_it_is_sent_applies_to_the_answer(project: EngineProject) -> None:
    config = project.config({"BeforeModel": project.hook(says="note")})

    result = await execute_model_with_hooks(
        config, request_with(tool_choice="none"), lambda _: response_with("Hi."), translator=CHAT
    )

    assert result.restriction == Restriction(frozenset())


async def test_what_the_call_raises_passes_through_and_no_hook_sees_an_answer(project: EngineProject) -> None:
    async def broken(request: Any) -> Any:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        await execute_model_with_hooks(
            project.config({"AfterModel": project.hook()}), request_with(), broken, translator=CHAT
        )
    assert project.runs() == 0


async def test_the_callers_request_is_never_changed(project: EngineProject) -> None:
    request = request_with()
    before = copy.deepcopy(request)
    hooks = {
        "BeforeToolSelection": project.hook("s", says({"systemMessage": "a"}, toolConfig={"mode": "NONE"})),
        "BeforeModel": project.hook("b", says({"systemMessage": "b"}, llm_request={"config": {"temperature": 0}})),
    }

    await execute_model_with_hooks(
        project.config(hooks), request, lambda _: response_with("Hi."), notes=["c"], translator=CHAT
    )

    assert request == before


async def test_the_two_halves_for_a_caller_that_streams(project: EngineProject) -> None:
    hooks = {
        "BeforeModel": project.hook("b", "note"),
        "AfterModel": project.hook("a", says(llm_response={"text": "***"})),
    }
    call = HookedModelCall(project.config(hooks), request_with(), translator=CHAT)

    assert call.holds_back
    assert await call.before() is None
    assert texts(call.request) == ["Hello?", "note"]
    assert text_of((await call.after(response_with("secret"))).response) == "***"


async def test_an_answer_may_be_shown_at_once_where_no_hook_will_see_it(project: EngineProject) -> None:
    assert not HookedModelCall(project.config({"BeforeModel": project.hook()}), request_with()).holds_back
    assert not HookedModelCall(Config(), request_with()).holds_back
