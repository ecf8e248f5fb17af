"""The base of translators for SDKs whose conversation is a list of messages, each with a text or a list of parts.

A translator says what a message and a part are; turns and messages with a changed text follow from that:

- The text of a message is the text of its parts, joined without a separator.
- If the text changes, the parts at both ends whose text is still there stay as they are. The first of the other text
  parts gets the rest of the text and keeps its other fields; the others are removed. Parts without text stay in place.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, copy_with, described, field, name_of
from llxprt_hooks.model.conversation import CallKeys, Turn
from llxprt_hooks.model.format import TranslationError
from llxprt_hooks.model.full_view import NOTHING, Seen, ToolOutput, changed_calls
from llxprt_hooks.model.translator import HookTranslator, RequestT, ResponseT, ToolConfigT, build_hook_response

if TYPE_CHECKING:
    from llxprt_hooks.model.answers import Answer
    from llxprt_hooks.model.format import LLMCandidate, LLMPart, LLMResponse, LLMSafetyRating, LLMToolCall, LLMUsage

log = debug_logger("translator")

T = TypeVar("T")
Usage: TypeAlias = tuple[str, Mapping[str, str]]


def usage(name: str, prompt: str, answer: str, total: str | None = None) -> Usage:
    """Return ``USAGE`` of a translator: a field, and the SDK's names of the counts in it."""
    names = {"promptTokenCount": prompt, "candidatesTokenCount": answer}
    return name, names if total is None else {**names, "totalTokenCount": total}


def expected(value: object, kind: type[T], name: str, what: str) -> T:
    """Return a request or response if it has the SDK's type; raise ``TranslationError`` if not."""
    if isinstance(value, kind):
        return value
    raise TranslationError(f"{name} is {described(value)}; expected {what}.")


_PART_TYPES = {"input_image": "image", "image_url": "image", "input_audio": "audio", "input_file": "file"}
_MEDIA = ("image", "audio", "video")


def shown_part(kind: str, part: Any) -> LLMPart:
    """Return data of a message other than text as the full view shows it: its type, without the data."""
    holders = (part, *(field(part, name) for name in ("source", "inline_data", "file_data")))
    mime_types = (name_of(field(each, name)) for each in holders for name in ("mime_type", "media_type"))
    mime_type = next((found for found in mime_types if found), None)
    if mime_type is None:
        return {"type": _PART_TYPES.get(kind, kind)}
    family = mime_type.partition("/")[0]
    return {"type": family if family in _MEDIA else "file", "mimeType": mime_type}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers in a response."""

    parts: Sequence[Any]
    finish_reason: str | None = None
    """The reason as the API has it, or in upper case."""
    index: int | None = None
    ratings: list[LLMSafetyRating] | None = None


class MessageTranslator(HookTranslator[RequestT, ResponseT, ToolConfigT]):
    """Implements reading and rebuilding of ``HookTranslator`` with methods for a single message and a single part.

    Messages and parts may be mappings, pydantic objects or, as a part, a string.
    """

    PARTS: ClassVar[str] = "content"
    """The field of a message that has its text or its parts."""
    USAGE: ClassVar[Usage] = ("usage", {})
    """The field of a response with the token counts, and a map from their names in the hook format to the SDK's."""
    CACHED: ClassVar[Sequence[str]] = ()
    """Counts of cached prompt tokens that the SDK's own count of the prompt leaves out, and the hook format's has."""
    FINISH_REASONS: ClassVar[Mapping[str, str]] = {}
    """Maps finish reasons of the API to the hook format's. Others are shown in upper case."""

    @abstractmethod
    def messages(self, request: RequestT) -> Sequence[Any]:
        """Return the messages of a request without the system prompt, which hooks do not see."""

    @abstractmethod
    def with_messages(self, request: RequestT, messages: list[Any]) -> RequestT:
        """Return a copy of a request with the same system prompt and these messages."""

    @abstractmethod
    def role_of(self, message: Any) -> str:
        """Return ``user``, ``model`` or ``system``."""

    @abstractmethod
    def new_message(self, role: str, text: str) -> Any:
        """Return a new message, for a role of the hook format."""

    @abstractmethod
    def choices_of(self, response: ResponseT) -> Sequence[Choice]:
        """Return the answers in a response."""

    # These may be overridden.

    def parts_of(self, message: Any) -> Sequence[Any]:
        """Return the parts of a message; a single text is a part, too."""
        return as_list(field(message, self.PARTS))

    def text_of(self, part: Any) -> str:
        """Return the text of a part that hooks see; empty for images, thoughts, calls and results."""
        text = part if isinstance(part, str) else field(part, "text")
        return text if isinstance(text, str) else ""

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        """Return the keys of the tool calls in a message."""
        return ()

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        """Return the keys of the tool calls whose results are in a message."""
        return ()

    def binds_next(self, message: Any) -> bool:
        """Whether nothing may be inserted between this message and the next."""
        return False

    def with_part_text(self, parts: Sequence[Any], text: str) -> Any:
        """Return the first of these text parts with a text that replaces the text of all of them."""
        return text if isinstance(parts[0], str) else copy_with(parts[0], text=text)

    def without_text(self, part: Any) -> Any | None:
        """Return a text part without its text; None if nothing is left."""
        return None

    def is_blank(self, part: Any) -> bool:
        """Whether a part is only an empty text: APIs reject a message of nothing else."""
        return part == "" if isinstance(part, str) else field(part, "text") == ""

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        """Return a message with other parts; None if nothing is left of it."""
        return copy_with(message, **{self.PARTS: parts}) if parts else None

    def kinds_of(self, part: Any) -> Sequence[str]:
        """Return the names of data in a part that hooks do not see, for the log."""
        return [] if isinstance(part, str) or self.text_of(part) else [name_of(field(part, "type")) or "other data"]

    def call_in(self, part: Any) -> LLMToolCall | None:
        """Return the tool call that a part is."""
        return None

    def with_call(self, part: Any, args: Any) -> Any:
        """Return a part that is a tool call with other arguments."""
        return part

    def result_in(self, part: Any) -> ToolOutput | None:
        """Return the tool's result that a part is."""
        return None

    def with_result(self, part: Any, text: str) -> Any:
        """Return a part that is a tool's result with another text."""
        return part

    def answers_in(self, response: ResponseT) -> Sequence[Sequence[Any]]:
        """Return the messages of each answer in a response; empty if the full view of answers is not supported."""
        return ()

    def with_answers(self, response: ResponseT, answers: Sequence[Sequence[Any]]) -> ResponseT:
        """Return a copy of a response with other messages in its answers; one that was added has only text."""
        return response

    # These build on the methods above.

    def seen_in(self, source: Any) -> Seen:
        calls: list[LLMToolCall] = []
        results: list[ToolOutput] = []
        others: list[LLMPart] = []
        for part in self.parts_of(source):
            if isinstance(part, str) or self.text_of(part):
                continue  # in no API, a part is text and something else
            if (call := self.call_in(part)) is not None:
                calls.append(call)
            elif (result := self.result_in(part)) is not None:
                results.append(result)
            else:
                others += [shown_part(kind, part) for kind in self.kinds_of(part)]
        return Seen(calls, results, others) if calls or results or others else NOTHING

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        left = list(texts)
        parts = [
            part if self.result_in(part) is None else self._with_result(part, left.pop(0))
            for part in self.parts_of(source)
        ]
        return self.with_parts(source, parts)

    def _with_result(self, part: Any, text: str) -> Any:
        known = self.result_in(part)
        return part if known is None or known.text == text else self.with_result(part, text)

    def with_calls(self, message: Any, wanted: Sequence[Mapping[str, Any] | None]) -> Any | None:
        """Return a message with other calls, each as a hook wants it, or None to leave it out; None if none is left."""
        left = list(wanted)
        parts = [self._with_call(part, left) for part in self.parts_of(message)]
        return self.with_parts(message, [part for part in parts if part is not None])

    def _with_call(self, part: Any, wanted: list[Mapping[str, Any] | None]) -> Any | None:
        known = None if isinstance(part, str) else self.call_in(part)
        if known is None:
            return part
        call = wanted.pop(0)
        if call is None:
            return None
        return self.with_call(part, call["args"]) if call.get("args", known["args"]) != known["args"] else part

    def to_full_llm_response(self, response: ResponseT) -> LLMResponse:
        shown = self.to_hook_llm_response(response)
        for candidate, messages in zip(shown["candidates"], self.answers_in(response), strict=False):
            if calls := [call for message in messages for call in self.seen_in(message).calls]:
                candidate["content"]["toolCalls"] = calls
        return shown

    def from_full_llm_response(self, hook_response: Mapping[str, Any], base: ResponseT) -> ResponseT | None:
        wanted = answers.read_answers(hook_response)
        if not any(answer.calls is not None for answer in wanted):
            return None
        given = self.answers_in(base)
        changed = [
            self._answer(messages, wanted[index]) if index < len(wanted) else messages
            for index, messages in enumerate(given)
        ]
        return base if changed == list(given) else self.with_answers(base, changed)

    def _answer(self, messages: Sequence[Any], wanted: Answer) -> list[Any]:
        shown = [self.seen_in(message).calls for message in messages]
        kept = changed_calls([call for calls in shown for call in calls], wanted.calls or ())
        changed: list[Any] = []
        for message, calls in zip(messages, shown, strict=True):
            own, kept = kept[: len(calls)], kept[len(calls) :]
            changed.append(message if own == calls else self.with_calls(message, own))
        return self._with_texts([message for message in changed if message is not None], wanted.texts)

    def _with_texts(self, messages: list[Any], texts: list[str] | None) -> list[Any]:
        """Return the messages of an answer with other texts; the first with text has what cannot be told apart."""
        with_text = [place for place, message in enumerate(messages) if self.turn_of(message).text]
        old = ["".join(map(self.text_of, self.parts_of(messages[place]))) for place in with_text]
        if texts is None or "".join(texts) == "".join(old):
            return messages
        new = texts if len(texts) == len(old) else ["".join(texts)]
        if not old:
            return [self.new_message("model", new[0]), *messages]
        edited: list[Any] = list(messages)
        for number, place in enumerate(with_text):
            text = new[number] if number < len(new) else ""
            edited[place] = self.with_parts(messages[place], self.edited(messages[place], text))
        return [message for message in edited if message is not None]

    def turns(self, request: RequestT) -> Sequence[Turn]:
        return [self.turn_of(message) for message in self.messages(request)]

    def shown_turns(self, request: RequestT) -> Sequence[Turn]:
        if type(self).turns is not MessageTranslator.turns or type(self).turn_of is not MessageTranslator.turn_of:
            return self.turns(request)
        role_of, text_in = self.role_of, self._text_in
        return [Turn(role_of(message), text_in(message), message) for message in self.messages(request)]

    def rebuild(self, request: RequestT, turns: Sequence[Turn]) -> RequestT:
        return self.with_messages(request, [message for message in map(self.message, turns) if message is not None])

    def message(self, turn: Turn) -> Any | None:
        """Return the message of a turn; None if nothing is left of it."""
        if turn.source is None:
            return self.new_message(turn.role, turn.text)
        return self.with_parts(turn.source, self.edited(turn.source, turn.text)) if turn.changed else turn.source

    def edited(self, message: Any, text: str) -> list[Any]:
        """Return the parts of a message with another text."""
        parts = [part for part in self.parts_of(message) if not self.is_blank(part)]
        places = [place for place, part in enumerate(parts) if self.text_of(part)]
        # A part whose text is still there keeps everything, such as citations and cache marks.
        while len(places) > 1 and text.startswith(self.text_of(parts[places[0]])):
            text = text[len(self.text_of(parts[places.pop(0)])) :]
        while len(places) > 1 and text.endswith(self.text_of(parts[places[-1]])):
            text = text[: -len(self.text_of(parts[places.pop()]))]
        for place in places:
            is_first = place == places[0]
            part = self.with_part_text([parts[place] for place in places], text) if is_first and text else None
            parts[place] = part or self.without_text(parts[place])
        return [part for part in parts if part is not None]

    def to_hook_llm_response(self, response: ResponseT) -> LLMResponse:
        """Return the texts, finish reasons, ratings and token counts; dropped parts are logged (HOOK-079)."""
        choices = self.choices_of(response)
        if log.isEnabledFor(logging.DEBUG) and (dropped := self.hidden_parts(response)):
            counts = ", ".join(f"{count} {kind}" for kind, count in dropped.items())
            log.debug("hooks see only the text of a response; dropped: %s", counts)
        usage = self._usage(field(response, self.USAGE[0]))
        return build_hook_response([self._candidate(choice) for choice in choices], usage)

    def _usage(self, usage: Any) -> LLMUsage:
        """Return token counts in hook format. The total is the sum where the SDK does not have it."""
        given = {name: field(usage, sdk_name) for name, sdk_name in self.USAGE[1].items()}
        counts = {name: count for name, count in given.items() if count is not None}
        prompt, answer = counts.get("promptTokenCount"), counts.get("candidatesTokenCount")
        if isinstance(prompt, int):
            counts["promptTokenCount"] = prompt = prompt + self._cached(usage)
            if isinstance(answer, int):
                counts.setdefault("totalTokenCount", prompt + answer)
        return cast("LLMUsage", counts)

    def sdk_counts(self, usage: LLMUsage, base: Any) -> dict[str, Any]:
        """Return token counts that a hook gave under the SDK's names; ``base`` are those that they replace."""
        names = self.USAGE[1]
        shown = {**usage}
        if "promptTokenCount" in usage:
            shown["promptTokenCount"] = max(usage["promptTokenCount"] - self._cached(base), 0)
        return {names[name]: count for name, count in shown.items() if name in names}

    def _cached(self, usage: Any) -> int:
        return sum(count for name in self.CACHED if isinstance(count := field(usage, name), int))

    def _candidate(self, choice: Choice) -> LLMCandidate:
        texts = [text for part in choice.parts if (text := self.text_of(part))]
        candidate: LLMCandidate = {"content": {"role": "model", "parts": texts}}
        if reason := choice.finish_reason:
            candidate["finishReason"] = self.FINISH_REASONS.get(reason, reason.upper())
        if choice.index is not None:
            candidate["index"] = choice.index
        if choice.ratings is not None:
            candidate["safetyRatings"] = choice.ratings
        return candidate

    def hidden_parts(self, response: ResponseT) -> Mapping[str, int]:
        choices = self.choices_of(response)
        return Counter(kind for choice in choices for part in choice.parts for kind in self.kinds_of(part))

    def _text_in(self, message: Any) -> str:
        return "".join(map(self.text_of, self.parts_of(message)))

    def turn_of(self, message: Any) -> Turn:
        return Turn(
            self.role_of(message),
            self._text_in(message),
            message,
            calls=tuple(self.calls_in(message)),
            results=tuple(self.results_in(message)),
            binds_next=self.binds_next(message),
        )
