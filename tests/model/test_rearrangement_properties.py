"""Whatever a hook does to the messages, the conversation stays whole (D-13), for generated conversations."""

from __future__ import annotations

from itertools import count
from typing import Any
from unittest import mock

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from llxprt_hooks.model import (
    GenerateContentParameters,
    alignment,
)
from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1
from tests.model.edited_messages import MESSAGES, ROLES, TEXTS, edited

pytestmark = pytest.mark.slow

TRANSLATOR = HookTranslatorGenAIv1()


@st.composite
def conversations(draw: st.DrawFn, text_in_responses: bool = True) -> Any:
    """Contents of text, images, thoughts and answered calls, each call and image one of its kind."""
    numbers = count()
    contents: list[types.Content] = []

    def maybe_text(role_is_likely: bool = True) -> list[types.Part]:
        return [types.Part(text=draw(TEXTS))] if role_is_likely and draw(st.booleans()) else []

    def image() -> list[types.Part]:
        data = str(next(numbers)).encode()
        return [types.Part.from_bytes(data=data, mime_type="image/png")] if draw(st.booleans()) else []

    def exchange() -> None:
        calls = [f"call-{next(numbers)}" for _ in range(draw(st.integers(1, 3)))]
        with_ids = draw(st.booleans())
        asked = [types.FunctionCall(id=name if with_ids else None, name=name, args={}) for name in calls]
        contents.append(
            types.Content(role="model", parts=[*maybe_text(), *(types.Part(function_call=call) for call in asked)])
        )
        answered = [
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={}))
            for call in asked
        ]
        batches = [answered] if draw(st.booleans()) else [[part] for part in answered]
        contents.extend(types.Content(role="user", parts=[*maybe_text(text_in_responses), *b]) for b in batches)

    def plain() -> None:
        parts = [*image(), *maybe_text(), *image(), *maybe_text()]
        contents.append(types.Content(role=draw(ROLES), parts=parts))

    def thought() -> None:
        contents.append(types.Content(role="model", parts=[types.Part(text="hm", thought=True), *image()]))

    for kind in draw(st.lists(st.sampled_from([exchange, plain, plain, thought]), max_size=6)):
        kind()
    return GenerateContentParameters("m", contents)


@st.composite
def changes(draw: st.DrawFn, text_in_responses: bool = True) -> Any:
    base = draw(conversations(text_in_responses))
    shown = TRANSLATOR.to_hook_llm_request(base)["messages"]
    return base, draw(st.one_of(edited(shown), st.lists(MESSAGES, max_size=6)))


def is_text(part: types.Part) -> bool:
    return part.text is not None and not part.thought


def silent_parts(request: GenerateContentParameters) -> list[int]:
    """The identities of all parts that hooks do not see, in order."""
    return [id(part) for content in request.contents for part in content.parts if not is_text(part)]


@pytest.mark.requirement("HOOK-078")
@pytest.mark.parametrize("pairs", [alignment.COMPARED_PAIRS, 0], ids=["compared", "too long to compare"])
@settings(max_examples=200, deadline=None)
@given(change=changes(text_in_responses=False))
def test_a_conversation_stays_whole_with_the_texts_of_hooks_in_their_order(change: Any, pairs: int) -> None:
    base, messages = change

    with mock.patch.object(alignment, "COMPARED_PAIRS", pairs):
        result = TRANSLATOR.from_hook_llm_request({"messages": messages}, base)

    assert silent_parts(result) == silent_parts(base)
    assert TRANSLATOR.to_hook_llm_request(result)["messages"] == messages


@pytest.mark.requirement("HOOK-078", "HOOK-039")
@settings(deadline=None)
@given(conversations(), st.lists(MESSAGES, max_size=3), st.lists(MESSAGES, max_size=3))
def test_added_before_and_after_leaves_every_content_as_it_was(base: Any, before: Any, after: Any) -> None:
    shown = TRANSLATOR.to_hook_llm_request(base)["messages"]
    unlike = [{**entry, "content": "new: " + entry["content"]} for entry in before + after]
    before, after = unlike[: len(before)], unlike[len(before) :]

    result = TRANSLATOR.from_hook_llm_request({"messages": [*before, *shown, *after]}, base)

    old = {id(content) for content in base.contents}
    assert [content for content in result.contents if id(content) in old] == base.contents
    if shown:
        assert [id(content) in old for content in result.contents] == (
            [False] * len(before) + [True] * len(base.contents) + [False] * len(after)
        )


@settings(deadline=None)
@given(conversations())
def test_objects_dicts_and_json_are_shown_alike(base: Any) -> None:
    shown = TRANSLATOR.to_hook_llm_request(base)

    for by_alias in (False, True):
        contents = [content.model_dump(by_alias=by_alias, exclude_none=True) for content in base.contents]
        assert TRANSLATOR.to_hook_llm_request(GenerateContentParameters("m", contents)) == shown
