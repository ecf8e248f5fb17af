"""Play the scenes of the demo: a small agent on ``Hooks``, with recorded answers, real tools and real hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.terminal import Part, aligned, print_line, print_wrapped
from llxprt_hooks._support.text import one_line, shorten
from llxprt_hooks.agent.tools import TOOLS, Workspace
from llxprt_hooks.commands.fire import effects
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.observer import HookObserver
from llxprt_hooks.hooks import Hooks

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.cli.demo.scenes import RecordedAnswer, Scene
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.core.protocol.tool_result import ToolResult
    from llxprt_hooks.events import HookEventName

_DECLARED = [{"type": "function", "function": {"name": name}} for name in TOOLS]
_MAX_CALL = 74


class _Effects(HookObserver):
    """Collects what hooks did. The player prints it: an exception in an observer does not end a program."""

    def __init__(self) -> None:
        self._collected: list[tuple[HookEventName, str, str]] = []

    def hook_ended(self, result: HookExecutionResult) -> None:
        found = effects(result.event_name, result.output) if result.output else []
        if found:
            self._collected.append((result.event_name, result.hook_config.identity, "; ".join(found)))

    def take(self) -> list[tuple[HookEventName, str, str]]:
        """Return what was collected since the last call: the event, the hook and its effects."""
        taken, self._collected = self._collected, []
        return taken


class Player:
    """An agent that plays scenes, and prints them."""

    def __init__(self, console: Console, project: Path, hooks: Mapping[str, Any]) -> None:
        self._console = console
        self._project = project
        self._effects = _Effects()
        self._hooks = Hooks(Config(working_dir=project, enable_hooks=True, hooks=hooks, observer=self._effects))
        self._workspace = Workspace(project, self._hooks.config)
        self._printed: list[tuple[HookEventName, str, str]] = []
        self._summary: list[tuple[str, str, str]] = []

    async def play(self, scene: Scene, place: str) -> None:
        print_line(self._console)
        self._print((f"{place} {scene.effect.upper()}", "bold green"), (f": {scene.caption}", "bold"))
        self._print(f"> {scene.prompt}")
        self._printed.clear()
        async with self._hooks.session(scene.effect):
            seen = await self._converse(scene)
        self._summary.append((scene.effect, scene.hook, seen))
        if scene.shows_source:
            self._show_source(f"hooks/{scene.hook}.sh")

    async def _converse(self, scene: Scene) -> str:
        """Run the agent's loop. Return what the model saw: of a tool's result, or of its own answer."""
        answers = iter(scene.answers)
        messages: list[dict[str, Any]] = [{"role": "user", "content": scene.prompt}]
        seen = ""
        while True:
            request = {"model": "recorded", "messages": list(messages), "tools": _DECLARED}
            result = await self._hooks.call_model(
                request, lambda _: _completion(next(answers)), translator="openai-chat"
            )
            self._print_effects()
            message = result.response["choices"][0]["message"] if result.response else {}
            messages.append(message)
            self._print(f"  {message['content']}")
            if result.blocked:
                return "nothing: it was not called"
            if not message.get("tool_calls"):
                return seen or message["content"]
            function = message["tool_calls"][0]["function"]
            outcome = await self._run_tool(function["name"], json.loads(function["arguments"]))
            if outcome.stop_reason is not None:
                return "nothing more: the agent stopped"
            seen = one_line(outcome.llm_content)
            messages.append({"role": "tool", "tool_call_id": "call", "content": outcome.llm_content})

    async def _run_tool(self, name: str, args: dict[str, Any]) -> ToolResult:
        shown = shorten(json.dumps(args), _MAX_CALL - len(name))
        self._print((f"  {name}", "cyan"), f" {shown}")
        ran: list[ToolResult] = []

        async def run(final: dict[str, Any]) -> ToolResult:
            self._print_effects()
            ran.append(await TOOLS[name].run(self._workspace, final))
            self._print(("  ✓ ", "green"), one_line(ran[0].llm_content))
            return ran[0]

        result = await self._hooks.run_tool(name, args, run)
        effects_of_hooks = self._print_effects()
        if not ran:
            self._print(("  ✗ ", "red"), "the tool did not run" if effects_of_hooks else str(result.llm_content))
        return result

    def _print_effects(self) -> bool:
        """Print what hooks did since the last call. Return whether they did anything."""
        taken = [each for each in self._effects.take() if each not in self._printed]
        self._printed += taken  # a hook that runs again in the same scene shows nothing new
        for event, hook, effect in taken:
            self._print((f"  ⚓ {hook}", "magenta"), (f" ({event}) ", "dim"), effect)
        return bool(taken)

    def _show_source(self, file: str) -> None:
        print_line(self._console)
        self._print("  The whole hook, ", (file, "bold"), ":")
        for line in (self._project / file).read_text(encoding="utf-8").splitlines():
            print_line(self._console, ("  │ ", "dim"), (line, "cyan"))

    def summarize(self) -> None:
        print_line(self._console)
        rows: list[tuple[Part, ...]] = [(("effect", "bold"), ("hook", "bold"), ("what the model saw", "bold"))]
        room = self._console.width - max(len(effect) for effect, *_ in self._summary) - 2
        room -= max(len(hook) for _, hook, _ in self._summary) + 2
        rows += [((effect, "green"), (hook, "magenta"), shorten(seen, room)) for effect, hook, seen in self._summary]
        for line in aligned(rows):
            self._console.print(line, soft_wrap=True)

    def _print(self, *parts: Part) -> None:
        print_wrapped(self._console, *parts)


def _completion(answer: RecordedAnswer) -> dict[str, Any]:
    """Return a recorded answer as a response of OpenAI's Chat Completions."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool:
        function = {"name": answer.tool, "arguments": json.dumps(answer.args)}
        message["tool_calls"] = [{"id": "call", "type": "function", "function": function}]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
