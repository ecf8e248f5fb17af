"""``prove``: a scripted model finds the tool calls that hooks do not guard, in real programs."""

from __future__ import annotations

import json
import shlex
import sys
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.testing import CanaryError, Scene, prove
from llxprt_hooks.testing.model_apis import sample
from llxprt_hooks.testing.proof import Refusal

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

Run = Callable[[str], str]
AGENT = str(Path(__file__).with_name("agents.py"))
INSIDE = "in the agent that delegate starts"
EVERY_AGENT = ["one call", "several calls in one answer", "text before the call", "again after a refusal", "every tool"]
ERROR, MCP, BACKGROUND = "again after an error", "a tool of an MCP server", "in the background"
SOME_AGENTS = [ERROR, MCP, BACKGROUND, "in another agent"]
TOOLS = ("read_note", "write_note")
ALL_TOOLS = (*TOOLS, "delegate", "break_note", "mcp__notes__free", "job")


def verdicts(
    call: Call, kind: str, *options: str, tools: tuple[str, ...] = TOOLS
) -> tuple[int, dict[str, dict[str, Any]]]:
    ran = call("prove", "--json", *options, "--", sys.executable, AGENT, kind, *tools)
    return ran.status, {each["way"]: each for each in ran.json["ways"]}


def outcomes(found: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The ways by their outcome."""
    by_outcome: dict[str, list[str]] = {}
    for way, each in found.items():
        by_outcome.setdefault(each["outcome"], []).append(way)
    return by_outcome


PARALLEL = {
    "several calls in one answer": ["read_note"] * 3,
    ERROR: ["break_note"] * 2,
    MCP: ["mcp__notes__free"] * 2,
}
CARELESS = {
    "every tool": ["mcp__notes__free"],
    ERROR: ["break_note"] * 3,
    MCP: ["mcp__notes__free"] * 3,
    BACKGROUND: ["job"],
}
"""The leaks of an agent that asks no hook about MCP servers, background work, or what a hook has let pass before."""


@pytest.mark.parametrize(
    ("kind", "leaks"),
    [
        ("guarded", {}),
        (
            "parallel",
            {
                "several calls in one answer": ["read_note"] * 3,
                ERROR: ["break_note"] * 2,
                MCP: ["mcp__notes__free"] * 2,
            },
        ),
        ("sub-agent", {"every tool": ["read_note"], INSIDE: ["read_note"]}),
        ("careless", CARELESS),
    ],
)
def test_the_way_that_leaks_is_found_and_no_other(
    world: CliProject, call: Call, kind: str, leaks: dict[str, list[str]]
) -> None:
    status, found = verdicts(call, kind, "--through", "delegate", "--failing", "break_note", tools=ALL_TOOLS)

    assert list(found) == [*EVERY_AGENT, ERROR, MCP, BACKGROUND, INSIDE]
    assert {way: each["leaked"] for way, each in found.items() if each["leaked"]} == leaks
    assert outcomes(found).get("guarded") == [way for way in found if way not in leaks]
    assert status == bool(leaks)


def test_a_way_that_the_agent_does_not_have_is_not_tried(world: CliProject, call: Call) -> None:
    status, found = verdicts(call, "guarded")

    assert status == 0
    assert outcomes(found) == {"guarded": EVERY_AGENT, "not tried": SOME_AGENTS}
    assert all(found[way]["problem"] for way in SOME_AGENTS)


def test_a_way_that_is_asked_for_and_cannot_be_tried_is_not_proven(world: CliProject, call: Call) -> None:
    missing = ("--mcp", "no_tool", "--background", "no_tool", "--through", "no_tool", "--through", "write_note")
    status, found = verdicts(call, "timid", *missing, "--failing", "break_note", tools=(*TOOLS, "break_note"))

    none, inside = "in the agent that no_tool starts", "in the agent that write_note starts"
    unknown = [ERROR, MCP, BACKGROUND, none, inside]
    assert status == 1
    assert outcomes(found) == {"guarded": EVERY_AGENT, "unknown": unknown}
    assert found[ERROR]["problem"] == "the program exited with 1: a tool failed"
    no_tool = {found[way]["problem"] for way in (MCP, BACKGROUND, none)}
    assert no_tool == {"the agent offered the model no tool named no_tool"}
    assert found[inside]["problem"] == "the model could call tools in only 1 of 2 answers"


QUOTED = shlex.quote(json.dumps({"decision": "block", "reason": 'no "notes"\n\u2014 ever'}))


STOP = """echo '{"continue": false}'"""


@pytest.mark.parametrize("own", [f"printf %s {QUOTED}", "echo no notes today >&2; exit 2", STOP])
@pytest.mark.parametrize("kind", ["guarded", "parallel"])
def test_a_call_that_an_own_hook_refuses_before_the_guard_is_guarded(
    world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch, own: str, kind: str
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    chain = {"matcher": "read_note", "sequential": True, "hooks": [{"type": "command", "command": own}]}
    world.write(".llxprt/settings.json", {"enableHooks": True, "hooks": {"BeforeTool": [chain]}})

    status, found = verdicts(call, kind)

    leaks = {way: each["leaked"] for way, each in found.items() if each["leaked"]}
    assert leaks == ({} if kind == "guarded" else {"several calls in one answer": ["read_note"] * 3})
    stopped = ["again after a refusal", "every tool"] if own == STOP else []
    assert outcomes(found)["guarded"] == [way for way in EVERY_AGENT if way not in (*leaks, *stopped)]
    assert status == bool(leaks or stopped)
    assert not world.log_file.exists()


@pytest.mark.parametrize(
    ("kind", "tools", "why"),
    [
        ("guarded", (), "the agent offered the model no tool"),
        ("broken", TOOLS, "the program exited with 1: no model configured"),
    ],
)
def test_an_agent_that_makes_no_call_is_not_proven(
    world: CliProject, call: Call, kind: str, tools: tuple[str, ...], why: str
) -> None:
    status, found = verdicts(call, kind, tools=tools)

    assert status == 1
    assert outcomes(found) == {"unknown": EVERY_AGENT, "not tried": SOME_AGENTS}
    assert {found[way]["problem"] for way in EVERY_AGENT} == {why}


def test_only_calls_that_the_guard_is_asked_about_count(world: CliProject, call: Call) -> None:
    _, found = verdicts(call, "guarded", "--through", "read_note", tools=("read_note",))

    assert {each["calls"] for each in found.values()} == {0}
    assert "guarded" not in outcomes(found)
    assert found["one call"]["problem"] == "the model called only tools that the guard lets pass"


def test_every_tool_is_called_however_many_there_are(world: CliProject, call: Call) -> None:
    _, found = verdicts(call, "careless", tools=(*(f"tool_{number}" for number in range(60)), "mcp__notes__free"))

    assert found["every tool"]["leaked"] == ["mcp__notes__free"]


def test_agents_that_start_agents_that_start_agents_come_to_an_end(world: CliProject, call: Call) -> None:
    tools = ("delegate", "read_note", "mcp__notes__free")
    status, found = verdicts(call, "endless", "--through", "delegate", tools=tools)

    assert status == 0
    assert found["every tool"]["calls"] == 4  # two tools, in two agents
    assert not any(each["problem"] for each in found.values() if each["outcome"] == "guarded")


def test_hooks_that_are_off_are_a_leak_and_the_screen_says_where_to_look(
    world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    world.write(".llxprt/settings.json", {"enableHooks": False})

    ran = call("prove", "--", sys.executable, AGENT, "guarded", "read_note")

    assert ran.status == 1
    assert "LEAK      one call: 1 of 1 calls bypassed the guard: read_note" in ran.stdout
    assert "not tried in the background: no tool has an argument like run_in_background" in ran.stdout
    assert "0 of 5 ways guarded, 4 not tried" in ran.stdout
    assert "Run `llxprt-hooks doctor`" in ran.stderr


def test_a_program_that_does_not_exist(world: CliProject, call: Call) -> None:
    ran = call("prove", "--", "/no/such/agent")
    assert ran.status == 1
    assert "cannot be started" in ran.stdout


def a_tool(declaration: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [declaration]}


FUNCTION = {"type": "function", "name": "canary"}
REQUESTS: dict[str, Any] = {
    "/v1/chat/completions": lambda turns: {"messages": turns, **a_tool({"type": "function", "function": FUNCTION})},
    "/v1/responses": lambda turns: {"input": turns, **a_tool(FUNCTION)},
    "/v1/messages": lambda turns: {"messages": turns, **a_tool({"name": "canary", "input_schema": {}})},
    "/v1beta/models/m:generateContent": lambda turns: {
        "contents": turns,
        **a_tool({"functionDeclarations": [{"name": "canary"}]}),
    },
}
"""The requests of an agent with one tool, by the path of an API."""


def an_agent(run: Callable[[Scene], str], path: str = "/v1/messages") -> Callable[[Scene], None]:
    """An agent of this API in plain HTTP, and how it runs its tool."""

    def agent(scene: Scene) -> None:
        history: list[Any] = [{"role": "user", "content": "hello", "parts": [{"text": "hello"}]}]
        while True:
            body = json.dumps(REQUESTS[path](history)).encode()
            with urllib.request.urlopen(scene.url + path, body) as response:
                answer = json.load(response)
            said = ADDED[path](answer, lambda name: run(scene))
            if len(said) < 2:
                return
            history += said

    return agent


def with_hooks(scene: Scene, tool: Callable[[], str], hooks: Hooks | None = None, name: str = "canary") -> str:
    hooks = hooks or Hooks(hooks=scene.hooks)
    try:
        return str(hooks.sync.run_tool(name, {}, lambda arguments: tool()).llm_content)
    except CanaryError as error:
        return f"error: {error}"


def guarded(scene: Scene) -> str:
    return with_hooks(scene, scene.tool)


def _chat(answer: Any, run: Run) -> list[Any]:
    message = answer["choices"][0]["message"]
    results = [(call["id"], run(call["function"]["name"])) for call in message.get("tool_calls") or ()]
    return [message, *({"role": "tool", "tool_call_id": key, "content": text} for key, text in results)]


def _responses(answer: Any, run: Run) -> list[Any]:
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    results = [(call["call_id"], run(call["name"])) for call in calls]
    outputs = [{"type": "function_call_output", "call_id": key, "output": text} for key, text in results]
    return [*answer["output"], *outputs] if outputs else []


def _messages(answer: Any, run: Run) -> list[Any]:
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    blocks = [{"type": "tool_result", "tool_use_id": call["id"], "content": run(call["name"])} for call in calls]
    said = {"role": "assistant", "content": answer["content"]}
    return [said, {"role": "user", "content": blocks}] if blocks else []


def _gemini(answer: Any, run: Run) -> list[Any]:
    content = answer["candidates"][0]["content"]
    names = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    parts = [{"functionResponse": {"name": name, "response": {"output": run(name)}}} for name in names]
    return [content, {"role": "user", "parts": parts}] if parts else []


ADDED: dict[str, Callable[[Any, Run], list[Any]]] = dict(
    zip(REQUESTS, (_chat, _responses, _messages, _gemini), strict=True)
)
"""What an agent adds to its history: the model's answer, and the results of its calls."""


@pytest.mark.parametrize("path", REQUESTS)
def test_every_api_is_spoken_in_process(path: str) -> None:
    found = prove(an_agent(guarded, path))

    assert [each.way for each in found if each.is_guarded] == [*EVERY_AGENT, ERROR]
    assert [each.way for each in found if each.outcome == "not tried"] == SOME_AGENTS[1:]

    with pytest.raises(AssertionError, match="one call: 1 of 1 calls bypassed the guard: canary"):
        prove(an_agent(lambda scene: scene.tool(), path))


def test_an_agent_that_calls_a_failed_tool_again_by_itself_is_found() -> None:
    def twice(scene: Scene) -> str:
        try:
            return scene.tool()
        except CanaryError:
            return scene.tool()

    with pytest.raises(AssertionError) as caught:
        prove(an_agent(lambda scene: with_hooks(scene, lambda: twice(scene))))

    assert str(caught.value) == f"not every tool call is guarded; {ERROR}: 1 of 3 calls bypassed the guard: tool"


def test_a_tool_that_returns_the_conversation_is_not_taken_for_the_guard() -> None:
    with pytest.raises(AssertionError, match="one call: 1 of 1 calls bypassed the guard"):
        prove(an_agent(lambda scene: f"user: hello\nsystem: {scene.hooks['BeforeModel']}"))


def test_calls_of_another_agent_do_not_stand_for_tools_that_nobody_called() -> None:
    def agent(scene: Scene) -> None:
        def turns(count: int, tools: Sequence[str]) -> list[Any]:
            said: list[Any] = []
            for _ in range(count):
                offered = [{"type": "function", "function": {"name": name}} for name in tools]
                body = json.dumps({"messages": said, "tools": offered}).encode()
                with urllib.request.urlopen(f"{scene.openai_url}/chat/completions", body) as response:
                    said += _chat(json.load(response), run)
            return said

        def run(name: str) -> str:
            return with_hooks(scene, lambda: str(turns(3, ("a", "b"))), name=name)

        turns(3, ("delegate", "a", "b", "c"))

    with pytest.raises(AssertionError, match="every tool: not tried: the model could call only 3 of 4 tools"):
        prove(agent, through=["delegate"])


def test_an_agent_that_asks_the_guard_before_each_attempt_is_guarded() -> None:
    def persistent(scene: Scene) -> str:
        first = guarded(scene)
        return guarded(scene) if first.startswith("error") else first

    assert [each.way for each in prove(an_agent(persistent)) if each.is_guarded] == [*EVERY_AGENT, ERROR]


def helpless(scene: Scene) -> str:
    return str(Hooks(hooks=scene.hooks).sync.run_tool("canary", {}, lambda arguments: scene.tool()).llm_content)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (helpless, "the agent ends when a tool fails: CanaryError"),
        (lambda scene: with_hooks(scene, lambda: guarded(scene)), "hooks refuse the call that should fail"),
        (lambda scene: with_hooks(scene, lambda: "another tool"), "canary is not the scene's tool"),
    ],
)
def test_nothing_is_proven_after_an_error_that_did_not_happen(run: Callable[[Scene], str], why: str) -> None:
    [after_an_error] = [each for each in prove(an_agent(run)) if each.way == ERROR]

    assert after_an_error.outcome == "not tried"
    assert why in after_an_error.problem


@pytest.mark.parametrize(("result", "is_refused"), [("error: no!", True), ("nothing is known", False)])
def test_a_short_reason_is_not_found_within_another_word(result: str, is_refused: bool) -> None:
    assert Refusal("no").explains(result) is is_refused


def test_a_refusal_stands_for_one_call() -> None:
    own = {"type": "command", "command": "echo no >&2; exit 2"}
    asked = set()

    def first_only(scene: Scene) -> str:
        if scene.word in asked:
            return "no notes are found"
        asked.add(scene.word)
        return with_hooks(scene, scene.tool, Hooks(hooks={"BeforeTool": [{"hooks": [own]}]}))

    with pytest.raises(AssertionError, match="several calls in one answer: 2 of 3 calls bypassed the guard"):
        prove(an_agent(first_only))


def test_what_an_own_hook_refuses_in_process_before_the_guard_is_guarded() -> None:
    def run(scene: Scene) -> str:
        own = {"type": "command", "command": "echo no notes today >&2; exit 2"}
        chain = {"sequential": True, "hooks": [own, *scene.hooks["BeforeTool"][0]["hooks"]]}
        return with_hooks(scene, scene.tool, Hooks(hooks={"BeforeTool": [chain]}))

    found = prove(an_agent(run))

    assert [each.way for each in found if each.is_guarded] == EVERY_AGENT
    assert [each.problem for each in found if each.way == ERROR] == ["hooks refuse the call that should fail"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, {}),
        ({"type": "STRING"}, "canary"),
        ({"enum": ["b", "a"]}, "b"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"properties": {"a": {"type": "array"}, "b": {"type": "number"}}, "required": ["a"]}, {"a": []}),
    ],
)
def test_arguments_fit_the_schema_of_the_tool(schema: Any, value: Any) -> None:
    assert sample(schema) == value
