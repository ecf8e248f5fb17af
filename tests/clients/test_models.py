"""Every effect of the model events, on the wire and on what the program gets, with every client."""

import logging
from typing import Any

import anthropic
import openai
import pytest

from llxprt_hooks import StopRequested, TranslationError, deny, stop
from tests.clients.drivers import ChatDriver, Driver, MessagesDriver, ResponsesDriver
from tests.support.api_server import Call, Reply

CHANGED = {"hookSpecificOutput": {"llm_response": {"text": "the hook's answer"}}}
CONNECTION_ERRORS = (openai.APIConnectionError, anthropic.APIConnectionError)
STATUS_ERRORS = (openai.APIStatusError, anthropic.APIStatusError)

ERRORS: dict[type[Driver], bytes] = {
    ChatDriver: b'data: {"error": {"message": "overloaded"}}',
    ResponsesDriver: b'event: error\ndata: {"type": "error", "code": "server_error", "message": "overloaded"}',
    MessagesDriver: b'event: error\ndata: {"type": "error", "error": {"type": "x", "message": "overloaded"}}',
}


class Recorder:
    """A hook for an event: keeps its payloads and returns an answer."""

    def __init__(self, driver: Driver, event: str, answer: Any = None) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.answer = answer
        driver.hooks.on(event, self._run)

    def _run(self, payload: dict[str, Any]) -> Any:
        self.payloads.append(payload)
        return self.answer


def test_without_hooks_everything_passes_unchanged(driver: Driver) -> None:
    assert driver.ask() == "the model's answer"
    assert driver.streamed() == "the model's answer"
    assert driver.streamed_bytes() == driver.server.sent[-1]


def test_a_request_that_hooks_leave_alone_is_sent_byte_for_byte(driver: Driver) -> None:
    driver.ask("schön")
    Recorder(driver, "BeforeModel")
    Recorder(driver, "AfterModel")
    driver.ask("schön")
    assert driver.server.bodies[0] == driver.server.bodies[1]


def test_the_answer_to_a_blocked_request_is_the_reason(driver: Driver) -> None:
    Recorder(driver, "BeforeModel", deny("no secrets"))
    after = Recorder(driver, "AfterModel")
    assert driver.ask() == "no secrets"
    assert driver.streamed() == "no secrets"
    assert driver.stream_text() == "no secrets"
    assert driver.text(driver.run(driver.raw().parse())) == "no secrets"
    assert not driver.server.requests
    assert not after.payloads


def test_a_hook_changes_the_answer(driver: Driver) -> None:
    Recorder(driver, "AfterModel", CHANGED)
    response = driver.create()
    assert driver.text(response) == "the hook's answer"
    assert response.id.endswith("_1") or response.id.endswith("-1")
    assert driver.streamed() == "the hook's answer"
    assert driver.stream_text() == "the hook's answer"
    raw = driver.raw()
    assert raw.headers["x-request-id"] == "request-1"
    assert driver.text(driver.run(raw.parse())) == "the hook's answer"
    assert b"the model's answer" not in driver.streamed_bytes()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_answers_are_read_and_replayed(driver: Driver, encoding: str) -> None:
    after = Recorder(driver, "AfterModel")
    driver.server.will_say(Reply(encoding=encoding), Reply(encoding=encoding), Reply(encoding=encoding))
    assert driver.ask() == "the model's answer"
    assert driver.streamed() == "the model's answer"
    assert [payload["llm_response"]["text"] for payload in after.payloads] == ["the model's answer"] * 2
    after.answer = CHANGED
    assert driver.ask() == "the hook's answer"


def test_a_stream_that_a_hook_leaves_alone_is_replayed_byte_for_byte(driver: Driver) -> None:
    after = Recorder(driver, "AfterModel")
    driver.server.will_say("Grüße, 🌍", "Grüße, 🌍")
    assert driver.streamed_bytes() == driver.server.sent[0]
    assert driver.streamed() == "Grüße, 🌍"
    assert after.payloads[0]["llm_response"]["text"] == "Grüße, 🌍"


def test_a_stream_of_calls_is_replayed_with_its_calls(driver: Driver) -> None:
    after = Recorder(driver, "AfterModel")
    driver.server.will_say([Call("read_file", {"path": "a"})], [Call("read_file", {"path": "a"})])
    assert driver.streamed_bytes() == driver.server.sent[0]
    assert b"read_file" in driver.server.sent[0]
    assert after.payloads[0]["llm_response"]["text"] == ""


@pytest.mark.parametrize("drop", [False, True])
def test_a_stream_that_breaks_off_raises_and_shows_nothing(driver: Driver, drop: bool) -> None:
    Recorder(driver, "AfterModel")
    driver.server.will_say(Reply("a secret that the hook never saw", cut=-30, drop=drop))
    shown: list[Any] = []
    with pytest.raises(CONNECTION_ERRORS):
        shown += driver.stream()
    assert not shown


def test_a_broken_answer_raises(driver: Driver) -> None:
    Recorder(driver, "AfterModel")
    driver.server.will_say(Reply(body=b'{"text": '))
    with pytest.raises(CONNECTION_ERRORS):
        driver.ask()


def test_an_error_within_a_stream_reaches_the_program_and_nothing_else_does(driver: Driver) -> None:
    Recorder(driver, "AfterModel")
    driver.server.will_say("a secret that the hook never saw")
    driver.streamed()
    events = driver.server.sent[-1].split(b"\n\n")
    driver.server.will_say(Reply(body=b"\n\n".join([*events[:-4], ERRORS[type(driver)], b""])))
    if isinstance(driver, ResponsesDriver):
        assert [event.type for event in driver.stream()] == ["error"]  # this API has an event for it
    else:
        shown: list[Any] = []
        with pytest.raises((openai.APIError, anthropic.APIError), match="overloaded"):
            shown += driver.stream()
        assert not shown


@pytest.mark.parametrize("status", [400, 429, 500])
def test_errors_pass_through_without_hooks(driver: Driver, status: int) -> None:
    before, after = Recorder(driver, "BeforeModel"), Recorder(driver, "AfterModel", CHANGED)
    driver.server.will_say(Reply(status=status), Reply(status=status))
    with pytest.raises(STATUS_ERRORS, match="sorry"):
        driver.ask()
    with pytest.raises(STATUS_ERRORS, match="sorry"):
        driver.stream()
    assert len(before.payloads) == 2
    assert not after.payloads


def test_hooks_run_for_each_attempt_of_a_client_that_retries(driver: Driver) -> None:
    before, after = Recorder(driver, "BeforeModel"), Recorder(driver, "AfterModel")
    driver.client = driver.client.with_options(max_retries=1)
    driver.server.will_say(Reply(status=500, headers={"retry-after-ms": "1"}), Reply())
    assert driver.ask() == "the model's answer"
    assert (len(before.payloads), len(after.payloads)) == (2, 1)


def test_a_stop_outside_of_a_session_raises(driver: Driver) -> None:
    before = Recorder(driver, "BeforeModel", stop("enough"))
    with pytest.raises(StopRequested, match="enough") as raised:
        driver.ask()
    assert raised.value.reason == "enough"
    with pytest.raises(StopRequested, match="enough"):
        driver.stream()
    assert not driver.server.requests
    before.answer = None
    Recorder(driver, "AfterModel", stop("after all"))
    with pytest.raises(StopRequested, match="after all") as raised:
        driver.ask()
    assert raised.value.result.response is not None
    assert len(driver.server.requests) == 1, "a stop is not a failure that the SDK retries"


def test_after_a_stop_in_a_session_the_model_is_not_asked_again(driver: Driver) -> None:
    after = Recorder(driver, "AfterModel", stop("enough"))
    with driver.clients.session("s1") as session:
        assert driver.ask() == "enough"
        assert session.stop_reason == "enough"
        assert driver.ask() == "enough"
        assert driver.streamed() == "enough"
        session.resume()
        after.answer = None
        assert driver.ask() == "the model's answer"
    assert len(driver.server.requests) == 2
    assert {payload["session_id"] for payload in after.payloads} == {"s1"}


def test_what_a_hook_says_after_an_answer_is_in_the_next_request_of_the_session(driver: Driver) -> None:
    after = Recorder(driver, "AfterModel", {"systemMessage": "be polite"})
    with driver.clients.session("s1"):
        driver.ask("one")
        after.answer = None
        driver.server.will_say(Reply(status=400), Reply(), Reply())
        with pytest.raises(STATUS_ERRORS):
            driver.ask("two")
        driver.ask("two again")
        driver.ask("three")
    sent = [" ".join(driver.texts(request)) for request in driver.server.requests]
    assert ["be polite" in text for text in sent] == [False, True, True, False]


def test_notes_reach_a_request_for_which_no_hook_runs(driver: Driver) -> None:
    """A tool's hook may leave a note, or stop the session, where no hook watches the model."""
    Recorder(driver, "BeforeTool")
    with driver.clients.session("s1") as session:
        session.exchange_notes((), ("be polite",))
        driver.ask("one")
        driver.ask("two")
        session.stop_reason = "enough"
        assert driver.ask("three") == "enough"
    sent = [" ".join(driver.texts(request)) for request in driver.server.requests]
    assert ["be polite" in text for text in sent] == [True, False]


def test_a_message_outside_of_a_session_is_dropped_with_a_warning(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    Recorder(driver, "AfterModel", {"systemMessage": "be polite"})
    with caplog.at_level(logging.WARNING):
        driver.ask()
    assert "is dropped" in caplog.text


def test_other_endpoints_pass_untouched(driver: Driver) -> None:
    before = Recorder(driver, "BeforeModel", deny("no"))
    after = Recorder(driver, "AfterModel", CHANGED)
    client = driver.client
    if isinstance(driver, MessagesDriver):
        counted = driver.run(client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}]))
        assert counted.input_tokens == 7
    else:
        assert driver.run(client.embeddings.create(model="e", input="text", encoding_format="float")).data == []
    assert not before.payloads
    assert not after.payloads


def test_a_request_that_cannot_be_read_raises_where_hooks_would_run(driver: Driver) -> None:
    bad: dict[str, Any] = {"extra_body": {"messages": 7, "input": 7}}
    driver.server.will_say(Reply())
    Recorder(driver, "BeforeModel")
    with pytest.raises(TranslationError):
        driver.create(**bad)
    assert not driver.server.requests


def test_a_client_can_be_wrapped_twice(driver: Driver) -> None:
    before = Recorder(driver, "BeforeModel")
    driver.client = driver.clients.wrap(driver.client)  # type: ignore[attr-defined]
    driver.ask()
    assert len(before.payloads) == 1
