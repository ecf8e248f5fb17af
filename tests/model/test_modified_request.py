"""What a hook's ``llm_request`` does to the request: settings, tool choice, and messages in a full conversation."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks import BeforeModelHookOutput, create_hook_output
from llxprt_hooks.model import GenerateContentParameters, TranslationError

if TYPE_CHECKING:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

IMAGE = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
CALL = types.Part.from_function_call(name="read_file", args={"file_path": "a.py"})
OTHER_CALL = types.Part.from_function_call(name="glob", args={"pattern": "*"})
RESPONSE = types.Part.from_function_response(name="read_file", response={"output": "print()"})
OTHER_RESPONSE = types.Part.from_function_response(name="glob", response={"output": "a.py"})
THOUGHT = types.Part(text="I should look.", thought=True, thought_signature=b"sig")


def text(value: str) -> types.Part:
    return types.Part(text=value)


def user(*parts: types.Part | str) -> types.Content:
    return types.UserContent(list(parts))


def model(*parts: types.Part | str) -> types.Content:
    return types.ModelContent(list(parts))


def message(role: object, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


def outline(request: GenerateContentParameters) -> list[str]:
    """One line for each content: its role, and its parts by text or kind."""
    return [f"{content.role}: {' + '.join(map(_kind, content.parts))}" for content in request.contents]


def _kind(part: types.Part) -> str:
    if part.function_call:
        return f"{part.function_call.name}()"
    if part.function_response:
        return f"{part.function_response.name} result"
    return "image" if part.inline_data else "thought" if part.thought else str(part.text)


@pytest.fixture
def conversation() -> GenerateContentParameters:
    return GenerateContentParameters(
        "gemini-3-flash",
        [
            user(IMAGE),
            user("What is this?", IMAGE),
            model(THOUGHT, "I look at the file.", CALL, OTHER_CALL),
            user(RESPONSE),
            user(OTHER_RESPONSE),
            model(CALL),
            user(RESPONSE, "(took 3 s)"),
            model("It prints."),
            user("Thanks", IMAGE),
        ],
    )


@pytest.fixture
def messages(translator: HookTranslatorGenAIv1, conversation: GenerateContentParameters) -> Any:
    shown = translator.to_hook_llm_request(conversation)["messages"]
    assert [entry["content"] for entry in shown] == [
        "What is this?",
        "I look at the file.",
        "(took 3 s)",
        "It prints.",
        "Thanks",
    ]
    return shown


ORIGINAL = [
    "user: image",
    "user: What is this? + image",
    "model: thought + I look at the file. + read_file() + glob()",
    "user: read_file result",
    "user: glob result",
    "model: read_file()",
    "user: read_file result + (took 3 s)",
    "model: It prints.",
    "user: Thanks + image",
]


@pytest.mark.requirement("HOOK-078")
class TestConversation:
    """A conversation of function calls, function responses, thoughts and images: nothing is lost."""

    @pytest.mark.requirement("HOOK-039")
    def test_appended_message_comes_last(
        self, translator: HookTranslatorGenAIv1, conversation: GenerateContentParameters, messages: Any
    ) -> None:
        result = translator.from_hook_llm_request({"messages": [*messages, message("user", "Be brief.")]}, conversation)

        assert outline(result) == [*ORIGINAL, "user: Be brief."]
        assert all(new is old for new, old in zip(result.contents, conversation.contents, strict=False))

    @pytest.mark.requirement("HOOK-039")
    def test_message_for_a_conversation_without_text_comes_last(self, translator: HookTranslatorGenAIv1) -> None:
        base = GenerateContentParameters("m", [user(IMAGE)])

        result = translator.from_hook_llm_request({"messages": [message("user", "What is this?")]}, base)

        assert outline(result) == ["user: image", "user: What is this?"]

    def test_prepended_message_comes_first(
        self, translator: HookTranslatorGenAIv1, conversation: GenerateContentParameters, messages: Any
    ) -> None:
        result = translator.from_hook_llm_request(
            {"messages": [message("system", "Be kind."), *messages]}, conversation
        )

        assert outline(result) == ["user: [System] Be kind.", *ORIGINAL]

    def test_edited_message_keeps_its_other_parts(
        self, translator: HookTranslatorGenAIv1, conversation: GenerateContentParameters, messages: Any
    ) -> None:
        messages[1]["content"] = "I look at it."

        result = translator.from_hook_llm_request({"messages": messages}, conversation)

        expected = [*ORIGINAL]
        expected[2] = "model: thought + I look at it. + read_file() + glob()"
        assert outline(result) == expected
        assert result.contents[2].parts[0] is THOUGHT
        assert conversation.contents[2].parts[1].text == "I look at the file."

    @pytest.mark.parametrize("empty", ["", [], [""]])
    def test_emptied_message_is_a_removed_one(
        self,
        translator: HookTranslatorGenAIv1,
        conversation: GenerateContentParameters,
        messages: Any,
        empty: str | list[Any],
    ) -> None:
        messages[1]["content"] = empty

        result = translator.from_hook_llm_request({"messages": messages}, conversation)

        assert outline(result)[2] == "model: thought + read_file() + glob()"

    def test_nothing_comes_between_a_call_and_its_response(
        self, translator: HookTranslatorGenAIv1, conversation: GenerateContentParameters, messages: Any
    ) -> None:
        messages.insert(2, message("user", "Careful!"))

        result = translator.from_hook_llm_request({"messages": messages}, conversation)

        # "(took 3 s)" belongs to a response, so the new message follows the whole exchange.
        assert outline(result) == [*ORIGINAL[:7], "user: Careful!", *ORIGINAL[7:]]


@pytest.mark.requirement("HOOK-078")
def test_text_between_a_call_and_its_late_response_stays_between_them(translator: HookTranslatorGenAIv1) -> None:
    base = GenerateContentParameters("m", [model("Reading.", CALL), user("Hurry"), user(RESPONSE)])

    result = translator.from_hook_llm_request(
        {"messages": [message("model", "Reading."), message("user", "Wait"), message("user", "Hurry")]}, base
    )

    assert outline(result) == ["model: Reading. + read_file()", "user: Hurry", "user: read_file result", "user: Wait"]


@pytest.mark.requirement("HOOK-078")
def test_a_response_stays_with_what_precedes_it_even_where_its_call_is_gone(translator: HookTranslatorGenAIv1) -> None:
    base = GenerateContentParameters("m", [user("Look"), user(RESPONSE, "(took 3 s)")])

    result = translator.from_hook_llm_request(
        {"messages": [message("user", "Look"), message("model", "Wait"), message("user", "(took 3 s)")]}, base
    )

    assert outline(result) == ["user: Look", "user: read_file result + (took 3 s)", "model: Wait"]


@pytest.mark.requirement("HOOK-078")
def test_calls_are_distinguished_by_id(translator: HookTranslatorGenAIv1) -> None:
    def call(id_: str) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id=id_, name="read_file"))

    def response(id_: str) -> types.Part:
        return types.Part(function_response=types.FunctionResponse(id=id_, name="read_file", response={}))

    base = GenerateContentParameters("m", [model("A", call("1")), model("B", call("2")), user(response("2"))])

    result = translator.from_hook_llm_request(
        {"messages": [message("model", "A"), message("user", "new"), message("model", "B")]}, base
    )

    assert [content.parts[0].text for content in result.contents] == ["A", "new", "B", None]


@pytest.mark.requirement("HOOK-078")
def test_new_text_replaces_the_first_text(translator: HookTranslatorGenAIv1) -> None:
    signed = types.Part(text="one", thought_signature=b"s")
    base = GenerateContentParameters("m", [model(IMAGE, signed, CALL, "two", types.Part(text=""))])

    result = translator.from_hook_llm_request({"messages": [message("model", "three")]}, base)

    assert result.contents[0].parts == [IMAGE, types.Part(text="three", thought_signature=b"s"), CALL]


@pytest.mark.requirement("HOOK-078")
def test_a_part_that_has_text_and_data_loses_its_text_alone(translator: HookTranslatorGenAIv1) -> None:
    both = types.Part(text="caption", inline_data=IMAGE.inline_data)
    base = GenerateContentParameters("m", [user(both), {"role": "user", "parts": [{"text": "a", "fileData": {}}]}])

    result = translator.from_hook_llm_request({"messages": []}, base)

    assert result.contents[0].parts == [IMAGE]
    assert result.contents[1] == {"role": "user", "parts": [{"text": None, "fileData": {}}]}


@pytest.mark.requirement("HOOK-078")
def test_contents_in_other_forms(translator: HookTranslatorGenAIv1) -> None:
    said = {"role": "model", "parts": [{"text": "Reading."}, {"functionCall": {"name": "read_file"}}]}
    file = types.File(uri="https://x/y", mime_type="image/png")
    base = GenerateContentParameters("m", ["Look", IMAGE, file, said, RESPONSE, ["and", "this"]])

    result = translator.from_hook_llm_request(
        {"messages": [message("user", "Look!"), message("model", "Reading."), message("user", "andthis")]}, base
    )

    looked, kept, response, listed = result.contents
    assert looked.role == "user"
    assert looked.parts[:2] == [text("Look!"), IMAGE]
    assert looked.parts[2].file_data.file_uri == "https://x/y"
    assert kept is said
    assert response.parts == [RESPONSE]
    assert listed.parts == [text("and"), text("this")]


@pytest.mark.requirement("HOOK-078")
def test_changed_dict_content_stays_a_dict(translator: HookTranslatorGenAIv1) -> None:
    said = {"role": "model", "parts": [{"text": "a"}, {"functionCall": {"name": "f"}}, {"text": "b"}]}

    result = translator.from_hook_llm_request(
        {"messages": [message("model", "c")]}, GenerateContentParameters("m", [said])
    )

    assert result.contents == [{"role": "model", "parts": [{"text": "c"}, {"functionCall": {"name": "f"}}]}]
    assert said["parts"][0] == {"text": "a"}


def test_parts_that_the_sdk_refuses_are_named(translator: HookTranslatorGenAIv1) -> None:
    with pytest.raises(TranslationError, match="does not accept the parts"):
        translator.from_hook_llm_request(
            {"messages": [message("user", "b")]}, GenerateContentParameters("m", ["a", {"unknown": 1}])
        )


class TestMessages:
    """The forms of a message, well formed and not."""

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            (message("model", "x"), "model: x"),
            (message("assistant", "x"), "model: x"),
            (message("system", "x"), "user: [System] x"),
            (message("tool", "x"), "user: x"),
            (message(7, "x"), "user: x"),
            ({"content": "x"}, "user: x"),
            (message("user", ["x", {"text": "y"}]), "user: xy"),
            (message("user", ["x", 7, {"image": "z"}]), "user: x"),
            (message("user", "a\ud800"), "user: a\ud800"),
        ],
    )
    def test_added(self, translator: HookTranslatorGenAIv1, entry: dict[str, Any], expected: str) -> None:
        base = GenerateContentParameters("m", [user("Hello")])

        result = translator.from_hook_llm_request({"messages": [message("user", "Hello"), entry]}, base)

        assert outline(result) == ["user: Hello", expected]

    @pytest.mark.parametrize(
        "entry", ["x", 7, None, [], {}, {"role": "user"}, message("user", 7), message("user", [7])]
    )
    def test_malformed_one_is_ignored_alone(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture, entry: Any
    ) -> None:
        base = GenerateContentParameters("m", [user("Hello")])

        result = translator.from_hook_llm_request(
            {"messages": [message("user", "Hello"), entry, message("user", "Bye")]}, base
        )

        assert outline(result) == ["user: Hello", "user: Bye"]
        assert "llm_request.messages[1]" in caplog.text

    @pytest.mark.parametrize("entry", ["x", None, {"role": "user"}, message("user", {"text": "x"}), message("user", 5)])
    def test_malformed_one_leaves_the_message_in_its_place(self, translator: HookTranslatorGenAIv1, entry: Any) -> None:
        base = GenerateContentParameters("m", [user("Hello"), user("How are you?")])

        result = translator.from_hook_llm_request({"messages": [message("user", "Hi"), entry]}, base)

        assert outline(result) == ["user: Hi", "user: How are you?"]

    @pytest.mark.parametrize("malformed", ["Hello", {"role": "user"}, 7, ["Hello"], [None, 7], None])
    def test_without_any_well_formed_one_the_conversation_stays(
        self, translator: HookTranslatorGenAIv1, malformed: Any
    ) -> None:
        base = GenerateContentParameters("m", [user("Hello")])

        assert translator.from_hook_llm_request({"messages": malformed}, base) is base

    def test_what_a_hook_wrote_is_not_logged(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        translator.from_hook_llm_request(
            {"messages": ["secret"], "model": ["secret"], "config": {"temperature": "secret"}},
            GenerateContentParameters("m", "Hello"),
        )

        assert caplog.text
        assert "secret" not in caplog.text


def live_tool() -> str:
    """A callable among the tools, which cannot be copied meaningfully."""
    return "x"


@pytest.mark.requirement("HOOK-078")
class TestConfig:
    """Settings are merged into a copy of the base's."""

    def test_fields_that_the_hook_format_lacks_stay(self, translator: HookTranslatorGenAIv1) -> None:
        lock = object()
        config = types.GenerateContentConfig(
            temperature=0.9,
            seed=7,
            system_instruction="Be brief.",
            tools=[live_tool],
            safety_settings=[
                types.SafetySetting(
                    category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_NONE
                )
            ],
            http_options=types.HttpOptions(timeout=5, client_args={"lock": lock}),
        )
        base = GenerateContentParameters("m", "Hello", config)

        result = translator.from_hook_llm_request({"config": {"temperature": 0, "topK": 40}}, base)

        assert result.config == config.model_copy(update={"temperature": 0.0, "top_k": 40.0})
        assert result.config.tools[0] is live_tool
        assert result.config.http_options.client_args["lock"] is lock
        assert config.temperature == 0.9
        assert result.contents == "Hello"

    def test_all_settings_of_the_hook_format(self, translator: HookTranslatorGenAIv1) -> None:
        settings = {
            "temperature": 1,
            "maxOutputTokens": 5.0,
            "topP": 0.5,
            "topK": 3,
            "stopSequences": ["a", "b"],
            "candidateCount": 2,
            "presencePenalty": -1,
            "frequencyPenalty": 0.25,
        }

        result = translator.from_hook_llm_request({"config": settings}, GenerateContentParameters("m", "Hello"))

        assert result.config == types.GenerateContentConfig(
            temperature=1.0,
            max_output_tokens=5,
            top_p=0.5,
            top_k=3.0,
            stop_sequences=["a", "b"],
            candidate_count=2,
            presence_penalty=-1.0,
            frequency_penalty=0.25,
        )
        assert translator.to_hook_llm_request(result)["config"] == settings

    def test_dict_keeps_its_spelling(self, translator: HookTranslatorGenAIv1) -> None:
        config = {"topK": 5, "max_output_tokens": 9, "tools": [live_tool]}
        base = GenerateContentParameters("m", "Hello", config)

        result = translator.from_hook_llm_request(
            {"config": {"topK": 6, "maxOutputTokens": 10, "topP": 0.5}, "toolConfig": {"mode": "ANY"}}, base
        )

        tool_config = result.config.pop("tool_config")
        assert result.config == {"topK": 6.0, "max_output_tokens": 10, "top_p": 0.5, "tools": [live_tool]}
        assert tool_config.function_calling_config.mode == "ANY"
        assert config["topK"] == 5

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("temperature", "hot"),
            ("temperature", True),
            ("temperature", float("inf")),
            ("temperature", float("nan")),
            ("temperature", 10**400),
            ("temperature", [1]),
            ("maxOutputTokens", 1.5),
            ("maxOutputTokens", "5"),
            ("stopSequences", "END"),
            ("stopSequences", [1, 2]),
            ("seed", 3),
        ],
    )
    def test_malformed_field_is_ignored_alone(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture, name: str, value: Any
    ) -> None:
        base = GenerateContentParameters("m", "Hello", types.GenerateContentConfig(temperature=0.9))

        result = translator.from_hook_llm_request({"config": {name: value, "topP": 0.5}}, base)

        assert result.config == types.GenerateContentConfig(temperature=0.9, top_p=0.5)
        assert f"llm_request.config.{name}" in caplog.text

    def test_malformed_items_of_a_list_are_ignored_by_themselves(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
    ) -> None:
        result = translator.from_hook_llm_request(
            {"config": {"stopSequences": ["END", 7]}}, GenerateContentParameters("m", "Hello")
        )

        assert result.config.stop_sequences == ["END"]
        assert "1 of 2 items of `llm_request.config.stopSequences` are ignored" in caplog.text

    def test_null_leaves_a_setting_as_it_was(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
    ) -> None:
        base = GenerateContentParameters("m", "Hello", types.GenerateContentConfig(temperature=0.9))
        hook_request = {"model": None, "messages": None, "config": {"temperature": None}, "toolConfig": None}

        assert translator.from_hook_llm_request(hook_request, base) is base
        assert not caplog.text

    def test_config_of_an_unknown_type_is_named(self, translator: HookTranslatorGenAIv1) -> None:
        with pytest.raises(TranslationError, match="config is of type int"):
            translator.from_hook_llm_request({"config": {"topK": 1}}, GenerateContentParameters("m", "Hello", 7))


@pytest.mark.requirement("HOOK-078")
def test_partial_requests(translator: HookTranslatorGenAIv1) -> None:
    base = GenerateContentParameters("m", [user("Hello")], types.GenerateContentConfig(seed=1))

    result = translator.from_hook_llm_request({"model": "other"}, base)

    assert result == GenerateContentParameters("other", base.contents, base.config)
    assert result.contents is base.contents
    assert result.config is base.config
    assert translator.from_hook_llm_request({}, base) is base
    assert translator.from_hook_llm_request({"model": 7, "config": [], "toolConfig": "ANY"}, base) is base
    assert translator.from_hook_llm_request({"model": "", "contents": [], "generationConfig": {}}, base) is base


@pytest.mark.requirement("HOOK-078")
def test_what_a_hook_returns_unchanged_changes_nothing(translator: HookTranslatorGenAIv1) -> None:
    config = types.GenerateContentConfig(
        temperature=1,
        top_k=40,
        stop_sequences=["END"],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(
                mode=types.FunctionCallingConfigMode.VALIDATED, allowed_function_names=["a"]
            )
        ),
    )
    base = GenerateContentParameters("m", [user("Hello"), model(CALL)], config)

    assert translator.from_hook_llm_request(translator.to_hook_llm_request(base), base) is base
    assert translator.from_hook_llm_request({"toolConfig": {"mode": "AUTO"}}, base) is base


def test_a_large_request_is_read_and_changed(translator: HookTranslatorGenAIv1) -> None:
    """1 MB in 4,000 messages, all of one length and half of them equal, with an edit at either end."""
    base = GenerateContentParameters(
        "m", [part for index in range(2000) for part in (user(f"{index:0250}"), model("x" * 250, CALL), user(RESPONSE))]
    )
    messages = translator.to_hook_llm_request(base)["messages"]
    wanted = [message("system", "first"), *messages[1:-1], message("model", "last")]

    result = translator.from_hook_llm_request({"messages": wanted}, base)

    calls = [part for content in result.contents for part in content.parts if part.text is None]
    assert len(calls) == 4000
    assert [entry["content"] for entry in translator.to_hook_llm_request(result)["messages"]] == [
        "[System] first",
        *(entry["content"] for entry in wanted[1:]),
    ]


def test_an_output_applies_its_changes_to_a_request_and_leaves_the_given_one_alone() -> None:
    request = GenerateContentParameters("large", [user("Hello")])
    output = create_hook_output("BeforeModel", {"hookSpecificOutput": {"llm_request": {"model": "small"}}})
    unchanged = create_hook_output("BeforeModel", {"decision": "allow"})
    assert isinstance(output, BeforeModelHookOutput)
    assert isinstance(unchanged, BeforeModelHookOutput)

    changed = output.apply_llm_request_modifications(request)

    assert (changed.model, changed.contents, request.model) == ("small", request.contents, "large")
    assert unchanged.apply_llm_request_modifications(request) is request


class TestTheFullView:
    @pytest.mark.parametrize("entry", ["x", None, message("user", 5)])
    def test_a_malformed_message_leaves_the_one_in_its_place(
        self, translator: HookTranslatorGenAIv1, entry: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        base = GenerateContentParameters("m", [user("Hello"), user("How are you?")])

        result = translator.from_full_llm_request({"messages": [message("user", "Hi"), entry]}, base)

        assert outline(result) == ["user: Hi", "user: How are you?"]
        assert "llm_request.messages[1]" in caplog.text

    def test_nothing_but_malformed_messages_leaves_all_as_they_were(self, translator: HookTranslatorGenAIv1) -> None:
        base = GenerateContentParameters("m", [user("Hello"), user("How are you?")])

        assert translator.from_full_llm_request({"messages": [None, message("user", 5)]}, base) is base

    @pytest.mark.parametrize(
        ("content", "response"),
        [('{"lines": 0, "names": []}', {"lines": 0, "names": []}), ("***", {"output": "***"})],
    )
    def test_a_result_of_several_fields_is_json_and_stays_json_if_it_can(
        self, translator: HookTranslatorGenAIv1, content: str, response: dict[str, object]
    ) -> None:
        output = {"lines": 2, "names": ["a.py", "b.py"]}
        base = GenerateContentParameters("m", [model(OTHER_CALL), user(_result(output))])
        call, result = translator.to_full_llm_request(base)["messages"]

        changed = translator.from_full_llm_request({"messages": [call, {**result, "content": content}]}, base)

        assert json.loads(result["content"]) == output
        assert changed.contents == [model(OTHER_CALL), user(_result(response))]

    def test_a_result_of_a_call_that_was_not_shown_is_ignored(
        self, translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
    ) -> None:
        base = GenerateContentParameters("m", [model(OTHER_CALL), user(_result({"output": "a.py"}))])
        messages = translator.to_full_llm_request(base)["messages"]

        other = {"role": "tool", "toolCallId": "another", "content": "b.py"}
        result = translator.from_full_llm_request({"messages": [*messages, other]}, base)

        assert result.contents == base.contents
        assert "no result of the call `another` was shown" in caplog.text


def _result(output: dict[str, object]) -> types.Part:
    return types.Part.from_function_response(name="glob", response=output)
