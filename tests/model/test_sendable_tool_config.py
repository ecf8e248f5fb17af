"""What the Gemini API is sent for a restriction of tools."""

import pytest
from google.genai import types

from llxprt_hooks.model import Restriction, resolve_translator
from llxprt_hooks.model.google_genai import sendable_tool_config

Mode = types.FunctionCallingConfigMode


def tool_config(mode: Mode | None, names: list[str] | None) -> types.ToolConfig:
    calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
    return types.ToolConfig(function_calling_config=calling)


@pytest.mark.requirement("HOOK-055", "HOOK-056", "HOOK-057", "HOOK-140")
@pytest.mark.parametrize(
    ("mode", "names", "sent", "allowed"),
    [
        (Mode.AUTO, None, (Mode.AUTO, None), None),
        (Mode.ANY, None, (Mode.ANY, None), None),
        (Mode.NONE, None, (Mode.NONE, None), set()),
        (Mode.AUTO, ["glob"], (Mode.VALIDATED, ["glob"]), {"glob"}),
        (Mode.ANY, ["glob"], (Mode.ANY, ["glob"]), {"glob"}),
        (Mode.VALIDATED, ["glob"], (Mode.VALIDATED, ["glob"]), {"glob"}),
        (None, ["glob"], (Mode.VALIDATED, ["glob"]), {"glob"}),
        (Mode.NONE, ["glob"], (Mode.NONE, None), set()),
        (Mode.AUTO, [], (Mode.NONE, None), set()),
        (Mode.ANY, [], (Mode.NONE, None), set()),
        (Mode.ANY, ["glob", "no_such_tool"], (Mode.ANY, ["glob"]), {"glob", "no_such_tool"}),
        (Mode.ANY, ["no_such_tool"], (Mode.NONE, None), {"no_such_tool"}),
    ],
)
def test_a_restriction_is_sent_as_the_api_accepts_it_and_applied_to_the_answer(
    mode: Mode, names: list[str] | None, sent: tuple[Mode, list[str] | None], allowed: set[str] | None
) -> None:
    config = tool_config(mode, names)
    result = sendable_tool_config(config, {"glob", "read_file"})
    assert result is not None
    calling = result.function_calling_config
    assert calling is not None
    assert (calling.mode, calling.allowed_function_names) == sent
    restriction = Restriction.of(resolve_translator().to_hook_tool_config(config))
    assert restriction.allowed == (None if allowed is None else frozenset(allowed))


def test_without_names_a_tool_configuration_is_sent_as_it_is() -> None:
    assert sendable_tool_config(None, {"glob"}) is None
    empty = types.ToolConfig()
    assert sendable_tool_config(empty, {"glob"}) is empty
