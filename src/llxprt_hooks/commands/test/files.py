"""Files with tests for hooks, ``*.hooktest.json``: their format, and how they are found, read and updated (D-50)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import regress

from llxprt_hooks._support.text import closest
from llxprt_hooks.commands.fire import InvalidInputError, LoadedHooks, complete_input, foreign_call
from llxprt_hooks.commands.test.run import DECISIONS, Expectation, HookTest, TestResult, is_file_name
from llxprt_hooks.commands.validate.json_schema import object_schema, schema_header
from llxprt_hooks.core.protocol.caller import CALL_FIELDS, CALLER_FIELDS
from llxprt_hooks.core.protocol.inputs import BASE_FIELDS
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import Kind, Problem
from llxprt_hooks.settings.document import Document, read_any_document
from llxprt_hooks.settings.levels import FOLDER
from llxprt_hooks.settings.shape import Field, Misfit, Mistake, Scalar, Shape, Value, misfits

if TYPE_CHECKING:
    from llxprt_hooks.settings.foreign import NativeCall
    from llxprt_hooks.settings.jsonc import Node

SUFFIX: Final = ".hooktest.json"


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
    reader = _TestReader(document)
    tests = reader.tests()
    if reader.problems:
        raise HookTestFileError(sorted(reader.problems, key=lambda problem: (problem.line, problem.column)))
    return tests


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


def _pattern_problem(pattern: str) -> str | None:
    try:
        regress.Regex(pattern)
    except regress.RegressError as error:
        return f"it is not a valid regular expression: {error}"
    return None


_WORDS: Final = Scalar(Kind.STRING, not_blank=True)
_FIELDS: Final = Shape("object", "Any fields.", {}, open=True)
_REASON: Final = Shape(
    "reason",
    "What the text is like.",
    {
        "contains": Field(Scalar(Kind.STRING), "A part of it."),
        "matches": Field(Scalar(Kind.STRING, problem=_pattern_problem), "A regular expression."),
    },
)
_EXPECT: Final = Shape(
    "expectation",
    "What hooks should decide.",
    {
        "decision": Field(Scalar(Kind.STRING, choices=DECISIONS), "The decision on the event.", required=True),
        "reason": Field(_REASON, "Why; the exact text, or an object with `contains` or `matches`."),
        "output": Field(_FIELDS, "Fields that the merged output must have."),
    },
)
TEST: Final = Shape(
    "test",
    "An event, and what hooks should decide.",
    {
        "name": Field(_WORDS, "What the test is about."),
        "event": Field(Scalar(Kind.STRING, choices=tuple(HookEventName)), "The event to fire.", required=True),
        "input": Field(_FIELDS, "The event's own fields. Missing ones get example values.", required=True),
        "hook": Field(_WORDS, "The only hook to run, by its name; else all that match."),
        "env": Field(_FIELDS, "Variables that hooks get; null for one that is not set."),
        "state": Field(_FIELDS, "Files in the session's folder, by name, with their text."),
        "expect": Field(_EXPECT, _EXPECT.description),
    },
)
"""What a test may have. Files are checked against it, and the JSON Schema is generated from it."""


class _TestReader:
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
        if node.kind is not Kind.OBJECT:
            self._report(node.start, f"a test must be an object, found {self._document.found(node)}")
            return None
        before, call = len(self.problems), self._foreign_call(node)
        for misfit in misfits(TEST, node, _reason_may_be_text):
            if call is not None and misfit.key == "event":
                continue
            if misfit.member is None or not misfit.shape.open:
                self._report(misfit.member.key_start if misfit.member else misfit.node.start, self._words(misfit))
        self._check_own_rules(node.at("env"), node.at("state"), node.at("expect", "reason"))
        event, hook_input = node.at("event"), node.at("input")
        known = HookEventName(event.scalar) if event and event.scalar in tuple(HookEventName) else None
        complete = self._input(hook_input, known) if hook_input and known else {}
        if call is not None and hook_input is not None:
            known, complete = call.event_name, self._translated(hook_input, call)
        if len(self.problems) > before or known is None:
            return None
        file, line, given = self._document.file, self._document.problem_at(node.start, "").line, node.to_value()
        expect = Expectation(**given["expect"]) if "expect" in given else None
        name, hook, env = given.get("name", f"test {number}"), given.get("hook"), given.get("env", {})
        return HookTest(file, line, name, known, complete, hook, env, expect, node, given.get("state", {}))

    def _foreign_call(self, node: Node) -> NativeCall | None:
        """The event of a test in the names of a dialect that is asked for; None if it is one of ours."""
        event, given = node.at("event"), node.at("input")
        if event is None or not isinstance(event.scalar, str) or event.scalar in tuple(HookEventName):
            return None
        fields = given.to_value() if given is not None and given.kind is Kind.OBJECT else {}
        tool, arguments = fields.get("tool_name"), fields.get("tool_input")
        named = tool if isinstance(tool, str) else None
        directory = str(self._document.file.parent)
        return foreign_call(directory, event.scalar, named, arguments if isinstance(arguments, dict) else None)

    def _translated(self, given: Node, call: NativeCall) -> Mapping[str, Any]:
        called = {"tool_name": call.tool_name, "tool_input": call.tool_input}
        own = {name: value for name, value in called.items() if value is not None}
        try:
            return complete_input(call.event_name, {**call.fields, **given.to_value(), **own})
        except InvalidInputError as error:
            self._report(given.start, str(error))
        return {}

    def _words(self, misfit: Misfit) -> str:
        declared, key, words = misfit.declared, misfit.key, misfit.words(self._document)
        if misfit.mistake is Mistake.UNKNOWN:
            return f"{words}{_hint(key, misfit.shape.fields, 'known keys')}"
        if declared is _REASON:
            return f"`{key}` must be a string or an object, found {self._document.found(misfit.node)}"
        if misfit.mistake is Mistake.LIMITS and isinstance(declared, Scalar) and declared.choices:
            given = str(misfit.node.scalar)
            return f"unknown {key} `{given}`{_hint(given, declared.choices, f'{key}s')}"
        return words

    def _check_own_rules(self, env: Node | None, state: Node | None, reason: Node | None) -> None:
        """Report what fits the declaration, and is still wrong."""
        for member in env.members if env else ():
            if member.value.kind not in (Kind.STRING, Kind.NULL):
                words = f"`{member.key}` must be a string, or null for a variable that is not set"
                self._report(member.value.start, words)
        for member in state.members if state else ():
            if member.value.kind is not Kind.STRING or not is_file_name(member.key):
                words = f"`{member.key}` in `state` must be the name of a file, with its text"
                self._report(member.key_start, words)
        if reason and reason.kind is Kind.OBJECT and len(reason.members) != 1:
            self._report(reason.start, "`reason` needs either `contains` or `matches`")

    def _input(self, given: Node, event: HookEventName) -> Mapping[str, Any]:
        known = (*event.spec.fields, *BASE_FIELDS, *CALLER_FIELDS, *(CALL_FIELDS if event.spec.is_about_tool else ()))
        for member in given.members:
            if member.key not in known:
                hint = _hint(member.key, known, "known keys")
                self._report(member.key_start, f"unknown key `{member.key}` in the input of {event}{hint}")
        try:
            return complete_input(event, given.to_value()) if given.kind is Kind.OBJECT else {}
        except InvalidInputError as error:
            self._report(given.start, str(error))
        return {}

    def _report(self, offset: int, message: str) -> None:
        self.problems.append(self._document.problem_at(offset, message))


def _reason_may_be_text(declared: Value, node: Node) -> Value:
    return Scalar(Kind.STRING) if declared is _REASON and node.kind is Kind.STRING else declared


def _hint(given: str, known: Collection[str], label: str) -> str:
    meant = closest(given, known)
    return f", did you mean `{meant}`?" if meant else f"; {label}: {', '.join(known)}"


def hooktest_schema() -> dict[str, Any]:
    """Return a JSON Schema of test files, for editors."""
    test = object_schema(TEST)
    test["properties"]["env"]["additionalProperties"] = {"type": ["string", "null"]}
    test["properties"]["state"]["additionalProperties"] = {"type": "string"}
    expected = test["properties"]["expect"]["properties"]
    described = {**expected["reason"], "minProperties": 1, "maxProperties": 1}
    expected["reason"] = {"description": described.pop("description"), "anyOf": [{"type": "string"}, described]}
    return {
        **schema_header("Tests for hooks of llxprt-hooks, in *.hooktest.json"),
        "anyOf": [{"$ref": "#/$defs/test"}, {"type": "array", "items": {"$ref": "#/$defs/test"}}],
        "$defs": {"test": test},
    }
