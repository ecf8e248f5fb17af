"""What holds for every translator, whatever a hook does to the messages: the conversation stays whole and valid (D-13).

Random histories with images, thoughts, calls and results; hooks that edit, insert, delete, repeat and reorder.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llxprt_hooks.testing import Sample, check_translator
from tests.model.edited_messages import MESSAGES, TEXTS, edited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llxprt_hooks.model import HookTranslator

EXAMPLES = int(os.environ.get("TRANSLATOR_EXAMPLES", "300"))
"""How many random edits each translator gets; more of them find nothing new, but it can be tried."""
UNSEEN = re.compile(r"(?:prompt|image|thought|call|result)-\d+")

PROPERTIES: list[Callable[..., None]] = []
"""Each gets an ``API``."""


def holds(check: Callable[..., None]) -> Callable[..., None]:
    """Add a property."""
    PROPERTIES.append(check)
    return check


class Said(NamedTuple):
    """What a person says: texts and images."""

    parts: list[str]


class Answered(NamedTuple):
    """What a model answers: perhaps a thought, texts, and calls with their results."""

    thought: str | None
    texts: list[str]
    calls: list[str]
    remark: str | None
    """A text next to the results."""


@st.composite
def histories(draw: st.DrawFn) -> list[Said | Answered]:
    numbers = count()

    def some(word: str, most: int) -> list[str]:
        return [f"{word}-{next(numbers)}" for _ in range(draw(st.integers(0, most)))]

    def said() -> Said:
        parts = draw(st.lists(TEXTS, max_size=2)) + some("image", 1)
        return Said(draw(st.permutations(parts)) or ["yes"])

    def answered() -> Answered:
        calls = some("call", 2)
        texts = draw(st.lists(TEXTS, min_size=0 if calls else 1, max_size=2))
        remark = draw(st.none() | TEXTS) if calls else None
        return Answered(next(iter(some("thought", 1)), None), texts, calls, remark)

    makers: list[Callable[[], Said | Answered]] = [said, answered]
    kinds = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=5))
    return [kind() for kind in kinds]


def is_image(part: str) -> bool:
    return part.startswith("image-")


def text(content: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": content}


class API(ABC):
    """Writes a history in the form of an API, and checks what the API checks."""

    name: str
    thoughts_need_more = False
    """Whether the API rejects a thought without a text or a call after it."""
    attached: Sequence[Any] = ()
    """What every text has with it, for ``Sample``."""

    @property
    @abstractmethod
    def translator(self) -> HookTranslator[Any, Any, Any]: ...

    @abstractmethod
    def request(self, history: list[Said | Answered]) -> Any: ...

    @abstractmethod
    def response(self, answered: Answered) -> Any: ...

    @abstractmethod
    def accept(self, request: Any) -> None: ...

    def plain(self, value: Any) -> Any:
        """Return what ``json`` cannot write in a form that it can."""
        raise TypeError(type(value))

    def dump(self, value: Any) -> str:
        return json.dumps(value, default=self.plain)

    def unseen(self, value: Any, *, thoughts: bool = True) -> list[str]:
        """What hooks do not see, in order."""
        found = UNSEEN.findall(self.dump(value))
        return [word for word in found if thoughts or not word.startswith("thought-")]


@holds
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories())
def a_conversation_stays_whole_and_valid(api: API, data: st.DataObject, history: Any) -> None:
    translator, base = api.translator, api.request(history)
    api.accept(base)
    before = api.dump(base)
    shown = translator.to_hook_llm_request(base)["messages"]
    wanted = data.draw(edited(shown) | st.lists(MESSAGES, max_size=6))

    result = translator.from_hook_llm_request({"messages": wanted}, base)

    api.accept(result)
    assert api.dump(base) == before
    assert api.unseen(result, thoughts=False) == api.unseen(base, thoughts=False)
    if api.thoughts_need_more:
        kept = iter(api.unseen(base))
        assert all(word in kept for word in api.unseen(result)), "a thought is new, or at another place"
        led_to_calls = {turn.thought for turn in history if isinstance(turn, Answered) and turn.calls and turn.thought}
        assert led_to_calls <= set(api.unseen(result))
        if len(wanted) >= len(shown) and wanted[: len(shown)] == shown:
            assert api.unseen(result) == api.unseen(base)
    else:
        assert api.unseen(result) == api.unseen(base)
    texts = Counter((message["role"], message["content"]) for message in wanted)
    again = translator.to_hook_llm_request(result)["messages"]
    assert Counter((message["role"], message["content"]) for message in again) == texts
    if not any(isinstance(turn, Answered) and turn.calls for turn in history):
        assert again == wanted


@holds
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories())
def a_conversation_in_full_view_stays_whole_and_valid(api: API, data: st.DataObject, history: Any) -> None:
    translator, base = api.translator, api.request(history)
    before = api.dump(base)
    shown = translator.to_full_llm_request(base)["messages"]
    assert json.loads(json.dumps(shown)) == shown
    wanted = data.draw(edited(shown) | st.lists(MESSAGES, max_size=6))

    result = translator.from_full_llm_request({"messages": wanted}, base)

    api.accept(result)
    assert api.dump(base) == before
    assert result is base or wanted != shown
    again = translator.to_full_llm_request(result)["messages"]
    assert hidden(api, result) == hidden(api, base)
    assert calls_in(again) == calls_in(shown)
    assert results_in(again) == {call: results_in(wanted).get(call, "") for call in results_in(shown)}
    assert texts_in(again) == texts_in(wanted)
    if len(wanted) >= len(shown) and wanted[: len(shown)] == shown:
        assert thoughts_in(api, result) == thoughts_in(api, base)


def thoughts_in(api: API, request: Any) -> list[str]:
    return [word for word in api.unseen(request) if word.startswith("thought-")]


def hidden(api: API, request: Any) -> list[str]:
    """What even the full view does not show, except thoughts, which may go with their text."""
    return [word for word in api.unseen(request) if word.startswith("image-")]


def calls_in(messages: Any) -> list[Any]:
    return [call for message in messages for call in message.get("toolCalls", ())]


def results_in(messages: Any) -> dict[str, str]:
    results = [message for message in messages if message["role"] == "tool"]
    return {result["toolCallId"]: result["content"] for result in reversed(results)}


def texts_in(messages: Any) -> Counter[tuple[str, str]]:
    shown = ((each["role"], each["content"]) for each in messages if each["role"] != "tool" and each["content"])
    return Counter(
        ("system", text.removeprefix("[System] ")) if role == "system" or text.startswith("[System]") else (role, text)
        for role, text in shown
    )


@holds
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories().filter(lambda turns: any(isinstance(turn, Answered) for turn in turns)))
def of_an_answer_in_full_view_only_what_hooks_change_is_changed(api: API, data: st.DataObject, history: Any) -> None:
    answered = next(turn for turn in history if isinstance(turn, Answered))
    translator, base = api.translator, api.response(answered)
    before = api.dump(base)
    shown = translator.to_full_llm_response(base)
    content = shown["candidates"][0]["content"]
    assert [call["id"] for call in content.get("toolCalls", ())] == answered.calls
    assert translator.from_full_llm_response(shown, base) is (base if answered.calls else None)
    if not answered.calls:
        return
    kept = [call for call in content["toolCalls"] if data.draw(st.booleans())]
    calls = [{**call, "args": {"a": 1}} if data.draw(st.booleans()) else call for call in kept]
    parts = [f"{text}!" for text in content["parts"]] if data.draw(st.booleans()) else content["parts"]
    wanted = {"candidates": [{"content": {"role": "model", "parts": parts, "toolCalls": calls}}]}

    result = translator.from_full_llm_response(wanted, base)

    assert api.dump(base) == before
    again = translator.to_full_llm_response(result)["candidates"][0]["content"]
    assert again.get("toolCalls", []) == calls
    assert "".join(again["parts"]) == "".join(parts)
    if answered.thought and (calls or answered.texts):
        assert answered.thought in api.dump(result)


@holds
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories())
def random_conversations_pass_the_check(api: API, history: Any) -> None:
    thoughts = [turn.thought for turn in history if isinstance(turn, Answered) and turn.thought and not turn.calls]
    attached = [*thoughts, "thinking", "reasoning"] if api.thoughts_need_more else []

    check_translator(api.translator, [Sample(api.request(history), attached=[*attached, *api.attached])])


@holds
@settings(max_examples=60, deadline=None)
@given(history=histories())
def a_system_message_goes_to_the_end_of_a_valid_request(api: API, history: Any) -> None:
    translator, base = api.translator, api.request(history)

    result = translator.with_system_message(base, "Be brief.")

    api.accept(result)
    assert api.unseen(result) == api.unseen(base)
    assert translator.turns(result)[-1].text.endswith("Be brief.")
