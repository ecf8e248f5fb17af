"""One contract for all integrations: the same effects of real hooks, run through every framework.

A row of the contract is a function with ``@effect``. It writes hooks into a project, yields a ``Scenario``, receives
the ``Outcome``, and checks it. A framework's test file has a ``Driver`` that runs scenarios through the real framework:

    @pytest.mark.parametrize("effect", EFFECTS, ids=str)
    def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
        check(effect, ExampleDriver(), sandbox, caplog)

    def test_declared_gaps() -> None:
        check_declarations(ExampleDriver())

A framework that has only a substitute for an effect declares it in ``partial``, with a check of the substitute. If an
effect cannot be had, it is in ``impossible``, and the integration must log that.

``reference.py`` has the drivers of plain ``Hooks``.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest

from llxprt_hooks.events import HookEventName
from tests.support.processes import until
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from llxprt_hooks import ApprovalRequest
    from llxprt_hooks.core.calls.approval import Approver
    from tests.support.project import Project


class Call(NamedTuple):
    """The model asks for a tool."""

    name: str
    args: dict[str, Any]


Turn = str | Call | list[Call]
"""An answer of the model: text, or tool calls."""


class ToolRun(NamedTuple):
    """A tool that ran, with the arguments that it got."""

    name: str
    args: dict[str, Any]


SECRET = "sk-live-4711"
"""What must not reach the model."""


class Tools:
    """The tools of every scenario. They only record that they ran."""

    def __init__(self) -> None:
        self.runs: list[ToolRun] = []

    def write_file(self, file_path: str, content: str = "") -> str:
        """Write a file."""
        self.runs.append(ToolRun("write_file", {"file_path": file_path, "content": content}))
        return f"wrote {file_path}"

    def run_shell_command(self, command: str) -> str:
        """Run a command."""
        self.runs.append(ToolRun("run_shell_command", {"command": command}))
        return f"ran {command}"

    def save(self, data: dict[str, Any]) -> str:
        """Save an object."""
        self.runs.append(ToolRun("save", {"data": data}))
        return "saved"

    def lookup(self, key: str) -> dict[str, Any]:
        """Look something up; the result is not text. What is nowhere raises."""
        self.runs.append(ToolRun("lookup", {"key": key}))
        if key == "nowhere":
            raise LookupError("no such key")
        return {"found": SECRET if key == "vault" else key, "count": 3}

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """All of them, for frameworks that make tools of functions."""
        return [self.write_file, self.run_shell_command, self.save, self.lookup]


TOOL_NAMES = frozenset(tool.__name__ for tool in Tools().functions)


@dataclass(kw_only=True)
class Scenario:
    """One conversation: the user's prompt, and what the model answers, request by request."""

    project: Project
    turns: Sequence[Turn]
    """The model answers with ``done`` once they are used up. A driver without a model runs the calls in order."""
    prompt: str = "go"
    system_prompt: str = "You are a test."
    session_id: str = "conversation-1"
    stream: bool = False
    """Run it so that the answer can be shown piece by piece; a model's text comes in one piece per word."""
    approval: bool = False
    """A person is asked before a tool runs, and says yes."""
    compress: bool = False
    """The conversation is compressed before the model is called again."""
    approved: bool = True
    """The user has approved the project's hooks."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Tool names, and the names that hooks see."""
    tools: Tools = field(default_factory=Tools)
    approver: Approver | None = None
    """Whom the program lets decide where a hook asks."""
    asked_by: str | None = None
    """The user, where the framework has a place for one."""
    metadata: Any = None
    """How the integration gets to know who asks."""

    def turn(self, number: int) -> Turn:
        """Return the answer to a request, counted from 0."""
        return self.turns[number] if number < len(self.turns) else "done"

    @property
    def calls(self) -> list[Call]:
        """All calls, for drivers without a model."""
        return [call for turn in self.turns for call in calls_of(turn)]


def calls_of(turn: Turn) -> list[Call]:
    """Return the calls of a turn."""
    return [] if isinstance(turn, str) else [turn] if isinstance(turn, Call) else turn


def pieces_of(text: str) -> list[str]:
    """Return a text as a streaming model sends it."""
    words = text.split(" ")
    return [*(f"{word} " for word in words[:-1]), words[-1]]


@dataclass(kw_only=True)
class Request:
    """What a model was sent."""

    texts: list[tuple[str, str]]
    """Role (``system``, ``user`` or ``model``) and text of each message, without tool results."""
    results: list[str] = field(default_factory=list)
    """The tool results, as text."""
    calls: list[str] = field(default_factory=list)
    """The names of the tools that the model called earlier."""
    allowed: frozenset[str] = TOOL_NAMES
    """The tools that the model may call: by the tool choice, or because no other is declared."""
    must_call: bool = False
    model: str = ""
    temperature: float | None = None

    @property
    def text(self) -> str:
        """Everything that the model reads."""
        return "\n".join([*(text for _, text in self.texts), *self.results])


@dataclass(kw_only=True)
class Outcome:
    """The result of a scenario, independent of the framework."""

    text: str = ""
    """The final answer."""
    shown: list[str] = field(default_factory=list)
    """The pieces of answers that were streamed."""
    runs: list[ToolRun] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """The result of each call, in the order of the calls, as the model gets it."""
    requests: list[Request] = field(default_factory=list)
    stop_reason: str | None = None
    suppressed: bool = False
    """Whether the program was told not to show a result or an answer."""
    error: BaseException | None = None
    said: str = ""
    """What was logged, or printed to stderr."""

    @property
    def told(self) -> str:
        """What the program can tell its user: the answer, why it ended, what it raised."""
        return "\n".join([self.text, self.stop_reason or "", str(self.error or "")])


Check = Callable[[Scenario, Outcome], None]


class Driver(ABC):
    """Runs scenarios through one framework, with the hooks of the scenario's project."""

    partial: ClassVar[Mapping[str, Check]] = {}
    """Effects for which the framework has only a substitute, each with a check of that."""
    impossible: ClassVar[Mapping[str, HookEventName]] = {}
    """Effects that cannot be had, each with the event that the integration must name in a warning."""
    acts: ClassVar[bool] = False
    """Whether hooks act in this integration, with the profile ``full``."""

    @abstractmethod
    def run(self, scenario: Scenario) -> Outcome:
        """Run the conversation. What the framework raises becomes ``Outcome.error``."""


Row = Generator[Scenario, Outcome, None]


class Effect:
    """A row of the contract."""

    def __init__(self, row: Callable[[Project], Row], name: str, column: str = "") -> None:
        self.name = name
        self.row = row
        self.column = column
        """For hooks that act, the profile; a declaration of a driver is for both."""

    def __str__(self) -> str:
        return f"{self.name}-{self.column}" if self.column else self.name


EFFECTS: list[Effect] = []


def effect(row: Callable[[Project], Row]) -> Effect:
    """Add a row to the contract."""
    EFFECTS.append(Effect(row, row.__name__))
    return EFFECTS[-1]


def acting_effect(row: Callable[[Project, bool], Row]) -> None:
    """Add a row with two columns: what a hook does with the profile ``full``, and that it does nothing without it."""
    for column in ("standard", "full"):
        EFFECTS.append(Effect(partial(_in_profile, row, column == "full"), row.__name__, column))


def _in_profile(row: Callable[[Project, bool], Row], full: bool, project: Project) -> Row:
    return row(project, full)


def check(effect: Effect, driver: Driver, project: Project, caplog: pytest.LogCaptureFixture) -> None:
    """Run an effect through a framework, and check it, its substitute, or that it is said to be impossible."""
    if effect.column and not driver.acts:
        pytest.skip("hooks do not act in this integration yet")
    caplog.set_level(logging.WARNING)
    row = effect.row(project)
    try:
        scenario = next(row)
        while True:
            if scenario.approved:
                project.approve()
            outcome = driver.run(scenario)
            outcome.said += caplog.text
            if effect.name in driver.impossible and effect.column == "standard":
                assert outcome.error is None
                return None
            if effect.name in driver.impossible:
                return check_refusal(driver.impossible[effect.name], outcome)
            if effect.name in driver.partial:
                return driver.partial[effect.name](scenario, outcome)
            scenario = row.send(outcome)
    except StopIteration:
        return None


def check_refusal(event: HookEventName, outcome: Outcome) -> None:
    """Hooks that can never run, or not act, are reported, with their event; nothing else breaks."""
    never_run = f"hooks for {event} are configured but will not run" in outcome.said
    assert never_run or re.search(rf"not available here: .*\b{event} \(", outcome.said), outcome
    assert outcome.error is None


def check_declarations(driver: Driver) -> None:
    """What a driver declares are effects of the contract, and no effect is declared twice."""
    names = {effect.name for effect in EFFECTS}
    assert driver.partial.keys() | driver.impossible.keys() <= names
    assert not driver.partial.keys() & driver.impossible.keys()


# Short forms for the rows.

KEY = Call("write_file", {"file_path": "id_rsa", "content": "PRIVATE KEY"})
NOTE = Call("write_file", {"file_path": "a.txt", "content": "hello"})
SHELL = Call("run_shell_command", {"command": "ls"})
WROTE_NOTE = [ToolRun(*NOTE)]


def specific(**fields: Any) -> dict[str, Any]:
    """Return a hook's answer with ``hookSpecificOutput``."""
    return {"hookSpecificOutput": fields}


def answer(text: str) -> dict[str, Any]:
    """Return an ``llm_response`` in hook format."""
    return {"candidates": [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP"}]}


def requested(outcome: Outcome, number: int) -> Request:
    """Return one of the requests, with a readable failure if there are fewer."""
    assert number < len(outcome.requests), f"the model was called {len(outcome.requests)} times: {outcome}"
    return outcome.requests[number]


def ran_normally(outcome: Outcome) -> None:
    """The tool ran, the model got its result and answered."""
    assert outcome.error is None
    assert outcome.runs == WROTE_NOTE
    assert outcome.results[0].startswith("wrote a.txt")


def was_blocked(outcome: Outcome, reason: str) -> None:
    """The tool did not run, the reason is its result, and the conversation continued."""
    assert outcome.error is None
    assert outcome.runs == []
    assert [reason in result for result in outcome.results] == [True], outcome
    assert outcome.stop_reason is None


# BeforeTool.


@effect
def before_tool_blocks(project: Project) -> Row:
    project.configure(BeforeTool=project.hook(says={"decision": "deny", "reason": "no keys here"}))
    outcome = yield Scenario(project=project, turns=[KEY, "understood"])
    was_blocked(outcome, "no keys here")
    assert "No reason" not in outcome.results[0]


@effect
def before_tool_blocks_by_exit_code(project: Project) -> Row:
    project.configure(BeforeTool=project.hook(stderr="no keys here", exit_code=2))
    was_blocked((yield Scenario(project=project, turns=[KEY])), "no keys here")


@effect
def before_tool_permission_denied(project: Project) -> Row:
    says = specific(permissionDecision="deny", permissionDecisionReason="not permitted")
    project.configure(BeforeTool=project.hook(says=says))
    was_blocked((yield Scenario(project=project, turns=[KEY])), "not permitted")


def _guarded_twice(project: Project, native: dict[str, Any], claude: dict[str, Any]) -> None:
    """Configure a native guard and one of Claude Code on the same call."""
    specific = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **claude}}
    theirs = {"dialect": "claude", "hooks": [{"type": "command", "command": project.hook("theirs", specific)}]}
    ours = {"hooks": [{"type": "command", "command": project.hook("ours", native)}]}
    project.put("project", {"enableHooks": True, "hooks": {"BeforeTool": [theirs, ours]}})


@effect
def before_tool_denied_by_claude_hook(project: Project) -> Row:
    """The deny of either dialect wins, whatever the other says."""
    denied = {"permissionDecision": "deny", "permissionDecisionReason": "not there"}
    _guarded_twice(project, {"decision": "allow"}, denied)
    was_blocked((yield Scenario(project=project, turns=[KEY])), "not there")


@effect
def before_tool_denied_beside_claude_hook(project: Project) -> Row:
    _guarded_twice(project, {"decision": "deny", "reason": "not here"}, {"permissionDecision": "allow"})
    was_blocked((yield Scenario(project=project, turns=[KEY])), "not here")


@effect
def before_tool_asks(project: Project) -> Row:
    """``ask`` is not a block: it leaves the question to the agent."""
    project.configure(BeforeTool=project.hook(says={"decision": "ask", "reason": "sure?"}))
    ran_normally((yield Scenario(project=project, turns=[NOTE])))


@effect
def before_tool_rewrites(project: Project) -> Row:
    project.configure(BeforeTool=project.hook(says=specific(tool_input={"file_path": "b.txt"})))
    outcome = yield Scenario(project=project, turns=[NOTE])
    assert outcome.runs == [ToolRun("write_file", {"file_path": "b.txt", "content": "hello"})]
    assert outcome.results == ["wrote b.txt"]


@effect
def before_tool_message(project: Project) -> Row:
    project.configure(BeforeTool=project.hook(says={"systemMessage": "mind the gap"}))
    outcome = yield Scenario(project=project, turns=[NOTE])
    ran_normally(outcome)
    assert "[System] mind the gap" in outcome.results[0]


@effect
def before_tool_stops(project: Project) -> Row:
    """The tool does not run, and the model is not asked again."""
    project.configure(BeforeTool=project.hook(says={"continue": False, "stopReason": "budget used up"}))
    outcome = yield Scenario(project=project, turns=[NOTE, SHELL])
    assert outcome.runs == []
    assert len(outcome.requests) == 1
    assert outcome.stop_reason == "budget used up"


@effect
def before_tool_fails_open(project: Project) -> Row:
    project.configure(BeforeTool=project.hook(stderr="broken", exit_code=1))
    ran_normally((yield Scenario(project=project, turns=[NOTE])))


@effect
def before_tool_fails_closed(project: Project) -> Row:
    project.configure(BeforeTool={"command": project.hook(stderr="broken", exit_code=1), "failClosed": True})
    was_blocked((yield Scenario(project=project, turns=[KEY])), "failClosed")


@effect
def before_tool_timeout_fails_open(project: Project) -> Row:
    project.configure(BeforeTool={"command": project.hook(first="sleep 60"), "timeout": 100})
    ran_normally((yield Scenario(project=project, turns=[NOTE])))


@effect
def before_tool_timeout_fails_closed(project: Project) -> Row:
    hook = {"command": project.hook(first="sleep 60"), "timeout": 100, "failClosed": True}
    project.configure(BeforeTool=hook)
    was_blocked((yield Scenario(project=project, turns=[KEY])), "timed out")


@effect
def before_tool_matches(project: Project) -> Row:
    """Only the tool that the matcher names is blocked."""
    command = project.hook(says={"decision": "block", "reason": "no shell"})
    project.configure(BeforeTool={"matcher": "^run_shell_command$", "hooks": [{"type": "command", "command": command}]})
    outcome = yield Scenario(project=project, turns=[NOTE, SHELL])
    assert outcome.runs == WROTE_NOTE
    assert outcome.results[0] == "wrote a.txt"
    assert "no shell" in outcome.results[1]


@effect
def before_tool_chain(project: Project) -> Row:
    """In a sequence, the second hook sees what the first one changed."""
    first = project.hook("first", says=specific(tool_input={"content": "from the first"}))
    second = project.hook("second", says=specific(tool_input={"file_path": "second.txt"}))
    hooks = [{"type": "command", "command": command} for command in (first, second)]
    project.configure(BeforeTool={"sequential": True, "hooks": hooks})
    outcome = yield Scenario(project=project, turns=[NOTE])
    assert outcome.runs == [ToolRun("write_file", {"file_path": "second.txt", "content": "from the first"})]
    assert project.payloads("second")[0]["tool_input"]["content"] == "from the first"


@effect
def tool_payloads(project: Project) -> Row:
    """AfterTool sees the input as the tool got it, and the result."""
    before = project.hook("before", says=specific(tool_input={"content": "changed"}))
    project.configure(BeforeTool=before, AfterTool=project.hook("after"))
    ran = yield Scenario(project=project, turns=[NOTE])
    assert len(ran.runs) == 1
    (before_payload,), (after_payload,) = project.payloads("before"), project.payloads("after")
    assert before_payload["hook_event_name"] == "BeforeTool"
    assert before_payload["tool_name"] == after_payload["tool_name"] == "write_file"
    assert before_payload["tool_input"] == NOTE.args
    assert before_payload["cwd"] == str(project.root)
    assert after_payload["tool_input"] == {**NOTE.args, "content": "changed"}
    assert "wrote a.txt" in str(after_payload["tool_response"]["llmContent"])


@effect
def deep_arguments_are_blocked(project: Project) -> Row:
    """What hooks cannot be shown does not run."""
    data: dict[str, Any] = {}
    for _ in range(80):
        data = {"in": data}
    project.configure(BeforeTool=project.hook())
    outcome = yield Scenario(project=project, turns=[Call("save", {"data": data})])
    was_blocked(outcome, "64")


@effect
def tool_aliases(project: Project) -> Row:
    """Hooks see a tool under the name that they know."""
    says = {"decision": "deny", "reason": "no shell"}
    group = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": project.hook(says=says)}]}
    project.configure(BeforeTool=group)
    outcome = yield Scenario(project=project, turns=[SHELL], aliases={"run_shell_command": "Bash"})
    was_blocked(outcome, "no shell")
    assert project.payloads()[0]["tool_name"] == "Bash"


@effect
def parallel_calls(project: Project) -> Row:
    """The hooks of the calls in one answer run in parallel, and each call has its own result."""
    meet = (
        "case $payload in *id_rsa*) me=one other=two;; *) me=two other=one;; esac\n"
        f"touch '{project.note('')}/'$me\n"
        f"i=0; while [ ! -e '{project.note('')}/'$other ]; do i=$((i+1)); [ $i -gt 300 ] && exit 2; sleep 0.1; done\n"
        'case $payload in *id_rsa*) printf \'{"decision":"deny","reason":"no keys here"}\';; esac'
    )
    project.configure(BeforeTool=project.hook(first=meet))
    outcome = yield Scenario(project=project, turns=[[KEY, NOTE]])
    assert outcome.runs == WROTE_NOTE
    assert "no keys here" in outcome.results[0]
    assert outcome.results[1] == "wrote a.txt"


# AfterTool.


@effect
def after_tool_context(project: Project) -> Row:
    project.configure(AfterTool=project.hook(says=specific(additionalContext="run the tests")))
    outcome = yield Scenario(project=project, turns=[NOTE])
    ran_normally(outcome)
    assert "run the tests" in outcome.results[0]


@effect
def after_tool_message(project: Project) -> Row:
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind the gap"}))
    outcome = yield Scenario(project=project, turns=[NOTE])
    ran_normally(outcome)
    assert "[System] mind the gap" in outcome.results[0]


@effect
def after_tool_context_beside_data(project: Project) -> Row:
    """A result that is not text stays what it is; the model still reads the context."""
    project.configure(AfterTool=project.hook(says=specific(additionalContext="run the tests")))
    outcome = yield Scenario(project=project, turns=[Call("lookup", {"key": "x"})])
    assert '"found"' in outcome.results[0]
    reads = [request.text for request in outcome.requests] + outcome.results
    assert any("run the tests" in text for text in reads)


@effect
def after_tool_stops(project: Project) -> Row:
    project.configure(AfterTool=project.hook(says={"continue": False, "stopReason": "enough"}))
    outcome = yield Scenario(project=project, turns=[NOTE, SHELL])
    assert outcome.runs == WROTE_NOTE
    assert len(outcome.requests) == 1
    assert outcome.stop_reason == "enough"


@effect
def after_tool_suppresses(project: Project) -> Row:
    """The program is told not to show the result; the model still gets it."""
    project.configure(AfterTool=project.hook(says={"suppressOutput": True}))
    outcome = yield Scenario(project=project, turns=[NOTE])
    ran_normally(outcome)
    assert outcome.suppressed


@effect
def after_tool_cannot_block(project: Project) -> Row:
    project.configure(AfterTool=project.hook(says={"decision": "deny", "reason": "too late"}))
    outcome = yield Scenario(project=project, turns=[NOTE])
    ran_normally(outcome)
    assert "too late" not in outcome.results[0]


@effect
def after_tool_needs_a_run(project: Project) -> Row:
    """A call that was blocked has no AfterTool."""
    before = project.hook("before", says={"decision": "deny", "reason": "no keys here"})
    project.configure(BeforeTool=before, AfterTool=project.hook("after"))
    was_blocked((yield Scenario(project=project, turns=[KEY])), "no keys here")
    assert project.payloads("after") == []


# BeforeModel.


def model_was_not_called(outcome: Outcome, reason: str) -> None:
    assert outcome.requests == []
    assert outcome.runs == []
    assert reason in outcome.told


@effect
def before_model_blocks(project: Project) -> Row:
    project.configure(BeforeModel=project.hook(says={"decision": "block", "reason": "not today"}))
    model_was_not_called((yield Scenario(project=project, turns=["hello"])), "not today")


@effect
def before_model_fails_closed(project: Project) -> Row:
    project.configure(BeforeModel={"command": project.hook(stderr="broken", exit_code=1), "failClosed": True})
    model_was_not_called((yield Scenario(project=project, turns=["hello"])), "failClosed")


@effect
def before_model_fails_open(project: Project) -> Row:
    project.configure(BeforeModel=project.hook(stderr="broken", exit_code=1))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.text == "hello"


@effect
def before_model_answers(project: Project) -> Row:
    """A hook's answer takes the place of the model's."""
    says = {"decision": "block", "reason": "cached", **specific(llm_response=answer("from the cache"))}
    project.configure(BeforeModel=project.hook(says=says))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.requests == []
    assert outcome.text == "from the cache"
    assert outcome.error is None


@effect
def before_model_answers_in_a_stream(project: Project) -> Row:
    says = {"decision": "block", "reason": "cached", **specific(llm_response=answer("from the cache"))}
    project.configure(BeforeModel=project.hook(says=says))
    outcome = yield Scenario(project=project, turns=["hello"], stream=True)
    assert outcome.requests == []
    assert "".join(outcome.shown) == "from the cache"


REDACT = """
request = payload["llm_request"]
for message in request["messages"]:
    message["content"] = message["content"].replace("555-1234", "[number]")
said = {"hookSpecificOutput": {"llm_request": {"messages": request["messages"]}}}
"""


@effect
def before_model_changes_messages(project: Project) -> Row:
    """Text changes in what is sent; calls, results and the system prompt survive."""
    project.configure(BeforeModel=project.python_hook("redact", REDACT))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"], prompt="call 555-1234")
    assert outcome.text == "done"
    for number in (0, 1):
        request = requested(outcome, number)
        assert "call [number]" in request.text
        assert "555-1234" not in request.text
        assert "You are a test." in request.text
    assert outcome.requests[1].results == ["wrote a.txt"]
    assert outcome.requests[1].calls == ["write_file"]


@effect
def before_model_changes_model(project: Project) -> Row:
    project.configure(BeforeModel=project.hook(says=specific(llm_request={"model": "other-model"})))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert requested(outcome, 0).model == "other-model"


@effect
def before_model_changes_settings(project: Project) -> Row:
    project.configure(BeforeModel=project.hook(says=specific(llm_request={"config": {"temperature": 0.25}})))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert requested(outcome, 0).temperature == 0.25


@effect
def before_model_message(project: Project) -> Row:
    """A message goes into this request, not into the history."""
    project.configure(BeforeModel=project.hook(says=[{"systemMessage": "mind the gap"}, None]))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert "mind the gap" in requested(outcome, 0).text
    assert "mind the gap" not in requested(outcome, 1).text


@effect
def before_model_stops(project: Project) -> Row:
    project.configure(BeforeModel=project.hook(says={"continue": False, "stopReason": "budget used up"}))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.requests == []
    assert outcome.stop_reason == "budget used up"


@effect
def model_payloads(project: Project) -> Row:
    project.configure(BeforeModel=project.hook("before"), AfterModel=project.hook("after"))
    outcome = yield Scenario(project=project, turns=["hello"], prompt="say hello")
    assert outcome.text == "hello"
    (before,), (after,) = project.payloads("before"), project.payloads("after")
    assert before["llm_request"]["messages"][-1] == {"role": "user", "content": "say hello"}
    assert after["llm_request"]["messages"] == before["llm_request"]["messages"]
    (candidate,) = after["llm_response"]["candidates"]
    assert candidate["content"] == {"role": "model", "parts": ["hello"]}
    assert candidate["index"] == 0


# AfterModel.


@effect
def after_model_changes_answer(project: Project) -> Row:
    project.configure(AfterModel=project.hook(says=specific(llm_response=answer("as the hook left it"))))
    outcome = yield Scenario(project=project, turns=["a secret"])
    assert len(outcome.requests) == 1
    assert outcome.text == "as the hook left it"


@effect
def after_model_holds_back(project: Project) -> Row:
    """With an AfterModel hook, nothing is shown before the hook has seen it."""
    project.configure(AfterModel=project.hook(says=specific(llm_response=answer("as the hook left it"))))
    outcome = yield Scenario(project=project, turns=["a secret in pieces"], stream=True)
    assert "".join(outcome.shown) == "as the hook left it"


@effect
def after_model_repeats_nothing(project: Project) -> Row:
    """An answer that the hook leaves alone is shown once, complete."""
    project.configure(AfterModel=project.hook())
    outcome = yield Scenario(project=project, turns=["in four small pieces"], stream=True)
    assert "".join(outcome.shown) == "in four small pieces"


@effect
def after_model_streams_sentences(project: Project) -> Row:
    """A hook that gets sentences takes a secret out of one, and the others are shown as they arrive."""
    scrub = {"command": project.python_hook("scrub", SCRUB), "stream": "sentences"}
    project.configure(AfterModel=scrub)
    text = f"This is fine. The key is {SECRET} here. Good bye"
    outcome = yield Scenario(project=project, turns=[text], stream=True)
    assert "".join(outcome.shown) == text.replace(SECRET, "[secret]")
    assert outcome.text == text.replace(SECRET, "[secret]")
    assert next(piece for piece in outcome.shown if piece) == "This is fine. "
    assert len(project.payloads("scrub")) == 3


@effect
def stream_flows(project: Project) -> Row:
    """Without an AfterModel hook, pieces are shown as they arrive."""
    project.configure(BeforeModel=project.hook(), BeforeTool=project.hook("tool"))
    outcome = yield Scenario(project=project, turns=["in four small pieces"], stream=True)
    assert "".join(outcome.shown) == "in four small pieces"
    assert len([piece for piece in outcome.shown if piece]) > 1


@effect
def after_model_message(project: Project) -> Row:
    """A message is kept for the next request."""
    project.configure(AfterModel=project.hook(says=[{"systemMessage": "mind the gap"}, None]))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert "mind the gap" not in requested(outcome, 0).text
    assert "mind the gap" in requested(outcome, 1).text


@effect
def after_model_stops(project: Project) -> Row:
    """The calls of that answer do not run."""
    project.configure(AfterModel=project.hook(says={"continue": False, "stopReason": "enough"}))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert len(outcome.requests) == 1
    assert outcome.runs == []
    assert outcome.stop_reason == "enough"


@effect
def after_model_suppresses(project: Project) -> Row:
    project.configure(AfterModel=project.hook(says={"suppressOutput": True}))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.suppressed


# BeforeToolSelection.


def selecting(project: Project, **tool_config: Any) -> None:
    project.configure(
        BeforeToolSelection=project.hook(says=[specific(toolConfig=tool_config), None]),
        BeforeTool=project.hook("tool"),
    )


@effect
def selection_none(project: Project) -> Row:
    selecting(project, mode="NONE")
    outcome = yield Scenario(project=project, turns=["hello"])
    assert requested(outcome, 0).allowed == frozenset()


@effect
def selection_names(project: Project) -> Row:
    selecting(project, mode="AUTO", allowedFunctionNames=["write_file", "lookup"])
    outcome = yield Scenario(project=project, turns=["hello"])
    assert requested(outcome, 0).allowed == {"write_file", "lookup"}
    assert not requested(outcome, 0).must_call


@effect
def selection_any(project: Project) -> Row:
    selecting(project, mode="ANY", allowedFunctionNames=["write_file"])
    outcome = yield Scenario(project=project, turns=[NOTE])
    assert requested(outcome, 0).allowed == {"write_file"}
    assert requested(outcome, 0).must_call
    assert requested(outcome, 1).allowed == TOOL_NAMES


@effect
def selection_holds_for_names(project: Project) -> Row:
    """A call outside the list does not run, fires no event, and the model gets an error."""
    selecting(project, mode="AUTO", allowedFunctionNames=["run_shell_command"])
    outcome = yield Scenario(project=project, turns=[[NOTE, SHELL], "done"])
    assert outcome.runs == [ToolRun(*SHELL)]
    assert "write_file may not be called now" in outcome.results[0]
    assert outcome.results[1] == "ran ls"
    assert [payload["tool_name"] for payload in project.payloads("tool")] == ["run_shell_command"]
    assert outcome.text == "done"


@effect
def selection_holds_for_none(project: Project) -> Row:
    selecting(project, mode="NONE")
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert outcome.runs == []
    assert "write_file may not be called now" in outcome.results[0]
    assert project.payloads("tool") == []
    assert outcome.text == "done"


@effect
def selection_stops(project: Project) -> Row:
    hook = project.hook(says={"continue": False, "stopReason": "no tools left"})
    project.configure(BeforeToolSelection=hook)
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.requests == []
    assert outcome.stop_reason == "no tools left"


# Events that nobody waits for.


@effect
def before_agent(project: Project) -> Row:
    project.configure(BeforeAgent=project.hook())
    outcome = yield Scenario(project=project, turns=["hello"], prompt="say hello")
    assert outcome.text == "hello"
    until(lambda: [payload["prompt"] for payload in project.payloads()] == ["say hello"])


@effect
def after_agent(project: Project) -> Row:
    project.configure(AfterAgent=project.hook())
    outcome = yield Scenario(project=project, turns=[NOTE, "hello"], prompt="say hello")
    assert outcome.text == "hello"
    until(lambda: len(project.payloads()) == 1)
    payload = project.payloads()[0]
    assert (payload["prompt"], payload["prompt_response"]) == ("say hello", "hello")


@effect
def session_start(project: Project) -> Row:
    project.configure(SessionStart=project.hook())
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.text == "hello"
    until(lambda: [payload["source"] for payload in project.payloads()] == ["startup"])


@effect
def session_end(project: Project) -> Row:
    """A driver ends the session, by its framework's means or the integration's."""
    project.configure(SessionEnd=project.hook())
    outcome = yield Scenario(project=project, turns=["hello"])
    assert outcome.text == "hello"
    until(lambda: [payload["reason"] for payload in project.payloads()] == ["exit"])


@effect
def pre_compress(project: Project) -> Row:
    project.configure(PreCompress=project.hook())
    outcome = yield Scenario(project=project, turns=[NOTE, "hello"], compress=True)
    assert outcome.text == "hello"
    until(lambda: [payload["trigger"] for payload in project.payloads()] == ["auto"])


@effect
def notification(project: Project) -> Row:
    """A call that waits for approval has the name that hooks see, too."""
    project.configure(Notification=project.hook())
    aliases = {"write_file": "Write"}
    outcome = yield Scenario(project=project, turns=[NOTE, "hello"], approval=True, aliases=aliases)
    assert outcome.runs == WROTE_NOTE
    until(lambda: len(project.payloads()) == 1)
    payload = project.payloads()[0]
    assert payload["notification_type"] == "ToolPermission"
    assert payload["message"] == "Write needs approval"
    assert payload["details"]["tool_name"] == "Write"
    assert payload["details"]["tool_input"]["file_path"] == "a.txt"


# Hooks that act, with the profile `full`; without it, they do nothing.


def acting(project: Project, full: bool, settings: Mapping[str, Any] | None = None, **events: Any) -> None:
    """Write a project's settings, with the profile or without."""
    profile = {"profile": "full"} if full else {}
    given = {"enableHooks": True, "hooksConfig": {**profile, **(settings or {})}, "hooks": hooks_of(events)}
    project.put("project", given)


@acting_effect
def acting_prompt_refused(project: Project, full: bool) -> Row:
    acting(project, full, BeforeAgent=project.hook(says={"decision": "block", "reason": "no secrets, please"}))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert len(outcome.requests) == (0 if full else 1)
    assert ("no secrets, please" in outcome.told) is full
    assert (outcome.text == "hello") is not full


@acting_effect
def acting_prompt_stopped(project: Project, full: bool) -> Row:
    acting(project, full, BeforeAgent=project.hook(says={"continue": False, "stopReason": "closed today"}))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert len(outcome.requests) == (0 if full else 1)
    assert ("closed today" in outcome.told) is full


@acting_effect
def acting_prompt_context(project: Project, full: bool) -> Row:
    acting(project, full, BeforeAgent=project.hook(says=specific(additionalContext="It is Monday.")))
    outcome = yield Scenario(project=project, turns=["hello"], prompt="say hello")
    assert ("say hello\n\nIt is Monday." in requested(outcome, 0).text) is full
    assert outcome.text == "hello"


@acting_effect
def acting_session_context(project: Project, full: bool) -> Row:
    """It reaches the first prompt only, and stays in the conversation."""
    acting(project, full, SessionStart=project.hook(says=specific(additionalContext="Tests are in tests/.")))
    outcome = yield Scenario(project=project, turns=[NOTE, "hello"], prompt="say hello")
    assert outcome.text == "hello"
    for request in outcome.requests:
        assert request.text.count("say hello\n\nTests are in tests/.") == (1 if full else 0)


@acting_effect
def acting_continuation(project: Project, full: bool) -> Row:
    hook = project.hook(says=[{"decision": "block", "reason": "run the tests"}, None])
    acting(project, full, AfterAgent=hook)
    outcome = yield Scenario(project=project, turns=["first", "second"])
    assert len(outcome.requests) == (2 if full else 1)
    assert outcome.text == ("second" if full else "first")
    until(lambda: bool(project.payloads()))
    assert [payload["stop_hook_active"] for payload in project.payloads()] == ([False, True] if full else [False])
    if full:
        assert outcome.requests[1].texts[-1] == ("user", "run the tests")
        assert [payload["prompt_response"] for payload in project.payloads()] == ["first", "second"]
        assert [payload["prompt"] for payload in project.payloads()] == ["go", "run the tests"]


@acting_effect
def acting_continuation_limit(project: Project, full: bool) -> Row:
    hook = project.hook(says={"decision": "block", "reason": "more"})
    acting(project, full, {"maxContinuations": 2}, AfterAgent=hook)
    outcome = yield Scenario(project=project, turns=[])
    assert len(outcome.requests) == (3 if full else 1)
    assert (outcome.text, outcome.error) == ("done", None)
    assert ("AfterAgent: the agent has continued 2 times" in outcome.said) is full


@acting_effect
def acting_answer_stops(project: Project, full: bool) -> Row:
    acting(project, full, AfterAgent=project.hook(says={"continue": False, "stopReason": "enough for today"}))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert len(outcome.requests) == 1
    assert ("enough for today" in outcome.told) is full


@acting_effect
def acting_context_cleared(project: Project, full: bool) -> Row:
    says = {"decision": "block", "reason": "start over", **specific(clearContext=True)}
    acting(project, full, AfterAgent=project.hook(says=[says, None]))
    outcome = yield Scenario(project=project, turns=["first", "second"], prompt="long story")
    assert len(outcome.requests) == (2 if full else 1)
    if full:
        assert "start over" in outcome.requests[1].text
        assert "long story" not in outcome.requests[1].text


@acting_effect
def acting_compression_blocked(project: Project, full: bool) -> Row:
    """Every compression is blocked; what the model reads stays as it is."""
    acting(project, full, PreCompress=project.hook(says={"decision": "block", "reason": "keep everything"}))
    outcome = yield Scenario(project=project, turns=[NOTE, "hello"], compress=True, prompt="long story")
    assert (outcome.text, outcome.error) == ("hello", None)
    until(lambda: [payload["trigger"] for payload in project.payloads()] == ["auto"])
    assert ("long story" in requested(outcome, 1).text) or not full


@acting_effect
def acting_question_yes(project: Project, full: bool) -> Row:
    """A person is asked once, with the arguments that the tool gets."""
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    rewritten = specific(tool_input={"file_path": "a.txt"})
    hook = {"name": "careful", "command": project.hook(says={"decision": "ask", "reason": "sure?", **rewritten})}
    acting(project, full, BeforeTool=hook)
    call = Call("write_file", {"file_path": "b.txt", "content": "hello"})
    ran_normally((yield Scenario(project=project, turns=[call, "done"], approver=approve)))
    expected = [("write_file", dict(NOTE.args), "sure?", "careful")] if full else []
    assert [(each.tool_name, each.tool_input, each.reason, each.hook) for each in asked] == expected


@acting_effect
def acting_question_no(project: Project, full: bool) -> Row:
    says = specific(permissionDecision="ask", permissionDecisionReason="sure?")
    acting(project, full, BeforeTool=project.hook(says=says))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"], approver=lambda request: False)
    if full:
        was_blocked(outcome, "sure? (the answer was no)")
    else:
        ran_normally(outcome)


@acting_effect
def acting_permission(project: Project, full: bool) -> Row:
    """A hook answers the program's own question, so no person is asked."""
    allowing = project.hook("allow", says=specific(permissionDecision="allow"))
    acting(project, full, BeforeTool=allowing, Notification=project.hook("asked"))
    ran_normally((yield Scenario(project=project, turns=[NOTE, "done"], approval=True)))
    assert bool(project.payloads("asked")) is not full
    if full:  # otherwise a framework may start the call again once the person has answered
        assert len(project.payloads("allow")) == 1


@acting_effect
def acting_result_blocked(project: Project, full: bool) -> Row:
    acting(project, full, AfterTool=project.hook(says={"decision": "block", "reason": "not for you"}))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert outcome.runs == WROTE_NOTE
    assert ("not for you" in outcome.results[0]) is full
    assert ("wrote a.txt" in requested(outcome, 1).text) is not full


@acting_effect
def acting_result_text(project: Project, full: bool) -> Row:
    says = specific(tool_response="redacted", additionalContext="by the guard")
    acting(project, full, AfterTool=project.hook(says=says))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert outcome.runs == WROTE_NOTE
    assert outcome.results == ["redacted\n\nby the guard" if full else "wrote a.txt\n\nby the guard"]


@acting_effect
def acting_result_object(project: Project, full: bool) -> Row:
    """The result keeps its type."""
    says = specific(tool_response={"llmContent": {"found": "something", "count": 0}})
    acting(project, full, AfterTool=project.hook(says=says))
    outcome = yield Scenario(project=project, turns=[Call("lookup", {"key": "secret"}), "done"])
    assert ("secret" in requested(outcome, 1).text) is not full
    assert ("something" in outcome.results[0]) is full


@acting_effect
def acting_failure_replaced(project: Project, full: bool) -> Row:
    """Hooks see a tool that raised, and their result takes the place of the error."""
    acting(project, full, AfterTool=project.hook(says=specific(tool_response="nothing found")))
    outcome = yield Scenario(project=project, turns=[Call("lookup", {"key": "nowhere"}), "done"])
    assert outcome.runs == [ToolRun("lookup", {"key": "nowhere"})]
    if full:
        assert (outcome.results, outcome.text, outcome.error) == (["nothing found"], "done", None)
        assert "no such key" in project.payloads()[0]["tool_response"]["error"]["message"]
    else:
        assert "nothing found" not in outcome.results


@acting_effect
def acting_model_answer_blocked(project: Project, full: bool) -> Row:
    """The reason is the answer, and the calls in it are dropped."""
    acting(project, full, AfterModel=project.hook(says={"decision": "block", "reason": "not like this"}))
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    assert outcome.runs == ([] if full else WROTE_NOTE)
    assert outcome.text == ("not like this" if full else "done")


@acting_effect
def acting_model_answered(project: Project, full: bool) -> Row:
    acting(project, full, BeforeModel=project.hook(says=specific(llm_response=answer("from the hook"))))
    outcome = yield Scenario(project=project, turns=["hello"])
    assert len(outcome.requests) == (0 if full else 1)
    assert outcome.text == ("from the hook" if full else "hello")


@acting_effect
def acting_tool_payloads(project: Project, full: bool) -> Row:
    """The id of a call is the same before and after it, and the duration is in the payload."""
    acting(project, full, BeforeTool=project.hook("before"), AfterTool=project.hook("after"))
    ran_normally((yield Scenario(project=project, turns=[NOTE, "done"])))
    [before], [after] = project.payloads("before"), project.payloads("after")
    assert ("tool_use_id" in before, "duration_ms" in after) == (full, full)
    assert before.get("tool_use_id") == after.get("tool_use_id")


# What only the full view shows: a secret in the system prompt, in a call and in a result.

SAVE = Call("save", {"data": {"token": SECRET}})
VAULT = Call("lookup", {"key": "vault"})
GUARD = f"""
if "{SECRET}" in json.dumps(payload["llm_request"]):
    said = {{"decision": "block", "reason": "a secret"}}
"""
SCRUB = f"""
name = "llm_request" if payload["hook_event_name"] == "BeforeModel" else "llm_response"
text = json.dumps(payload[name])
if "{SECRET}" in text:
    said = {{"hookSpecificOutput": {{name: json.loads(text.replace("{SECRET}", "[secret]"))}}}}
"""


def _secret_is_blocked(project: Project, full: bool, requests: int, turns: Sequence[Turn], **scenario: Any) -> Row:
    """``requests`` reach the model before the one with the secret."""
    acting(project, full, BeforeModel={"command": project.python_hook("guard", GUARD), "failClosed": True})
    outcome = yield Scenario(project=project, turns=turns, **scenario)
    assert len(outcome.requests) == (requests if full else len(turns))
    assert ("a secret" in outcome.told) is full
    assert (outcome.text == "done") is not full
    if full:
        assert not any(SECRET in request.text for request in outcome.requests)


@acting_effect
def acting_model_secret_in_prompt(project: Project, full: bool) -> Row:
    return _secret_is_blocked(project, full, 0, ["done"], system_prompt=f"The key is {SECRET}.")


@acting_effect
def acting_model_secret_in_call(project: Project, full: bool) -> Row:
    return _secret_is_blocked(project, full, 1, [SAVE, "done"])


@acting_effect
def acting_model_secret_in_result(project: Project, full: bool) -> Row:
    return _secret_is_blocked(project, full, 1, [VAULT, "done"])


@acting_effect
def acting_model_secrets_redacted(project: Project, full: bool) -> Row:
    """A call is changed in the answer, before it runs; so the history never has the secret."""
    acting(
        project, full, BeforeModel=project.python_hook("before", SCRUB), AfterModel=project.python_hook("after", SCRUB)
    )
    prompt = f"The key is {SECRET}."
    outcome = yield Scenario(project=project, turns=[SAVE, VAULT, "done"], system_prompt=prompt)
    assert (outcome.text, outcome.error, len(outcome.requests)) == ("done", None, 3)
    assert ToolRun("save", {"data": {"token": "[secret]" if full else SECRET}}) in outcome.runs
    assert requested(outcome, 2).calls == ["save", "lookup"]
    assert [SECRET in request.text for request in outcome.requests] == [not full] * 3
    if full:
        assert [request.text.count("[secret]") for request in outcome.requests] == [1, 1, 2]
        shown = [payload["llm_request"]["messages"] for payload in project.payloads("before")]
        assert SECRET not in str([message.get("toolCalls") for messages in shown for message in messages])


# Sessions and settings.


@effect
def session_ids(project: Project) -> Row:
    """The conversation's id is in every payload."""
    events = ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
    project.configure(**dict.fromkeys(events, project.hook()))
    yield Scenario(project=project, turns=[NOTE], session_id="conversation-A")
    count = len(project.payloads())
    assert count
    yield Scenario(project=project, turns=[NOTE], session_id="conversation-B")
    ids = [payload["session_id"] for payload in project.payloads()]
    assert ids == ["conversation-A"] * count + ["conversation-B"] * count


def _about_whom(project: Project) -> dict[str, str]:
    """Return what payloads have about who asks, as text, by event."""
    payloads = project.payloads()
    return {payload["hook_event_name"]: str(payload.get("metadata", "")) for payload in payloads}


@effect
def who_asks(project: Project) -> Row:
    """Hooks get to know the user from the framework, where the program wants that."""
    project.configure(**dict.fromkeys(("BeforeTool", "AfterTool", "BeforeModel", "AfterModel"), project.hook()))
    yield Scenario(project=project, turns=[NOTE, "done"], asked_by="ada", metadata=True)
    shown = _about_whom(project)
    assert {"BeforeTool", "AfterTool"} <= shown.keys()
    assert all("ada" in about for about in shown.values()), shown


def known_in_model_calls(scenario: Scenario, outcome: Outcome) -> None:
    """Who asks is part of a model request: tools, which the program runs itself, have what its session says."""
    shown = _about_whom(scenario.project)
    assert ["ada" in shown[event] for event in ("BeforeModel", "AfterModel")] == [True, True]


def _nobody(context: Any) -> Any:
    raise LookupError("no tenant")


@effect
def who_asks_is_unknown(project: Project) -> Row:
    """A guard must not run without what it was to be told."""
    project.configure(BeforeTool=project.hook(), AfterTool=project.hook())
    was_blocked((yield Scenario(project=project, turns=[NOTE, "done"], metadata=_nobody)), "no tenant")
    assert project.payloads() == []
    ran_normally((yield Scenario(project=project, turns=[NOTE, "done"], asked_by="ada")))
    assert set(_about_whom(project).values()) == {""}


def nobody_is_asked(scenario: Scenario, outcome: Outcome) -> None:
    """The program has no function that could fail."""
    ran_normally(outcome)


@effect
def hooks_disabled(project: Project) -> Row:
    hook = project.hook(says={"decision": "deny", "reason": "never"})
    project.put("project", {"enableHooks": False, "hooks": _everywhere(hook)})
    outcome = yield Scenario(project=project, turns=[NOTE, "done"])
    ran_normally(outcome)
    assert outcome.results == ["wrote a.txt"]
    assert project.payloads() == []
    assert "configured but will not run" not in outcome.said


@effect
def hooks_not_approved(project: Project) -> Row:
    """A project's hooks do not run before they are approved."""
    project.configure(BeforeTool=project.hook(says={"decision": "deny", "reason": "never"}))
    outcome = yield Scenario(project=project, turns=[NOTE], approved=False)
    ran_normally(outcome)
    assert project.payloads() == []


def _everywhere(command: str) -> dict[str, Any]:
    group = {"hooks": [{"type": "command", "command": command}]}
    return {event: [group] for event in HookEventName}
