"""A twelfth event is a member of the enumeration and a row of the table; nothing else in the package changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import llxprt_hooks
from tests.support.processes import DEADLINE
from tests.support.replies import group, printing, says

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject

MEMBER = '    BEFORE_DEPLOY = "BeforeDeploy"\n'
ROW = """\
    HookEventName.BEFORE_DEPLOY: EventSpec(
        description="Before a deployment: refuse it, or change its target.",
        fields={
            "stage": EventField(FieldKind.WORD, "staging", ("staging", "production")),
            "target": EventField(FieldKind.OBJECT, {"host": "a.example", "port": 80}),
        },
        match=MatchKind.EXACT,
        matched_field="stage",
        awaited=True,
        can_block=True,
        chained_field="target",
    ),
"""

FIRE = """\
import asyncio, json, sys
from llxprt_hooks import Config

hooks, stage, target, folder = json.load(sys.stdin)
system = Config(enable_hooks=True, working_dir=folder, hooks={"BeforeDeploy": hooks}).get_hook_system()
result = asyncio.run(system.ready_event_handler().fire_event("BeforeDeploy", {"stage": stage, "target": target}))
print(json.dumps({**result.to_dict(), "hooksRun": len(result.results)}))
"""

LAST_MEMBER = '    NOTIFICATION = "Notification"\n'
END_OF_TABLE = "    ),\n}\n"


@dataclass(frozen=True)
class Extended:
    """A copy of the package that has one more event, and a project to run it in."""

    packages: Path
    project: Path

    def python(self, *arguments: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
        home = self.project.parent / "home"
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.packages),
            "HOME": str(home),
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(home / "system.json"),
            "LLXPRT_TRUST_PROJECT_HOOKS": "1",
        }
        return subprocess.run(
            [sys.executable, *arguments],
            input=json.dumps(stdin),
            env=environment,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    def fire(self, *groups: dict[str, Any], stage: str = "production", target: object = None) -> dict[str, Any]:
        target = {"host": "a.example", "port": 80} if target is None else target
        done = self.python("-c", FIRE, stdin=[groups, stage, target, str(self.project)])
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def command_line(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "llxprt_hooks", *arguments)

    def configure(self, *groups: dict[str, Any]) -> None:
        file = self.project / ".llxprt" / "settings.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"enableHooks": True, "hooks": {"BeforeDeploy": groups}}))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("packages")
    original = Path(llxprt_hooks.__file__).parent
    shutil.copytree(original, copy / "llxprt_hooks", ignore=shutil.ignore_patterns("__pycache__"))
    events = copy / "llxprt_hooks" / "events.py"
    text = events.read_text(encoding="utf-8")
    assert text.count(LAST_MEMBER) == 1
    assert text.count(END_OF_TABLE) == 1
    text = text.replace(LAST_MEMBER, LAST_MEMBER + MEMBER).replace(END_OF_TABLE, f"    ),\n{ROW}}}\n")
    events.write_text(text, encoding="utf-8")
    return copy


@pytest.fixture
def extended(packages: Path, project: EngineProject) -> Extended:
    return Extended(packages, project.root)


def test_its_hooks_run_with_its_payload(extended: Extended) -> None:
    extended.fire(group("cat > payload"))

    payload = json.loads((extended.project / "payload").read_text())
    assert payload["hook_event_name"] == "BeforeDeploy"
    assert payload["stage"] == "production"
    assert payload["target"] == {"host": "a.example", "port": 80}
    assert payload["cwd"] == str(extended.project)


@pytest.mark.parametrize(("stage", "runs"), [("production", 1), ("staging", 0)])
def test_its_matchers_are_compared_with_its_field(extended: Extended, stage: str, runs: int) -> None:
    result = extended.fire(group("exit 2", matcher="production"), stage=stage)

    assert result["hooksRun"] == runs


def test_the_outputs_of_several_hooks_are_merged(extended: Extended) -> None:
    hooks = [printing(says(target={"host": "b.example"})), printing(says(target={"port": 443})), "echo reviewed"]

    output = extended.fire(group(*hooks))["finalOutput"]

    assert output == {
        "decision": "allow",
        "systemMessage": "reviewed",
        "hookSpecificOutput": {"target": {"host": "b.example", "port": 443}},
    }


def test_a_hook_of_a_chain_sees_what_the_one_before_it_changed(extended: Extended) -> None:
    extended.fire(group(printing(says(target={"host": "b.example"})), "cat > payload", sequential=True))

    payload = json.loads((extended.project / "payload").read_text())
    assert payload["target"] == {"host": "b.example", "port": 80}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"stage": "moon"}, '`stage` in the input of BeforeDeploy must be one of "staging", "production"'),
        ({"target": "b.example"}, "`target` in the input of BeforeDeploy must be an object"),
    ],
)
def test_its_input_is_validated(extended: Extended, fields: dict[str, Any], problem: str) -> None:
    result = extended.fire(group("cat > payload"), **fields)

    assert not result["success"]
    assert problem in result["errors"][0]
    assert not (extended.project / "payload").exists()


@pytest.mark.slow
def test_the_command_line_accepts_the_new_event(extended: Extended) -> None:
    extended.configure(group("echo not on a Friday >&2; exit 2", matcher="staging"), group("true", matcher="moon"))

    fired = extended.command_line("fire", "BeforeDeploy")
    schema = json.loads(extended.command_line("schema").stdout)
    validated = extended.command_line("validate").stdout

    assert fired.returncode == 2, fired.stderr
    assert "not on a Friday" in fired.stdout
    assert "BeforeDeploy" in schema["$defs"]["hooks"]["properties"]
    assert schema["$defs"]["BeforeDeployGroup"]["properties"]["matcher"]["examples"] == ["*", "staging", "production"]
    assert "no stage of BeforeDeploy is `moon`" in validated
    assert "unknown" not in validated
