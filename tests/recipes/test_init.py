"""``llxprt-hooks init``: what is copied, what is kept, and what is asked."""

from __future__ import annotations

import io
import json
import sysconfig
from pathlib import Path

import jsonschema
import pexpect
import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.cli.main import run_command_line
from llxprt_hooks.commands.validate import settings_schema
from llxprt_hooks.recipes import FIRST_HOOK, NAMES, ROLES
from llxprt_hooks.settings import parse
from llxprt_hooks.settings.matcher import compile_matcher
from tests.recipes.project import RecipeProject, mode_of
from tests.support.processes import DEADLINE

COMMAND = str(Path(sysconfig.get_path("scripts")) / "llxprt-hooks")


def init(*arguments: str) -> int:
    return run_command_line(["init", *arguments])


def settings_of(bench: RecipeProject) -> Path:
    return bench.root / ".llxprt" / "settings.json"


async def test_in_an_empty_folder_it_makes_a_hook_that_works(
    bench: RecipeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(bench.root)

    assert init() == 0

    printed = capsys.readouterr()
    assert "llxprt-hooks trust" in printed.out
    assert (
        """llxprt-hooks fire BeforeTool --tool write_file --args '{"file_path": ".env", "content": "x"}'"""
        in printed.out
    )
    assert "\x1b" not in printed.out
    assert printed.err == ""
    assert mode_of(bench.root / ".llxprt" / "hooks" / "first_hook.py") == 0o755
    assert mode_of(settings_of(bench)) == 0o644
    assert await bench.verdict("write_file", file_path=".env", content="x") is not None


def test_settings_that_are_there_are_kept_with_their_comments(bench: RecipeProject) -> None:
    before = """{
    // how I like it
    "theme": "dark", /* at night */
    "hooks": {
        "BeforeTool": [
            // mine
            { "hooks": [{ "type": "command", "command": "./mine.sh" }] },
        ],
    },
}
"""
    bench.write(".llxprt/settings.json", before)

    bench.init("git-checkpoint")

    after = settings_of(bench).read_text()
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    value = parse(after).to_value()
    assert value["theme"] == "dark"
    assert value["enableHooks"] is True
    assert [group["hooks"][0].get("name") for group in value["hooks"]["BeforeTool"]] == [None, "git-checkpoint"]


def test_running_it_again_changes_nothing(bench: RecipeProject, capsys: pytest.CaptureFixture[str]) -> None:
    bench.init(*NAMES)
    first = {file: file.read_bytes() for file in bench.root.rglob("*") if file.is_file()}

    bench.init(*NAMES)

    assert {file: file.read_bytes() for file in bench.root.rglob("*") if file.is_file()} == first
    assert "unchanged" in capsys.readouterr().out


def test_new_settings_name_their_schema(bench: RecipeProject) -> None:
    init("-C", str(bench.root))

    settings = json.loads(settings_of(bench).read_text())
    schema = json.loads((settings_of(bench).parent / settings["$schema"]).read_text())
    assert schema == settings_schema()
    jsonschema.validate(settings, schema)


def test_settings_that_are_there_get_no_schema(bench: RecipeProject) -> None:
    bench.write(".llxprt/settings.json", "{}")

    init("-C", str(bench.root))

    assert "$schema" not in settings_of(bench).read_text()
    assert not (settings_of(bench).parent / "state" / "settings.schema.json").exists()


@pytest.mark.parametrize("name", [FIRST_HOOK, *NAMES])
def test_every_recipe_treats_named_tools_like_its_own_also_if_it_is_installed(name: str, bench: RecipeProject) -> None:
    tools = {"write": ["edit", "mcp__files.put"], "shell": ["bash", "sandbox"], "read": ["view"]}
    bench.init(name)
    plain = json.loads(settings_of(bench).read_text())["hooks"]
    named = ",".join(f"{role}={tool}" for role in tools for tool in tools[role])
    assert init(name, "--tools", named, "-C", str(bench.root)) == 0
    adapted = json.loads(settings_of(bench).read_text())["hooks"]

    assert plain.keys() == adapted.keys()
    for event in [event for event in plain if HookEventName(event).spec.is_about_tool]:
        for before, after in zip(plain[event], adapted[event], strict=True):
            assert {**before, "matcher": None} == {**after, "matcher": None}
            was, now = (compile_matcher(HookEventName(event), each.get("matcher")) for each in (before, after))
            for role, known in ROLES.items():
                assert [now(tool) for tool in known] == [was(tool) for tool in known]
                assert {now(tool) for tool in tools[role]} == {was(known[0])}
            assert now("other") == was("other")


TOOLS_PRINTED = {
    "first-hook": ("  first-hook  write_file, replace\n", "init --tools write=NAME "),
    "dangerous-commands": (
        "run_shell_command, shell, bash, sh, run, run_command, execute_command, terminal, python and similar names\n",
        "init dangerous-commands --tools shell=NAME ",
    ),
    "git-checkpoint": ("write_file, replace, run_shell_command\n", "git-checkpoint --tools write=NAME,shell=NAME "),
    "secret-scanning": (
        "all tools except read_file, read_many_files,",
        "secret-scanning --tools read=NAME   # for tools that only read,",
    ),
    "protected-files": ("  protected-files  all tools\n", ""),
    "egress": ("all tools except write_file, replace, read_file,", "init egress --tools write=NAME,read=NAME "),
}


@pytest.mark.parametrize("name", TOOLS_PRINTED)
def test_it_prints_for_which_tools_the_hooks_run_and_how_to_name_others(
    name: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init(name, "-C", str(bench.root))

    tools, command = TOOLS_PRINTED[name]
    printed = capsys.readouterr().out
    assert tools in printed
    assert command in printed
    assert ("--tools" in printed) == bool(command)


def test_it_prints_nothing_about_tools_for_hooks_that_do_not_run_for_tools(
    bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init("pii-redaction", "-C", str(bench.root))

    assert "ools" not in capsys.readouterr().out


@pytest.mark.parametrize(("matcher", "printed"), [("^mine$", "mine"), ("^m[ai]ne$", "those that match ^m[ai]ne$")])
def test_the_tools_printed_are_those_of_the_settings(
    matcher: str, printed: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init("dangerous-commands", "-C", str(bench.root))
    settings = json.loads(settings_of(bench).read_text())
    settings["hooks"]["BeforeTool"][0]["matcher"] = matcher
    settings_of(bench).write_text(json.dumps(settings))
    capsys.readouterr()

    init("dangerous-commands", "-C", str(bench.root))

    assert f"  dangerous-commands  {printed}\n" in capsys.readouterr().out
    assert f'"matcher": "{matcher}"' in settings_of(bench).read_text()


@pytest.mark.parametrize(
    ("recipe", "tools", "printed"),
    [
        ("dangerous-commands", "shell=sandbox,shell=a.b", "terminal, python and similar names, and sandbox, a.b\n"),
        ("git-checkpoint", "shell=shell", "write_file, replace, run_shell_command, shell\n"),
        ("secret-scanning", "read=view", "glob, search_file_content, view\n"),
    ],
)
def test_tools_that_were_added_before_are_printed_too(
    recipe: str, tools: str, printed: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init(recipe, "--tools", tools, "-C", str(bench.root))
    assert printed in capsys.readouterr().out

    init(recipe, "-C", str(bench.root))
    assert printed in capsys.readouterr().out


@pytest.mark.parametrize(
    ("recipes", "tools", "message"),
    [
        (["dangerous-commands"], "write=foo", "dangerous-commands has no matcher for `write`: `foo` is not added\n"),
        (["git-context"], "write=foo", "git-context has no matcher for `write`: `foo` is not added\n"),
        (
            ["dangerous-commands", "git-context"],
            "shell=box,read=view",
            "these recipes have no matcher for `read`: `view` is not added\n",
        ),
        (["dangerous-commands", "test-first"], "write=foo", ""),
        (["protected-files"], "write=foo", ""),
        (["secret-scanning"], "read=view", ""),
    ],
)
def test_a_tool_that_no_recipe_has_a_matcher_for_is_reported(
    recipes: list[str], tools: str, message: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(*recipes, "--tools", tools, "-C", str(bench.root)) == 0

    assert capsys.readouterr().err == message


def test_for_many_recipes_the_command_that_names_tools_is_short(
    bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init("test-first", "git-checkpoint", "dangerous-commands", "format-on-write", "-C", str(bench.root))

    assert "  llxprt-hooks init RECIPE --tools write=NAME,shell=NAME   # for" in capsys.readouterr().out


async def test_recipes_work_for_tools_of_other_names(bench: RecipeProject) -> None:
    assert init("--tools", "write=edit, write=put.file", "-C", str(bench.root)) == 0

    assert await bench.verdict("edit", file_path=".env", content="x") is not None
    assert await bench.verdict("put.file", file_path=".env", content="x") is not None
    assert await bench.verdict("put_file", file_path=".env", content="x") is None


def test_several_are_put_in_the_order_in_which_they_should_run(bench: RecipeProject) -> None:
    bench.init("response-cache", "git-context", "text-only-caveat")

    groups = json.loads(settings_of(bench).read_text())["hooks"]["BeforeModel"]
    names = [hook["name"] for group in groups for hook in group["hooks"]]
    assert names == ["text-only-caveat", "git-context", "response-cache"]


@pytest.mark.parametrize("text", ['{"enableHooks": false}', '{"tools": {"enableHooks": false}}'])
def test_hooks_that_the_user_has_turned_off_stay_off(
    text: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.write(".llxprt/settings.json", text)

    bench.init()

    value = json.loads(settings_of(bench).read_text())
    assert value.get("enableHooks") is not True
    assert 'To run them, set "enableHooks": true' in capsys.readouterr().err


@pytest.mark.parametrize("level", ["project", "user"])
def test_a_recipe_that_is_switched_off_stays_off(
    level: str, bench: RecipeProject, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = (bench.root if level == "project" else home) / ".llxprt" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"hooksConfig": {"disabled": ["chain-2-header", "else"]}}')

    bench.init("sequential-chain", "cost-cap")

    assert capsys.readouterr().err == (
        "chain-2-header is disabled in hooksConfig.disabled; this was not changed. "
        "Run: llxprt-hooks enable chain-2-header\n"
    )
    assert run_command_line(["enable", "chain-2-header", "-C", str(bench.root)]) == 0
    capsys.readouterr()

    bench.init("sequential-chain")

    assert capsys.readouterr().err == ""


def test_a_settings_file_that_others_may_write_is_pointed_out(
    bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.write(".llxprt/settings.json", "{}").chmod(0o666)

    bench.init()

    assert ".llxprt/settings.json is ignored until this is fixed: group or others may write" in capsys.readouterr().err


def test_a_changed_script_is_not_overwritten_where_nobody_can_be_asked(
    bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = bench.write(".llxprt/hooks/cost_cap.py", "# mine\n")

    assert init("cost-cap", "-C", str(bench.root)) == 1
    assert mine.read_text() == "# mine\n"
    assert not settings_of(bench).exists()
    assert "Nothing was written. Overwrite with --force" in capsys.readouterr().err

    assert init("cost-cap", "--force", "-C", str(bench.root)) == 0
    assert "A budget for each session" in mine.read_text()


def test_a_script_that_lost_its_permission_gets_it_back(bench: RecipeProject) -> None:
    bench.init()
    script = bench.root / ".llxprt" / "hooks" / "first_hook.py"
    script.chmod(0o644)

    bench.init()

    assert mode_of(script) == 0o755


@pytest.mark.parametrize(("answers", "kept"), [("n", True), ("y", False), ("dn", True), ("dy", False)])
def test_on_a_terminal_it_asks(answers: str, kept: bool, bench: RecipeProject) -> None:
    mine = bench.write(".llxprt/hooks/first_hook.py", "# mine\n")
    screen = io.StringIO()
    child = pexpect.spawn(
        COMMAND, ["init"], cwd=str(bench.root), encoding="utf-8", timeout=DEADLINE, dimensions=(40, 100)
    )
    child.logfile_read = screen
    try:
        for answer in answers:
            child.expect("Overwrite it?")
            child.sendline(answer)
        child.read()
    finally:
        child.close()

    assert child.exitstatus == 0
    assert ("-# mine" in screen.getvalue()) is answers.startswith("d")
    assert (mine.read_text() == "# mine\n") is kept
    assert "first_hook.py" in settings_of(bench).read_text()


def test_the_list_has_a_line_for_each_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert init("--list") == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)


def test_one_recipe_can_be_read_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert init("--list", "cost-cap") == 0

    printed = capsys.readouterr().out
    assert "COST_CAP_TOKENS" in printed
    assert "Needs: python3." in printed
    assert "**" not in printed
    assert "`" not in printed
    assert not any(line.endswith(" ") or len(line) > 120 for line in printed.partition("To try it")[0].splitlines())
    assert "  llxprt-hooks fire AfterModel --input @.llxprt/hooks/samples/cost-cap.json\n    # tells" in printed


WRONG = {
    "unknown recipe": (["secret-scaning"], 64, "There is no recipe `secret-scaning`, did you mean `secret-scanning`?"),
    "unknown option": (["--wrong"], 64, "No such option"),
    "unknown role": (["--tools", "wrote=edit"], 64, "with a role of write, shell, read, found 'wrote=edit'"),
    "role without a name": (["--tools", "write=edit,shell"], 64, "found 'shell'"),
    "no such folder": (["-C", "/no/such/folder"], 64, "does not exist"),
}


@pytest.mark.parametrize(("arguments", "status", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage(arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(*arguments) == status
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"hooks": ', "the settings cannot be read"), ('{"hooks": []}', "`hooks` must be an object, found an array")],
)
def test_settings_that_cannot_be_edited_are_left_alone(
    text: str, message: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bench.write(".llxprt/settings.json", text)

    assert init("-C", str(bench.root)) == 1

    assert message in capsys.readouterr().err
    assert file.read_text() == text
    assert list(bench.root.rglob("*.py")) == []


def test_the_home_folder_is_not_a_project(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init("-C", str(home)) == 1
    message = capsys.readouterr().err
    assert "is the home folder, not a project" in message
    assert "for all your projects with --user" in message


@pytest.mark.parametrize(
    "link",
    [
        ".llxprt",
        ".llxprt/hooks",
        ".llxprt/hooks/first_hook.py",
        ".llxprt/settings.json",
        ".llxprt/state",
        ".llxprt/state/settings.schema.json",
    ],
)
def test_a_link_out_of_the_project_is_not_followed(
    link: str, bench: RecipeProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    if Path(link).suffix:
        outside.write_text("{}")
    else:
        outside.mkdir()
    path = bench.root / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)

    assert init("--force", "-C", str(bench.root)) == 1

    assert "outside the project" in capsys.readouterr().err
    assert outside.read_text() == "{}" if outside.is_file() else list(outside.iterdir()) == []


def test_settings_that_are_a_link_could_not_be_approved(
    bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = bench.root / ".llxprt" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    (bench.root / "real.json").write_text("{}")
    settings.symlink_to(bench.root / "real.json")

    assert init("-C", str(bench.root)) == 1

    assert "hooks in a linked file cannot be approved" in capsys.readouterr().err
    assert (bench.root / "real.json").read_text() == "{}"


def test_the_names_of_recipes_are_completed(bench: RecipeProject) -> None:
    from llxprt_hooks.cli.commands.init import command

    parameter = next(each for each in command.params if each.name == "recipes")
    completions = parameter.shell_complete(command.make_context("init", []), "git-")

    assert [each.value for each in completions] == ["git-checkpoint", "git-context"]


@pytest.mark.parametrize("tool", ["bash", "execute_command", "edit"])
def test_validate_finds_nothing_in_recipes_for_other_tools(
    tool: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    init("dangerous-commands", "git-checkpoint", "--tools", f"shell={tool}", "-C", str(bench.root))
    capsys.readouterr()

    assert run_command_line(["validate", "--tool", tool, "-C", str(bench.root)]) == 0

    assert "matcher" not in capsys.readouterr().out


@pytest.mark.parametrize(("there", "after"), [("", "full"), ("full", "full"), ("standard", "standard")])
def test_recipes_that_act_set_the_profile_unless_the_settings_have_one(
    there: str, after: str, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    if there:
        bench.write(".llxprt/settings.json", {"hooksConfig": {"profile": there}})
    assert init("-C", str(bench.root), "ask-before-deploy") == 0

    printed = capsys.readouterr()
    assert json.loads(settings_of(bench).read_text())["hooksConfig"] == {"profile": after}
    assert ("profile set to full" in printed.out) == (not there)
    assert ("has no effect" in printed.err) == (after != "full")
