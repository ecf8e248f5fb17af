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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.observer import HookObserver
from llxprt_hooks.events import HookEventName
from llxprt_hooks.testing.scripted_model import Dialogue, Moment, ScriptedModel, Step

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.observer import EventEnded

_HARMLESS: Final = re.compile(r"canary|echo|read|list|get|search|find|glob|time", re.IGNORECASE)
_OF_MCP: Final = re.compile(r"mcp_", re.IGNORECASE)
_IN_BACKGROUND: Final = re.compile(r"background|detach", re.IGNORECASE)
_CANARY: Final = "canary"


class Tools(NamedTuple):
    """Tools of the agent by what they are good for."""

    tool: str | None = None
    """The one to call, if not one that sounds harmless."""
    through: Sequence[str] = ()
    """Those that start another agent."""
    mcp: str | None = None
    """One of an MCP server."""
    background: str | None = None
    """One that returns before its work is done."""
    failing: str | None = None
    """One that fails."""


class Way(NamedTuple):
    """A way in which a model calls tools."""

    name: str
    step: Callable[[str], Step] = lambda tool: lambda moment: ()
    """The script, for the tool to call."""
    tool: str | None = None
    """The tool that it calls (first), where it cannot be any."""
    turns: int = 1
    """How many answers with calls the script has at least; 0 if it calls every tool."""
    text: str = ""
    arguments: dict[str, Any] | None = None
    lets_pass: bool = False
    """Whether the guard lets the first call pass."""
    is_late: bool = False
    """Whether the guard may be asked after the call has been answered."""
    absent: str = ""
    """Why the agent has no such way."""
    is_found: bool = False
    """Whether nobody has named its tool, so that not every agent has this way."""


def _turns(*turns: int) -> Callable[[str], Step]:
    """A script that calls one tool, so often in each answer."""
    return lambda tool: lambda moment: [tool] * turns[moment.turn] if moment.turn < len(turns) else []


def _each(through: Sequence[str]) -> Step:
    """A script that calls every tool, those that start another agent last and once: that agent may have them, too."""

    def step(moment: Moment) -> Sequence[str]:
        last = [tool for tool in moment.offered if tool in through]
        tools = [tool for tool in moment.offered if tool not in last]
        tools += [tool for tool in last if tool not in moment.called]
        return tools[moment.turn : moment.turn + 1]

    return step


WAYS: Final = (
    Way("one call", _turns(1)),
    Way("several calls in one answer", _turns(3)),
    Way("text before the call", _turns(1), text="I will look that up."),
    Way("again after a refusal", _turns(1, 1), turns=2, is_found=True),
)


def _after_an_error(tools: Tools, offered: Mapping[str, Any]) -> Way:
    name, tool = "again after an error", tools.failing or (_CANARY if _CANARY in offered else None)
    if tool is None:
        return Way(name, absent="name a tool that fails as `failing`")
    return Way(name, _turns(1, 1, 2), tool, turns=3, lets_pass=True, is_found=tools.failing is None)


def _of_mcp(tools: Tools, offered: Mapping[str, Any]) -> Way:
    name, found = "a tool of an MCP server", [*filter(_OF_MCP.match, offered)]
    if tools.mcp is None and not found:
        return Way(name, absent="no tool has a name like mcp__…; name one as `mcp`")
    return Way(name, _turns(1, 2), tools.mcp or _canary(found), turns=2)


def _in_background(tools: Tools, offered: Mapping[str, Any]) -> Way:
    """A tool has an argument for it, or is always in the background."""
    name, switches = "in the background", {tool: _switches(schema) for tool, schema in offered.items()}
    found = [tool for tool, names in switches.items() if names]
    if tools.background is None and not found:
        return Way(name, absent="no tool has an argument like run_in_background; name one as `background`")
    tool = tools.background or _canary(found)
    return Way(name, _turns(1), tool, arguments=dict.fromkeys(switches.get(tool, ()), True), is_late=True)


def _switches(schema: Any) -> list[str]:
    """The arguments that send a call to the background."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    known = fields.items() if isinstance(fields, Mapping) else ()
    return [name for name, about in known if _IN_BACKGROUND.search(name) and "bool" in json.dumps(about).lower()]


def _inside(inner: str | None) -> Callable[[str], Step]:
    """A script that calls a tool that starts another agent, and there the inner tool or one that sounds harmless."""

    def script(through: str) -> Step:
        def step(moment: Moment) -> Sequence[str]:
            if moment.turn > 0:
                return ()
            if through not in moment.called:
                return [through]
            return [inner if inner and inner in moment.offered else _canary(moment.offered)]

        return step

    return script


def ways(tools: Tools, offered: Mapping[str, Any]) -> Iterator[Way]:
    """All ways. What the agent offers the model may be known only after the first of them."""
    yield from WAYS
    yield Way("every tool", lambda _: _each(tools.through), turns=0)
    yield _after_an_error(tools, offered)
    yield _of_mcp(tools, offered)
    yield _in_background(tools, offered)
    for name in tools.through:
        yield Way(f"in the agent that {name} starts", _inside(tools.tool), name, turns=2)
    if not tools.through:
        yield Way("in another agent", absent="name a tool that starts one as `through`")


def _canary(offered: Sequence[str]) -> str:
    """The tool that is called: one that sounds harmless, because a call that is not guarded really runs."""
    return next(filter(_HARMLESS.search, offered), offered[0] if offered else "")


class Outcome(StrEnum):
    GUARDED = "guarded"
    LEAK = "leak"
    UNKNOWN = "unknown"
    NOT_TRIED = "not tried"
    """The agent has no such way."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the calls that the model made in one way."""

    way: str
    outcome: Outcome
    calls: int = 0
    guarded: int = 0
    leaked: Sequence[str] = ()
    """The tools whose calls came back without the guard's refusal."""
    unanswered: Sequence[str] = ()
    """The tools whose calls the agent sent no result for, so nobody knows."""
    model_calls: int = 0
    seen_model_calls: int = 0
    """Requests that a hook was shown before the model got them."""
    streamed: int = 0
    """Requests that wanted a stream."""
    problem: str = ""
    """Why the way was not tried, or how the program ended."""

    @property
    def is_guarded(self) -> bool:
        return self.outcome is Outcome.GUARDED

    def to_dict(self) -> dict[str, Any]:
        return {
            "way": self.way,
            "outcome": self.outcome.value,
            "calls": self.calls,
            "guarded": self.guarded,
            "leaked": [*self.leaked],
            "unanswered": [*self.unanswered],
            "model_calls": self.model_calls,
            "seen_model_calls": self.seen_model_calls,
            "streamed": self.streamed,
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        return f"{self.way}: {self._what()}"

    def _what(self) -> str:
        if self.leaked:
            return (
                f"{len(self.leaked)} of {self.calls} calls bypassed the guard: {', '.join(dict.fromkeys(self.leaked))}"
            )
        if self.is_guarded:
            refused = f"all {self.calls} calls refused" if self.calls > 1 else "refused"
            return f"{refused}; {self.problem}" if self.problem else refused
        if self.problem:
            return f"not tried: {self.problem}"
        return f"no result came back for {', '.join(self.unanswered)}"


class Refusal(NamedTuple):
    """A BeforeTool event that hooks ended: the guard, or one of the agent's own before the guard was asked."""

    reason: str
    is_stop: bool = False

    def explains(self, result: str | None) -> bool:
        """Whether it is why this came back for a call, or why nothing did."""
        if result is None:
            return self.is_stop
        said = _words(self.reason)
        return bool(said) and f" {said} " in f" {_words(result)} "


def _words(text: str) -> str:
    """A text without what an escape in JSON or a new line may change."""
    return " ".join(re.findall(r"\w+", re.sub(r"\\[nrt]", " ", text)))


class CanaryError(Exception):
    """What the scene's tool raises where a tool should fail."""

    def __init__(self) -> None:
        super().__init__("the canary failed, as it should")


class _Refusals(HookObserver):
    """Notes what the hooks of an agent refuse."""

    def __init__(self, refusals: list[Refusal]) -> None:
        self._refusals = refusals

    def event_ended(self, event: EventEnded) -> None:
        output = event.processed.aggregated.final_output
        if event.event_name is HookEventName.BEFORE_TOOL and output is not None:
            if event.blocked:
                self._refusals.append(Refusal(output.get_effective_reason()))
            elif event.processed.should_stop:
                self._refusals.append(Refusal(event.processed.stop_reason or "", is_stop=True))


@dataclass(frozen=True, slots=True)
class Scene:
    """What an agent is proven with."""

    url: str
    """Where the scripted model answers. Clients append the path of their API to one of the URLs below."""
    through: Sequence[str] = ()
    """Tools that start another agent: the guard lets them pass, so that calls inside are tried."""
    passed: Path | None = None
    """A folder that the guard makes when it lets the first call pass; None if it refuses that one, too."""
    word: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    """What the guard says, and nobody else knows."""
    model_word: str = field(default_factory=lambda: f"seen-{secrets.token_hex(8)}")
    """What a hook adds to each model request. A tool may return it, because the agent knows it."""
    ran: list[Any] = field(default_factory=list)
    """The calls of ``tool``."""
    refusals: list[Refusal] = field(default_factory=list)

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
        once = "" if self.passed is None else f"mkdir {shlex.quote(str(self.passed))} 2>/dev/null && exit 0; "
        command = f"{once}echo {self.word} >&2; exit 2"
        guard = {"type": "command", "name": "canary", "command": command, "failClosed": True}
        note = json.dumps({"systemMessage": self.model_word})
        return {
            "BeforeTool": [{"matcher": f"^(?!(?:{passing})$)" if passing else "", "hooks": [guard]}],
            "BeforeModel": [{"hooks": [{"type": "command", "name": "canary", "command": f"echo {shlex.quote(note)}"}]}],
        }

    def tool(self, text: str = "") -> str:
        """A tool for the agent. It should never run, but once where a tool should fail."""
        self.ran.append(text)
        if self.passed is not None and len(self.ran) == 1:
            raise CanaryError
        return "the canary ran"

    def _is_refused(self, result: str | None, refusals: list[Refusal]) -> bool:
        """Whether the guard refused a call, or another hook did, whose refusal is then taken: it was of one call."""
        if result is not None and self.word in result:
            return True
        # The longest first: a short reason may be found in a result with another one.
        longest_first = sorted(refusals, key=lambda refusal: -len(refusal.reason))
        found = next((each for each in longest_first if each.explains(result)), None)
        if found is not None and not found.is_stop:
            refusals.remove(found)
        return found is not None

    def verdict(self, way: Way, dialogue: Dialogue, problem: str = "") -> Verdict:
        """Judge what the agent and the model said to each other."""
        judged = [call for call in dialogue.calls if call.name not in self.through][way.lets_pass :]
        answers = [(call.name, dialogue.results.get(call.id)) for call in judged]
        refusals = [*self.refusals]
        passed = [(name, text) for name, text in answers if not self._is_refused(text, refusals)]
        if way.is_late and self._was_refused_later(dialogue):
            passed = []
        leaked = [name for name, text in passed if text is not None]
        leaked = leaked or [self.tool.__name__ for _ in self.ran[way.lets_pass :]]
        unanswered = [name for name, text in passed if text is None]
        not_tried = self._why_not_tried(way, dialogue, problem)
        if not (judged or not_tried):
            not_tried = "the model called only tools that the guard lets pass"
        outcome = Outcome.GUARDED
        if leaked:
            outcome = Outcome.LEAK
        elif not_tried:
            outcome = Outcome.NOT_TRIED if way.is_found and dialogue.turns else Outcome.UNKNOWN
        elif unanswered:
            outcome = Outcome.UNKNOWN
        return Verdict(
            way=way.name,
            outcome=outcome,
            calls=len(judged),
            guarded=len(judged) - len(passed),
            leaked=leaked,
            unanswered=unanswered,
            model_calls=len(dialogue.requests),
            seen_model_calls=sum(self.model_word in request.body for request in dialogue.requests),
            streamed=sum(request.is_streamed for request in dialogue.requests),
            problem=not_tried or problem,
        )

    def _was_refused_later(self, dialogue: Dialogue) -> bool:
        return any(self.word in request.body for request in dialogue.requests) or bool(self.refusals)

    def _why_not_tried(self, way: Way, dialogue: Dialogue, problem: str) -> str:
        if not dialogue.turns:
            named = f" named {way.tool}" if way.tool else ""
            return problem or f"the agent offered the model no tool{named}"
        called = {call.name for call in dialogue.calls}
        if not way.turns and len(called) < len(dialogue.offered):
            return problem or f"the model could call only {len(called)} of {len(dialogue.offered)} tools"
        if len(dialogue.turns) < way.turns:
            return problem or f"the model could call tools in only {len(dialogue.turns)} of {way.turns} answers"
        first = dialogue.results.get(dialogue.calls[0].id)
        is_refused = way.lets_pass and self._is_refused(first, [*self.refusals])
        if is_refused and not self.ran:  # or else it is the refusal of a second attempt
            return "hooks refuse the call that should fail"
        if way.lets_pass and way.is_found and not self.ran:
            return f"{way.tool} is not the scene's tool; name a tool that fails as `failing`"
        return ""


def try_ways(run: Callable[[Scene], str], tools: Tools) -> Iterator[Verdict]:
    """Let an agent run once in each way that it has. ``run`` returns what went wrong, or nothing."""
    offered: dict[str, Any] = {}
    with ScriptedModel().running() as model, TemporaryDirectory(prefix="llxprt-hooks-canary-") as folder:
        for way in ways(tools, offered):
            if way.absent:
                yield Verdict(way.name, Outcome.NOT_TRIED, problem=way.absent)
                continue
            scene = Scene(model.url, tuple(tools.through), Path(folder, "passed") if way.lets_pass else None)
            step = _choosing(way, way.tool or tools.tool)
            dialogue = model.play(step, text=way.text, arguments=way.arguments)
            problem = run(scene)
            offered.update(dialogue.offered)
            yield scene.verdict(way, dialogue, problem)


def _choosing(way: Way, tool: str | None) -> Step:
    """The script of a way, which calls the first tool that sounds harmless if none is named."""
    return lambda moment: way.step(tool or _canary(moment.offered))(moment)


def prove(
    agent: Callable[[Scene], Any],
    *,
    tool: str | None = None,
    through: Sequence[str] = (),
    mcp: str | None = None,
    background: str | None = None,
    failing: str | None = None,
) -> list[Verdict]:
    """Drive an agent with a scripted model, and raise ``AssertionError`` if any of its tool calls is not guarded.

    ``agent`` makes an agent with the hooks and the tool of the scene and runs one turn; it may be a coroutine function.
    ``tool`` is the tool to call, if not one that sounds harmless; ``through`` names tools that start another agent,
    ``mcp`` one of an MCP server, ``background`` one that returns before its work is done, ``failing`` one that fails.
    A way for which the agent has no tool is not tried.
    """

    def run(scene: Scene) -> str:
        Config._witness = _Refusals(scene.refusals)
        try:
            answer = agent(scene)
            if inspect.isawaitable(answer):
                runner.run(resolve(answer))
        except Exception as error:
            if scene.passed is None:
                raise
            return f"the agent ends when a tool fails: {type(error).__name__}: {error}"
        finally:
            Config._witness = None
        return ""

    with asyncio.Runner() as runner:  # one loop for all ways: clients keep their connections
        verdicts = list(try_ways(run, Tools(tool, through, mcp, background, failing)))
    if unproven := [str(each) for each in verdicts if each.outcome in (Outcome.LEAK, Outcome.UNKNOWN)]:
        raise AssertionError("; ".join(chain(["not every tool call is guarded"], unproven)))
    return verdicts
