"""Tool configurations, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks.model import TranslationError

if TYPE_CHECKING:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1


def config(mode: str | None = None, names: list[str] | None = None) -> types.ToolConfig:
    return types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=None if mode is None else types.FunctionCallingConfigMode(mode), allowed_function_names=names
        )
    )


@pytest.mark.requirement("HOOK-074")
@pytest.mark.parametrize(
    ("tool_config", "shown"),
    [
        (None, {}),
        (types.ToolConfig(), {}),
        (config("AUTO"), {"mode": "AUTO"}),
        (config("ANY", ["b", "a"]), {"mode": "ANY", "allowedFunctionNames": ["b", "a"]}),
        (config("NONE", []), {"mode": "NONE", "allowedFunctionNames": []}),
        (config("VALIDATED"), {"mode": "AUTO"}),
        (config("MODE_UNSPECIFIED"), {}),
        ({"functionCallingConfig": {"mode": "ANY"}}, {"mode": "ANY"}),
    ],
)
def test_shown_to_hooks(translator: HookTranslatorGenAIv1, tool_config: Any, shown: dict[str, Any]) -> None:
    assert translator.to_hook_tool_config(tool_config) == shown


@pytest.mark.requirement("HOOK-074", "HOOK-078")
@pytest.mark.parametrize(
    ("answer", "base", "result"),
    [
        # The mode, and what an omitted one means
        ({"mode": "ANY"}, None, config("ANY")),
        ({"mode": "AUTO"}, config("ANY", ["a"]), config("AUTO", ["a"])),
        ({"allowedFunctionNames": ["a"]}, config("ANY"), config("ANY", ["a"])),
        ({"allowedFunctionNames": ["a"]}, None, config("AUTO", ["a"])),
        ({"mode": "AUTO", "allowedFunctionNames": ["b", "a", "b"]}, None, config("AUTO", ["b", "a", "b"])),
        # No tool at all
        ({"mode": "NONE"}, config("ANY", ["a"]), config("NONE", [])),
        ({"mode": "NONE", "allowedFunctionNames": ["a"]}, None, config("NONE", [])),
        ({"allowedFunctionNames": []}, config("ANY", ["a"]), config("NONE", [])),
        ({"mode": "ANY", "allowedFunctionNames": []}, None, config("NONE", [])),
        ({"mode": "ANY", "allowedFunctionNames": [7]}, None, config("NONE", [])),
        ({"allowedFunctionNames": ["a"]}, config("NONE", []), config("NONE", [])),
        # From NONE to another mode: the empty list of NONE is not a restriction of its own
        ({"mode": "ANY"}, config("NONE", []), config("ANY")),
        ({"mode": "ANY", "allowedFunctionNames": ["a"]}, config("NONE", []), config("ANY", ["a"])),
        # VALIDATED was shown as AUTO
        ({"mode": "AUTO", "allowedFunctionNames": ["a"]}, config("VALIDATED", ["a", "b"]), config("VALIDATED", ["a"])),
        # Malformed fields
        ({"mode": "SOME", "allowedFunctionNames": ["a"]}, config("ANY"), config("ANY", ["a"])),
        ({"mode": 7}, config("ANY", ["a"]), config("ANY", ["a"])),
        ({"mode": ["ANY"], "allowedFunctionNames": "a"}, config("ANY", ["a"]), config("ANY", ["a"])),
        ({"mode": "ANY", "allowedFunctionNames": ["a", None]}, None, config("ANY", ["a"])),
        ({"mode": None, "allowedFunctionNames": None}, config("ANY", ["a"]), config("ANY", ["a"])),
        ({}, None, types.ToolConfig()),
    ],
)
def test_it_is_merged_into_the_base(
    translator: HookTranslatorGenAIv1, answer: dict[str, Any], base: Any, result: Any
) -> None:
    assert translator.from_hook_tool_config(answer, base) == result


@pytest.mark.requirement("HOOK-078")
def test_everything_else_in_the_base_stays(translator: HookTranslatorGenAIv1) -> None:
    base = types.ToolConfig(
        retrieval_config=types.RetrievalConfig(language_code="en"),
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.AUTO, stream_function_call_arguments=True
        ),
    )

    result = translator.from_hook_tool_config({"mode": "ANY"}, base)

    assert result.retrieval_config is base.retrieval_config
    assert result.function_calling_config == types.FunctionCallingConfig(
        mode=types.FunctionCallingConfigMode.ANY, stream_function_call_arguments=True
    )
    assert base.function_calling_config is not None
    assert base.function_calling_config.mode == "AUTO"


def test_a_dict_as_base(translator: HookTranslatorGenAIv1) -> None:
    result = translator.from_hook_tool_config(
        {"mode": "ANY"},
        {"functionCallingConfig": {"allowedFunctionNames": ["a"]}},  # type: ignore[arg-type]  # the SDK takes it
    )

    assert result == config("ANY", ["a"])


def test_a_base_that_the_sdk_refuses_is_named(translator: HookTranslatorGenAIv1) -> None:
    with pytest.raises(TranslationError, match="does not accept the tool_config"):
        translator.from_hook_tool_config({"mode": "ANY"}, {"unknown": 1})  # type: ignore[arg-type]  # the mistake
