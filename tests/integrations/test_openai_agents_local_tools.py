"""Tools of the OpenAI Agents SDK that act on this machine and are not functions: shells, patches, computers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    Computer,
    ComputerTool,
    LocalShellTool,
    Runner,
    ShellTool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel
from agents.tool import ShellCommandOutput, ShellResult
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseComputerToolCall,
    ResponseFunctionShellToolCall,
)
from openai.types.responses.response_output_item import LocalShellCall

from llxprt_hooks import Config, context, deny, rewrite, stop
from llxprt_hooks.integrations.openai_agents import OpenAIAgentsHooks, install, uninstall
from tests.integrations.openai_agents_support import NO_TOOL, allow_only, say


@pytest.fixture
def hooks() -> Iterator[OpenAIAgentsHooks]:
    set_tracing_disabled(True)
    yield install(Config(enable_hooks=True))
    uninstall()


class Machine:
    """What the tools did, and one call of each."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def shell(self) -> Any:
        def execute(request: Any) -> Any:
            self.done.append(request.data.action.commands)
            return "ran"

        return ShellTool(executor=execute)

    def local_shell(self) -> Any:
        async def execute(request: Any) -> str:
            self.done.append(request.data.action.command)
            return "ran"

        return LocalShellTool(executor=execute)

    def patch(self) -> Any:
        return ApplyPatchTool(editor=Editor(self.done))

    def computer(self) -> Any:
        return ComputerTool(computer=Screen(self.done))


class Editor:
    def __init__(self, done: list[Any]) -> None:
        self._done = done

    def create_file(self, operation: Any) -> str:
        self._done.append((operation.type, operation.path))
        return "created"

    update_file = delete_file = create_file


class Screen(Computer):
    def __init__(self, done: list[Any]) -> None:
        self._done = done

    def screenshot(self) -> str:
        return "cGljdHVyZQ=="

    def type(self, text: str) -> None:
        self._done.append(text)

    def nothing(self, *args: Any) -> None: ...

    click = double_click = drag = keypress = move = scroll = wait = nothing  # type: ignore[assignment]


def shell_call() -> list[Any]:
    return shell_calls("make")


def shell_calls(*commands: str) -> list[Any]:
    action: Any = {"commands": [*commands], "timeout_ms": 50}
    fields: Any = {"id": "i", "call_id": "c1", "status": "completed", "type": "shell_call", "action": action}
    return [ResponseFunctionShellToolCall.model_validate(fields)]


def local_shell_call() -> list[Any]:
    action: Any = {"command": ["rm", "-rf", "a b"], "env": {"LANG": "C"}, "type": "exec", "user": "root"}
    fields: Any = {"id": "i", "call_id": "c1", "status": "completed", "type": "local_shell_call", "action": action}
    return [LocalShellCall.model_validate(fields)]


def patch_call() -> list[Any]:
    operation: Any = {"type": "update_file", "path": "a.txt", "diff": "+x"}
    fields: Any = {"id": "i", "call_id": "c1", "status": "completed", "type": "apply_patch_call"}
    return [ResponseApplyPatchToolCall.model_validate({**fields, "operation": operation})]


def computer_call() -> list[Any]:
    fields: Any = {"id": "i", "call_id": "c1", "status": "completed", "type": "computer_call"}
    action: Any = {"type": "type", "text": "hunter2"}
    return [ResponseComputerToolCall.model_validate({**fields, "pending_safety_checks": [], "action": action})]


KINDS: dict[str, tuple[Callable[[Machine], Any], Callable[[], list[Any]], Any, Any]] = {
    "shell": (Machine.shell, shell_call, {"command": "make", "timeout_ms": 50}, ["make"]),
    "local_shell": (
        Machine.local_shell,
        local_shell_call,
        {"command": "rm -rf 'a b'", "user": "root", "env": {"LANG": "C"}},
        ["rm", "-rf", "a b"],
    ),
    "apply_patch": (
        Machine.patch,
        patch_call,
        {"type": "update_file", "path": "a.txt", "diff": "+x"},
        ("update_file", "a.txt"),
    ),
    "computer_use_preview": (
        Machine.computer,
        computer_call,
        {"actions": [{"type": "type", "text": "hunter2"}]},
        "hunter2",
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


async def run(kind: str, machine: Machine, *, tool: Any = None, calls: list[Any] | None = None) -> tuple[str, Any]:
    """Run one call; return what the model is sent after it, and the final output."""
    make, call, _, _ = KINDS[kind]
    model = ScriptedModel([calls or call(), say("done")])
    result = await Runner.run(Agent("a", tools=[tool or make(machine)], model=model), "Go")
    return "" if model.last_call is None else str(model.last_call.input), result.final_output


@every_kind
async def test_hooks_see_a_call_and_block_it(hooks: OpenAIAgentsHooks, kind: str) -> None:
    seen: list[Any] = []
    hooks.hooks.on("BeforeTool", seen.append)
    machine = Machine()
    await run(kind, machine)
    assert [(payload["tool_name"], payload["tool_input"]) for payload in seen] == [(kind, KINDS[kind][2])]
    assert machine.done == [KINDS[kind][3]]
    hooks.hooks.on("BeforeTool", lambda payload: deny("not here"), matcher=kind)
    sent, _ = await run(kind, machine)
    assert machine.done == [KINDS[kind][3]]
    assert "not here" in sent


@every_kind
async def test_a_restriction_applies_to_them(hooks: OpenAIAgentsHooks, kind: str) -> None:
    hooks.hooks.on("BeforeToolSelection", lambda payload: NO_TOOL)
    machine = Machine()
    sent, _ = await run(kind, machine)
    assert machine.done == []
    assert "may not be called now" in sent


@every_kind
async def test_a_stop_ends_the_run(hooks: OpenAIAgentsHooks, kind: str) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: stop("enough"))
    machine = Machine()
    _, output = await run(kind, machine)
    assert (machine.done, output) == ([], "enough")


@every_kind
async def test_what_hooks_say_about_a_result_reaches_the_model(hooks: OpenAIAgentsHooks, kind: str) -> None:
    hooks.hooks.on("AfterTool", lambda payload: context("be careful"))
    sent, _ = await run(kind, Machine())
    assert "be careful" in sent


@pytest.mark.parametrize(
    ("kind", "change", "done"),
    [
        ("shell", {"command": "ls"}, ["ls"]),
        ("local_shell", {"command": "ls 'b c'"}, ["ls", "b c"]),
        ("apply_patch", {"path": "b.txt"}, ("update_file", "b.txt")),
        ("computer_use_preview", {"actions": [{"type": "type", "text": "***"}]}, "***"),
    ],
)
async def test_a_hook_changes_what_is_done(hooks: OpenAIAgentsHooks, kind: str, change: Any, done: Any) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(**change))
    machine = Machine()
    await run(kind, machine)
    assert machine.done == [done]


@pytest.mark.parametrize(
    "commands",
    [
        ["make", "rm -rf ../outside"],
        ["cat <<'X'", "rm -rf ../outside", "X"],
        ["echo '", "rm -rf ../outside", "'"],
        ["true \\", "rm -rf ../outside"],
    ],
)
async def test_each_command_of_a_shell_is_judged_by_itself(hooks: OpenAIAgentsHooks, commands: list[str]) -> None:
    def guard(payload: dict[str, Any]) -> Any:
        return deny("not that") if payload["tool_input"]["command"].startswith("rm") else None

    hooks.hooks.on("BeforeTool", guard)
    machine = Machine()
    sent, _ = await run("shell", machine, calls=shell_calls(*commands))
    assert machine.done == []
    assert "not that" in sent


async def test_a_hook_changes_one_of_several_commands(hooks: OpenAIAgentsHooks) -> None:
    def guard(payload: dict[str, Any]) -> Any:
        return rewrite(command="ls") if payload["tool_input"]["command"] == "rm -rf /" else None

    hooks.hooks.on("BeforeTool", guard)
    machine = Machine()
    await run("shell", machine, calls=shell_calls("make", "rm -rf /", "make install"))
    assert machine.done == [["make", "ls", "make install"]]


async def test_hooks_see_the_result_of_each_command(hooks: OpenAIAgentsHooks) -> None:
    seen: list[Any] = []
    hooks.hooks.on("AfterTool", seen.append)
    hooks.hooks.on("AfterTool", lambda payload: context(f"about {payload['tool_input']['command']}"))
    output = [ShellCommandOutput(stdout="first"), ShellCommandOutput(stdout="second")]
    shell = ShellTool(executor=lambda request: ShellResult(output))
    sent, _ = await run("shell", Machine(), tool=shell, calls=shell_calls("one", "two"))
    shown = [
        (
            payload["tool_input"]["command"],
            [each["stdout"] for each in payload["tool_response"]["llmContent"]["output"]],
        )
        for payload in seen
    ]
    assert shown == [("one", ["first"]), ("two", ["second"])]
    assert sent.index("first") < sent.index("second") < sent.index("about one") < sent.index("about two")


async def test_a_shell_keeps_its_structured_result(hooks: OpenAIAgentsHooks) -> None:
    seen: list[Any] = []
    hooks.hooks.on("AfterTool", seen.append)
    hooks.hooks.on("AfterTool", lambda payload: context("be careful"))
    shell = ShellTool(executor=lambda request: ShellResult([ShellCommandOutput(stdout="x")]))
    sent, _ = await run("shell", Machine(), tool=shell)
    assert "be careful" in sent
    assert seen[0]["tool_response"]["llmContent"]["output"][0]["stdout"] == "x"


async def test_nobody_approves_a_command_that_is_not_allowed(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeToolSelection", lambda payload: allow_only("other"))
    machine = Machine()
    tool = machine.shell()
    tool.needs_approval = True
    sent, output = await run("shell", machine, tool=tool)
    assert (machine.done, output) == ([], "done")
    assert "shell may not be called now" in sent
