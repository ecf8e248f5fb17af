"""The agent of own-agent.md, exactly as on the page: its loop applies the effects of hooks."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks, ToolResult
from tests.docs.pages import ROOT, Block, sections

PAGE = ROOT / "docs" / "own-agent.md"
PROMPT = "How is the weather?"

ASKED = f"> model: {PROMPT}"
RAN = ("> tool: Rome", "(looked up Rome)")
HEARD = "sunny in Rome"
TOLD = (f"{ASKED} | {HEARD}", f"I heard: {HEARD}")
"""Without hooks the model is asked, its call is run, and it is asked again with the result."""


def refused(why: str) -> tuple[str, ...]:
    """The user and the model read why a call was not run, or did not succeed."""
    return ASKED, why, f"{ASKED} | error: {why}", f"I heard: {why}"


def program(file: str) -> Block:
    [block] = [block for section in sections(PAGE) for block in section.blocks if block.words.get("file") == file]
    return block


def loaded(name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(program(f"{name}.py").text, PAGE.name, "exec"), vars(module))
    return module


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The page's program, which prints beside its own output what its model was sent and its tool was given."""
    stand_in = loaded("stand_in")
    monkeypatch.setitem(sys.modules, "stand_in", stand_in)
    module = loaded("agent")
    answer, weather = stand_in.model, stand_in.weather

    async def told_answer(request: Any) -> Any:
        name = "" if request.model == "some-model" else f" {request.model}"
        print(f"> model{name}: {' | '.join(map(_text, _user_parts(request)))}")
        return await answer(request)

    async def told_weather(arguments: dict[str, Any]) -> ToolResult:
        print(f"> tool: {arguments['city']}")
        result: ToolResult = await weather(arguments)
        return result

    module.model = told_answer  # type: ignore[attr-defined]
    module.TOOLS["weather"] = told_weather
    return module


def _user_parts(request: Any) -> list[Any]:
    return [part for content in request.contents if content.role == "user" for part in content.parts]


def _text(part: Any) -> str:
    if part.text is not None:
        return str(part.text)
    [(kind, text)] = part.function_response.response.items()
    return str(text) if kind == "output" else f"{kind}: {text}"


def agent(page: ModuleType, folder: Path, **commands: str) -> Any:
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()}
    made = Hooks(Config(enable_hooks=True, working_dir=folder, hooks=hooks))
    session = made.session("conversation-1")
    session.enter()
    return page.Agent(made, session, page.model)


def says(specific: dict[str, Any] | None = None, **fields: Any) -> str:
    """A hook that prints this."""
    return f"echo {shlex.quote(json.dumps({**fields, 'hookSpecificOutput': specific or {}}))}"


def once(command: str) -> str:
    """A hook that does nothing from the second time on."""
    return f"[ -e done ] || {{ touch done; {command}; }}"


STOP: dict[str, Any] = {"continue": False, "stopReason": "enough"}
HELLO = {"llm_response": {"text": "hello"}}

EFFECTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no hook": ({}, (ASKED, *RAN, *TOLD)),
    "BeforeToolSelection: no tool": (
        {"BeforeToolSelection": says({"toolConfig": {"mode": "NONE"}})},
        refused("weather may not be called now. No tool is allowed."),
    ),
    "BeforeToolSelection: a stop": ({"BeforeToolSelection": says(**STOP)}, ("stopped: enough",)),
    "BeforeModel: a block": (
        {"BeforeModel": "echo 'not today' >&2; exit 2"},
        ("blocked: not today",),
    ),
    "BeforeModel: an answer instead of the model's": (
        {"BeforeModel": says(HELLO, decision="deny")},
        ("hello",),
    ),
    "BeforeModel: an answer that is not shown": (
        {"BeforeModel": says(HELLO, decision="deny", suppressOutput=True)},
        (),
    ),
    "BeforeModel: another model": (
        {"BeforeModel": once(says({"llm_request": {"model": "small"}}))},
        (ASKED.replace("model", "model small"), *RAN, *TOLD),
    ),
    "BeforeModel: other messages, for one request": (
        {"BeforeModel": once(says({"llm_request": {"messages": [{"role": "user", "content": "Rain?"}]}}))},
        ("> model: Rain?", *RAN, *TOLD),
    ),
    "BeforeModel: a stop with an answer": ({"BeforeModel": says(HELLO, **STOP)}, ("hello", "stopped: enough")),
    "AfterModel: another answer": ({"AfterModel": says(HELLO)}, (ASKED, "hello")),
    "AfterModel: an answer that is not shown": (
        {"AfterModel": says(suppressOutput=True)},
        (ASKED, *RAN, TOLD[0]),
    ),
    "AfterModel: a message, for the next request": (
        {"AfterModel": once("echo Be brief.")},
        (ASKED, *RAN, f"{TOLD[0]} | [System] Be brief.", TOLD[1], "[System] Be brief."),
    ),
    "AfterModel: a stop": ({"AfterModel": says(**STOP)}, (ASKED, "enough", "stopped: enough")),
    "BeforeTool: a block": (
        {"BeforeTool": "echo 'not today' >&2; exit 2"},
        refused("not today"),
    ),
    "BeforeTool: other arguments": (
        {"BeforeTool": says({"tool_input": {"city": "Oslo"}})},
        tuple(line.replace("Rome", "Oslo") for line in (ASKED, *RAN, *TOLD)),
    ),
    "BeforeTool: a stop": ({"BeforeTool": says(**STOP)}, (ASKED, "enough", "stopped: enough")),
    "AfterTool: more to read": (
        {"AfterTool": says({"additionalContext": "(yesterday)"})},
        (ASKED, *RAN, TOLD[0], "", "(yesterday)", TOLD[1], "", "(yesterday)"),
    ),
    "AfterTool: a result that is not shown": (
        {"AfterTool": says(suppressOutput=True)},
        (ASKED, RAN[0], *TOLD),
    ),
    "AfterTool: a stop": ({"AfterTool": says(**STOP)}, (ASKED, *RAN, "stopped: enough")),
}


@pytest.mark.parametrize(("hooks", "expected"), EFFECTS.values(), ids=EFFECTS)
async def test_an_effect_of_a_hook(
    hooks: dict[str, str],
    expected: tuple[str, ...],
    page: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await agent(page, tmp_path, **hooks).run(PROMPT)

    assert capsys.readouterr().out.splitlines() == list(expected)


async def test_a_tool_that_fails(page: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.TOOLS["weather"] = lambda _: loaded("stand_in").weather({})
    await agent(page, tmp_path).run(PROMPT)

    assert capsys.readouterr().out.splitlines() == list(refused("weather failed: KeyError('city')"))


async def test_a_tool_that_does_not_exist(page: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del page.TOOLS["weather"]
    await agent(page, tmp_path, BeforeTool=says(**STOP)).run(PROMPT)

    asked, _, *rest = refused("There is no tool weather.")
    assert capsys.readouterr().out.splitlines() == [asked, *rest]


async def test_a_message_is_kept_for_one_request_while_no_model_is_called(
    page: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = agent(page, tmp_path, BeforeModel=once(says(decision="deny", reason="not yet", systemMessage="Go on.")))
    await blocked.run(PROMPT)
    await blocked.run("And now?")

    asked = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("blocked", "> model"))]
    assert asked == [
        "blocked: not yet",
        f"{ASKED} | And now? | [System] Go on.",
        f"{ASKED} | And now? | {HEARD}",
    ]


@pytest.mark.parametrize(
    "hooks", [{"BeforeModel": says(HELLO, decision="deny")}, {"AfterModel": says(HELLO, suppressOutput=True)}], ids=str
)
async def test_an_answer_is_remembered_with_the_changes_of_hooks(
    hooks: dict[str, str], page: ModuleType, tmp_path: Path
) -> None:
    answered = agent(page, tmp_path, **hooks)
    await answered.run(PROMPT)

    assert [(said.role, said.parts[0].text) for said in answered.history] == [("user", PROMPT), ("model", "hello")]


async def test_a_request_for_a_tool_is_remembered_with_its_result(page: ModuleType, tmp_path: Path) -> None:
    answered = agent(page, tmp_path)
    await answered.run(PROMPT)

    assert [said.role for said in answered.history] == ["user", "model", "user", "model"]
    assert answered.history[1].parts[0].function_call.args == {"city": "Rome"}
    assert answered.history[2].parts[0].function_response.response == {"output": HEARD}


async def test_every_call_is_answered_although_a_hook_stops_the_agent(page: ModuleType, tmp_path: Path) -> None:
    calls = [page.types.FunctionCall(id=city, name="weather", args={"city": city}) for city in ("Rome", "Oslo")]
    stopping = agent(page, tmp_path, BeforeTool=once(says(**STOP)))

    await stopping.call_tools(calls)

    assert stopping.session.stop_reason == "enough"
    [answers] = stopping.history
    assert [part.function_response.id for part in answers.parts] == ["Rome", "Oslo"]
