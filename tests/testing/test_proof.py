"""``prove``: a scripted model finds the tool calls that hooks do not guard, in real programs."""

from __future__ import annotations

import json
import shlex
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.testing import Scene, prove
from llxprt_hooks.testing.model_apis import sample

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

Run = Callable[[str], str]
AGENT = str(Path(__file__).with_name("agents.py"))
INSIDE = "in the agent that delegate starts"
EVERYTHING = ["one call", "several calls in one answer", "text before the call", "again after a refusal", "every tool"]


def verdicts(call: Call, kind: str, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    ran = call("prove", "--json", *options, "--", sys.executable, AGENT, kind)
    return ran.status, {each["way"]: each for each in ran.json["ways"]}


@pytest.mark.parametrize(
    ("kind", "leaks"),
    [
        ("guarded", {}),
        ("parallel", {"several calls in one answer": ["read_note"] * 3}),
        ("sub-agent", {"every tool": ["read_note"], INSIDE: ["read_note"]}),
    ],
)
def test_the_way_that_leaks_is_found_and_no_other(
    world: CliProject, call: Call, kind: str, leaks: dict[str, list[str]]
) -> None:
    status, found = verdicts(call, kind, "--through", "delegate")

    assert list(found) == [*EVERYTHING, INSIDE]
    assert {way: each["leaked"] for way, each in found.items() if each["leaked"]} == leaks
    assert all(each["is_guarded"] is (way not in leaks) for way, each in found.items())
    assert status == bool(leaks)


QUOTED = shlex.quote(json.dumps({"decision": "block", "reason": 'no "notes"\n\u2014 ever'}))


@pytest.mark.parametrize(
    "own", [f"printf %s {QUOTED}", "echo no notes today >&2; exit 2", """echo '{"continue": false}'"""]
)
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
    assert all(each["is_guarded"] is (way not in leaks) for way, each in found.items())
    assert status == bool(leaks)
    assert not world.log_file.exists()


@pytest.mark.parametrize(
    ("kind", "why"), [("mute", None), ("broken", "the program exited with 1: no model configured")]
)
def test_an_agent_that_makes_no_call_is_not_proven(world: CliProject, call: Call, kind: str, why: str | None) -> None:
    status, found = verdicts(call, kind)

    assert status == 1
    assert [each["problem"] for each in found.values()] == [why] * len(EVERYTHING)
    assert not any(each["is_guarded"] for each in found.values())


def test_hooks_that_are_off_are_a_leak_and_the_screen_says_where_to_look(
    world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    world.write(".llxprt/settings.json", {"enableHooks": False})

    ran = call("prove", "--", sys.executable, AGENT, "guarded")

    assert ran.status == 1
    assert "LEAK    one call: 1 of 1 calls bypassed the guard: read_note" in ran.stdout
    assert "0 of 5 ways guarded" in ran.stdout
    assert "Run `llxprt-hooks doctor`" in ran.stderr


def test_a_program_that_does_not_exist(world: CliProject, call: Call) -> None:
    ran = call("prove", "--", "/no/such/agent")
    assert ran.status == 1
    assert "cannot be started" in ran.stdout


def a_tool(declaration: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [declaration]}


FUNCTION = {"type": "function", "name": "look"}
REQUESTS: dict[str, Any] = {
    "/v1/chat/completions": lambda turns: {"messages": turns, **a_tool({"type": "function", "function": FUNCTION})},
    "/v1/responses": lambda turns: {"input": turns, **a_tool(FUNCTION)},
    "/v1/messages": lambda turns: {"messages": turns, **a_tool({"name": "look", "input_schema": {}})},
    "/v1beta/models/m:generateContent": lambda turns: {
        "contents": turns,
        **a_tool({"functionDeclarations": [{"name": "look"}]}),
    },
}
"""The requests of an agent with one tool, by the path of an API."""


def an_agent(path: str, *, guards: bool) -> Callable[[Scene], None]:
    """An agent of this API in plain HTTP."""

    def agent(scene: Scene) -> None:
        hooks = Hooks(hooks=scene.hooks)
        history: list[Any] = [{"role": "user", "content": "hello", "parts": [{"text": "hello"}]}]

        def run(name: str) -> str:
            if not guards:
                return scene.tool("x")
            return str(hooks.sync.run_tool(name, {}, lambda arguments: scene.tool("x")).llm_content)

        while True:
            body = json.dumps(REQUESTS[path](history)).encode()
            with urllib.request.urlopen(scene.url + path, body) as response:
                answer = json.load(response)
            said = ADDED[path](answer, run)
            if len(said) < 2:
                return
            history += said

    return agent


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
    found = prove(an_agent(path, guards=True))
    assert [(each.way, each.is_guarded) for each in found] == [(way, True) for way in EVERYTHING]

    with pytest.raises(AssertionError, match="one call: 1 of 1 calls bypassed the guard: look"):
        prove(an_agent(path, guards=False))


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
