"""Answers that are released sentence by sentence, through every client and in every API (D-151)."""

import re
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from llxprt_hooks import deny, stop
from tests.clients.drivers import Driver
from tests.support.api_server import Call, Reply

SECRET = "My name is Ann. The key is sk-1. Call me at 3.14 or so! And bye"
REDACTED = SECRET.replace("sk-1", "[KEY]")
BROKEN = (openai.OpenAIError, anthropic.AnthropicError, httpx.TransportError, httpx2.TransportError)


class Redaction:
    """A hook that gets sentences and redacts keys in them."""

    def __init__(self, driver: Driver, **options: Any) -> None:
        self.seen: list[str] = []
        self.complete: list[bool] = []
        driver.server.pieces = True
        driver.hooks.on("AfterModel", self.run, stream="sentences", **options)

    def run(self, payload: dict[str, Any]) -> Any:
        response = payload["llm_response"]
        self.seen.append(response["text"])
        self.complete.append("finishReason" in response["candidates"][0])
        return self.answer(response["text"])

    def answer(self, text: str) -> Any:
        return {"hookSpecificOutput": {"llm_response": {"text": re.sub(r"sk-\d", "[KEY]", text)}}}


def pieces(driver: Driver) -> list[str]:
    return [text for text in map(driver.text_of_event, driver.stream()) if text]


def test_redacted_text_is_released_at_the_end_of_each_sentence(driver: Driver) -> None:
    hook = Redaction(driver)
    driver.server.will_say(SECRET, SECRET, SECRET)
    assert pieces(driver) == ["My name is Ann. ", "The key is [KEY]. ", "Call me at 3.14 or so! ", "And bye"]
    ends = [len("My name is Ann. "), SECRET.index("Call"), SECRET.index("And"), len(SECRET)]
    assert hook.seen == [SECRET[:end] for end in ends]
    assert hook.complete == [False, False, False, True]
    assert driver.stream_text() == REDACTED
    assert b"sk-1" not in driver.streamed_bytes()


def test_what_hooks_leave_alone_is_released_with_its_end(driver: Driver) -> None:
    hook = Redaction(driver)
    driver.server.will_say("One. Two. Three", "No end of a sentence", [Call("read_file", {"n": 1})], "Four. Five")
    assert pieces(driver) == ["One. ", "Two. ", "Three"]
    sent = driver.streamed_bytes()
    assert sent == driver.server.sent[-1]
    driver.stream()
    assert len(hook.seen) == 3 + 1 + 1
    assert driver.stream_text() == "Four. Five"


def test_an_answer_is_held_back_if_another_hook_needs_all_of_it(driver: Driver) -> None:
    hook = Redaction(driver)
    driver.hooks.on("AfterModel", lambda payload: None)
    driver.server.will_say(SECRET)
    assert "".join(pieces(driver)) == REDACTED
    assert hook.seen == [SECRET]


@pytest.mark.parametrize("profile", ["standard", "full"])
def test_the_failure_of_a_guard_ends_the_stream_where_hooks_act(driver: Driver, profile: str) -> None:
    class Failing(Redaction):
        def answer(self, text: str) -> Any:
            if "sk-" in text:
                raise ValueError("no idea")

    driver.hooks.config.profile = profile
    Failing(driver, fail_closed=True, name="guard")
    driver.server.will_say(SECRET, "One. The key is sk-1")
    if profile == "standard":  # no answer can be blocked there
        assert (driver.streamed(), driver.streamed()) == (SECRET, "One. The key is sk-1")
        return
    first, reason = pieces(driver)
    assert first == "My name is Ann. "
    assert reason.startswith("\n\nblocked because fail_closed is set: hook `guard` raised ValueError: no idea")
    assert driver.streamed().startswith("One. \n\nblocked")


def test_a_hook_that_fails_without_guarding_changes_nothing(driver: Driver) -> None:
    class Failing(Redaction):
        def answer(self, text: str) -> Any:
            raise ValueError("no idea")

    Failing(driver)
    driver.server.will_say("One. Two")
    assert driver.streamed() == "One. Two"


def test_a_stop_ends_the_stream(driver: Driver) -> None:
    class Stopping(Redaction):
        def answer(self, text: str) -> Any:
            return stop("enough") if "Two" in text else None

    hook = Stopping(driver)
    driver.server.will_say("One. Two. Three. Four")
    with driver.hooks.session("s"):
        assert driver.streamed() == "One. \n\nenough"
        assert driver.streamed() == "enough"
    assert len(hook.seen) == 2
    assert len(driver.server.requests) == 1


def test_a_block_ends_the_stream_where_hooks_act(driver: Driver) -> None:
    class Blocking(Redaction):
        def answer(self, text: str) -> Any:
            return deny("no twos") if "Two" in text else None

    driver.hooks.config.profile = "full"
    Blocking(driver)
    driver.server.will_say("One. Two. Three", "One. Two")
    assert driver.stream_text() == "One. \n\nno twos"
    assert driver.streamed() == "One. \n\nno twos"


def test_what_was_released_cannot_be_taken_back(driver: Driver) -> None:
    class Late(Redaction):
        def answer(self, text: str) -> Any:
            return {"hookSpecificOutput": {"llm_response": {"text": text.replace("J. Smith", "[NAME]")}}}

    Late(driver)
    driver.server.will_say("Ask J. Smith now. Bye")
    assert driver.streamed() == "Ask J. [NAME] now. Bye"


@pytest.mark.parametrize("drop", [True, False])
def test_a_stream_that_breaks_off_raises_after_what_was_released(driver: Driver, drop: bool) -> None:
    hook = Redaction(driver)
    driver.server.will_say("One. Two")
    driver.stream()
    length = len(driver.server.sent[0])
    driver.server.will_say(*[Reply("One. Two", cut=length - 150, drop=drop)] * 3)
    with pytest.raises(BROKEN):
        driver.stream()
    assert hook.seen[:3] == ["One. ", "One. Two", "One. "]
    assert hook.complete.count(True) == 1
