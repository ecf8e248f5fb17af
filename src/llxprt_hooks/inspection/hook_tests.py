"""Tests for hooks: files ``*.hooktest.json`` with an event, its input, and what hooks should decide (D-50).

``read_tests`` reads a file, ``run_test`` runs the configured hooks of a project for one test, for real, and
``recorded`` writes what hooks decide now into the text of a file, which otherwise stays as it is.
"""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import regress

from llxprt_hooks.diagnosis.json_schema import object_schema, schema_header
from llxprt_hooks.events import HookEventName
from llxprt_hooks.inspection.samples import sample_input
from llxprt_hooks.inspection.trial import InvalidInputError
from llxprt_hooks.protocol.inputs import BASE_FIELDS, input_problem
from llxprt_hooks.settings import Kind, Problem
from llxprt_hooks.settings.document import Document, read_any_document
from llxprt_hooks.settings.levels import FOLDER, Level, is_inside, settings_file, user_folder
from llxprt_hooks.settings.shape import Field, Scalar, Shape, expected_words, fits_limits
from llxprt_hooks.text import closest
from llxprt_hooks.trust.status import approved_by_environment

if TYPE_CHECKING:
    from llxprt_hooks.inspection.trial import LoadedHooks, Trial
    from llxprt_hooks.settings.jsonc import Node

SUFFIX: Final = ".hooktest.json"

LONGEST_STDERR: Final = 1000
"""Characters of a failed hook's stderr that are reported."""


class Decision(StrEnum):
    """The decision on an event."""

    BLOCK = "block"
    """It is blocked. In a test, ``deny`` is the same."""
    STOP = "stop"
    """It is not blocked, and the agent is stopped."""
    ASK = "ask"
    ALLOW = "allow"
    """It goes on. In a test, this also holds if no hook has an opinion."""
    NONE = "none"
    """It goes on, and no hook has an opinion."""


DECISIONS: Final = tuple(sorted({*Decision, "deny"}))
"""The words for a decision in a test."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the hooks of an event decided together."""

    decision: Decision
    reason: str | None
    output: Mapping[str, Any]
    """The merged output; empty if there is none."""

    @classmethod
    def of(cls, trial: Trial) -> Outcome:
        output = {} if trial.output is None else trial.output.to_dict()
        if trial.blocked or trial.should_stop:
            return cls(Decision.BLOCK if trial.blocked else Decision.STOP, trial.reason, output)
        if not output:
            return cls(Decision.NONE, None, output)
        asks = output.get("decision") == "ask"
        reason = output.get("hookSpecificOutput", {}).get("permissionDecisionReason") or output.get("reason")
        return cls(Decision.ASK if asks else Decision.ALLOW, reason, output)

    def to_dict(self) -> dict[str, Any]:
        return {"decision": self.decision.value, "reason": self.reason, "output": dict(self.output)}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a test expects."""

    decision: str
    reason: str | Mapping[str, str] | None = None
    """The exact text, or an object with ``contains`` or ``matches``."""
    output: Mapping[str, Any] | None = None
    """Fields that the merged output must have; it may have others. A text may be described like a reason."""

    def to_dict(self) -> dict[str, Any]:
        optional = {"reason": self.reason, "output": self.output}
        return {"decision": self.decision, **{key: value for key, value in optional.items() if value is not None}}

    def mismatches(self, outcome: Outcome) -> Iterator[str]:
        """Yield the names of the fields that do not fit an outcome."""
        wanted = Decision.BLOCK if self.decision == "deny" else Decision(self.decision)
        fitting = {Decision.ALLOW, Decision.NONE} if wanted is Decision.ALLOW else {wanted}
        if outcome.decision not in fitting:
            yield "decision"
        if self.reason is not None and not _fits(outcome.reason or "", self.reason):
            yield "reason"
        if self.output is not None and not _fits(outcome.output, self.output):
            yield "output"

    def updated(self, outcome: Outcome) -> Expectation:
        """Return what to expect if the outcome is right; fields that fit stay as they are."""
        differing = set(self.mismatches(outcome))
        decision = outcome.decision.value if "decision" in differing else self.decision
        reason = outcome.reason if "reason" in differing else self.reason
        output = outcome.output if "output" in differing else self.output
        return Expectation(decision, reason, output)


@dataclass(frozen=True, slots=True)
class HookTest:
    """One test, and its place in its file."""

    file: Path
    line: int
    name: str
    event: HookEventName
    hook_input: Mapping[str, Any]
    """The event's own fields, completed with examples. Base fields that are given are used."""
    hook: str | None
    """The only hook to run; None: all hooks that match."""
    env: Mapping[str, str | None]
    """Variables for the hooks; None for one that must not be set."""
    expect: Expectation | None
    """None: not recorded yet."""
    node: Node = field(repr=False)


@dataclass(frozen=True, slots=True)
class TestRun:
    __test__ = False  # not a test itself, although pytest would think so

    outcome: Outcome
    failures: list[str]
    """Why the outcome means nothing: no hook ran, or one failed."""
    hooks: list[str]
    """The hooks that ran."""
    duration: float
    """Milliseconds."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a test."""

    __test__ = False

    test: HookTest
    run: TestRun

    @property
    def mismatches(self) -> list[str]:
        """The expected fields that do not fit."""
        expect = self.test.expect
        return [] if self.run.failures or expect is None else list(expect.mismatches(self.run.outcome))

    @property
    def problems(self) -> list[str]:
        """Why the test has failed; empty if it has passed."""
        if not self.run.failures and self.test.expect is None:
            return ["it expects nothing yet; record what hooks decide now with `llxprt-hooks test --update`"]
        return [*self.run.failures, *(f"{name} differs" for name in self.mismatches)]

    @property
    def passed(self) -> bool:
        return not self.problems

    @property
    def can_be_recorded(self) -> bool:
        """Whether the outcome means something, and is not what the test expects."""
        return not self.passed and not self.run.failures

    def difference(self) -> list[str]:
        """Return the expected fields that do not fit, and what they are, as lines that start with - and +."""
        expect, names = self.test.expect, self.mismatches
        expected = expect.to_dict() if expect else {}
        before, after = (_lines({name: of[name] for name in names}) for of in (expected, self.run.outcome.to_dict()))
        lines = list(difflib.unified_diff(before, after, n=len(before), lineterm=""))[3:]  # without the headings
        return [f"{line[0]} {line[1:]}" for line in lines]

    def to_dict(self) -> dict[str, Any]:
        """Return a test of ``test --json``."""
        test = self.test
        return {
            "file": str(test.file),
            "line": test.line,
            "name": test.name,
            "event": test.event.value,
            "hook": test.hook,
            "passed": self.passed,
            "problems": self.problems,
            "expected": None if test.expect is None else test.expect.to_dict(),
            "actual": self.run.outcome.to_dict(),
            "hooks": self.run.hooks,
            "duration_ms": self.run.duration,
        }


class HookTestFileError(Exception):
    """A test file that cannot be used; one problem for each mistake, with its line and column."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def find_tests(paths: Iterable[Path]) -> list[Path]:
    """Return the test files among paths and below folders, each once, in order."""
    found: dict[Path, None] = {}
    for path in paths:
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        found |= dict.fromkeys(file for file in files if file.is_file())
    return list(found)


def project_tests(hooks: LoadedHooks) -> list[Path]:
    """Return the test files of a project: below ``.llxprt``, and beside the scripts that its hooks name."""
    project = Path(hooks.config.working_dir)
    trust = hooks.config.settings.trust if hooks.config.settings else None
    folders = {(project / script).parent for script in (trust.scripts if trust else ())}
    beside = [file for folder in sorted(folders) for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return find_tests([project / FOLDER, *beside])


def read_tests(file: Path) -> list[HookTest]:
    """Read the tests of a file, which has one or a list of them. Raises ``HookTestFileError``."""
    document = read_any_document(file)
    if document is None:
        document = Problem(file, 1, 1, "the file does not exist")
    if isinstance(document, Problem):
        raise HookTestFileError([document])
    reader = _Reader(document)
    tests = reader.tests()
    if reader.problems:
        raise HookTestFileError(sorted(reader.problems, key=lambda problem: (problem.line, problem.column)))
    return tests


async def run_test(hooks: LoadedHooks, test: HookTest) -> TestResult:
    """Run the hooks of a project for a test. Its variables are used only if its file is approved (D-90)."""
    if test.env and not is_approved(hooks, test.file):
        return TestResult(test, TestRun(Outcome(Decision.NONE, None, {}), [NOT_APPROVED], [], 0.0))
    return TestResult(test, await fire_for_test(hooks, test.event, test.hook_input, hook=test.hook, env=test.env))


NOT_APPROVED: Final = (
    "its hooks were not run: it sets variables, which can make any hook run other programs, and its file is not "
    f"approved. Move the file below {FOLDER} and approve it with `llxprt-hooks trust`, or, if you trust everything in "
    "the project, set LLXPRT_TRUST_PROJECT_HOOKS=1"
)


def is_approved(hooks: LoadedHooks, file: Path) -> bool:
    """Whether the user trusts the content of a file: it is the user's own, or part of what is approved."""
    real, project = Path(os.path.realpath(file)), Path(os.path.realpath(hooks.config.working_dir))
    if not real.is_relative_to(project):
        own = settings_file(Level.USER, project)
        return own is not None and any(is_inside(real, folder) for folder in (own.parent, user_folder()))
    trust = hooks.config.settings.trust if hooks.config.settings else None
    covered = trust is not None and trust.counts and str(real.relative_to(project)) in trust.scripts
    return covered or approved_by_environment()


async def fire_for_test(
    hooks: LoadedHooks,
    event: HookEventName,
    hook_input: Mapping[str, Any],
    *,
    hook: str | None = None,
    env: Mapping[str, str | None],
) -> TestRun:
    """Fire an event at the hooks of a project, or at one of them. Hooks that only observe count like any other."""
    chosen = (hooks.only(hook) if hook else hooks).enforcing()
    started = time.perf_counter()
    with _variables(env):
        trial = await chosen.fire(event, hook_input)
    duration = (time.perf_counter() - started) * 1000
    failures = [*_failures(trial), *([] if trial.running else [why_no_hook_ran(trial, hook)])]
    return TestRun(Outcome.of(trial), failures, [result.hook_config.identity for result in trial.results], duration)


def complete_input(event: HookEventName, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of an event, with example values for missing fields.

    Raises ``InvalidInputError`` if the fields do not fit the event.
    """
    tool = fields.get("tool_name")
    complete = {**sample_input(event, tool if isinstance(tool, str) else "write_file"), **fields}
    recorded_for = fields.get("hook_event_name", event.value)
    if recorded_for != event:
        raise InvalidInputError(f"the input was recorded for {recorded_for}, not for {event}")
    if problem := input_problem(event, complete):
        raise InvalidInputError(problem)
    return complete


def why_no_hook_ran(trial: Trial, name: str | None) -> str:
    """Return why no hook ran, hook by hook."""
    considered = [hook for hook in trial.plan if name in (None, hook.definition.config.identity)]
    if not considered:
        which = f"no hook is called {name}" if name and trial.plan else f"no hook is configured for {trial.event_name}"
        known = dict.fromkeys(hook.definition.config.identity for hook in trial.plan)
        hint = f" (hooks of {trial.event_name}: {', '.join(known)})" if name and known else ""
        return f"{which}{hint}"
    return "; ".join(f"{hook.definition.config.identity} did not run: {hook.why}" for hook in considered)


def recorded(text: str, results: Iterable[TestResult]) -> str:
    """Return the text of a test file with what hooks decided, where that is not what it expects."""
    for result in sorted(results, key=lambda each: -each.test.node.start):
        test, outcome = result.test, result.run.outcome
        if not result.can_be_recorded:
            continue
        expect = test.expect.updated(outcome) if test.expect else Expectation(outcome.decision.value, outcome.reason)
        written = json.dumps(expect.to_dict(), ensure_ascii=False)
        if (node := test.node.at("expect")) is not None:
            text = text[: node.start] + written + text[node.end :]
        else:
            last = test.node.members[-1]
            start = max(text.rfind("\n", 0, last.key_start), text.rfind("\r", 0, last.key_start)) + 1
            before = text[start : last.key_start]
            gap = text[start - 1] + before if start and not before.strip() else " "  # a line of its own, like the last
            text = f'{text[: last.value.end]},{gap}"expect": {written}{text[last.value.end :]}'
    return text


def _failures(trial: Trial) -> list[str]:
    """Return what went wrong. A hook that fails proves nothing, even if it blocks because of ``failClosed``."""
    failed = [result for result in trial.results if result.error is not None]
    return [*trial.failures, *(f"{result.error}{_ending(result.stderr)}" for result in failed)]


def _ending(stderr: str) -> str:
    """Return the end of what a failed hook printed, which has the exception of a Python script."""
    return f"; stderr: {stderr.strip()[-LONGEST_STDERR:]}" if stderr.strip() else ""


def _lines(value: object) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False).splitlines()[1:-1]


def _fits(value: Any, expected: Any) -> bool:
    """Whether a value is as expected: it may have more fields, and a text may be described."""
    if isinstance(expected, Mapping) and isinstance(value, str):
        return _fits_text(value, expected)
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        return all(key in value and _fits(value[key], each) for key, each in expected.items())
    same_type = isinstance(value, bool) == isinstance(expected, bool)
    return same_type and bool(value == expected)


def _fits_text(text: str, expected: Mapping[str, Any]) -> bool:
    if expected.keys() == {"contains"}:
        return str(expected["contains"]) in text
    return expected.keys() == {"matches"} and regress.Regex(str(expected["matches"])).find(text) is not None


@contextmanager
def _variables(env: Mapping[str, str | None]) -> Iterator[None]:
    """Set and unset variables of this process, which hooks inherit."""
    before = {name: os.environ.get(name) for name in env}
    _set_variables(env)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(env: Mapping[str, str | None]) -> None:
    for name, value in env.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_TEXT: Final = Scalar(Kind.STRING)
_WORDS: Final = Scalar(Kind.STRING, not_blank=True)
_INPUT: Final = Shape("`input`", "What it may have depends on the event.", {}, open=True)
_ENV: Final = Shape("`env`", "Names and values.", {}, open=True)
_REASON: Final = Shape(
    "`reason` (or a string)",
    "What the text is like.",
    {"contains": Field(_TEXT, "A part of it."), "matches": Field(_TEXT, "A regular expression.")},
)
_EXPECT: Final = Shape(
    "`expect`",
    "What hooks should decide.",
    {
        "decision": Field(Scalar(Kind.STRING, choices=DECISIONS), "The decision on the event.", required=True),
        "reason": Field(_REASON, "Why; the exact text, or an object with `contains` or `matches`."),
        "output": Field(Shape("`output`", "Any fields.", {}, open=True), "Fields that the merged output must have."),
    },
)
TEST: Final = Shape(
    "a test",
    "An event, and what hooks should decide.",
    {
        "name": Field(_WORDS, "What the test is about."),
        "event": Field(Scalar(Kind.STRING, choices=tuple(HookEventName)), "The event to fire.", required=True),
        "input": Field(_INPUT, "The event's own fields. Missing ones get example values.", required=True),
        "hook": Field(_WORDS, "The only hook to run, by its name; else all that match."),
        "env": Field(_ENV, "Variables that hooks get; null for one that is not set."),
        "expect": Field(_EXPECT, _EXPECT.description),
    },
)
"""What a test may have. Files are checked against it, and the JSON Schema is generated from it."""


class _Reader:
    """Reads the tests of one file and collects what is wrong with them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[Problem] = []

    def tests(self) -> list[HookTest]:
        root = self._document.root
        nodes = root.items if root.kind is Kind.ARRAY else (root,)
        tests = [self._test(node, number) for number, node in enumerate(nodes, start=1)]
        return [test for test in tests if test is not None]

    def _test(self, node: Node, number: int) -> HookTest | None:
        before = len(self.problems)
        self._check_object(node, TEST)
        event = node.at("event")
        known = HookEventName(event.scalar) if event and event.scalar in tuple(HookEventName) else None
        hook_input = self._input(node, known) if known else {}
        if len(self.problems) > before or known is None:
            return None
        file, line, given = self._document.file, self._document.problem_at(node.start, "").line, node.to_value()
        expect = Expectation(**given["expect"]) if "expect" in given else None
        name, hook, env = given.get("name", f"test {number}"), given.get("hook"), given.get("env", {})
        return HookTest(file, line, name, known, hook_input, hook, env, expect, node)

    def _input(self, node: Node, event: HookEventName) -> Mapping[str, Any]:
        given = node.at("input")
        if given is None:
            self._report(node.start, "a test needs `input`: the event's own fields, in an object")
        elif self._is_object(given, f"the input of {event}", (*event.spec.fields, *BASE_FIELDS)):
            try:
                return complete_input(event, given.to_value())
            except InvalidInputError as error:
                self._report(given.start, str(error))
        return {}

    def _check_object(self, node: Node, shape: Shape) -> None:
        if not self._is_object(node, shape.name, None if shape.open else shape.fields):
            return
        if shape is _REASON and len(node.members) != 1:
            self._report(node.start, "`reason` needs either `contains` or `matches`")
            return
        for key, declared in shape.fields.items():
            value = node.at(key)
            if declared.value is _INPUT:
                continue  # `_input` checks it, for the event
            if value is None:
                if declared.required:
                    self._report(node.start, f"`{key}` is missing")
            elif isinstance(declared.value, Scalar):
                self._check_text(key, declared.value, value)
            elif isinstance(declared.value, Shape) and not (declared.value is _REASON and value.kind is Kind.STRING):
                self._check_object(value, declared.value)
        for member in node.members if shape is _ENV else ():
            if member.value.kind not in (Kind.STRING, Kind.NULL):
                words = f"`{member.key}` must be a string, or null for a variable that is not set"
                self._report(member.value.start, words)

    def _check_text(self, key: str, declared: Scalar, node: Node) -> None:
        kind = _WORDS if declared.choices else declared
        given = str(node.scalar)
        if node.kind is not Kind.STRING or not fits_limits(kind, given):
            self._report(node.start, f"`{key}` must be {expected_words(kind)}")
        elif declared.choices and given not in declared.choices:
            self._report(node.start, f"unknown {key} `{given}`{_hint(given, declared.choices, f'{key}s')}")
        elif key == "matches":
            try:
                regress.Regex(given)
            except regress.RegressError as error:
                self._report(node.start, f"`matches` is not a valid regular expression: {error}")

    def _is_object(self, node: Node, what: str, known: Collection[str] | None) -> bool:
        """Whether a node is an object. Also reports keys that are not known, where these are given."""
        if node.kind is not Kind.OBJECT:
            self._report(node.start, f"{what} must be an object, found {self._document.found(node)}")
            return False
        for member in node.members:
            if known is not None and member.key not in known:
                hint = _hint(member.key, known, "known fields")
                self._report(member.key_start, f"unknown field `{member.key}` in {what}{hint}")
        return True

    def _report(self, offset: int, message: str) -> None:
        self.problems.append(self._document.problem_at(offset, message))


def _hint(given: str, known: Collection[str], label: str) -> str:
    meant = closest(given, known)
    return f", did you mean `{meant}`?" if meant else f"; {label}: {', '.join(known)}"


def hooktest_schema() -> dict[str, Any]:
    """Return a JSON Schema of test files, for editors."""
    test = object_schema(TEST)
    test["properties"]["env"]["additionalProperties"] = {"type": ["string", "null"]}
    expected = test["properties"]["expect"]["properties"]
    described = {**expected["reason"], "minProperties": 1, "maxProperties": 1}
    expected["reason"] = {"description": described.pop("description"), "anyOf": [{"type": "string"}, described]}
    return {
        **schema_header("Tests for hooks of llxprt-hooks, in *.hooktest.json"),
        "anyOf": [{"$ref": "#/$defs/test"}, {"type": "array", "items": {"$ref": "#/$defs/test"}}],
        "$defs": {"test": test},
    }
