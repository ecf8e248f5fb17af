"""What is found about the files themselves: levels, trust, extensions, places that nobody reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llxprt_hooks.commands.validate import diagnose, inspect_file, project_of
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust.status import grant_trust
from tests.commands.validate.marks import DiagnosedProject, extension, settings, span, unmarked

HOOKS = '"BeforeTool": [{ "hooks": [{ "type": "command", "command": "true" }] }]'
CLEAN = settings(HOOKS)


@pytest.fixture
def untrusting(place: DiagnosedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")


def told(place: DiagnosedProject) -> list[tuple[str, Path, int, int]]:
    return [(each.code, each.file, each.line, each.column) for each in place.diagnose()]


def test_an_empty_project_has_nothing_to_report(place: DiagnosedProject) -> None:
    assert told(place) == []


def test_every_level_and_extension_is_looked_at(place: DiagnosedProject) -> None:
    wrong = '{ "enableHooks": 1 }'
    files = [
        place.write(place.project_file, wrong),
        place.write(place.user_file, wrong),
        place.write(place.system_file, wrong),
        place.extension("x", '{ "hooks": 1 }'),
    ]

    assert [(code, file) for code, file, _, _ in told(place)] == [("wrong-type", file) for file in files]


def test_a_broken_file_does_not_hide_the_others(place: DiagnosedProject) -> None:
    place.write(place.project_file, "{")
    place.write(place.user_file, '{ "enableHooks": 1 }')

    assert [code for code, _, _, _ in told(place)] == ["syntax", "wrong-type"]


def test_hooks_that_no_level_turns_on(place: DiagnosedProject) -> None:
    place.write(place.project_file, f'{{\n  "hooks": {{ {HOOKS} }}\n}}')

    assert told(place) == [("hooks-off", place.project_file, 2, 3)]


def test_hooks_that_another_level_turns_on(place: DiagnosedProject) -> None:
    place.write(place.project_file, f'{{ "hooks": {{ {HOOKS} }} }}')
    place.write(place.user_file, '{ "enableHooks": true }')

    assert told(place) == []


def test_hooks_that_another_level_turns_off(place: DiagnosedProject) -> None:
    place.write(place.project_file, '{ "enableHooks": false }')
    place.write(place.user_file, CLEAN)

    assert told(place) == [("hooks-off", place.project_file, 1, 18)]


@pytest.mark.usefixtures("untrusting")
def test_a_project_that_is_not_approved(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)
    assert told(place) == [("not-trusted", place.project_file, 3, 3)]

    grant_trust(place.root)
    assert told(place) == []

    place.write(place.project_file, CLEAN.replace('"true"', '"cat"'))
    assert told(place) == [("not-trusted", place.project_file, 3, 3)]


@pytest.mark.usefixtures("untrusting")
def test_the_command_to_approve_is_shown(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)

    (found,) = place.diagnose()

    assert "llxprt-hooks trust" in found.fix
    assert "LLXPRT_TRUST_PROJECT_HOOKS=1" in found.fix


@pytest.mark.usefixtures("untrusting")
def test_a_single_file_is_not_judged_by_approval(place: DiagnosedProject) -> None:
    assert place.diagnose_text(CLEAN) == []


def test_approvals_that_cannot_be_read(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)
    store = place.write(place.home / ".llxprt" / "trusted_hooks.json", "{", 0o600)

    assert told(place) == [("trust-store", store, 1, 1)]


def test_project_settings_that_others_may_write_are_refused(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN, 0o666)

    (found,) = place.diagnose()

    assert (found.code, found.file, found.line, found.column) == ("refused-settings", place.project_file, 1, 1)
    assert f"chmod go-w {place.project_file}" in found.fix


def test_project_settings_that_lead_out_of_the_project_are_refused(place: DiagnosedProject) -> None:
    elsewhere = place.write(place.folder / "elsewhere.json", CLEAN)
    place.project_file.parent.mkdir()
    place.project_file.symlink_to(elsewhere)

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("refused-settings", place.project_file)
    assert "Replace the link" in found.fix


def test_user_settings_that_others_may_write(place: DiagnosedProject) -> None:
    place.write(place.user_file, CLEAN, 0o666)

    assert told(place) == [("refused-settings", place.user_file, 1, 1)]


def test_user_settings_that_are_not_used(place: DiagnosedProject) -> None:
    place.write(place.user_file, CLEAN)
    used = place.write(place.home / ".config" / "llxprt-code" / "settings.json", CLEAN)

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("unused-user-settings", used)
    assert str(place.user_file) in found.message


@pytest.mark.parametrize("level", ["project", "user", "system"])
def test_hooks_that_cannot_be_managed(place: DiagnosedProject, level: str) -> None:
    claim = {"managed": True} if level != "system" else {"managedOnly": True}
    place.put(level, {"hooksConfig": claim})

    codes = {found.code for found in place.diagnose()}

    assert "managed-ignored" in codes


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write managed settings")
def test_managed_hooks_are_neither_off_nor_disabled(place: DiagnosedProject) -> None:
    hook = {"type": "command", "command": "true", "name": "guard"}
    place.put("user", {"enableHooks": False, "hooksConfig": {"disabled": ["guard"]}})
    place.put("system", {"hooksConfig": {"managed": True}, "hooks": {"BeforeTool": [{"hooks": [hook]}]}})

    assert place.diagnose() == []


IMPORTING = ["python3 -c 'import json'", "/usr/bin/python3.12 -m json.tool", "cat | python3 -", "env A=1 python -uc x"]
NOT_IMPORTING = [
    "python3 -P -c 'import json'",
    "python3 -Ic x",
    "python3 ~/x.py -c",
    "PYTHONSAFEPATH=1 python3 -m json.tool",
    "python3 -Ximporttime /x.py",
    "bash -c true",
]


@pytest.mark.parametrize("level", ["user", "system", "project"])
@pytest.mark.parametrize("command", [*IMPORTING, *NOT_IMPORTING])
def test_python_that_imports_from_the_project(place: DiagnosedProject, level: str, command: str) -> None:
    place.configure(level=level, AfterTool=command)

    codes = [found.code for found in place.diagnose()]

    assert ("imports-from-project" in codes) is (command in IMPORTING and level != "project")


def test_a_path_that_is_not_a_file(place: DiagnosedProject) -> None:
    place.project_file.mkdir(parents=True)

    assert told(place) == [("unreadable-file", place.project_file, 1, 1)]


def test_the_home_directory_is_not_a_project(place: DiagnosedProject) -> None:
    place.write(place.user_file, CLEAN)

    assert diagnose(inspect_file(place.user_file, place.home)) == []


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        (".llxprt/settings.jsonc", ".llxprt/settings.json"),
        (".llxprt/hooks.json", ".llxprt/settings.json"),
        (".llxprt/hooks/hooks.json", ".llxprt/settings.json"),
        (".llxprt/setting.json", ".llxprt/settings.json"),
        ("settings.json", ".llxprt/settings.json"),
        (".claude/settings.json", "migrate --from claude"),
        (".gemini/settings.json", "migrate --from gemini"),
    ],
)
def test_hooks_in_a_file_that_is_not_read(place: DiagnosedProject, path: str, fix: str) -> None:
    file = place.write(path, f'{{\n  "hooks": {{ {HOOKS} }}\n}}')

    (found,) = place.diagnose()

    assert (found.code, found.file, found.line, found.column) == ("unread-file", file, 2, 3)
    assert fix in found.fix


@pytest.mark.parametrize(
    "content",
    [
        '{ "hooks": { "pre": "x" } }',
        '{ "hooks": { "onSave": [{ "run": "x" }], "stop": [], "disabled": ["x"] } }',
        '{ "hooks": {} }',
        '{ "hooks": [] }',
        "[]",
        "{",
    ],
)
def test_a_file_without_hooks_is_somebody_elses(place: DiagnosedProject, content: str) -> None:
    place.write("settings.json", content)
    place.write(".llxprt/state.json", content)

    assert told(place) == []


def test_settings_of_other_agents_are_their_own_business(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)
    place.write(".claude/settings.json", f'{{ "hooks": {{ {HOOKS} }} }}')
    place.write(".gemini/settings.json", "{}")

    assert told(place) == []


def test_an_extension(place: DiagnosedProject) -> None:
    place.write(place.user_file, '{ "enableHooks": true }')
    marked = unmarked(extension("«${extensionPath}/x.sh»"))
    file = place.extension("x", marked.text)

    (found,) = place.diagnose()
    assert (found.code, found.file, span(found)) == ("script-missing", file, marked.spans[0])

    place.write(file.parent.parent / "x.sh", "#!/bin/sh\n", 0o755)
    assert told(place) == []


def test_the_same_command_of_two_extensions_is_not_the_same(place: DiagnosedProject) -> None:
    place.write(place.user_file, '{ "enableHooks": true }')
    hooks = extension("cat ${extensionPath}/x")
    place.extension("a", hooks)
    place.extension("b", hooks)

    assert told(place) == []


def test_a_hook_of_an_extension_has_the_name_that_the_engine_gives_it(place: DiagnosedProject) -> None:
    """The path of its folder is quoted in a command, so that is also how `disable` writes it."""
    folder = place.extension("my ext", extension("${extensionPath}/x.sh")).parent.parent
    place.write(folder / "x.sh", "#!/bin/sh\n", 0o755)
    place.write(place.user_file, {"enableHooks": True, "hooksConfig": {"disabled": [f"'{folder}'/x.sh"]}})

    assert [found.code for found in place.diagnose()] == ["disabled-hook"]


def test_an_extension_without_a_manifest(place: DiagnosedProject) -> None:
    place.write(place.user_file, CLEAN)
    file = place.extension("x", '{ "hooks": {} }', manifest=False)

    assert told(place) == [("extension-without-manifest", file, 1, 1)]


MANIFESTS = {
    "it is not valid": ('{ "name"', "syntax"),
    "it is not an object": ("[]", "syntax"),
    "its name is not a string": ('{ "name": 7 }', "wrong-type"),
}


@pytest.mark.parametrize("with_hooks", [True, False])
@pytest.mark.parametrize(("manifest", "code"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_with_a_mistake(place: DiagnosedProject, manifest: str, code: str, with_hooks: bool) -> None:
    folder = place.home / ".llxprt" / "extensions" / "x"
    file = place.write(folder / "gemini-extension.json", manifest)
    if with_hooks:
        place.extension("x", '{ "hooks": {} }', manifest=False)

    [problem] = load_settings(place.root).problems

    assert told(place) == [(code, file, problem.line, problem.column)]
    assert problem.file == file


def test_a_manifest_that_others_may_write(place: DiagnosedProject) -> None:
    file = place.write(place.home / ".llxprt" / "extensions" / "x" / "llxprt-extension.json", "{}", 0o666)

    [problem] = load_settings(place.root).problems
    [found] = place.diagnose()

    assert (found.code, found.file, found.message) == ("refused-settings", file, problem.message)


def test_only_what_hooks_need_is_checked_in_a_manifest(place: DiagnosedProject) -> None:
    manifest = '{ "name": "x", "mcpServers": { "a": 1, "a": 2 }, "hooks": { "Whenever": 7 }, "enableHooks": 7 }'
    file = place.write(place.home / ".llxprt" / "extensions" / "x" / "llxprt-extension.json", manifest)

    assert told(place) == []
    assert diagnose(inspect_file(file, place.root)) == []


def test_extensions_that_cannot_be_listed(place: DiagnosedProject) -> None:
    folder = place.home / ".llxprt" / "extensions"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(folder)

    [problem] = load_settings(place.root).problems
    [found] = place.diagnose()

    assert (found.code, found.file, found.message) == ("unreadable-file", folder, problem.message)


def test_an_extension_without_hooks(place: DiagnosedProject) -> None:
    file = place.extension("x", '{ "BeforeTool": [] }')

    assert [(code, at) for code, at, _, _ in told(place)] == [("missing-key", file), ("misplaced-key", file)]


def test_an_extension_cannot_switch_hooks(place: DiagnosedProject) -> None:
    file = place.extension("x", '{ "enableHooks": true, "hooks": {} }')

    assert told(place) == [("misplaced-key", file, 1, 3)]


def test_an_extension_whose_folder_could_be_read_as_code(place: DiagnosedProject) -> None:
    place.write(place.user_file, '{ "enableHooks": true }')
    marked = unmarked(extension("echo $(cat «${extensionPath}»/x)"))
    place.extension("my ext", marked.text)

    (found,) = place.diagnose()

    assert (found.code, span(found)) == ("unsafe-extension-path", marked.spans[0])


def test_a_file_in_the_settings_folder_belongs_to_the_project_around_it(place: DiagnosedProject) -> None:
    assert project_of(place.project_file) == place.root
    assert project_of(Path(".llxprt/../.llxprt/settings.json")) == place.root
    assert project_of(place.user_file) is None
    assert project_of(Path("settings.json")) is None


def test_relative_paths_of_the_user_are_explained(place: DiagnosedProject) -> None:
    place.write(place.user_file, CLEAN.replace('"true"', '"./check.sh"'))

    (found,) = place.diagnose()

    assert "write the full path" in found.fix


def test_a_folder_that_cannot_be_listed_is_not_an_extension(place: DiagnosedProject) -> None:
    place.write(place.home / ".llxprt" / "extensions", "")

    assert told(place) == []
    os.remove(place.home / ".llxprt" / "extensions")
