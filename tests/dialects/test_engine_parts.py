"""What the engine keeps for hooks of other agents: questions, transcripts, session folders, plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import AggregatedHookResult, Config, HookEventName
from llxprt_hooks.core.engine import journal, session_memory
from llxprt_hooks.core.engine.hints import hints_on
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.core.protocol.inputs import input_problem
from llxprt_hooks.model import HookTranslator, resolve_translator
from llxprt_hooks.settings.load import Asked, asked_for, asked_plugins


def claude(event: str, command: str) -> Config:
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}]}
    return Config(hooks=hooks, dialect="claude", enable_hooks=True)


async def fired(config: Config) -> AggregatedHookResult:
    system = config.get_hook_system()
    assert system is not None
    return await system.ready_event_handler().fire_before_tool_event("glob", {})


async def test_a_hook_for_questions_does_not_run_where_nobody_asks() -> None:
    config = claude("PermissionRequest", "exit 2")
    registry = HookRegistry(config)
    registry.initialize()

    (hook,) = HookPlanner(registry).explain(HookEventName.BEFORE_TOOL, "glob")

    assert hook.why == "it runs only where a person would be asked about the call"
    assert (await fired(config)).results == []


async def test_advice_about_our_own_answers_is_not_given_to_a_foreign_hook() -> None:
    command = "echo '{\"descision\": 1}'"
    (foreign,) = (await fired(claude("PreToolUse", command))).results
    own = Config(hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}, enable_hooks=True)
    (native,) = (await fired(own)).results

    assert hints_on(foreign) == []
    assert "did you mean" in hints_on(native)[0]


def test_the_transcripts_of_the_oldest_sessions_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_MAX_SESSIONS", 1)
    config = claude("Stop", "true")
    first, second = journal.open_journal(config, "first"), journal.open_journal(config, "second")

    assert first is not None
    assert second is not None
    assert journal.journal_of("first") is None
    assert journal.journal_of("second") is second


def test_tokens_are_part_of_the_answer_and_no_transcript_stops_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = journal.open_journal(claude("Stop", "true"), "s1")
    assert kept is not None
    kept.used(input_tokens=7)
    kept.answer("")
    kept.answer("Hello.")
    assert '"input_tokens":7' in Path(kept.path).read_text(encoding="utf-8")
    monkeypatch.setattr(journal, "append_privately", None)
    kept.prompt("and now?")
    assert "and now?" not in Path(kept.path).read_text(encoding="utf-8")
    monkeypatch.setattr(session_memory, "open_folder", lambda session_id: None)
    kept.prompt("and then?")


def test_a_session_that_starts_keeps_its_transcript_only() -> None:
    folder = Path(str(session_memory.open_folder("s2")))
    (folder / "notes").mkdir()
    for name in ("state", session_memory.TRANSCRIPT, "notes/x"):
        (folder / name).write_text("x", encoding="utf-8")

    session_memory.at_event(HookEventName.SESSION_START, {"source": "startup"}, "s2")

    assert [each.name for each in folder.iterdir()] == [session_memory.TRANSCRIPT]


def test_a_plugin_belongs_to_the_dialect_that_is_asked_for(tmp_path: Path) -> None:
    token = asked_for.set(Asked((), (str(tmp_path),)))
    try:
        assert asked_plugins("claude") == [tmp_path]
        assert asked_plugins("cursor") == []
    finally:
        asked_for.reset(token)


@pytest.mark.parametrize(("field", "value"), [("tool_use_id", 7), ("duration_ms", "long")])
def test_what_acting_hooks_know_about_a_call_is_checked(field: str, value: Any) -> None:
    given = {"tool_name": "glob", "tool_input": {}, field: value}
    assert f"`{field}`" in str(input_problem(HookEventName.BEFORE_TOOL, given))


def test_a_translator_shows_its_turns_unless_it_has_another_way() -> None:
    translator: Any = resolve_translator("openai-chat")
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert HookTranslator.shown_turns(translator, request) == translator.turns(request)
