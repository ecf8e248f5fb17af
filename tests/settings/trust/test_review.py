"""D-37: what a person is shown before an approval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust.review import (
    assembled_commands,
    commands_without_file,
    covered_text,
    difference,
    missing_file,
)
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status

if TYPE_CHECKING:
    from tests.settings.conftest import Write

SETTINGS = ".llxprt/settings.json"


def running(*commands: str, **fields: Any) -> dict[str, Any]:
    hooks = [{"type": "command", "command": command, **fields} for command in commands]
    return {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": hooks}]}}


@pytest.fixture
def approved(project: Path, project_file: Path, write: Write) -> Path:
    write(project_file, running("sh guard.sh", timeout=1000))
    write(project / "guard.sh", "exit 2\n")
    grant_trust(project)
    return project


def test_a_changed_file_is_compared_with_the_approved_one(approved: Path, write: Write) -> None:
    write(approved / "guard.sh", "exit 0\n")

    lines = difference(trust_status(approved), "guard.sh")

    assert lines == ["--- approved/guard.sh", "+++ now/guard.sh", "@@ -1 +1 @@", "-exit 2", "+exit 0"]


def test_a_new_and_a_deleted_file_are_compared_with_nothing(approved: Path, write: Write) -> None:
    write(approved / ".llxprt" / "new.py", "1\n")
    (approved / "guard.sh").unlink()
    status = trust_status(approved)

    assert difference(status, ".llxprt/new.py")[:2] == ["--- /dev/null", "+++ now/.llxprt/new.py"]
    assert difference(status, "guard.sh")[:2] == ["--- approved/guard.sh", "+++ /dev/null"]


def test_the_settings_are_compared_value_by_value(approved: Path, project_file: Path, write: Write) -> None:
    write(project_file, running("sh guard.sh", timeout=1))

    lines = difference(trust_status(approved), SETTINGS)

    assert [line.strip("-+ ") for line in lines if line[0] in "-+"][2:] == ['"timeout": 1000,', '"timeout": 1,']


def test_other_lists_in_the_settings_are_compared_too(approved: Path, project_file: Path, write: Write) -> None:
    write(project_file, {**running("sh guard.sh", timeout=1000), "hooksConfig": {"disabled": ["other"]}})

    assert '+      "other"' in difference(trust_status(approved), SETTINGS)


def test_hooks_that_are_not_an_object_can_be_compared(approved: Path, project_file: Path, write: Write) -> None:
    write(project_file, {"hooks": ["\ud800"]})

    assert difference(trust_status(approved), SETTINGS)
    assert grant_trust(approved).state is TrustState.TRUSTED


def test_files_that_are_not_text_are_not_compared(approved: Path, write: Write) -> None:
    write(approved / "guard.sh", b"\0")
    status = trust_status(approved)

    assert difference(status, "guard.sh") == ["guard.sh: changed (no text, or larger than 256 KiB)"]
    assert covered_text(status, "guard.sh") is None


def test_a_file_that_has_changed_since_it_was_judged_is_not_shown(approved: Path, write: Write) -> None:
    status = trust_status(approved)
    assert covered_text(status, "guard.sh") == "exit 2\n"

    write(approved / "guard.sh", "exit 0\n")

    assert covered_text(status, "guard.sh") is None


def test_a_difference_that_is_not_shown_is_reported(approved: Path, write: Write) -> None:
    write(approved / "guard.sh", "exit 2\r\n")

    [line] = difference(trust_status(approved), "guard.sh")

    assert "or in line endings" in line


def test_commands_that_name_no_file_are_found(approved: Path, project_file: Path, write: Write) -> None:
    write(project_file, running("sh guard.sh", "make lint", "make lint", "guard.sh | jq ."))

    assert commands_without_file(trust_status(approved)) == ["make lint", "guard.sh | jq ."]


def test_unparsable_command_covers_no_files(approved: Path, project_file: Path, write: Write) -> None:
    command = "sh guard.sh " + "{a,b}" * 20
    write(project_file, running(command))
    status = trust_status(approved)

    assert status.state is TrustState.REFUSED
    assert commands_without_file(status) == [command]


def test_an_approval_of_an_earlier_version_has_to_be_given_again(approved: Path, home: Path) -> None:
    store = home / ".llxprt" / "trusted_hooks.json"
    records = json.loads(store.read_text())
    records[str(approved)] = {"hash": "0" * 64, "parts": {"guard.sh": "0" * 64}}
    store.write_text(json.dumps(records))

    status = trust_status(approved)
    [notice] = load_settings(approved).notices

    assert (status.state, status.is_outdated, status.changed) == (TrustState.CHANGED, True, ())
    assert "the approval of this project was given to an earlier version and covered less" in notice


def test_a_project_without_hooks_refuses_none(project: Path) -> None:
    assert trust_status(project).refusal() is None


def test_a_broken_link_that_comes_alive_is_a_change(approved: Path, tmp_path: Path, write: Write) -> None:
    (approved / ".llxprt" / "lib.py").symlink_to(tmp_path / "later.py")
    grant_trust(approved)
    status = trust_status(approved)
    assert status.refusal() is None

    write(tmp_path / "later.py", "raise SystemExit\n")

    assert ".llxprt/lib.py has changed" in (status.refusal() or "")


def test_commands_whose_text_does_not_show_what_they_run_are_found(
    approved: Path, project_file: Path, write: Write
) -> None:
    unclear = [
        "sh guard.sh; sh r$'\\x75'n.sh",
        "sh guard.sh; r${x}n/a.sh",
        "sh $(cat name.txt)",
        "$(dirname x)/run.sh",
        "hooks/`cat x`",
        "sh guard.sh; sh tools/*.sh",
        "./guard.sh && ./tools/?.sh",
    ]
    clear = [
        "sh guard.sh",
        '"$LLXPRT_PROJECT_DIR"/guard.sh "$x"',
        "x=$(cat); echo $x",
        "$(pwd)/guard.sh > $LOG",
        "ls *.md; sh guard.sh '*'",
    ]
    write(project_file, running(*unclear, *clear))

    assert assembled_commands(trust_status(approved)) == unclear


def test_a_file_that_a_command_names_and_that_is_not_there_is_found(approved: Path) -> None:
    status = trust_status(approved)

    assert missing_file(status, "./guard.sh && ./other.sh") == "other.sh"
    assert missing_file(status, "./guard.sh; other.sh") is None
