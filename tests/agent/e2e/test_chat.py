"""The chat by itself: one model call, in SDK types from end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks import Config, GenerateContentParameters, Hooks
from llxprt_hooks.agent.answer import complete_answer, function_calls, shown_text
from llxprt_hooks.agent.chat import Chat
from llxprt_hooks.agent.ui import AgentEvent, AnswerText

if TYPE_CHECKING:
    from tests.support.agent import AgentProject


class Recorder:
    """A provider that answers with text and keeps the requests; a user interface that keeps what is shown."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.requests: list[GenerateContentParameters] = []
        self.shown: list[str] = []

    async def stream(self, request: GenerateContentParameters) -> AsyncIterator[types.GenerateContentResponse]:
        self.requests.append(request)
        for text in self.texts:
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield types.GenerateContentResponse(candidates=[types.Candidate(content=content)])

    async def close(self) -> None: ...

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            self.shown.append(event.text)


def chat_with(project: AgentProject, recorder: Recorder, **hooks: str) -> Chat:
    groups = {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in hooks.items()}
    config = Config(working_dir=project.root, enable_hooks=True, hooks=groups)
    tools = [{"function_declarations": [{"name": "glob"}]}]
    chat = Chat(Hooks(config), recorder, recorder, model="some-model", request_config={"tools": tools})
    chat.history.append(types.Content(role="user", parts=[types.Part(text="Hello?")]))
    return chat


async def test_an_answer_streams_to_the_screen_while_no_hook_may_change_it(project: AgentProject) -> None:
    recorder = Recorder("one ", "two")
    answer = await chat_with(project, recorder, BeforeModel=project.hook("quiet")).ask()
    assert recorder.shown == ["one ", "two"]
    assert answer.shown == "one two"


# Answers in pieces.


def chunk(*parts: dict[str, Any], **candidate: Any) -> types.GenerateContentResponse:
    content = {"role": "model", "parts": list(parts)}
    return types.GenerateContentResponse.model_validate({"candidates": [{"content": content, **candidate}]})


@pytest.mark.requirement("HOOK-050")
def test_pieces_become_one_answer_that_lacks_nothing() -> None:
    complete = complete_answer(
        [
            chunk({"text": "think", "thought": True}),
            chunk({"text": "ing", "thought": True}),
            chunk({"text": "Hel"}),
            chunk({"text": "lo"}, {"functionCall": {"name": "glob", "args": {}}, "thoughtSignature": "c2lnbmVk"}),
            chunk({"text": "!"}),
            types.GenerateContentResponse.model_validate(
                {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"totalTokenCount": 9}, "modelVersion": "m"}
            ),
        ]
    )
    [candidate] = complete.candidates or []
    assert candidate.content is not None
    parts = [part.model_dump(exclude_none=True) for part in candidate.content.parts or []]
    assert parts == [
        {"text": "thinking", "thought": True},
        {"text": "Hello"},
        {"function_call": {"name": "glob", "args": {}}, "thought_signature": b"signed"},
        {"text": "!"},
    ]
    assert candidate.finish_reason == types.FinishReason.STOP
    assert complete.usage_metadata is not None
    assert (complete.usage_metadata.total_token_count, complete.model_version) == (9, "m")
    assert shown_text(complete) == "Hello!"
    assert [call.name for call in function_calls(complete)] == ["glob"]


def test_no_pieces_are_an_empty_answer() -> None:
    complete = complete_answer([])
    assert (shown_text(complete), function_calls(complete)) == ("", [])


# Sentences.

REDACT = """jq -c '{hookSpecificOutput: {llm_response: {text: (.llm_response.text | gsub("sk-[0-9]"; "[KEY]"))}}}'"""


@pytest.mark.parametrize(
    ("command", "shown", "stopped"),
    [
        (REDACT, ["One. ", "The key is [KEY]. ", "Bye"], None),
        ("cat > payload; grep -q sk- payload && exit 1; echo '{}'", ["One. ", "\n\nblocked because"], None),
        ('grep -q sk- && echo \'{"continue": false, "stopReason": "enough"}\'', ["One. ", "\n\nenough"], "enough"),
    ],
    ids=["redacts", "fails", "stops"],
)
async def test_sentences_reach_the_screen_as_the_hook_leaves_them(
    project: AgentProject, command: str, shown: list[str], stopped: str | None
) -> None:
    recorder = Recorder("One. The ", "key is sk-1. ", "Bye")
    hook = {"type": "command", "command": command, "stream": "sentences", "failClosed": stopped is None}
    config = Config(
        working_dir=project.root, profile="full", enable_hooks=True, hooks={"AfterModel": [{"hooks": [hook]}]}
    )
    chat = Chat(Hooks(config), recorder, recorder, model="some-model", request_config={})
    chat.history.append(types.Content(role="user", parts=[types.Part(text="Hello?")]))

    answer = await chat.ask()

    assert len(recorder.shown) == len(shown)
    assert all(text.startswith(start) for text, start in zip(recorder.shown, shown, strict=True))
    assert (answer.shown, answer.stop_reason) == ("".join(recorder.shown), stopped)
    assert "sk-1" not in str(chat.history)
