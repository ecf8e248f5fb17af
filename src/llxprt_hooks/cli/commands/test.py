"""``llxprt-hooks test``: run the tests for hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_json, print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import PROSE, escape_for_terminal, one_line, plural
from llxprt_hooks.cli.options import dialect_options, directory_option, json_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.fire import LoadedHooks
from llxprt_hooks.commands.test.coverage import HookCoverage, coverage
from llxprt_hooks.commands.test.files import SUFFIX, HookTestFileError, find_tests, project_tests, read_tests, recorded
from llxprt_hooks.commands.test.run import HookTest, TestResult, run_test
from llxprt_hooks.settings import write_atomically
from llxprt_hooks.settings.trust.status import TrustState, trust_status

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.settings.problem import Problem


@click.command("test")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]...")
@json_option
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write JUnit XML.")
@click.option("--update", is_flag=True, help="Write what hooks decide now to the test files, as the expected result.")
@click.option("--coverage", "shows_coverage", is_flag=True, help="Also list what no test of a hook has seen.")
@dialect_options
@directory_option
def command(
    paths: tuple[Path, ...], as_json: bool, junit: Path | None, update: bool, shows_coverage: bool, directory: str
) -> int:
    """Run the tests for hooks: files that end in .hooktest.json.

    Each test fires an event at the hooks of the project, for real, and compares their decision with the expected
    result. PATH is a test file, or a folder with test files. Without PATH, the command runs the test files below
    .llxprt and in the folders of hook scripts. Hooks that are not approved do not run, and their tests fail.

    \b
    A test file has one test, or a list of tests. Comments are allowed:
      {
        "name": "blocks writes to .env",
        "event": "BeforeTool",
        "input": { "tool_name": "write_file", "tool_input": { "file_path": ".env" } },
        "expect": { "decision": "block", "reason": { "contains": ".env" } }
      }

    A decision is block (or deny), stop, ask, allow, or none: no hook has an opinion. "hook" is the name of the only
    hook to run. "env" sets environment variables. It works only in approved files, such as those below .llxprt.

    With --coverage, the command also lists the hooks that no test runs, and those that were never seen to refuse
    anything, or to let anything pass, and the tools of `hooksConfig.tools` that a matcher selects and no test calls.
    Only tests that passed count.

    Exit status: 0 if all tests passed; 1 if a test failed, a file is broken, or there are no tests; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks test
      llxprt-hooks test .llxprt/hooks/guard.hooktest.json --update
      LLXPRT_TRUST_PROJECT_HOOKS=1 llxprt-hooks test --junit hooks.xml      in CI
    """
    if update:
        refuse_below_agent()
    hooks = LoadedHooks.load_unrecorded(directory)
    files = find_tests(paths) if paths else project_tests(hooks)
    if not files:
        where = ", ".join(map(str, paths)) if paths else f"{directory}/.llxprt, or beside the scripts of hooks"
        raise click.ClickException(
            f"there are no tests: no file ends in {SUFFIX} in {where}. A recipe has some: llxprt-hooks init"
        )
    tests, broken = _read(files)
    results = asyncio.run(_run(hooks, tests))
    reached = coverage(hooks, results)
    if as_json:
        _print_json(results, broken, reached)
    else:
        _print_results(results, broken, update=update)
        if shows_coverage:
            _print_coverage(reached)
        settings = hooks.config.settings
        for warning in (*hooks.registry.problems, *settings.warnings) if settings else ():
            print_wrapped(stderr_console(), (str(warning), "yellow"))
    if junit:
        _write_junit(junit, results, broken)
    if update:
        _update(results, hooks)
    passed = all(result.passed or (update and result.can_be_recorded) for result in results)
    return ExitStatus.OK if passed and not broken else ExitStatus.FAILED


def _read(files: Sequence[Path]) -> tuple[list[HookTest], list[Problem]]:
    tests: list[HookTest] = []
    broken: list[Problem] = []
    for file in files:
        try:
            tests += read_tests(file)
        except HookTestFileError as error:
            broken += error.problems
    return tests, broken


async def _run(hooks: LoadedHooks, tests: Sequence[HookTest]) -> list[TestResult]:
    """Run one test after the other: hooks may share files."""
    return [await run_test(hooks, test) for test in tests]


def _print_json(results: Sequence[TestResult], broken: Sequence[Problem], reached: Sequence[HookCoverage]) -> None:
    passed = sum(result.passed for result in results)
    print_json(
        {
            "passed": passed,
            "failed": len(results) - passed,
            "errors": [str(problem) for problem in broken],
            "tests": [result.to_dict() for result in results],
            "coverage": [each.to_dict() for each in reached],
        }
    )


def _print_coverage(reached: Sequence[HookCoverage]) -> None:
    console = stdout_console()
    complete = sum(not each.untested for each in reached)
    print_line(console)
    print_line(console, (f"{complete} of {len(reached)} {plural(len(reached), 'hook')} tested both ways", "bold"))
    for each in reached:
        if each.untested:
            print_wrapped(console, f"  {one_line(each.hook)} ({each.event}): {' and '.join(each.untested)}")


def _print_results(results: Sequence[TestResult], broken: Sequence[Problem], *, update: bool) -> None:
    console = stdout_console()
    errors = "errors" if len(broken) > 1 else "error"
    counts = {"failed": 0, errors: len(broken), "recorded": 0, "passed": 0}
    file = None
    for result in results:
        if result.test.file != file:
            file = result.test.file
            print_line(console, (_shown(file), "bold"))
        state = "passed" if result.passed else "recorded" if update and result.can_be_recorded else "failed"
        counts[state] += 1
        _print_result(console, result, state)
    for problem in broken:
        print_wrapped(stderr_console(), ("error", "red bold"), f": {problem}")
    parts = [(f"{count} {state}", _STYLES.get(state, "red bold")) for state, count in counts.items() if count]
    print_line(console, *[part for counted in parts for part in (counted, ", ")][:-1])


_STYLES = {"failed": "red bold", "recorded": "yellow bold", "passed": "green"}


def _print_result(console: Console, result: TestResult, state: str) -> None:
    test = result.test
    name, time = one_line(test.name), (f"  {result.run.duration:.1f} ms", "dim")
    print_line(console, (f"  {state:<8}  ", _STYLES[state]), name, time)
    if state == "passed":
        return
    hooks = f", hooks: {', '.join(map(one_line, result.run.hooks))}" if result.run.hooks else ""
    print_line(console, (f"            line {test.line}, {test.event}{hooks}", "dim"))
    for problem in result.problems if state == "failed" else ():
        print_wrapped(console, f"            {problem}")
    styles = {"-": "red", "+": "green"}
    for difference in result.difference():
        print_line(console, (f"            {difference}", styles.get(difference[0], "")))
    if result.mismatches:
        print_line(console, ("            - expected, + decided by the hooks", "dim"))


def _shown(file: Path) -> str:
    here = Path.cwd()
    path = file.absolute()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _update(results: Sequence[TestResult], hooks: LoadedHooks) -> None:
    for file in dict.fromkeys(result.test.file for result in results):
        in_file = [result for result in results if result.test.file == file]
        changed = [result for result in in_file if result.can_be_recorded]
        if changed:
            text = file.read_bytes().decode()
            write_atomically(file, recorded(text, in_file))
            click.echo(f"{_shown(file)}: recorded {len(changed)} {plural(len(changed), 'test')}", err=True)
    settings = hooks.config.settings
    was_approved = settings is not None and settings.trust.state is TrustState.TRUSTED
    if was_approved and trust_status(hooks.config.working_dir).state is not TrustState.TRUSTED:
        click.echo(
            "The files below .llxprt are part of what you approved. Approve the recorded tests: llxprt-hooks trust",
            err=True,
        )


def _write_junit(target: Path, results: Sequence[TestResult], broken: Sequence[Problem]) -> None:
    from xml.etree import ElementTree as Xml

    def text(given: str) -> str:  # XML cannot have control characters at all
        return escape_for_terminal(given, keep=PROSE)

    failed = sum(not result.passed for result in results)
    counts = {"tests": len(results) + len(broken), "failures": failed, "errors": len(broken)}
    seconds = sum(result.run.duration for result in results) / 1000
    attributes = {"name": "llxprt-hooks", **{name: str(count) for name, count in counts.items()}}
    suite = Xml.Element("testsuite", attributes, time=f"{seconds:.3f}")
    for result in results:
        test = result.test
        where = {
            "classname": text(_shown(test.file)),
            "name": text(test.name),
            "time": f"{result.run.duration / 1000:.3f}",
        }
        case = Xml.SubElement(suite, "testcase", {**where, "file": text(_shown(test.file)), "line": str(test.line)})
        if not result.passed:
            failure = Xml.SubElement(case, "failure", message=text("; ".join(result.problems)))
            failure.text = text("\n".join([*result.problems, *result.difference()]))
    for problem in broken:
        case = Xml.SubElement(suite, "testcase", classname=text(_shown(problem.file or Path())), name="can be read")
        Xml.SubElement(case, "error", message=text(str(problem)))
    Xml.indent(suite)
    Xml.ElementTree(suite).write(target, encoding="utf-8", xml_declaration=True)
