"""Assemble a streamed answer (HOOK-050) and read the text and function calls of a response."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.genai import types


def complete_answer(chunks: Sequence[types.GenerateContentResponse]) -> types.GenerateContentResponse:
    """Merge all chunks into one response. For metadata such as usage, the last chunk that has it wins."""
    response = types.GenerateContentResponse(candidates=_candidates(chunks))
    for chunk in chunks:
        for field in ("usage_metadata", "model_version", "response_id", "prompt_feedback", "create_time"):
            if (value := getattr(chunk, field)) is not None:
                setattr(response, field, value)
    return response


def first_content(response: types.GenerateContentResponse) -> types.Content | None:
    """Return the content of the first candidate, or None if it has no parts."""
    candidate = response.candidates[0] if response.candidates else None
    content = candidate.content if candidate else None
    return content if content and content.parts else None


def shown_text(response: types.GenerateContentResponse) -> str:
    """Return the text for the user: the first candidate's text without thoughts."""
    content = first_content(response)
    parts = content.parts or [] if content else []
    return "".join(part.text for part in parts if part.text and not part.thought)


def function_calls(response: types.GenerateContentResponse) -> list[types.FunctionCall]:
    content = first_content(response)
    parts = content.parts or [] if content else []
    return [part.function_call for part in parts if part.function_call]


def _candidates(chunks: Iterable[types.GenerateContentResponse]) -> list[types.Candidate]:
    merged: dict[int, types.Candidate] = {}
    for chunk in chunks:
        for candidate in chunk.candidates or []:
            index = candidate.index or 0
            known = merged.get(index)
            merged[index] = candidate if known is None else _joined(known, candidate)
    return [merged[index] for index in sorted(merged)]


def _joined(first: types.Candidate, second: types.Candidate) -> types.Candidate:
    updates = {name: value for name, value in second if value is not None and name != "content"}
    parts = [*_parts(first), *_parts(second)]
    role = (first.content and first.content.role) or (second.content and second.content.role) or "model"
    return first.model_copy(update={**updates, "content": types.Content(role=role, parts=_condensed(parts))})


def _parts(candidate: types.Candidate) -> list[types.Part]:
    return (candidate.content.parts if candidate.content else None) or []


def _condensed(parts: list[types.Part]) -> list[types.Part]:
    """Join adjacent plain text parts. A part with any other field, such as a signature, is not changed."""
    condensed: list[types.Part] = []
    for part in parts:
        last = condensed[-1] if condensed else None
        if last is not None and _only_text(last) and _only_text(part) and bool(last.thought) == bool(part.thought):
            condensed[-1] = last.model_copy(update={"text": (last.text or "") + (part.text or "")})
        else:
            condensed.append(part)
    return condensed


def _only_text(part: types.Part) -> bool:
    return part.text is not None and not part.model_dump(exclude_none=True, exclude={"text", "thought"})
