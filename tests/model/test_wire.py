"""Streams of server-sent events: read, assembled and written; and what a stream that breaks off is."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks.model.anthropic_messages import AnthropicMessagesTranslator
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from llxprt_hooks.model.wire import ServerSentEvent, SSEParser
from llxprt_hooks.model.wire.sse import encode_json
from tests.model.wire_samples import anthropic_response, chat_response, responses_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llxprt_hooks.model.wire import Wire

CHAT, RESPONSES, MESSAGES = OpenAIChatTranslator.wire, OpenAIResponsesTranslator.wire, AnthropicMessagesTranslator.wire
WANTS_USAGE = {"stream_options": {"include_usage": True}}
APIS = pytest.mark.parametrize(
    ("wire", "response"),
    [(CHAT, chat_response()), (RESPONSES, responses_response()), (MESSAGES, anthropic_response())],
    ids=["chat", "responses", "messages"],
)


def parsed(*chunks: bytes) -> list[ServerSentEvent]:
    parser = SSEParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


STREAM = (
    '\ufeff: hi\r\nevent: a\r\ndata: {"x":\rdata:  "ä€😀\u2028"}\nid: 7\nretry: 1\nnew\n\n'
    "\n\rdata\r\n\r\nevent: b\n\ndata: cut"
).encode()
EVENTS = [ServerSentEvent('{"x":\n "ä€😀\u2028"}', "a"), ServerSentEvent("")]


class TestParser:
    def test_every_form_of_an_event(self) -> None:
        assert parsed(STREAM) == EVENTS

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
    def test_bytes_may_be_cut_anywhere(self, size: int) -> None:
        assert parsed(*(STREAM[start : start + size] for start in range(0, len(STREAM), size))) == EVENTS

    @given(st.lists(st.integers(0, len(STREAM))))
    def test_bytes_may_be_cut_at_any_places(self, cuts: list[int]) -> None:
        places = [0, *sorted(cuts), len(STREAM)]
        assert parsed(*(STREAM[start:end] for start, end in pairwise(places))) == EVENTS

    def test_invalid_bytes_are_replaced(self) -> None:
        assert parsed(b"data: \xff\n\n") == [ServerSentEvent("\ufffd")]

    @given(st.text(), st.none() | st.just("a"))
    def test_sse_event_round_trips(self, text: str, event: str | None) -> None:
        (found,) = parsed(encode_json({"text": text}, event))
        assert (json.loads(found.data), found.event) == ({"text": text}, event)

    def test_a_lone_surrogate_is_written(self) -> None:
        assert parsed(encode_json("\ud800")) == [ServerSentEvent('"\\ud800"')]


@APIS
def test_a_response_that_is_written_is_assembled_again(wire: Wire, response: dict[str, Any]) -> None:
    stream = b"".join(wire.write(response, WANTS_USAGE))

    assert wire.assemble([stream]) == response
    assert wire.assemble(stream[index : index + 1] for index in range(len(stream))) == response


@APIS
def test_a_stream_that_breaks_off_is_incomplete(wire: Wire, response: dict[str, Any]) -> None:
    events = list(wire.events(response))

    for end in range(len(events)):
        assert wire.assemble(events[:end], {"n": 2}) is None
    assert wire.assemble(events, {"n": 2}) is not None


@APIS
def test_an_error_in_a_stream_is_not_a_response(wire: Wire, response: dict[str, Any]) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Later."}}
    assembler = wire.assembler()

    for event in [*list(wire.events(response))[:-2], error, *list(wire.events(response))[-2:]]:
        assembler.feed(encode_json(event))

    assert (assembler.response, assembler.error) == (None, error)


@APIS
def test_unreadable_events_are_ignored(wire: Wire, response: dict[str, Any]) -> None:
    stream = [b"event: ping\ndata: {}\n\ndata: nonsense\n\ndata: 7\n\n", *wire.write(response, WANTS_USAGE)]

    assert wire.assemble(stream) == response


@pytest.mark.parametrize(
    ("wire", "response", "event"),
    [
        (CHAT, chat_response(), {"choices": [7]}),
        (CHAT, chat_response(), {"choices": 7}),
        (RESPONSES, responses_response(), {"type": "response.output_item.done", "item": {}}),
        (RESPONSES, responses_response(), {"type": "response.completed", "response": None}),
        (MESSAGES, anthropic_response(), {"type": "content_block_delta", "index": 99, "delta": {}}),
    ],
)
def test_a_stream_that_cannot_be_read_is_incomplete(
    wire: Wire, response: dict[str, Any], event: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert wire.assemble([event, *wire.events(response)]) is None
    assert "it counts as incomplete" in caplog.text


@APIS
def test_an_event_that_is_nested_too_deeply_makes_a_stream_incomplete(wire: Wire, response: dict[str, Any]) -> None:
    deep = b'data: {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"

    assert wire.assemble([deep, *wire.write(response, WANTS_USAGE)]) is None


@APIS
def test_the_response_is_not_changed(wire: Wire, response: dict[str, Any]) -> None:
    before = json.dumps(response)

    wire.assemble(wire.events(response))

    assert json.dumps(response) == before


@pytest.mark.parametrize(
    ("wire", "path", "matches"),
    [
        (CHAT, "/v1/chat/completions", True),
        (CHAT, "/openai/deployments/x/chat/completions", True),
        (CHAT, "/v1/completions", False),
        (RESPONSES, "/v1/responses", True),
        (RESPONSES, "/v1/responses/", True),
        (RESPONSES, "/v1/responses/compact", False),
        (MESSAGES, "/v1/messages", True),
        (MESSAGES, "/v1/messages/count_tokens", False),
        (MESSAGES, "/v1/threads/t/messages", False),
    ],
)
def test_paths(wire: Wire, path: str, matches: bool) -> None:
    assert wire.matches("POST", path) is matches
    assert not wire.matches("GET", path)


def test_whether_a_request_asks_for_a_stream() -> None:
    assert [CHAT.is_streamed(request) for request in ({"stream": True}, {"stream": False}, {})] == [True, False, False]


def chunks(*deltas: dict[str, Any], finish_reason: str | None = "stop") -> list[dict[str, Any]]:
    last = {"index": 0, "delta": {}, "finish_reason": finish_reason}
    pieces: Sequence[dict[str, Any]] = [*({"index": 0, "delta": delta} for delta in deltas), last]
    return [{"id": "c", "object": "chat.completion.chunk", "choices": [piece]} for piece in pieces]


def message(*deltas: dict[str, Any]) -> Any:
    response = CHAT.assemble(chunks(*deltas))
    assert response is not None
    return response["choices"][0]["message"]


class TestChat:
    def test_pieces_of_text_and_of_unknown_fields_are_joined(self) -> None:
        result = message(
            {"role": "assistant", "content": "", "reasoning_content": "I "},
            {"role": "assistant", "content": "Hel", "reasoning_content": "wonder."},
            {"content": "lo", "function_call": {"name": "f", "arguments": "{"}},
            {"function_call": {"arguments": "}"}, "refusal": None},
        )

        assert result == {
            "role": "assistant",
            "content": "Hello",
            "reasoning_content": "I wonder.",
            "function_call": {"name": "f", "arguments": "{}"},
            "refusal": None,
        }

    def test_pieces_of_calls_are_joined_by_their_number(self) -> None:
        def piece(index: int, arguments: str, **fields: Any) -> dict[str, Any]:
            return {"index": index, "function": {"arguments": arguments, **fields}}

        result = message(
            {"tool_calls": [{**piece(1, "", name="b"), "id": "c2", "type": "function"}]},
            {"tool_calls": [{**piece(0, "{", name="a"), "id": "c1", "type": "function"}, piece(1, "[")]},
            {"tool_calls": [piece(0, "}"), {**piece(1, "]"), "id": "c2"}]},
        )

        assert result["tool_calls"] == [
            {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "b", "arguments": "[]"}},
        ]

    def test_fields_that_a_server_repeats_or_leaves_empty_are_not_joined(self) -> None:
        pieces = chunks({"tool_calls": [{"index": 0, "id": "c1"}]}, {"tool_calls": [{"index": 0, "id": ""}]})
        for piece in pieces[1:]:
            piece["choices"][0]["finish_reason"] = "stop"
        del pieces[0]["choices"][0]["index"]

        response = CHAT.assemble([*pieces, {"choices": [{"index": 0, "delta": None, "finish_reason": None}]}])

        assert response is not None
        assert response["choices"][0]["finish_reason"] == "stop"
        assert response["choices"][0]["message"]["tool_calls"] == [{"id": "c1"}]

    def test_lists_without_numbers_grow(self) -> None:
        assert message({"annotations": [{"a": 1}]}, {"annotations": [{"a": 2}]})["annotations"] == [{"a": 1}, {"a": 2}]

    def test_log_probabilities_are_joined(self) -> None:
        pieces = chunks({"content": "a"}, {"content": "b"})
        for number, piece in enumerate(pieces[:2]):
            piece["choices"][0]["logprobs"] = {"content": [{"token": str(number)}], "refusal": None}

        response = CHAT.assemble(pieces)

        assert response is not None
        assert response["choices"][0]["logprobs"]["content"] == [{"token": "0"}, {"token": "1"}]

    def test_padding_and_empty_fields_of_later_chunks_do_not_count(self) -> None:
        first, last = chunks({"content": "Hi"})
        response = CHAT.assemble([{**first, "model": "m", "usage": None, "obfuscation": "x"}, {**last, "model": None}])

        assert response is not None
        assert (response["model"], response["usage"], "obfuscation" in response) == ("m", None, False)

    def test_calls_without_a_number_stay_in_order(self) -> None:
        calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ba"]
        response = CHAT.assemble(chunks(*({"tool_calls": [call]} for call in calls)))

        assert response is not None
        assert response["choices"][0]["message"]["tool_calls"] == calls

    def test_calls_that_cannot_be_put_in_order_make_a_stream_incomplete(self) -> None:
        calls = [{"index": index, "id": "c"} for index in (0, "1")]

        assert CHAT.assemble(chunks(*({"tool_calls": [call]} for call in calls))) is None

    def test_a_choice_without_an_end_is_incomplete(self) -> None:
        assert CHAT.assemble(chunks({"content": "Hi"}, finish_reason=None)) is None
        assert CHAT.assemble([b"data: [DONE]\n\n"]) is None


class TestResponses:
    def test_an_output_that_the_last_event_lacks_is_that_of_the_items(self) -> None:
        response = responses_response()
        *events, last = RESPONSES.events(response)
        shortened = {**last, "response": {**last["response"], "output": []}}

        assert RESPONSES.assemble([*events, shortened]) == response

    @pytest.mark.parametrize("status", ["incomplete", "failed"])
    def test_a_response_that_did_not_succeed_is_complete_too(self, status: str) -> None:
        response = {**responses_response(), "status": status}
        events = list(RESPONSES.events(response))

        assert events[-1]["type"] == f"response.{status}"
        assert RESPONSES.assemble(events) == response

    def test_parts_of_an_unknown_type_are_in_the_item(self) -> None:
        part = {"type": "output_audio", "data": "AA=="}
        item = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
        response = {"object": "response", "output": [item]}

        assert RESPONSES.assemble(RESPONSES.events(response)) == response


class TestMessages:
    def test_an_input_that_was_cut_off_is_kept_as_text(self) -> None:
        events = list(MESSAGES.events(anthropic_response()))
        cut = [
            {**event, "delta": {**event["delta"], "partial_json": '{"path": "a'}}
            if event["type"] == "content_block_delta" and event["delta"].get("partial_json", "{}") != "{}"
            else event
            for event in events
        ]

        response = MESSAGES.assemble(cut)

        assert response is not None
        assert response["content"][6]["input"] == '{"path": "a'
        assert MESSAGES.assemble(MESSAGES.events(response)) == response

    def test_counts_and_fields_at_the_end_are_those_of_the_message(self) -> None:
        *events, end, stop = MESSAGES.events({**anthropic_response(), "container": {"id": "x"}})
        usage = {"output_tokens": 9, "input_tokens": None, "server_tool_use": {"web_search_requests": 1}}

        response = MESSAGES.assemble([*events, {**end, "usage": usage, "context_management": {"a": 1}}, stop])

        assert response is not None
        assert (response["container"], response["context_management"]) == ({"id": "x"}, {"a": 1})
        expected = {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 2}
        assert response["usage"] == {**expected, "server_tool_use": {"web_search_requests": 1}}

    def test_deltas_of_an_unknown_type_are_joined(self) -> None:
        start = {"type": "message_start", "message": {"content": []}}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": ""}}
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": content}}
            for content in ("Su", "mmary")
        ]

        response = MESSAGES.assemble([start, block, *deltas, {"type": "message_stop"}])

        assert response is not None
        assert response["content"] == [{"type": "compaction", "content": "Summary"}]

    def test_an_end_without_a_start_is_incomplete(self) -> None:
        assert MESSAGES.assemble([{"type": "message_stop"}]) is None
