"""A new hook type is one executor and one line in the table: engine, trust and every command then know it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from llxprt_hooks import Config, HookLog, fire_before_tool_hook
from llxprt_hooks.commands.validate import settings_schema
from llxprt_hooks.core.executors import EXECUTORS, Executor, HookRun
from llxprt_hooks.settings import Kind
from llxprt_hooks.settings.shape import Field, FieldProblem, Scalar, Shape
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from tests.support.cli import Call, CliProject

jsonschema = pytest.importorskip("jsonschema", reason="a development dependency")


@dataclass(frozen=True)
class EchoSpec:
    reason: str
    decision: str
    file: str


class EchoExecutor(Executor[EchoSpec]):
    """Hooks of type "echo": answer with a fixed decision."""

    fields: ClassVar[Mapping[str, Field]] = {
        "reason": Field(Scalar(Kind.STRING, not_blank=True), "The reason.", required=True),
        "decision": Field(Scalar(Kind.STRING, choices=("deny", "allow")), "The decision.", default="deny"),
        "file": Field(Scalar(Kind.STRING), "A file of the project.", default=""),
        "headers": Field(Shape("headers", "Never shown.", {}, open=True), "Never shown.", default={}, secret=True),
    }
    described = ("reason",)
    example: ClassVar[Mapping[str, object]] = {"reason": "no"}

    def read(self, fields: Mapping[str, Any]) -> EchoSpec | list[FieldProblem]:
        if fields["reason"] == "because":
            return [FieldProblem("reason", "`reason` must be a better one", discards=True)]
        return EchoSpec(fields["reason"], fields["decision"], fields["file"])

    def describe(self, spec: EchoSpec) -> str:
        return f"echo {spec.reason}"

    def script_texts(self, spec: EchoSpec) -> tuple[str]:
        return (spec.file,)

    async def run(self, spec: EchoSpec, run: HookRun) -> HookExecutionResult:
        said = f"{spec.reason} for {run.hook_input['tool_name']}, {len(run.payload())} bytes"
        return run.answered({"decision": spec.decision, "reason": said})


ECHO = {"type": "echo", "reason": "not today", "file": "guard.txt", "timeout": 5000, "headers": {"key": "s3cret"}}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "echo", EchoExecutor())


@pytest.fixture
def project(world: CliProject) -> CliProject:
    (world.root / "guard.txt").write_text("guarded")
    world.configure(BeforeTool=[{"matcher": "write_file", "hooks": [ECHO]}])
    return world


async def test_the_engine_runs_it(call: Call, project: CliProject) -> None:
    output = await fire_before_tool_hook(Config.load(project.root), "write_file", {})

    assert output is not None
    assert output.is_blocking_decision()
    assert output.get_effective_reason().startswith("not today for write_file, ")


def test_it_runs_once_for_each_key(call: Call, world: CliProject) -> None:
    world.configure(BeforeTool=[{"hooks": [ECHO, {**ECHO, "timeout": 9}, {**ECHO, "reason": "never"}]}])

    fired = call("fire", "BeforeTool", "--json").json

    assert [hook["command"] for hook in fired["plan"]["hooks"]] == ["echo not today", "echo never"]


def test_fire_shows_and_runs_it(call: Call, project: CliProject) -> None:
    fired = call("fire", "BeforeTool", "--tool", "write_file", "--json")

    [result] = fired.json["results"]
    assert fired.status == 2
    assert (result["command"], result["exit_code"], result["stdout"]) == ("echo not today", None, "")
    assert result["output"]["decision"] == "deny"
    assert "echo not today" in call("fire", "BeforeTool", "--tool", "write_file").stdout


def test_list_shows_it(call: Call, project: CliProject) -> None:
    [hook] = call("list", "--json").json["hooks"]

    assert (hook["type"], hook["command"], hook["name"]) == ("echo", "echo not today", "echo not today")
    assert "echo not today" in call("list").stdout


async def test_the_log_records_it(call: Call, project: CliProject) -> None:
    config = Config.load(project.root, observer=HookLog(project.root))

    await fire_before_tool_hook(config, "write_file", {})

    [record] = call("log", "--json").json_lines
    assert (record["type"], record["hook"], record["command"]) == ("echo", "echo not today", "echo not today")
    assert record["blocked"]


def test_trust_shows_all_of_it_but_secrets(call: Call, project: CliProject) -> None:
    shown = call("trust", "--dry-run").stdout

    assert "BeforeTool write_file  echo not today" in shown
    assert 'file: "guard.txt", timeout: 5000, headers: "key"' in shown
    assert "file guard.txt" in shown
    assert "s3cret" not in shown


CHANGES: dict[str, Mapping[str, Any]] = {
    "described": {"reason": "tomorrow"},
    "own": {"decision": "allow"},
    "secret": {"headers": {"key": "other"}},
    "common": {"timeout": 6000},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_of_its_fields_ends_an_approval(
    call: Call, project: CliProject, monkeypatch: pytest.MonkeyPatch, change: Mapping[str, Any]
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    grant_trust(project.root)

    project.configure(BeforeTool=[{"matcher": "write_file", "hooks": [{**ECHO, **change}]}])

    assert trust_status(project.root).state is TrustState.CHANGED


def test_a_change_of_a_file_that_it_names_ends_an_approval(
    call: Call, project: CliProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    grant_trust(project.root)

    (project.root / "guard.txt").write_text("changed")

    assert trust_status(project.root).state is TrustState.CHANGED


@pytest.mark.parametrize("hook", [{"type": "plugin", "name": "p"}, {"type": "unknown-type", "x": 1}, {"name": "p"}])
def test_trust_shows_hooks_that_cannot_be_run_too(call: Call, world: CliProject, hook: dict[str, Any]) -> None:
    world.configure(BeforeTool=[{"hooks": [hook]}])

    shown = call("trust", "--dry-run").stdout

    assert "BeforeTool" in shown
    assert json.dumps(list(hook.values())[-1]) in shown


def test_validate_accepts_it(call: Call, project: CliProject) -> None:
    found = call("validate", "--json").json

    assert found["diagnostics"] == []


WRONG: dict[str, tuple[Mapping[str, Any], str, str]] = {
    "a required field is missing": ({"type": "echo"}, "missing-key", "`reason`"),
    "a value of another type": ({"type": "echo", "reason": 7}, "wrong-type", "`reason` must be a string"),
    "a value that is not a choice": ({**ECHO, "decision": "maybe"}, "invalid-value", '"deny" or "allow"'),
    "a value that the type refuses": ({**ECHO, "reason": "because"}, "invalid-value", "a better one"),
    "a key of another type": ({**ECHO, "command": "true"}, "unknown-key", "`command`"),
    "a misspelled key": ({**ECHO, "raeson": "x", "reason": "x"}, "unknown-key", "`raeson`"),
}


@pytest.mark.parametrize(("hook", "code", "words"), WRONG.values(), ids=WRONG)
def test_validate_and_the_schema_find_what_is_wrong_with_it(
    call: Call, world: CliProject, hook: Mapping[str, Any], code: str, words: str
) -> None:
    file = world.configure(BeforeTool=[{"hooks": [hook]}])

    [found] = call("validate", "--json").json["diagnostics"]

    assert found["code"] == code
    assert words in found["message"]
    errors = list(jsonschema.Draft202012Validator(settings_schema()).iter_errors(json.loads(file.read_text())))
    assert bool(errors) is (words != "a better one")


@pytest.mark.parametrize("hook", [WRONG["a required field is missing"][0], WRONG["a value that the type refuses"][0]])
def test_the_engine_discards_what_is_wrong_and_says_where(
    call: Call, world: CliProject, hook: Mapping[str, Any]
) -> None:
    file = world.configure(BeforeTool=[{"hooks": [hook]}])

    [problem] = call("list", "--json").json["problems"]

    assert problem.startswith(f"{file}:1:")
    assert ": hooks.BeforeTool[0].hooks[0]: discarded, so it blocks nothing: " in problem
    assert "`reason`" in problem


def test_the_schema_has_it(project: CliProject) -> None:
    validator = jsonschema.Draft202012Validator(settings_schema())

    assert list(validator.iter_errors(json.loads(project.project_file.read_text()))) == []
    assert settings_schema()["$defs"]["hook"]["properties"]["type"]["enum"] == ["command", "http", "nats", "echo"]


def test_a_type_without_settings_cannot_be_written_in_settings(
    call: Call, world: CliProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EchoExecutor, "fields", None)
    world.configure(BeforeTool=[{"hooks": [ECHO]}])

    listed = call("list", "--json").json

    assert listed["hooks"] == []
    assert '`type` must be "command" or "http" or "nats" or "plugin"' in listed["problems"][0]
