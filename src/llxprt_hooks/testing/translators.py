"""Checks for extensions of llxprt-hooks: ``check_translator`` tests a translator against the common contract.

>>> from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
>>> request = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
>>> check_translator(OpenAIChatTranslator(), [Sample(request)])
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from llxprt_hooks.model.conversation import Turn
from llxprt_hooks.model.format import HookToolConfig, LLMMessage, TranslationError
from llxprt_hooks.model.restriction import Restriction, combine

if TYPE_CHECKING:
    from llxprt_hooks.model.translator import AnyTranslator

_SETTINGS: Mapping[str, Any] = {
    "temperature": 0.125,
    "maxOutputTokens": 1234,
    "topP": 0.375,
    "topK": 17,
    "stopSequences": ["stop here"],
    "candidateCount": 3,
    "presencePenalty": 0.625,
    "frequencyPenalty": 0.875,
}
_CALLS = re.compile(r"(tool|function)_?(calls?|use)", re.IGNORECASE)
_MALFORMED = {"model": 7, "messages": "none", "config": ["x"], "toolConfig": 3, "unknown": {}}


class Sample(NamedTuple):
    """A request and, optionally, a response in the SDK's own form, for ``check_translator``."""

    request: Any
    response: Any = None
    hidden: Sequence[Any] = ()
    """Values in the request that hooks do not see: they must survive even if a hook removes every message."""
    attached: Sequence[Any] = ()
    """Values that hooks do not see and that belong to a text, such as the reasoning that led to it: they must survive
    every change of the text, but may go away with it, if the API rejects the one without the other."""
    tool_names: Sequence[str] = ("read_file", "write_file")
    """Tools that the request declares."""


def check_translator(translator: AnyTranslator, samples: Iterable[Sample | Any]) -> None:
    """Raise an ``AssertionError`` that names the rule that a translator breaks, and the sample.

    A sample is a ``Sample``, a tuple of its fields, or just a request. The more data a sample has that hooks do not see
    (images, tool calls with their results, signatures, a system prompt, unknown fields), the more is checked.

    - A request that hooks do not change stays the same object, and so does each message in it. Data that hooks do not
      see survives every change, in its own message.
    - Changes to messages, model, settings and tool choice are in the request, and nothing else changes. An API that
      cannot name several tools may leave out those that are not allowed.
    - Nothing is inserted between a tool call and its result. A system message is the last message. The translator can
      read every request that it wrote.
    - In the full view, every text can be changed alone: that of a result and of the system prompt, too. In an answer,
      a call's arguments can be changed, and a call left out.
    - A response that hooks replace has their text and no tool calls. No argument is ever changed.
    """
    given = [sample if isinstance(sample, Sample) else _sample(sample) for sample in samples]
    assert given, "check_translator needs at least one sample"
    for number, sample in enumerate(given):
        _Check(translator, sample, f"{type(translator).__name__}, sample {number}").run()


def _sample(sample: Any) -> Sample:
    return Sample(*sample) if isinstance(sample, tuple) and not hasattr(sample, "_fields") else Sample(sample)


class _Check:
    """Checks one sample against each rule."""

    def __init__(self, translator: AnyTranslator, sample: Sample, name: str) -> None:
        self.translator = translator
        self.sample = sample
        self.name = name
        self.request = translator.read_request(sample.request)
        self.shown = translator.to_hook_llm_request(self.request)
        texts = [message["content"] for message in self.shown["messages"]]
        unseen = _leaves(_plain(self.request)) - _leaves(dict(self.shown))
        self.hidden = {leaf for leaf in unseen if not any(leaf in text for text in texts)}
        """The values in the request that hooks do not see."""

        sources = [_plain(turn.source) for turn in translator.turns(self.request)]
        new = [translator.rebuild(self.request, [Turn(role, "new")]) for role in ("user", "model")]
        added = [_own_leaves(_plain(turn.source)) for request in new for turn in translator.turns(request)]
        around = [_around(source, texts) for source in sources]
        self.beside_text = set().union(map(_leaf, sample.attached), *around, *added)
        """Values around a text, such as the role of its message: they come and go with the text."""

        self.inputs = self.dump()

    def run(self) -> None:
        self.payload()
        self.unchanged()
        self.messages()
        self.fields()
        self.tool_choice()
        self.system_message()
        self.full_view()
        if self.sample.response is not None:
            self.response()
        self.untouched("all of it")

    def untouched(self, what: str) -> None:
        self.require(self.dump() == self.inputs, f"{what}: an input was changed")

    def dump(self) -> str:
        """Return the inputs as text; they may hold objects that cannot be copied."""
        return json.dumps(_plain((self.request, self.sample.response)), default=repr)

    def require(self, condition: object, message: str) -> None:
        if not condition:
            raise AssertionError(f"{self.name}: {message}")

    def payload(self) -> None:
        """Hooks receive the hook format, as JSON, and the translator declines to read the hook format as a request."""
        self.require(isinstance(self.shown.get("messages"), list), "`messages` in a payload must be a list")
        self.require(isinstance(self.shown.get("config"), dict), "`config` in a payload must always be an object")
        for message in self.shown["messages"]:
            self.require(message["role"] in ("user", "model", "system"), f"unknown role {message['role']!r}")
            self.require(message["content"], "a message without text is shown")
        json.dumps(self.shown)
        self.declines(self.translator.read_request, self.shown, "a request in hook format")
        self.declines(self.translator.read_request, object(), "any object as a request")

    def declines(self, read: Any, value: Any, what: str) -> None:
        try:
            read(value)
        except TranslationError:
            return
        raise AssertionError(f"{self.name}: `{read.__name__}` must raise TranslationError for {what}")

    def unchanged(self) -> None:
        for answer in ({}, self.shown, _MALFORMED):
            same = self.translator.from_hook_llm_request(answer, self.request) is self.request
            self.require(same, f"a request that no hook changes must stay the same object (answer: {answer})")

    def messages(self) -> None:
        """Change, remove and move every message; add messages at every position."""
        shown = self.shown["messages"]
        for index, message in enumerate(shown):
            edited: LLMMessage = {"role": message["role"], "content": f"changed {message['content']}"}
            changed = [*shown[:index], edited, *shown[index + 1 :]]
            self.same_objects(self.rewritten(changed, f"message {index} changed", self.hidden, in_order=True), index)
            self.rewritten([*shown[:index], *shown[index + 1 :]], f"message {index} removed", in_order=True)
        for index in range(len(shown) + 1):
            for role in ("user", "model"):
                new: LLMMessage = {"role": role, "content": f"new from {role}"}
                self.rewritten([*shown[:index], new, *shown[index:]], f"{role} message added at {index}", self.hidden)
        self.rewritten([], "all messages removed", in_order=True)
        self.rewritten(shown[::-1], "all messages reversed")

    def rewritten(
        self, wanted: list[LLMMessage], what: str, hidden: AbstractSet[str] = frozenset(), *, in_order: bool = False
    ) -> Any:
        request = self.translator.from_hook_llm_request({"messages": wanted}, self.request)
        self.untouched(what)
        shown = self.translator.to_hook_llm_request(request)
        has, expected = [_pair(message) for message in shown["messages"]], [_pair(message) for message in wanted]
        same = has == expected if in_order else sorted(has) == sorted(expected)
        self.require(same, f"{what}: hooks wanted {expected}, the request has {has}")
        self.require(_rest(shown) == _rest(self.shown), f"{what}: more than the messages changed: {_rest(shown)}")
        self.survives(request, what, hidden)
        self.unbroken(self.request, request, what)
        before, after = self.data_of_turns(self.request), self.data_of_turns(request)
        same = before == after if in_order else Counter(before) == Counter(after)
        self.require(same, f"{what}: data that hooks do not see is in another message, or there twice")
        return request

    def data_of_turns(self, request: Any) -> list[frozenset[tuple[str, int]]]:
        """Count, per turn, the values that are hidden from hooks."""
        known = self.hidden - self.beside_text
        turns = [Counter(_all_leaves(_plain(turn.source))) for turn in self.translator.turns(request)]
        data = [frozenset((leaf, count) for leaf, count in turn.items() if leaf in known) for turn in turns]
        return [values for values in data if values]

    def same_objects(self, request: Any, edited: int) -> None:
        """The messages that a hook does not change are the same objects, if the SDK has an object for a message."""
        turns, again = self.translator.turns(self.request), self.translator.turns(self.request)
        with_text = [index for index, turn in enumerate(turns) if turn.text]
        after = self.translator.turns(request)
        kept = {id(turn.source) for turn in after}
        for index, (turn, same) in enumerate(zip(turns, again, strict=True)):
            if turn.source is same.source and index != with_text[edited]:
                what = f"message {edited} changed: another message is a copy, expected the same object"
                self.require(id(turn.source) in kept, what)

    def survives(self, request: Any, what: str, hidden: AbstractSet[str]) -> None:
        """Data that hooks do not see is still there; the role and similar fields of a removed message may be gone."""
        try:
            self.translator.read_request(request)
        except TranslationError as error:
            raise AssertionError(f"{self.name}: {what}: the request cannot be read again: {error}") from error
        lost = sorted({*hidden, *map(_leaf, self.sample.hidden)} - _leaves(_plain(request)))
        self.require(not lost, f"{what}: lost data that hooks do not see: {', '.join(lost)}")

    def unbroken(self, base: Any, request: Any, what: str) -> None:
        """Between a tool call and its result is what was there before, and nothing else."""
        before, after = self.translator.turns(base), self.translator.turns(request)
        for call, result in _exchanges(before):
            spans = [span for span in _exchanges(after) if _keys(after, span) == _keys(before, (call, result))]
            self.require(spans, f"{what}: a tool call or its result is gone")
            start, end = spans[0]
            self.require(end - start <= result - call, f"{what}: a message was put between a tool call and its result")

    def fields(self) -> None:
        changes: list[dict[str, Any]] = [{"model": "another-model"}]
        settings = [name for name in self.translator.SETTINGS if self.translator.supports(self.request, name)]
        changes += [{"config": {name: _SETTINGS[name]}} for name in settings]
        for change in changes:
            request = self.translator.from_hook_llm_request(change, self.request)
            self.untouched(f"{change} set")
            shown: dict[str, Any] = dict(self.translator.to_hook_llm_request(request))
            expected: dict[str, Any] = {**self.shown, **change}
            expected["config"] = {**self.shown["config"], **change.get("config", {})}
            self.require(shown == expected, f"a hook set {change}, and the request then has {shown}")
            self.survives(request, f"{change} set", self.hidden)

    def tool_choice(self) -> None:
        if not self.translator.tools_of(self.request):
            return
        first, *_ = names = list(self.sample.tool_names)
        choices: list[HookToolConfig] = [
            {"mode": "NONE"},
            {"mode": "AUTO"},
            {"mode": "ANY"},
            {"allowedFunctionNames": []},
            {"allowedFunctionNames": [first]},
            {"mode": "ANY", "allowedFunctionNames": [first]},
            {"mode": "ANY", "allowedFunctionNames": names},
            {"mode": "AUTO", "allowedFunctionNames": names},
        ]
        given = self.translator.tool_config_of(self.request)
        others = Counter(_all_leaves(_plain(self.request))) - Counter(_all_leaves(_plain(given)))
        for choice in choices:
            expected = combine(self.translator.to_hook_tool_config(given), choice)
            direct = self.translator.with_tool_config(
                self.request, self.translator.from_hook_tool_config(choice, given)
            )
            for request in (direct, self.translator.from_hook_llm_request({"toolConfig": choice}, self.request)):
                has = self.translator.to_hook_tool_config(self.translator.tool_config_of(request))
                same = has.get("mode") == expected.get("mode") and Restriction.of(has) == Restriction.of(expected)
                self.require(same, f"the tool choice {choice} became {has}, expected {expected}")
                shown = self.translator.to_hook_llm_request(request)
                same = {**shown, "toolConfig": 0} == {**self.shown, "toolConfig": 0}
                self.require(same, f"the tool choice {choice} changed other fields: {shown}")
                lost = others - Counter(_all_leaves(_plain(request))) - self.removed_tools(request, expected)
                self.require(not lost, f"the tool choice {choice} dropped other fields: {', '.join(sorted(lost))}")

    def removed_tools(self, request: Any, allowed: HookToolConfig) -> Counter[str]:
        """Return the values in tools that are gone because they are not allowed: not every API can name several."""
        kept = _plain(self.translator.tools_of(request)) or []
        removed = [tool for tool in _plain(self.translator.tools_of(self.request)) if tool not in kept]
        names = set(allowed.get("allowedFunctionNames", ()))
        is_right = names and not any(names & _leaves(tool) for tool in removed)
        return Counter(_all_leaves(removed)) if is_right else Counter()

    def system_message(self) -> None:
        request = self.translator.with_system_message(self.request, "Be brief.")
        shown = self.translator.to_hook_llm_request(request)
        *others, last = shown["messages"] or [{"role": "system", "content": ""}]
        same = others == self.shown["messages"] and "Be brief." in last["content"]
        # Without any other message, it may count as the system prompt, which is not shown.
        is_prompt = not shown["messages"] and not self.shown["messages"] and "Be brief." in _leaves(_plain(request))
        self.require(same or is_prompt, f"a system message must be the last message, found {shown['messages']}")
        self.require(_rest(shown) == _rest(self.shown), "a system message changed other fields")
        self.survives(request, "a system message", self.hidden)
        turns = self.translator.turns(self.request)
        exchanges = list(_exchanges(turns))
        for end in {result for _, result in exchanges}:
            if not any(call <= end < result for call, result in exchanges):
                request = self.translator.rebuild(self.request, turns[: end + 1])
                self.unbroken(request, self.translator.with_system_message(request, "Be brief."), "a system message")

    def full_view(self) -> None:
        """In the full view, too, only what a hook changes is changed: a text, a result or the system prompt."""
        shown = self.full(self.request)
        json.dumps(shown)
        same = self.translator.from_full_llm_request({"messages": shown}, self.request) is self.request
        self.require(same, "a request that no hook changes must stay the same object in the full view, too")
        for index, message in enumerate(shown):
            if not message["content"]:
                continue
            changed: LLMMessage = {**message, "content": f"changed {message['content']}"}
            wanted, what = [*shown[:index], changed, *shown[index + 1 :]], f"message {index} of the full view changed"
            request = self.translator.from_full_llm_request({"messages": wanted}, self.request)
            self.untouched(what)
            self.require(self.full(request) == wanted, f"{what}: the request then has {self.full(request)}")
            hidden = {*self.hidden, *map(_leaf, self.sample.hidden)}
            unseen = {leaf for leaf in hidden if not any(leaf in each["content"] for each in shown)}
            lost = sorted(unseen - _leaves(_plain(request)))
            self.require(not lost, f"{what}: lost data that hooks do not see: {', '.join(lost)}")
            self.unbroken(self.request, request, what)

    def full(self, request: Any) -> list[LLMMessage]:
        return self.translator.to_full_llm_request(request)["messages"]

    def full_response(self, base: Any) -> None:
        """Hooks can change the arguments of a call in an answer, and leave a call out."""
        shown = self.translator.to_full_llm_response(base)
        calls = [call for candidate in shown["candidates"] for call in candidate["content"].get("toolCalls", ())]
        if not calls:
            return
        self.require(
            self.translator.from_full_llm_response(shown, base) is base, "a repeated answer must stay as it is"
        )
        for change in ([], [{**calls[0], "args": {"changed": True}}]):
            wanted = json.loads(json.dumps(shown))
            wanted["candidates"][0]["content"]["toolCalls"] = change
            answer = self.translator.from_full_llm_response(wanted, base)
            has = self.translator.to_full_llm_response(answer)["candidates"][0]["content"]
            self.require(has.get("toolCalls", []) == change, f"hooks wanted the calls {change}, the answer has {has}")
            parts = shown["candidates"][0]["content"]["parts"]
            self.require("".join(has["parts"]) == "".join(parts), "a changed call has changed the text of the answer")

    def response(self) -> None:
        translator = self.translator
        base = translator.read_response(self.sample.response)
        shown = translator.to_hook_llm_response(base)
        self.require(isinstance(shown.get("text"), str), "a response in hook format must have a `text`")
        json.dumps(shown)
        self.full_response(base)
        self.declines(translator.read_response, shown, "a response in hook format")
        self.declines(lambda answer: translator.from_hook_llm_response(answer, base), {}, "an answer without text")
        for given in (base, None):
            answer = translator.from_hook_llm_response({"text": "Replaced."}, given)
            replaced = translator.to_hook_llm_response(answer)
            self.require(replaced["text"] == "Replaced.", f"a replaced response has the text {replaced['text']!r}")
            old = {text for candidate in shown["candidates"] for text in candidate["content"]["parts"]}
            left = old & _leaves(_plain(answer))
            self.require(not left, "a replaced response still has the text of the model")
            self.require(not _has_calls(_plain(answer)), "a replaced response still has tool calls of the model")


def _pair(message: LLMMessage) -> tuple[str, str]:
    return message["role"], message["content"]


def _rest(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "messages"}


def _exchanges(turns: Sequence[Turn]) -> Iterator[tuple[int, int]]:
    """Yield the positions of each call and its result."""
    for index, turn in enumerate(turns):
        for call in turn.calls:
            for place in range(index + 1, len(turns)):
                if any(set(call) & set(result) for result in turns[place].results):
                    yield index, place
                    break


def _keys(turns: Sequence[Turn], span: tuple[int, int]) -> tuple[Any, Any]:
    return turns[span[0]].calls, turns[span[1]].results


def _plain(value: Any) -> Any:
    """Convert the objects of any library to dicts, lists and leaves."""
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _plain(value.model_dump(exclude_none=True))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _leaves(value: Any) -> set[str]:
    return set(_all_leaves(value))


def _all_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for item in _items(value):
            yield from _all_leaves(item)
    elif value is not None:
        yield _leaf(value)


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _own_leaves(value: Any) -> set[str]:
    return {_leaf(item) for item in _items(value) if not isinstance(item, (dict, list))}


def _around(value: Any, texts: Sequence[str]) -> set[str]:
    """Return the values in the objects that these texts (or parts of them) are in, from the message down."""
    found = set().union(*(_around(item, texts) for item in _items(value)))
    own = _own_leaves(value)
    return found | own if found or any(leaf and leaf in text for leaf in own for text in texts) else set()


def _has_calls(value: Any) -> bool:
    """Whether there is a field such as ``tool_calls``, or an object of a type such as ``tool_use``."""
    if isinstance(value, dict):
        named = any(item and _CALLS.fullmatch(name) for name, item in value.items())
        if named or _CALLS.fullmatch(str(value.get("type"))):
            return True
    return any(map(_has_calls, _items(value)))


def _leaf(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
