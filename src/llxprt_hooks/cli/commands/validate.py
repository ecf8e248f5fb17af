"""``llxprt-hooks validate``: find mistakes in settings files, and how to fix them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from llxprt_hooks._support.terminal import line, print_json, print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import escape_for_terminal, one_line, plural
from llxprt_hooks.cli.options import dialect_options, directory_option, json_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.integrations.unsupported import ASKS_FIRST, LIMITED, NOT_HONORED, UNSTREAMED, UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from llxprt_hooks.commands.validate import Diagnostic, Inspection
    from llxprt_hooks.commands.validate.starting import Starts

_COLORS: Final = {"error": "bold red", "warning": "bold yellow", "hint": "bold cyan"}
_MAX_EXCERPT: Final = 160
_NUMBER_WIDTH: Final = 4


@click.command("validate")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=False, path_type=Path))
@json_option
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="NAME",
    help="A tool of your agent that matchers may match, besides the known ones. Can be repeated.",
)
@click.option(
    "--for",
    "integration",
    type=click.Choice(sorted(UNSUPPORTED)),
    metavar="NAME",
    help=f"Where the hooks will be used: {', '.join(sorted(UNSUPPORTED))}. Finds events that never fire there.",
)
@click.option(
    "--start",
    is_flag=True,
    help="Start each command once, with an example event, to measure what `warm` saves. Only approved hooks.",
)
@click.option("--mcp", is_flag=True, help="Check what the MCP servers of the project say to models, not the settings.")
@click.option("--list", "as_list", is_flag=True, help="List everything that can be found, with examples and reasons.")
@dialect_options
@directory_option
@click.pass_context
def command(
    context: click.Context,
    file: Path | None,
    as_json: bool,
    strict: bool,
    tools: tuple[str, ...],
    integration: str | None,
    start: bool,
    mcp: bool,
    as_list: bool,
    directory: str,
) -> int:
    """Find mistakes and likely mistakes in hook settings, with location, reason and fix.

    Without FILE, checks all files that apply to the project: its own .llxprt/settings.json, the user's and the
    system's settings, and the hooks of the user's extensions. With FILE, checks only that file. A file in a folder
    .llxprt belongs to the project around it, unless -C names another. With --dialect, or if settings ask for it, also
    checks the files of that agent, by its own rules.

    With --mcp, checks what MCP servers behind `llxprt-hooks mcp-proxy --pin` offered last, and warns about orders to
    models, invisible characters and tools with the same name.

    No hook is run without --start: shells only check the syntax of commands and scripts (bash -n). To show what `warm`
    would save, Python runs an empty script.

    With --start, each command that an agent would run here is started once, as if it were warm, and gets an example
    event: it does all that it does for an event. The result is how long it takes cold and how long started ahead, and
    a warning if a warm command prints something, ends, or changes files of the project before it has its input.
    Hooks that are not approved, Python scripts, and hooks with "warm": false are not started. Takes Linux.

    Error: the setting cannot work, such as a misspelled event or a missing script. Warning: it may be intended, but
    probably is not, such as a timeout of 600 milliseconds, or hooks while hooks are off. Hint: the settings are fine,
    but there is something to know or to do; for example, the hooks are not approved. `llxprt-hooks list` shows which
    hooks run.

    Exit status: 0 without errors, 1 with errors (with --strict, with warnings too), 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks validate                              this project, and all files that apply to it
      llxprt-hooks validate .llxprt/settings.json        one file
      llxprt-hooks validate --strict --tool my_tool      in CI, for an agent with its own tool
      llxprt-hooks validate --dialect claude             also the project's .claude/settings.json, and yours
      llxprt-hooks validate --for mcp-proxy              for an MCP server, which has no model events
      llxprt-hooks validate --start                      what `warm` would save each hook
      llxprt-hooks validate --mcp                        what MCP servers say to models
      llxprt-hooks validate --list                       everything that can be found
      llxprt-hooks validate --json | jq -r '.diagnostics[] | "\\(.file):\\(.line): \\(.message)"'
    """
    from llxprt_hooks.commands.validate import diagnose, inspect_file, inspect_project, project_of

    if as_list:
        _list_rules()
        return ExitStatus.OK
    project = Path(directory)
    if mcp:
        if file is not None or start:
            raise click.UsageError(
                "use --mcp without a file or --start: it checks what the proxy has seen of MCP servers"
            )
        return _check_servers(project, as_json=as_json, strict=strict)
    if file is None:
        inspection = inspect_project(project, tools)
    else:
        given = context.get_parameter_source("directory") is not click.core.ParameterSource.DEFAULT
        inspection = inspect_file(file, project if given else project_of(file) or project, tools)
    if integration is not None:
        inspection = replace(
            inspection,
            unsupported=UNSUPPORTED[integration],
            limited=LIMITED.get(integration, {}),
            not_honored=NOT_HONORED[integration],
            unstreamed=UNSTREAMED.get(integration, ""),
            asks_first=integration in ASKS_FIRST,
        )
    started: Starts | None = None
    if start:
        started = _start(inspection, file)
        inspection = replace(inspection, others=(*inspection.others, *started.diagnostics))
    diagnostics = diagnose(inspection)
    counts = Counter(diagnostic.severity.value for diagnostic in diagnostics)
    if as_json:
        _print_json(inspection, diagnostics, counts, started)
    else:
        _print_text(inspection, diagnostics, counts, started)
    return ExitStatus.FAILED if counts["error"] or (strict and counts["warning"]) else ExitStatus.OK


def _list_rules() -> None:
    """Print every code with its severity, an example and why it matters."""
    from llxprt_hooks.commands.validate.rules import grouped_rules

    console = stdout_console()
    for title, rules in grouped_rules().items():
        print_line(console, (title, "bold"))
        for rule in rules:
            print_line(console, f"  {rule.code}: ", (rule.severity.value, _COLORS[rule.severity]))
            _print_advice(console, "for example: ", rule.example)
            _print_advice(console, "why: ", rule.why)


def _start(inspection: Inspection, file: Path | None) -> Starts:
    from llxprt_hooks.commands.validate.starting import start_hooks
    from llxprt_hooks.process.child import CAN_WAIT

    if not CAN_WAIT:
        raise click.UsageError("use --start on Linux: no command is started ahead on this system")
    refuse_below_agent("started", "Start")
    console = stderr_console()
    return start_hooks(
        inspection, file, lambda text: print_wrapped(console, f"starting {escape_for_terminal(one_line(text))}")
    )


def _check_servers(project: Path, *, as_json: bool, strict: bool) -> int:
    """Print what is suspicious about what the MCP servers of a project say to models."""
    from llxprt_hooks.commands.validate.mcp_servers import diagnose_servers

    servers, diagnostics = diagnose_servers(project)
    counts = Counter(diagnostic.severity.value for diagnostic in diagnostics)
    if as_json:
        number = {f"{each}s": counts[each] for each in _COLORS}
        print_json({"diagnostics": [each.to_dict() for each in diagnostics], "servers": servers, **number})
    else:
        console = stdout_console()
        for diagnostic in diagnostics:
            _print_diagnostic(console, diagnostic)
            console.print()
        found = f"{len(diagnostics)} {plural(len(diagnostics), 'warning')}" if diagnostics else "Nothing suspicious"
        names = escape_for_terminal(", ".join(servers))
        nothing = "No MCP server of this project has been seen yet: connect a client through `mcp-proxy --pin` once."
        print_wrapped(console, f"{found} in what these MCP servers offer: {names}." if servers else nothing)
    return ExitStatus.FAILED if counts["error"] or (strict and counts["warning"]) else ExitStatus.OK


def _print_json(
    inspection: Inspection, diagnostics: Sequence[Diagnostic], counts: Counter[str], started: Starts | None
) -> None:
    print_json(
        {
            "diagnostics": [diagnostic.to_dict() for diagnostic in diagnostics],
            "files": [str(file) for file in inspection.found],
            "errors": counts["error"],
            "warnings": counts["warning"],
            "hints": counts["hint"],
            "notices": _notices(inspection, started),
            "started": [each.to_dict() for each in started.hooks] if started else [],
        }
    )


def _print_text(
    inspection: Inspection, diagnostics: Sequence[Diagnostic], counts: Counter[str], started: Starts | None
) -> None:
    console = stdout_console()
    for diagnostic in diagnostics:
        _print_diagnostic(console, diagnostic)
        console.print()
    notices = _notices(inspection, started)
    for notice in notices:
        print_wrapped(console, (escape_for_terminal(notice), "yellow"))
    print_wrapped(console, _summary(inspection, counts, found_elsewhere=bool(notices)))


def _notices(inspection: Inspection, started: Starts | None) -> list[str]:
    """Return why hooks were not started, and why those of another folder do not apply to one without settings."""
    from llxprt_hooks.settings.levels import project_settings_file
    from llxprt_hooks.settings.trust.notices import hooks_elsewhere

    not_started = [] if started is None else list(started.not_started)
    if inspection.alone or project_settings_file(inspection.directory) in inspection.found:
        return not_started
    return [*not_started, *hooks_elsewhere(inspection.directory)]


def _print_diagnostic(console: Console, diagnostic: Diagnostic) -> None:
    from rich.cells import cell_len

    from llxprt_hooks.commands.validate.excerpt import excerpt

    color = _COLORS[diagnostic.severity]
    print_wrapped(
        console,
        (f"{_path(diagnostic.file)}:{diagnostic.line}:{diagnostic.column}: ", "bold"),
        (f"{diagnostic.severity}: ", color),
        escape_for_terminal(diagnostic.message),
        (f" [{diagnostic.code}]", "dim"),
    )
    if diagnostic.source is not None:
        number = f"{diagnostic.line:>{_NUMBER_WIDTH}}"
        before, meant, after = excerpt(diagnostic, max(10, min(console.width, _MAX_EXCERPT) - len(number) - 3))
        print_line(console, (f"{number} | ", "dim"), before, (meant, color), after)
        marks = " " * cell_len(before), ("^" * max(1, cell_len(meant)), color)
        print_line(console, (" " * len(number) + " | ", "dim"), *marks)
    _print_advice(console, "why: ", diagnostic.why)
    _print_advice(console, "fix: ", diagnostic.fix)


def _print_advice(console: Console, label: str, advice: str) -> None:
    """Print a label and a text with a hanging indent."""
    indent = " " * (_NUMBER_WIDTH + 3)
    width = max(10, console.width - len(indent) - len(label))
    for number, part in enumerate(line(escape_for_terminal(advice)).wrap(console, width)):
        print_line(console, indent, (label if number == 0 else " " * len(label), "dim"), part.plain.rstrip())


def _path(file: Path) -> str:
    here = Path.cwd()
    return escape_for_terminal(str(file.relative_to(here) if file.is_relative_to(here) else file))


def _summary(inspection: Inspection, counts: Counter[str], *, found_elsewhere: bool) -> str:
    if not inspection.found:
        places = ", ".join(map(_path, inspection.looked_for))
        advice = "" if counts or found_elsewhere else " Run `llxprt-hooks init` to create a first hook."
        return f"No settings file found. Looked for {places}.{advice}"
    files = ", ".join(map(_path, inspection.found))
    if not counts:
        return f"No problems found in {files}."
    *first, last = [f"{counts[each]} {plural(counts[each], each)}" for each in _COLORS if counts[each]]
    return f"Found {' and '.join(filter(None, (', '.join(first), last)))}; checked {files}."
