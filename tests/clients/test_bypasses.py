"""Ways to the model besides a model call: what hooks could not be shown is neither sent nor fetched (D-91)."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from llxprt_hooks import Config, TranslationError
from llxprt_hooks.integrations.openai import OpenAIHooks
from llxprt_hooks.model import resolve_translator
from tests.clients.drivers import DRIVERS, ChatDriver, Driver, MessagesDriver, ResponsesDriver
from tests.support.api_server import ANSWERS, APIServer, Call, Reply

QUEUED = {"id": "resp_1", "object": "response", "status": "queued", "output": [], "background": True, "model": "m"}
ANSWER = {**QUEUED, **ANSWERS["openai-responses"]("the model's answer")}
COMPLETION = {"object": "chat.completion", "model": "m", "created": 1, **ANSWERS["openai-chat"]("the model's answer")}
MESSAGE = {"type": "message", "role": "assistant", "model": "m", **ANSWERS["anthropic-messages"]("the model's answer")}
BATCH_RESULT = {"custom_id": "a", "result": {"type": "succeeded", "message": MESSAGE}}
SDK_ERRORS = (openai.OpenAIError, anthropic.AnthropicError)


def stored(answer: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(answer).encode())


def streamed() -> Reply:
    wire = resolve_translator("openai-responses").wire
    assert wire is not None
    return Reply(body=b"".join(wire.write(ANSWER, {"stream": True})))


def everything(driver: Driver, outcome: Any) -> str:
    """Return what the program gets from the SDK, as text; it may be in pages or in a stream."""

    async def collected() -> list[Any]:
        awaited = await outcome if hasattr(outcome, "__await__") else outcome
        return [part async for part in awaited] if hasattr(awaited, "__aiter__") else [awaited]

    if hasattr(outcome, "__await__") or hasattr(outcome, "__aiter__"):
        return str(driver.run(collected()))
    is_one = hasattr(outcome, "model_dump") and not hasattr(outcome, "iter_pages")
    return str([outcome] if is_one else list(outcome))


Request = Callable[[Any], Any]
BATCH: list[Any] = [{"custom_id": "a", "params": {"model": "m", "max_tokens": 9, "messages": []}}]

FETCHES: dict[str, tuple[type[Driver], Request, Reply]] = {
    "responses.retrieve": (ResponsesDriver, lambda client: client.responses.retrieve("resp_1"), stored(ANSWER)),
    "responses.retrieve, streamed": (
        ResponsesDriver,
        lambda client: client.responses.retrieve("resp_1", stream=True, starting_after=0),
        streamed(),
    ),
    "responses.cancel": (ResponsesDriver, lambda client: client.responses.cancel("resp_1"), stored(ANSWER)),
    "responses.input_items": (
        ResponsesDriver,
        lambda client: client.responses.input_items.list("resp_1"),
        stored({"object": "list", "data": ANSWER["output"], "has_more": False}),
    ),
    "conversations.items.list": (
        ResponsesDriver,
        lambda client: client.conversations.items.list("conv_1"),
        stored({"object": "list", "data": ANSWER["output"], "has_more": False}),
    ),
    "conversations.items.retrieve": (
        ResponsesDriver,
        lambda client: client.conversations.items.retrieve("msg_1", conversation_id="conv_1"),
        stored(ANSWER["output"][0]),
    ),
    "chat.completions.retrieve": (
        ChatDriver,
        lambda client: client.chat.completions.retrieve("chatcmpl-1"),
        stored(COMPLETION),
    ),
    "chat.completions.update": (
        ChatDriver,
        lambda client: client.chat.completions.update("chatcmpl-1", metadata={}),
        stored(COMPLETION),
    ),
    "chat.completions.list": (
        ChatDriver,
        lambda client: client.chat.completions.list(),
        stored({"object": "list", "data": [COMPLETION], "has_more": False}),
    ),
}
SENDS: dict[str, tuple[type[Driver], Request, Reply]] = {
    "openai batch": (
        ChatDriver,
        lambda client: client.batches.create(input_file_id="file_1", endpoint="/v1/responses", completion_window="24h"),
        stored({"id": "batch_1", "object": "batch", "status": "validating"}),
    ),
    "message batch": (
        MessagesDriver,
        lambda client: client.messages.batches.create(requests=BATCH),
        stored({"id": "batch_1", "type": "message_batch"}),
    ),
    "beta message batch": (
        MessagesDriver,
        lambda client: client.beta.messages.batches.create(requests=BATCH),
        stored({"id": "batch_1", "type": "message_batch"}),
    ),
}


def drivers(kind: type[Driver]) -> list[str]:
    return [name for name, (driver, *_) in DRIVERS.items() if driver is kind]


def with_drivers(cases: dict[str, tuple[type[Driver], Request, Reply]]) -> pytest.MarkDecorator:
    """Run a test for each case, with each driver of its API."""
    pairs = [(driver, name) for name, (kind, *_) in cases.items() for driver in drivers(kind)]
    return pytest.mark.parametrize(("driver", "name"), pairs, indirect=["driver"])


responses = pytest.mark.parametrize("driver", drivers(ResponsesDriver), indirect=True)
messages = pytest.mark.parametrize("driver", drivers(MessagesDriver), indirect=True)


@responses
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_with_hooks_for_the_answer_no_answer_is_made_in_the_background(driver: Driver, stream: bool) -> None:
    driver.hooks.on("AfterModel", lambda payload: None)
    with pytest.raises(TranslationError, match="`background` was not sent") as raised:
        everything(driver, driver.create_call("hi", background=True, stream=stream))
    assert isinstance(raised.value, openai.OpenAIError)
    with pytest.raises(TranslationError, match="`background` was not sent"):
        everything(driver, driver.create_call("hi", extra_body={"background": True}, stream=stream))
    assert driver.server.requests == []


@responses
def test_without_hooks_for_the_answer_it_may_be_made_in_the_background(driver: Driver) -> None:
    seen: list[Any] = []
    driver.hooks.on("BeforeModel", seen.append)
    driver.server.will_say(stored(QUEUED), stored(ANSWER))
    assert driver.create("hi", background=True).status == "queued"
    assert "the model's answer" in everything(driver, driver.client.responses.retrieve("resp_1"))
    assert len(seen) == 1


@responses
def test_a_tool_that_is_not_allowed_does_not_run_for_an_answer_that_is_fetched(driver: Driver) -> None:
    allowed = {"mode": "ANY", "allowedFunctionNames": ["read"]}
    driver.hooks.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": allowed}})
    calls = ANSWERS["openai-responses"]([Call("read", {}), Call("write", {})])
    driver.server.will_say(stored(QUEUED), stored({**QUEUED, **calls}))
    ran: list[str] = []
    with driver.clients.session("s"):
        driver.create("hi", background=True, **driver.tools("read", "write"))
        response = driver.run(driver.client.responses.retrieve("resp_1"))
        functions = {name: functools.partial(ran.append, name) for name in ("read", "write")}
        results = driver.run_tools(response, functions)
    assert ran == ["read"]
    assert "write may not be called now" in results[1]["output"]


@responses
def test_a_hook_that_answers_or_blocks_does_so_in_the_background_too(driver: Driver) -> None:
    driver.hooks.on("AfterModel", lambda payload: None)
    driver.hooks.on("BeforeModel", lambda payload: {"decision": "deny", "reason": "not today"})
    assert driver.ask("hi", background=True) == "not today"
    assert driver.server.requests == []


@with_drivers(FETCHES)
def test_with_hooks_for_the_answer_no_stored_answer_is_fetched(driver: Driver, name: str) -> None:
    _, request, reply = FETCHES[name]
    driver.hooks.on("BeforeModel", lambda payload: None)
    driver.server.will_say(reply)
    assert "the model's answer" in everything(driver, request(driver.client))
    driver.hooks.on("AfterModel", lambda payload: None)
    driver.server.will_say(reply)
    with pytest.raises(TranslationError, match="was not fetched: hooks could not be shown") as raised:
        everything(driver, request(driver.client))
    assert isinstance(raised.value, SDK_ERRORS)
    assert len(driver.server.paths) == 1


@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
@with_drivers(SENDS)
def test_with_model_hooks_no_batch_is_sent(driver: Driver, name: str, event: str) -> None:
    _, request, reply = SENDS[name]
    driver.hooks.on("BeforeTool", lambda payload: None)
    driver.server.will_say(reply)
    assert driver.run(request(driver.client)).id == "batch_1"
    driver.hooks.on(event, lambda payload: None)
    with pytest.raises(TranslationError, match="a batch was not sent: hooks could not be shown") as raised:
        driver.run(request(driver.client))
    assert isinstance(raised.value, SDK_ERRORS)
    assert len(driver.server.paths) == 1


@messages
@pytest.mark.parametrize("is_beta", [False, True], ids=["messages", "beta"])
def test_with_hooks_for_the_answer_no_result_of_a_batch_is_fetched(driver: Driver, is_beta: bool) -> None:
    url = f"{driver.server.url}/v1/messages/batches/batch_1/results"
    ended = {"id": "batch_1", "type": "message_batch", "processing_status": "ended", "results_url": url}
    batches = (driver.client.beta if is_beta else driver.client).messages.batches
    driver.hooks.on("BeforeModel", lambda payload: None)
    driver.server.will_say(stored(ended), stored(BATCH_RESULT))
    assert "the model's answer" in everything(driver, batches.results("batch_1"))
    driver.hooks.on("AfterModel", lambda payload: None)
    driver.server.will_say(stored(ended), stored(BATCH_RESULT))
    with pytest.raises(TranslationError, match="the result of a batch was not fetched"):
        everything(driver, batches.results("batch_1"))
    assert len(driver.server.paths) == 3


def test_with_model_hooks_other_endpoints_work(driver: Driver) -> None:
    driver.hooks.on("BeforeModel", lambda payload: None)
    driver.hooks.on("AfterModel", lambda payload: None)
    batches = driver.client.messages.batches if isinstance(driver, MessagesDriver) else driver.client.batches
    driver.server.will_say(stored({"id": "batch_1"}), stored({"data": [{"id": "batch_1"}], "has_more": False}))
    assert driver.run(batches.retrieve("batch_1")).id == "batch_1"
    assert "batch_1" in everything(driver, batches.list())


def test_hooks_that_only_observe_keep_nothing_from_being_sent(server: APIServer) -> None:
    observing = [{"hooks": [{"type": "command", "command": "exit 2", "mode": "observe"}]}]
    config = Config(enable_hooks=True, hooks={"BeforeModel": observing, "AfterModel": observing})
    client = OpenAIHooks(config=config).wrap(openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0))
    server.will_say(stored({"id": "batch_1", "object": "batch"}), stored(QUEUED), stored(ANSWER))
    batch = client.batches.create(input_file_id="file_1", endpoint="/v1/responses", completion_window="24h")
    assert batch.id == "batch_1"
    assert client.responses.create(model="m", input="hi", background=True).status == "queued"
    assert "the model's answer" in str(client.responses.retrieve("resp_1"))
    client.close()
