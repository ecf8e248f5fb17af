"""What is found about hooks among others, within a file and between levels."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from llxprt_hooks.commands.validate import diagnose, inspect_project
from llxprt_hooks.events import HookEventName
from tests.commands.validate.marks import DiagnosedProject, settings, span, unmarked

if TYPE_CHECKING:
    from llxprt_hooks.commands.validate import Diagnostic


def hook(command: str = "true", **fields: object) -> str:
    return json.dumps({"type": "command", "command": command, **fields})


def told(found: list[Diagnostic]) -> list[tuple[str, tuple[int, int, int, int]]]:
    return [(each.code, span(each)) for each in found]


def test_a_command_that_runs_already(place: DiagnosedProject) -> None:
    second = '{ "type": "command", "command": «"true"» }'
    marked = unmarked(settings(f'"BeforeTool": [{{ "hooks": [\n{hook()},\n{second}] }}]'))

    found = place.diagnose_text(marked.text)

    assert told(found) == [("duplicate-command", marked.spans[0])]
    assert "line 5" in found[0].message


def test_a_group_without_runnable_hooks(place: DiagnosedProject) -> None:
    first = f'{{ "hooks": [{hook("a=1")}, {hook("b=1")}] }}'
    marked = unmarked(
        settings(f'"BeforeTool": [{first},\n«{{ "matcher": "glob", "hooks": [{hook("b=1")}, {hook("a=1")}] }}»]')
    )

    found = place.diagnose_text(marked.text)

    assert told(found) == [("unreachable-group", marked.spans[0])]
    assert "`b=1` already runs, from line 4" in found[0].message


def test_an_event_that_never_fires_where_hooks_are_used(place: DiagnosedProject) -> None:
    marked = unmarked(settings(f'«"BeforeModel"»: [{{ "hooks": [{hook()}] }}], "AfterAgent": []'))
    place.write(place.project_file, marked.text)
    place.approve()
    unsupported = {HookEventName.BEFORE_MODEL: "there is no model", HookEventName.AFTER_AGENT: "no agent"}

    found = diagnose(replace(inspect_project(place.root), unsupported=unsupported))

    assert told(found) == [("unsupported-event", marked.spans[0])]
    assert found[0].message == "hooks for BeforeModel will not run: there is no model"


def test_hooks_that_never_run_are_not_said_to_match_no_tool_as_well(place: DiagnosedProject) -> None:
    text = settings(f'«"BeforeTool"»: [{{ "matcher": "^my_own_tool$", "hooks": [{hook()}] }}]')
    marked = unmarked(text)
    place.write(place.project_file, marked.text)
    place.approve()

    found = diagnose(replace(inspect_project(place.root), unsupported={HookEventName.BEFORE_TOOL: "it sees no tools"}))

    assert told(found) == [("unsupported-event", marked.spans[0])]


def test_an_event_whose_effects_are_lost_where_hooks_act(place: DiagnosedProject) -> None:
    text = settings(f'«"AfterAgent"»: [{{ "hooks": [{hook()}] }}]')
    marked = unmarked(text.replace("{", '{ "hooksConfig": { "profile": "full" },', 1))
    place.write(place.project_file, marked.text)
    place.approve()

    found = diagnose(replace(inspect_project(place.root), not_honored={HookEventName.AFTER_AGENT: "it has ended"}))

    assert told(found) == [("lost-effect", marked.spans[0])]
    assert found[0].message == "some effects of AfterAgent hooks are not available: it has ended"


def test_the_same_command_for_other_tools_is_not_a_duplicate(place: DiagnosedProject) -> None:
    groups = [f'{{ "matcher": "{matcher}", "hooks": [{hook()}] }}' for matcher in ("^glob$", "^replace$", "*")]
    text = settings(f'"BeforeTool": [{", ".join(groups)}]')

    assert place.diagnose_text(text) == []


def test_the_same_command_for_an_unknown_tool_is_one(place: DiagnosedProject) -> None:
    group = f'{{ "matcher": "mcp__x", "hooks": [{hook()}] }}'

    assert [each.code for each in place.diagnose_text(settings(f'"BeforeTool": [{group}, {group}]'))] == [
        "unreachable-group"
    ]


def test_the_same_command_for_another_event_is_not_a_duplicate(place: DiagnosedProject) -> None:
    group = f'{{ "hooks": [{hook()}] }}'

    assert place.diagnose_text(settings(f'"BeforeTool": [{group}], "AfterTool": [{group}]')) == []


def test_a_command_of_the_user_that_the_project_has_already(place: DiagnosedProject) -> None:
    text = settings(f'"BeforeTool": [{{ "hooks": [{hook()}] }}]')
    place.write(place.project_file, text)
    place.write(place.user_file, text)

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("unreachable-group", place.user_file)
    assert f"{place.project_file}:4" in found.message


def test_a_hook_that_is_switched_off(place: DiagnosedProject) -> None:
    marked = unmarked(
        settings('"BeforeTool": [{ "hooks": [{ "type": "command", "command": "true", "name": «"lint"» }] }]')
    )
    place.write(place.project_file, marked.text)
    place.write(place.user_file, '{\n  "hooksConfig": { "disabled": ["lint"] }\n}')

    found = place.diagnose()

    assert told(found) == [("disabled-hook", marked.spans[0])]
    assert f"{place.user_file}:2" in found[0].message


def test_a_hook_that_is_switched_off_hides_no_other(place: DiagnosedProject) -> None:
    text = settings(f'"BeforeTool": [{{ "hooks": [{hook(name="a")}, {hook(name="b")}] }}]')
    place.write(
        place.project_file, text.replace('"enableHooks"', '"hooksConfig": { "disabled": ["a"] }, "enableHooks"')
    )

    assert [each.code for each in place.diagnose()] == ["disabled-hook"]


def test_a_name_that_no_hook_has(place: DiagnosedProject) -> None:
    marked = unmarked('{\n  "hooksConfig": { "disabled": [«"lint"»] }\n}')
    place.write(place.user_file, marked.text)

    assert told(place.diagnose()) == [("unknown-disabled-hook", marked.spans[0])]


def test_a_hook_that_has_a_name_is_not_switched_off_by_its_command(place: DiagnosedProject) -> None:
    text = settings(f'"BeforeTool": [{{ "hooks": [{hook("ls", name="lint")}] }}]')

    (found,) = place.diagnose_text(text.replace("{\n", '{ "hooksConfig": { "disabled": ["ls"] },\n', 1))

    assert (found.code, found.fix) == ("unknown-disabled-hook", "Did you mean `lint`?")


def test_two_hooks_of_one_name(place: DiagnosedProject) -> None:
    marked = unmarked(
        settings(
            f'"BeforeTool": [{{ "hooks": [{hook("a=1", name="x")},\n'
            '{ "type": "command", "command": "b=1", "name": «"x"» }] }]'
        )
    )

    assert told(place.diagnose_text(marked.text)) == [("duplicate-name", marked.spans[0])]


def test_a_sequential_group_that_draws_others_in(place: DiagnosedProject) -> None:
    marked = unmarked(
        settings(
            f'"BeforeTool": [{{ "matcher": "glob", "hooks": [{hook("a=1")}] }},\n'
            f'{{ "sequential": «true», "hooks": [{hook("b=1")}] }}]'
        )
    )

    found = place.diagnose_text(marked.text)

    assert told(found) == [("sequential-escalation", marked.spans[0])]
    assert "line 4" in found[0].message


def test_a_sequential_group_among_others_for_other_tools(place: DiagnosedProject) -> None:
    text = settings(
        f'"BeforeTool": [{{ "matcher": "glob", "hooks": [{hook("a=1")}] }},'
        f'{{ "matcher": "replace", "sequential": true, "hooks": [{hook("b=1")}, {hook("c=1")}] }}]'
    )

    assert place.diagnose_text(text) == []


def test_a_sequential_group_of_the_users_draws_the_projects_hooks_in(place: DiagnosedProject) -> None:
    place.write(place.project_file, settings(f'"BeforeTool": [{{ "hooks": [{hook("a=1")}] }}]'))
    place.write(place.user_file, settings(f'"BeforeTool": [{{ "sequential": true, "hooks": [{hook("b=1")}] }}]'))

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("sequential-escalation", place.user_file)
