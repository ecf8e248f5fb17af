"""Tests for hooks: an event, its input, and what hooks should decide (D-50).

``run_test`` runs the configured hooks of a project for one test, for real. ``files`` reads tests from files.
"""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.settings.levels import FOLDER, Level, is_inside, settings_file, user_folder
from llxprt_hooks.settings.search import searching
from llxprt_hooks.settings.trust.status import approved_by_environment

if TYPE_CHECKING:
    from llxprt_hooks.commands.fire import LoadedHooks, Trial
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.jsonc import Node

MAX_STDERR: Final = 1000
"""Characters of a failed hook's stderr that are reported."""


class Decision(StrEnum):
    """What became of an event. It equals every word that a test may expect of it."""

    BLOCK = "block"
    """It is blocked. In a test, ``deny`` is the same."""
    STOP = "stop"
    """It is not blocked, and the agent is stopped."""
    ASK = "ask"
    ALLOW = "allow"
    """It goes on. In a test, this also holds if no hook has an opinion."""
    NONE = "none"
    """It goes on, and no hook has an opinion."""

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is str and other in (self.value, _ALSO.get(self.value)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = StrEnum.__hash__


_ALSO: Final = {"block": "deny", "none": "allow"}

DECISIONS: Final = tuple(sorted({*Decision, "deny"}))
"""The words for a decision in a test."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the hooks of an event decided together."""

    decision: Decision
    reason: str | None
    output: Mapping[str, Any]
    """The merged output; empty if there is none."""

    @property
    def blocked(self) -> bool:
        return self.decision is Decision.BLOCK

    @property
    def allowed(self) -> bool:
        """Whether it goes on, also because no hook has an opinion. An event that is asked about does not."""
        return self.decision in (Decision.ALLOW, Decision.NONE)

    @property
    def asked(self) -> bool:
        return self.decision is Decision.ASK

    @classmethod
    def of(cls, trial: Trial) -> Outcome:
        output = {} if trial.output is None else trial.output.to_dict()
        if trial.blocked or trial.should_stop:
            return cls(Decision.BLOCK if trial.blocked else Decision.STOP, trial.reason, output)
        if not output:
            return cls(Decision.NONE, None, output)
        asks = trial.asked or output.get("decision") == "ask"
        reason = output.get("hookSpecificOutput", {}).get("permissionDecisionReason") or output.get("reason")
        return cls(Decision.ASK if asks else Decision.ALLOW, reason, output)

    def to_dict(self) -> dict[str, Any]:
        return {"decision": self.decision.value, "reason": self.reason, "output": dict(self.output)}


@dataclass(frozen=True, slots=True)
class Expectation:
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
        if outcome.decision != self.decision:
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
    state: Mapping[str, str] = field(default_factory=dict)
    """The content of the session's folder, by file name."""


@dataclass(frozen=True, slots=True)
class TestRun:
    __test__ = False  # not a test itself, although pytest would think so

    outcome: Outcome
    failures: list[str]
    """Why the outcome means nothing: no hook ran, or one failed."""
    decisions: list[tuple[str, str]]
    """Each hook that ran, and what it decided, in one word."""
    duration: float
    """Milliseconds."""

    @property
    def hooks(self) -> list[str]:
        """The hooks that ran."""
        return [hook for hook, _ in self.decisions]


@dataclass(frozen=True, slots=True)
class TestResult:
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


async def run_test(hooks: LoadedHooks, test: HookTest) -> TestResult:
    """Run the hooks of a project for a test. Its variables are used only if its file is approved (D-90)."""
    if test.env and not is_approved(hooks, test.file):
        return TestResult(test, TestRun(Outcome(Decision.NONE, None, {}), [NOT_APPROVED], [], 0.0))
    fired = fire_for_test(hooks, test.event, test.hook_input, hook=test.hook, env=test.env, state=test.state)
    return TestResult(test, await fired)


NOT_APPROVED: Final = (
    "its hooks were not run: it sets variables, which can make any hook run other programs, and its file is not "
    f"approved. Move the file below {FOLDER}/hooks/ and approve it with `llxprt-hooks trust`, or, if you trust "
    "everything in the project, set LLXPRT_TRUST_PROJECT_HOOKS=1"
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
    state: Mapping[str, str] | None = None,
) -> TestRun:
    """Fire an event at the hooks of a project, or at one of them. Hooks that only observe count like any other.

    The session's folder is one of its own, with ``state`` in it.
    """
    chosen = (hooks.only(hook) if hook else hooks).enforcing()
    started = time.perf_counter()
    with _variables(env), _session_state(state or {}, str(hook_input.get("session_id") or hooks.config.session_id)):
        trial = await chosen.fire(event, hook_input)
    duration = (time.perf_counter() - started) * 1000
    failures = [*_failures(trial), *([] if trial.running else [why_no_hook_ran(trial, hook)])]
    decisions = [(result.hook_config.identity, result.outcome) for result in trial.results]
    return TestRun(Outcome.of(trial), failures, decisions, duration)


def is_file_name(name: str) -> bool:
    """Whether a name can be that of a file in the session's folder, and of nothing outside of it."""
    return bool(name) and name not in (".", "..") and not {"/", "\0"} & set(name)


@contextmanager
def _session_state(state: Mapping[str, str], session_id: str) -> Iterator[None]:
    with TemporaryDirectory(prefix="llxprt-hooks-") as root, session_memory.kept_below(Path(root)):
        folder = Path(session_memory.folder_of(session_id))
        if state:
            folder.mkdir(mode=0o700)
        for name, text in state.items():
            (folder / name).write_text(text, encoding="utf-8")
        yield


def why_no_hook_ran(trial: Trial, name: str | None) -> str:
    considered = [hook for hook in trial.plan if name in (None, hook.definition.config.identity)]
    if not considered:
        which = f"no hook is called {name}" if name and trial.plan else f"no hook is configured for {trial.event_name}"
        known = dict.fromkeys(hook.definition.config.identity for hook in trial.plan)
        hint = f" (hooks of {trial.event_name}: {', '.join(known)})" if name and known else ""
        return f"{which}{hint}"
    return "; ".join(f"{hook.definition.config.identity} did not run: {hook.why}" for hook in considered)


def _failures(trial: Trial) -> list[str]:
    """Return what went wrong. A hook that fails proves nothing, even if it blocks because of ``failClosed``."""
    found = list(trial.failures)
    for result in trial.results:
        if result.error is not None:
            ending = result.stderr.strip()[-MAX_STDERR:]  # a Python script prints its exception last
            found.append(f"{result.error}; stderr: {ending}" if ending else str(result.error))
    return found


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
    too_complex: list[str] = []
    matches = searching(str(expected["matches"]), too_complex.append) if expected.keys() == {"matches"} else None
    return matches is not None and matches(text) and not too_complex


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
