"""The full view of a conversation: what hooks that act see and may change, beyond the texts (D-142).

The system prompt comes first, as messages with the role ``system``. A message of the model lists its tool calls, each
result is a message with the role ``tool``, and all other data is listed by its type. A hook may change every text.
Which message is which is decided as in the text view, by the alignment, except for results: their call's id decides.
A result is never removed, because its call needs one: a hook that leaves it out empties it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llxprt_hooks.model import answers
from llxprt_hooks.model.alignment import Message, rearrange
from llxprt_hooks.model.conversation import Turn, glued, with_text

if TYPE_CHECKING:
    from llxprt_hooks.model.format import LLMMessage, LLMPart, LLMToolCall
    from llxprt_hooks.model.translator import HookTranslator


class ToolOutput(NamedTuple):
    """A tool's result: the id of the call, the name of the tool if the SDK repeats it, and the text."""

    id: str
    text: str
    name: str = ""


class Seen(NamedTuple):
    """What a message has beside its text, as far as hooks may see it."""

    calls: Sequence[LLMToolCall] = ()
    results: Sequence[ToolOutput] = ()
    parts: Sequence[LLMPart] = ()


NOTHING = Seen()


class Shown(NamedTuple):
    """One message of the full view: that of a turn, or one of the results in it."""

    message: LLMMessage
    turn: int
    result: int | None = None

    @property
    def key(self) -> tuple[str, ...] | None:
        """The calls that tell this message from others with the same text; None if there are none."""
        return tuple(call["id"] for call in self.message.get("toolCalls", ())) or None


class View:
    """The full view of one request."""

    def __init__(self, translator: HookTranslator[Any, Any, Any], request: Any) -> None:
        self._translator = translator
        self._request = request
        self._prompt = list(translator.prompt_turns(request))
        self._turns = [*self._prompt, *translator.shown_turns(request)]
        self._seen = [NOTHING] * len(self._prompt) + [
            translator.seen_in(turn.source) for turn in self._turns[len(self._prompt) :]
        ]
        self._shown = list(self._messages())

    @property
    def messages(self) -> list[LLMMessage]:
        return [shown.message for shown in self._shown]

    def _messages(self) -> Iterator[Shown]:
        names: dict[str, str] = {}
        for index, (turn, seen) in enumerate(zip(self._turns, self._seen, strict=True)):
            if seen is NOTHING:  # most messages, and there may be many
                if turn.text:
                    yield Shown({"role": turn.role, "content": turn.text}, index)
                continue
            names |= {call["id"]: call["name"] for call in seen.calls}
            for number, output in enumerate(seen.results):
                name = output.name or names.get(output.id, "")
                message: LLMMessage = {"role": "tool", "toolCallId": output.id, "name": name, "content": output.text}
                yield Shown(message, index, number)
            if turn.text or seen.calls or seen.parts:
                message = {"role": turn.role, "content": turn.text}
                if seen.calls:
                    message["toolCalls"] = list(seen.calls)
                if seen.parts:
                    message["parts"] = list(seen.parts)
                yield Shown(message, index)

    def rewritten(self, wanted: list[LLMMessage]) -> Any:
        """Return the request with a hook's messages; the same object if they are those that it was shown."""
        if wanted == self.messages:
            return self._request
        self._turns[len(self._prompt) :] = self._translator.turns(self._request)
        turns = self._with_results([message for message in wanted if message["role"] == "tool"])
        own = [shown for shown in self._shown if shown.result is None]
        new = self._aligned(turns, own, [message for message in wanted if message["role"] != "tool"])
        prompt = [turn for turn in new if turn.source is not None][: len(self._prompt)]
        kept = {id(turn) for turn in prompt}
        request = self._translator.rebuild(self._request, [turn for turn in new if id(turn) not in kept])
        return request if prompt == self._prompt else self._translator.with_prompt_turns(request, prompt)

    def _aligned(self, turns: list[Turn], own: list[Shown], wanted: list[LLMMessage]) -> list[Turn]:
        """Return the turns with the texts that a hook wants, and new ones where it put them."""
        keys = {shown.turn: shown.key for shown in own}
        named = _with_keys(own, wanted)
        messages = [Message(turn.role, turn.text, keys.get(index)) for index, turn in enumerate(turns)]
        steps = rearrange(messages, glued(turns), [message for message in named if message.text])
        return [
            Turn(step.message.role, step.message.text)
            if step.turn is None
            else with_text(turns[step.turn], step.message.text)
            for step in steps
        ]

    def _with_results(self, wanted: list[LLMMessage]) -> list[Turn]:
        """Return the turns with the results that a hook wants, by the id of the call and then in order."""
        shown = [each for each in self._shown if each.result is not None]
        if len(wanted) == len(shown):
            wanted = [{**each.message, **message} for each, message in zip(shown, wanted, strict=True)]
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for message in wanted:
            texts[message.get("toolCallId", "")].append(message["content"])
        known = Counter(each.message["toolCallId"] for each in shown)
        for unknown in (call for call, given in texts.items() if len(given) > known[call]):
            answers.report(f"a message with the role `tool` is ignored: no result of the call `{unknown}` was shown")
        changed: defaultdict[int, list[str]] = defaultdict(list)
        for each in shown:
            left = texts[each.message["toolCallId"]]
            changed[each.turn].append(left.pop(0) if left else "")
        return [self._with_outputs(index, turn, changed.get(index)) for index, turn in enumerate(self._turns)]

    def _with_outputs(self, index: int, turn: Turn, texts: list[str] | None) -> Turn:
        if texts is None or texts == [output.text for output in self._seen[index].results]:
            return turn
        return turn._replace(source=self._translator.with_results(turn.source, texts))


def _with_keys(own: list[Shown], wanted: list[LLMMessage]) -> list[Message]:
    """Return a hook's messages for the alignment. One without calls may be any message of its role.

    Calls are read-only: what a hook changed in them is reported, and has no effect.
    """
    known = [shown.message["toolCalls"] for shown in own if shown.key]
    positions = [shown.message["role"] for shown in own] == [message["role"] for message in wanted]
    named: list[Message] = []
    for index, message in enumerate(wanted):
        calls = message.get("toolCalls")
        key = tuple(call["id"] for call in calls) if calls else own[index].key if positions else None
        if calls and calls not in known:
            answers.report("`toolCalls` is ignored: calls in the history cannot be changed, added or removed")
            key = own[index].key if positions else None
        named.append(Message(message["role"], message["content"], key))
    return named


def _is_same(given: Mapping[str, Any], call: LLMToolCall) -> bool:
    return given.get("id") == call["id"] and given.get("name", call["name"]) == call["name"]


def changed_calls(shown: Sequence[LLMToolCall], wanted: Sequence[Any]) -> list[Mapping[str, Any] | None]:
    """Return each call of an answer as a hook wants it: with its arguments, or None if the hook left it out."""
    left = [call for call in wanted if isinstance(call, Mapping)]
    changed: list[Mapping[str, Any] | None] = []
    for call in shown:
        same = next((each for each in left if _is_same(each, call)), None)
        if same is not None:
            left.remove(same)
        changed.append(same)
    for unknown in left:
        answers.report(
            f"a tool call is ignored: the answer has no call with the id {unknown.get('id')!r:.60} and its name"
        )
    return changed
