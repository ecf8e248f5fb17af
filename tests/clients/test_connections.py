"""How the hooks get into a client, and what else holds for it."""

import gc
import threading
from typing import Any

import httpx2
import openai
import pytest
import trio
from anthropic import Anthropic, AnthropicVertex, AsyncAnthropic
from blockbuster import blockbuster_ctx
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from pydantic import BaseModel

from llxprt_hooks import deny
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks
from tests.support.api_server import APIServer, Reply

CHANGED = {"hookSpecificOutput": {"llm_response": {"text": "the hook's answer"}}}
MESSAGES: Any = [{"role": "user", "content": "hi"}]


def options(server: APIServer) -> dict[str, Any]:
    return {"api_key": "key", "base_url": f"{server.url}/v1", "max_retries": 0}


def ask(client: OpenAI) -> str | None:
    return client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content


def changing() -> OpenAIHooks:
    hooks = OpenAIHooks()
    hooks.hooks.on("AfterModel", lambda payload: CHANGED)
    return hooks


def test_an_http_client_with_hooks_can_be_passed_to_the_client(server: APIServer) -> None:
    hooks = changing()
    with OpenAI(http_client=hooks.http_client(timeout=7), **options(server)) as client:
        assert ask(client) == "the hook's answer"
        assert client.timeout == httpx2.Timeout(7)
        assert hooks.wrap(client) is client


async def test_an_asynchronous_http_client_with_hooks_can_be_passed_to_the_client(server: APIServer) -> None:
    hooks = changing()
    async with AsyncOpenAI(http_client=hooks.async_http_client(), **options(server)) as client:
        completion = await client.chat.completions.create(model="m", messages=MESSAGES)
    assert completion.choices[0].message.content == "the hook's answer"


def test_the_original_client_keeps_working_without_hooks(server: APIServer) -> None:
    with OpenAI(**options(server)) as original:
        wrapped = changing().wrap(original)
        assert ask(wrapped) == "the hook's answer"
        assert ask(original) == "the model's answer"
        del wrapped
        gc.collect()
        assert ask(original) == "the model's answer"


async def test_closing_a_wrapped_client_closes_the_original(server: APIServer) -> None:
    """The SDK would close it later, when it is no longer referenced, on whatever event loop runs then."""
    original, original_async = OpenAI(**options(server)), AsyncOpenAI(**options(server))
    changing().wrap(original).close()
    assert original.is_closed()
    await changing().wrap(original_async).close()
    assert original_async.is_closed()


def test_a_wrapped_client_keeps_its_type_and_options(server: APIServer) -> None:
    azure = AzureOpenAI(azure_endpoint=server.url, api_key="key", api_version="1", timeout=7)
    with changing().wrap(azure) as client:
        assert type(client) is AzureOpenAI
        assert client.timeout == 7
        assert ask(client) == "the hook's answer"
        assert ask(client.with_options(timeout=3)) == "the hook's answer"


def test_requests_through_a_proxy_have_hooks(server: APIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, server.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with changing().wrap(OpenAI(api_key="key", base_url="http://models.example/v1", max_retries=0)) as client:
        assert ask(client) == "the hook's answer"
    assert server.paths == ["http://models.example/v1/chat/completions"]


def test_the_clients_of_cloud_providers_have_hooks_before_their_requests_are_changed(server: APIServer) -> None:
    hooks = AnthropicHooks()
    seen: list[Any] = []
    hooks.hooks.on("BeforeModel", lambda payload: seen.append(payload["llm_request"]["model"]))
    hooks.hooks.on("AfterModel", lambda payload: CHANGED)
    vertex = AnthropicVertex(access_token="token", project_id="p", region="r", base_url=server.url)
    with hooks.wrap(vertex) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert message.content[0].text == "the hook's answer"  # type: ignore[union-attr]
        with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            assert stream.get_final_text() == "the hook's answer"
    assert server.paths == [
        "/projects/p/locations/r/publishers/anthropic/models/m:rawPredict",
        "/projects/p/locations/r/publishers/anthropic/models/m:streamRawPredict",
    ]
    assert seen == ["m", "m"]


def test_middleware_can_be_passed_to_the_client(server: APIServer) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeModel", lambda payload: deny("no secrets"))
    client = Anthropic(api_key="key", base_url=server.url, middleware=[hooks.middleware()])
    with client:
        raw = client.messages.with_raw_response.create(model="m", max_tokens=9, messages=MESSAGES)
        assert raw.parse().content[0].text == "no secrets"  # type: ignore[union-attr]
        assert raw.http_request.url.path == "/v1/messages"
        assert raw.elapsed.total_seconds() == 0
        beta = client.beta.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert beta.content[0].text == "no secrets"  # type: ignore[union-attr]


class Weather(BaseModel):
    city: str


def test_parsed_answers_have_hooks(server: APIServer) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": '{"city": "Oslo"}'}}})
    server.will_say('{"city": "Rome"}', '{"city": "Rome"}')
    with hooks.wrap(OpenAI(**options(server))) as client:
        chat = client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Weather)
        assert chat.choices[0].message.parsed == Weather(city="Oslo")
        response = client.responses.parse(model="m", input="hi", text_format=Weather)
        assert response.output_parsed == Weather(city="Oslo")


def test_where_json_is_expected_the_reason_is_a_refusal(server: APIServer) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("BeforeModel", lambda payload: deny("no secrets"))
    with hooks.wrap(OpenAI(**options(server))) as client:
        message = (
            client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Weather).choices[0].message
        )
        assert (message.parsed, message.refusal) == (None, "no secrets")
        response = client.responses.parse(model="m", input="hi", text_format=Weather)
        assert response.output_parsed is None
        refusal: Any = response.output[0].content[0]  # type: ignore[union-attr, index]
        assert refusal.refusal == "no secrets"
        with client.chat.completions.stream(model="m", messages=MESSAGES, response_format=Weather) as stream:
            assert stream.get_final_completion().choices[0].message.refusal == "no secrets"
        with client.responses.stream(model="m", input="hi", text_format=Weather) as events:
            assert events.get_final_response().output_parsed is None
        plain = client.responses.create(model="m", input="hi", text={"format": {"type": "text"}})
        assert plain.output_text == "no secrets"


def test_clients_have_hooks_in_trio(server: APIServer) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("AfterModel", lambda payload: CHANGED)

    async def main() -> Any:
        async with hooks.wrap(AsyncAnthropic(api_key="key", base_url=server.url)) as client:
            return await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)

    assert trio.run(main).content[0].text == "the hook's answer"


async def test_clients_have_hooks_where_blocking_calls_on_the_event_loop_are_forbidden(server: APIServer) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeModel", lambda payload: deny("no secrets"))
    async with hooks.wrap(AsyncAnthropic(api_key="key", base_url=server.url)) as client:
        with blockbuster_ctx():
            message = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    assert message.content[0].text == "no secrets"  # type: ignore[union-attr]


def test_sessions_of_several_threads_do_not_mix(server: APIServer) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("AfterModel", lambda payload: {"systemMessage": f"for {payload['session_id']}"})
    sent: dict[str, list[Any]] = {}

    def converse(name: str) -> None:
        with hooks.session(name):
            for _ in range(3):
                client.chat.completions.create(model=name, messages=MESSAGES)

    with hooks.wrap(OpenAI(**options(server))) as client:
        threads = [threading.Thread(target=converse, args=(f"s{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for request in server.requests:
        sent.setdefault(request["model"], []).append([message["content"] for message in request["messages"]])
    assert sent == {f"s{n}": [["hi"], ["hi", f"for s{n}"], ["hi", f"for s{n}"]] for n in range(4)}


def test_clients_of_older_httpx_have_hooks(server: APIServer) -> None:
    httpx = pytest.importorskip("httpx", reason="openai also takes clients of httpx, where that is installed")
    with changing().wrap(OpenAI(http_client=httpx.Client(), **options(server))) as client:
        assert ask(client) == "the hook's answer"
        server.will_say(Reply(cut=10))
        with pytest.raises(openai.APIConnectionError):
            ask(client)


def test_streams_flow_while_no_hook_must_see_the_answer(server: APIServer) -> None:
    """Without an AfterModel hook, the response is the transport's own: nothing has read it."""
    hooks = OpenAIHooks()
    hooks.hooks.on("BeforeModel", lambda payload: None)
    with (
        hooks.wrap(OpenAI(**options(server))) as client,
        client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream,
    ):
        assert not stream.response.is_stream_consumed
        assert not stream.response.is_closed
