"""Which tool calls of an agent do hooks guard? A scripted model makes them in every way; a canary guard refuses all.

    from llxprt_hooks.testing import Scene, prove

    def my_agent(scene: Scene) -> None:
        hooks = Hooks(hooks=scene.hooks)
        client = OpenAI(base_url=scene.openai_url, api_key="none")
        ...  # one turn, with scene.tool among the agent's tools

    prove(my_agent)

The guard's reason contains a secret word. A result without that word, and without the reason of another hook that
refused a call, comes from a tool that ran unguarded.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from llxprt_hooks.testing.scripted_model import Dialogue, ScriptedModel, Step

MAX_TOOLS: Final = 50
"""Tools that are called one by one."""

_HARMLESS: Final = re.compile(r"canary|echo|read|list|get|search|find|glob|time", re.IGNORECASE)


class Way(NamedTuple):
    """A way in which a model calls tools."""

    name: str
    step: Callable[[str], Step]
    """The script, for the tool to call."""
    text: str = ""


def _turns(*turns: Sequence[str]) -> Step:
    return lambda turn, offered: turns[turn] if turn < len(turns) else ()


WAYS: Final = (
    Way("one call", lambda tool: _turns([tool])),
    Way("several calls in one answer", lambda tool: _turns([tool] * 3)),
    Way("text before the call", lambda tool: _turns([tool]), "I will look that up."),
    Way("again after a refusal", lambda tool: _turns([tool], [tool])),
    Way("every tool", lambda tool: lambda turn, offered: offered[turn : turn + 1] if turn < MAX_TOOLS else ()),
)


def _inside(through: str) -> Callable[[str], Step]:
    """A script for an agent that is started by a tool: the agent that is offered that tool calls it, and the other one
    calls what it is offered."""

    def script(tool: str) -> Step:
        def step(turn: int, offered: Sequence[str]) -> Sequence[str]:
            if turn > 0:
                return ()
            return [through] if through in offered else [tool if tool in offered else _canary(offered)]

        return step

    return script


def ways(through: Iterable[str] = ()) -> Iterator[Way]:
    """All ways, with one for each tool that starts another agent."""
    yield from WAYS
    yield from (Way(f"in the agent that {name} starts", _inside(name)) for name in through)


def _canary(offered: Sequence[str]) -> str:
    """The tool that is called: one that sounds harmless, because a call that is not guarded really runs."""
    return next(filter(_HARMLESS.search, offered), offered[0] if offered else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the calls that the model made in one way."""

    way: str
    calls: int
    guarded: int
    leaked: list[str]
    """The tools whose calls came back without the guard's refusal."""
    unanswered: list[str]
    """The tools whose calls the agent sent no result for, so nobody knows."""
    model_calls: int
    seen_model_calls: int
    """Requests that a hook was shown before the model got them."""
    problem: str = ""
    """Why the way was not tried."""

    @property
    def is_guarded(self) -> bool:
        return 0 < self.calls == self.guarded and not self.leaked

    def to_dict(self) -> dict[str, Any]:
        return {
            "way": self.way,
            "is_guarded": self.is_guarded,
            "calls": self.calls,
            "guarded": self.guarded,
            "leaked": self.leaked,
            "unanswered": self.unanswered,
            "model_calls": self.model_calls,
            "seen_model_calls": self.seen_model_calls,
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        if self.problem or not self.calls:
            return f"{self.way}: not tried: {self.problem or 'the agent offered the model no tool'}"
        if self.leaked:
            return f"{self.way}: {len(self.leaked)} of {self.calls} calls bypassed the guard: {', '.join(self.leaked)}"
        if self.unanswered:
            return f"{self.way}: no result came back for {', '.join(self.unanswered)}"
        return f"{self.way}: all {self.calls} calls refused" if self.calls > 1 else f"{self.way}: refused"


class Refusal(NamedTuple):
    """A BeforeTool event that one of the agent's own hooks ended before the guard was asked."""

    reason: str
    is_stop: bool = False

    def explains(self, result: str | None) -> bool:
        """Whether it is why this came back for a call, or why nothing did."""
        if result is None:
            return self.is_stop
        said = _words(self.reason)
        return bool(said) and said in _words(result)


def _words(text: str) -> str:
    """A text without what an escape in JSON or a new line may change."""
    return " ".join(re.findall(r"\w+", re.sub(r"\\[nrt]", " ", text)))


@dataclass(frozen=True, slots=True)
class Scene:
    """What an agent is proven with."""

    url: str
    """Where the scripted model answers. Clients append the path of their API to one of the URLs below."""
    through: Sequence[str] = ()
    """Tools that start another agent: the guard lets them pass, so that calls inside are tried."""
    word: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    """What the guard says, and nobody else knows."""
    ran: list[Any] = field(default_factory=list)
    """The calls of ``tool``."""
    refusals: list[Refusal] = field(default_factory=list)
    """What hooks of the agent's own refused."""

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def gemini_url(self) -> str:
        return self.url

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the clients of these APIs use the scripted model."""
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"), "canary")
        return {
            **keys,
            "OPENAI_BASE_URL": self.openai_url,
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "GOOGLE_GEMINI_BASE_URL": self.gemini_url,
        }

    @property
    def hooks(self) -> dict[str, Any]:
        """The canary guard, for ``Hooks(hooks=…)`` or a settings file."""
        passing = "|".join(map(re.escape, self.through))
        guard = {"type": "command", "name": "canary", "command": f"echo {self.word} >&2; exit 2", "failClosed": True}
        note = json.dumps({"systemMessage": self._model_word})
        return {
            "BeforeTool": [{"matcher": f"^(?!(?:{passing})$)" if passing else "", "hooks": [guard]}],
            "BeforeModel": [{"hooks": [{"type": "command", "name": "canary", "command": f"echo {shlex.quote(note)}"}]}],
        }

    @property
    def _model_word(self) -> str:
        return f"{self.word}-model"

    def tool(self, text: str = "") -> str:
        """A tool for the agent. It should never run."""
        self.ran.append(text)
        return "the canary ran"

    def _is_refused(self, result: str | None) -> bool:
        by_guard = result is not None and self.word in result
        return by_guard or any(refusal.explains(result) for refusal in self.refusals)

    def verdict(self, way: Way, dialogue: Dialogue, problem: str = "") -> Verdict:
        """Judge what the agent and the model said to each other."""
        judged = [call for call in dialogue.calls if call.name not in self.through]
        answers = [(call.name, dialogue.results.get(call.id)) for call in judged]
        passed = [(name, text) for name, text in answers if not self._is_refused(text)]
        leaked = [name for name, text in passed if text is not None]
        return Verdict(
            way=way.name,
            calls=len(judged),
            guarded=len(judged) - len(passed),
            leaked=leaked or [self.tool.__name__ for _ in self.ran],
            unanswered=[name for name, text in passed if text is None],
            model_calls=len(dialogue.requests),
            seen_model_calls=sum(self._model_word in body for body in dialogue.requests),
            problem=problem,
        )


def try_ways(
    run: Callable[[Scene], str], *, tool: str | None = None, through: Sequence[str] = ()
) -> Iterator[tuple[Scene, Verdict]]:
    """Let an agent run once in each way. ``run`` returns what went wrong, or nothing."""
    with ScriptedModel().running() as model:
        chosen = tool or ""
        for way in ways(through):
            scene = Scene(model.url, tuple(through))
            dialogue = model.play(_choosing(way, chosen), text=way.text)
            problem = run(scene)
            yield scene, scene.verdict(way, dialogue, problem)


def _choosing(way: Way, tool: str) -> Step:
    """The script of a way, which calls the first tool that sounds harmless if none is named."""
    return lambda turn, offered: way.step(tool or _canary(offered))(turn, offered)


def prove(agent: Callable[[Scene], Any], *, tool: str | None = None, through: Sequence[str] = ()) -> list[Verdict]:
    """Drive an agent with a scripted model, and raise ``AssertionError`` if any of its tool calls is not guarded.

    ``agent`` makes an agent with the hooks and the tool of the scene and runs one turn; it may be a coroutine function.
    ``tool`` is the tool to call, if not one that sounds harmless; ``through`` names tools that start another agent.
    """

    def run(scene: Scene) -> str:
        answer = agent(scene)
        if inspect.isawaitable(answer):
            runner.run(_awaited(answer))
        return ""

    with asyncio.Runner() as runner:  # one loop for all ways: clients keep their connections
        verdicts = [verdict for _, verdict in try_ways(run, tool=tool, through=through)]
    if unproven := [str(verdict) for verdict in verdicts if not verdict.is_guarded]:
        raise AssertionError("; ".join(chain(["not every tool call is guarded"], unproven)))
    return verdicts


async def _awaited(answer: Any) -> Any:
    return await answer
