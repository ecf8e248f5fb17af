"""``llxprt-hooks log``: show which hooks ran, what they decided and how long they took."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.terminal import (
    SHORT_ID,
    Part,
    aligned,
    fits,
    line,
    print_json,
    print_line,
    print_wrapped,
    stderr_console,
    stdout_console,
)
from llxprt_hooks._support.text import closest, indented_json, one_line, shorten
from llxprt_hooks.cli.audit_stream import KEYGEN, VERIFY, audit_stream, make_key, verify_chains
from llxprt_hooks.cli.options import (
    all_projects_option,
    audit_options,
    filter_options,
    json_option,
    project_option,
)
from llxprt_hooks.commands.fire import because
from llxprt_hooks.commands.log import (
    LogFilter,
    LogReader,
    answer_details,
    answer_word,
    blocked_word,
    is_answer,
    observed_decision,
    read_log,
    recorded_duration,
    recorded_time,
)
from llxprt_hooks.core.protocol.caller import CALLER_FIELDS
from llxprt_hooks.fleet.audit.log import log_file

if TYPE_CHECKING:
    from rich.console import Console

MAX_COLUMN = 28
MAX_NAME = 12
"""Columns, so that a line fits a terminal of 80 with a hook's name."""

NOT_IN_STREAM = "the stream has no such execution"

SEVERAL = 2
"""Sessions are told apart from this number on."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

A_SECOND = 1_000
A_MINUTE = 60_000
"""In milliseconds; longer durations are shown in seconds."""

_ANSWER_STYLES = {"approved": "green", "denied": "red"}

Record = dict[str, Any]


@click.command("log")
@click.argument("execution", required=False, metavar="[ID]")
@click.argument("file", required=False, type=click.Path(dir_okay=False), metavar="[FILE]")
@click.option("--follow", "-f", is_flag=True, help="Keep printing executions as they happen, until Ctrl-C.")
@filter_options
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    metavar="N",
    default=20,
    show_default=True,
    help="The number of latest executions to show; with --follow, 0 shows only new ones.",
)
@click.option("--key", metavar="PUBLIC", help="With `verify`: the public key that every record must be signed with.")
@click.option("--allow-open", is_flag=True, help="With --key: accept chains of agents that still run or were killed.")
@all_projects_option
@audit_options
@json_option
@project_option
def command(
    execution: str | None,
    file: str | None,
    follow: bool,
    where: LogFilter,
    count: int,
    key: str | None,
    allow_open: bool,
    all_projects: bool,
    nats: tuple[str, ...] | None,
    stream: str,
    credentials: str | None,
    as_json: bool,
    project: str,
) -> int:
    """Show the latest executions of this project's hooks, one per line. With an ID, show that execution.

    A line has the beginning of the ID, the time, the decision, the duration, who asked if the program's metadata
    says so, the session if there may be several, the event with its tool, the hook, and the reason or what the hook
    changed. If a hook asked about a call, a second line has the answer and how long it took.

    `run`, `serve` and the proxies write the log. Your own program writes it with
    `Hooks.load(project, log=True)`. The log is in ~/.llxprt/logs, in a file of limited size
    that only you can read. Payloads are recorded only with `run --log-payloads`, with
    `HookLog(project, payloads=True)`, or while `inspect --record` runs. You can combine filters.

    `llxprt-hooks log verify` checks the audit trail that `hooksConfig.audit` sends to a NATS server: with --nats, the
    records of all agents; otherwise, the records on this machine that wait to be sent. It exits with 1 if a record is
    missing or was changed, or if a line is unreadable. Without a key, that finds accidents only. With --key, every
    record must be signed with that key, and every chain must be whole and closed: an agent closes its chain when it
    ends. `llxprt-hooks log keygen FILE` makes a key: it prints the public key, and FILE is for
    `hooksConfig.audit.signingKey`.

    Exit status: 0 even if no execution matches; 1 if no execution has that ID, if the server or the stream cannot be
    read, or if `verify` found something; 64 for wrong usage; 130 after Ctrl-C.

    \b
    Examples:
      llxprt-hooks log --failed
      llxprt-hooks log --follow --event BeforeTool
      llxprt-hooks log --follow --all -n 0 | tee executions.txt
      llxprt-hooks log 1f3a9c02
      llxprt-hooks log --since 1h --where tenant=shop --blocked
      llxprt-hooks log --json | jq .duration_ms
      llxprt-hooks log verify --nats nats://127.0.0.1:4222
      llxprt-hooks log keygen ~/.llxprt/audit.nk
    """
    if execution == KEYGEN:
        if file is None:
            raise click.UsageError("name the file for the key: llxprt-hooks log keygen FILE")
        return make_key(file)
    if file is not None:
        raise click.UsageError(f"Unexpected extra argument ({file}).")
    if (key or allow_open) and execution != VERIFY:
        raise click.UsageError("--key and --allow-open belong to `log verify`")
    source = None if nats is None else audit_stream(nats, stream, credentials)
    if execution == VERIFY:
        return verify_chains(source, as_json=as_json, key=key, allow_open=allow_open)
    # An ID is enough to find an execution, wherever it was; and the projects of a stream are on other machines.
    all_projects = all_projects or nats is not None
    within = None if all_projects or execution else project
    where = replace(where, execution=execution, project=within, answers=True)
    reader = LogReader(where=where)
    records = reader.read() if source is None else source.read(where)
    latest = records[-count:] if count else []
    lines = _Lines(latest, show_project=all_projects, show_session=follow)
    show = print_json if as_json else _print_full if execution else lines.print
    for record in latest:
        show(record)
    if follow:
        _announce_following(has_records=bool(records))
        for record in reader.follow() if source is None else source.follow(where):
            show(record)
    if execution and not records:
        raise click.ClickException(
            f"no recorded execution has the id {execution}. Run `llxprt-hooks log` to see the ids"
        )
    if not records and not as_json:
        click.echo(nothing_found(where) if source is None else NOT_IN_STREAM, err=True)
    return 0


def nothing_found(where: LogFilter) -> str:
    """Return why nothing is shown, and what to do about it."""
    own = "`Hooks.load(project, log=True)`, or if LLXPRT_HOOKS_LOG=1 is set"
    if not log_file().exists():
        return (
            "no executions are recorded yet. `llxprt-hooks run`, `serve` and the proxies record by themselves; "
            f"your own program does with {own}"
        )
    here = " in this project" if where.project else ""
    if others := read_log(LogFilter(project=where.project)):
        return f"none of the {len(others)} executions recorded{here} matches{_meant(where, others)}"
    hint = f"; --all looks in all projects. Your own program records with {own}" if where.project else ""
    return f"no recorded execution matches{here}{hint}"


def _meant(where: LogFilter, records: Sequence[Record]) -> str:
    """Suggest the names in the log that the filters may have been typos of."""
    given = (("hook", where.hook), ("tool_name", where.tool))
    found = (closest(name, {str(each.get(field)) for each in records}) for field, name in given if name)
    names = " and ".join(f"`{name}`" for name in found if name)
    return f". Did you mean {names}?" if names else ""


def _announce_following(*, has_records: bool) -> None:
    console = stderr_console()
    if console.is_terminal:
        start = "" if has_records else ": run an agent in another terminal, for example with `llxprt-hooks run`"
        print_wrapped(console, (f"waiting for executions{start}; press Ctrl-C to stop", "dim"))


class _Lines:
    """Prints a line per execution, in columns as wide as the executions so far have needed."""

    def __init__(self, records: Sequence[Record], *, show_project: bool, show_session: bool) -> None:
        self._console = stdout_console()
        self._show_project, self._show_session = show_project, show_session
        self._times = self._projects = self._callers = self._sessions = self._places = 0
        self._ids: set[str] = set()
        self._words = len("blocked")
        for record in records:
            self._make_room(record)

    def _make_room(self, record: Record) -> None:
        self._times = _wider(self._times, _short_time(record))
        self._projects = _wider(self._projects, _project(record))
        self._callers = _wider(self._callers, _caller(record))
        self._sessions = _wider(self._sessions, _session(record))
        if len(self._ids) < SEVERAL:
            self._ids.add(str(record.get("session_id")))
        self._places = _wider(self._places, _place(record))
        self._words = _wider(self._words, _outcome(record)[0])

    def print(self, record: Record) -> None:
        self._make_room(record)
        word, style, details = _outcome(record)
        start: list[Part] = [
            (f"{str(record.get('id'))[:SHORT_ID]:<{SHORT_ID}}  ", "dim"),
            (f"{_short_time(record):<{self._times}}  ", "dim"),
            (f"{word:<{self._words}}", style),
        ]
        project: Part = (f"{_project(record):<{self._projects}}  ", "cyan") if self._show_project else ""
        place = f"{_place(record):<{self._places}}"
        hook: list[Part] = [(one_line(record.get("hook")), "bold"), (_warm(record), "dim")]
        hook += [f": {details}"] if details else []
        caller: Part = (f"{_caller(record):<{self._callers}}  ", "dim") if self._callers else ""
        several = self._show_session or len(self._ids) == SEVERAL
        session: Part = (f"{_session(record):<{self._sessions}}  ", "dim") if several else ""
        columns = [*start, f"  {_duration(record):>9}  ", project, caller, session]
        if fits(self._console, [line(*columns, f"{place}  ", *hook)]):
            print_line(self._console, *columns, f"{place}  ", *hook)
        elif fits(self._console, [line(*columns, place)]):
            print_line(self._console, *columns, _place(record))
            print_wrapped(self._console, f"{'':<{SHORT_ID}}  ", *hook)
        else:
            print_line(self._console, *start)
            print_wrapped(self._console, "  ", project, caller, session, f"{_place(record)}  {_duration(record)}")
            print_wrapped(self._console, "  ", *hook)


def _wider(width: int, cell: str) -> int:
    return min(max(width, len(cell)), MAX_COLUMN)


def _place(record: Record) -> str:
    """Return the event, and its tool if it has one."""
    return one_line(f"{record.get('event_name')} {record.get('tool_name') or ''}")


def _project(record: Record) -> str:
    return shorten(PurePath(str(record.get("project") or "-")).name, MAX_NAME)


def _caller(record: Record) -> str:
    """Return who asked: the values in the `metadata` of the program."""
    metadata = record.get("metadata")
    values = metadata.values() if isinstance(metadata, dict) else ()
    said = (one_line(value) for value in values if isinstance(value, (str, int)))
    return shorten(", ".join(said), MAX_NAME)


def _session(record: Record) -> str:
    """Return an ID of a session as short as it can be told from others: a UUID by its start, others by their end."""
    session_id = one_line(record.get("session_id") or "-")
    if UUID.fullmatch(session_id):
        return session_id[:SHORT_ID]
    return session_id if len(session_id) <= MAX_NAME else f"…{session_id[1 - MAX_NAME :]}"


def _outcome(record: Record) -> tuple[str, str, str]:
    """Return the decision, its style, and the reason or what was changed."""
    if is_answer(record):
        word = answer_word(record)
        return word, _ANSWER_STYLES.get(word, "cyan"), one_line(answer_details(record))
    reason = one_line(record.get("reason") or "")
    if record.get("blocked"):
        return blocked_word(str(record.get("event_name"))), "red", reason
    if would := _would_have(observed_decision(record)):
        return "observed", "cyan", would
    if record.get("failed"):
        return "failed", "yellow", one_line(record.get("error"))
    if record.get("stopped"):
        return "stopped", "yellow", reason
    if record.get("asked"):
        return "asked", "cyan", reason
    return "allowed", "green", f"changes {effects}" if (effects := _effects(record)) else ""


def _would_have(observed: Mapping[str, Any]) -> str:
    for field in ("blocked", "stopped", "asked"):
        if observed.get(field):
            reason = one_line(observed.get("reason") or "")
            return f"would have {field}{because(reason) if reason else ''}"
    return f"would have changed {effects}" if (effects := _effects(observed)) else ""


def _effects(decision: Mapping[str, Any]) -> str:
    changed = decision.get("effects")
    return ", ".join(map(str, changed)) if isinstance(changed, list) else ""


def _duration(record: Record) -> str:
    duration = recorded_duration(record)
    if duration is None:
        return ""
    if is_answer(record) and duration >= A_SECOND:  # people take longer than hooks
        return f"{duration / 1000:.1f} s"
    return f"{duration:.1f} ms" if duration < A_MINUTE else f"{duration / 1000:.0f} s"


def _short_time(record: Record) -> str:
    """Return the local time, with the date if it was another day."""
    when = recorded_time(record)
    if when is None:
        return shorten(one_line(record.get("timestamp")), len("2026-11-16"))
    now = datetime.now().astimezone()
    if when.date() == now.date():
        return f"{when:%H:%M:%S}"
    return f"{when:%m-%d %H:%M}" if when.year == now.year else f"{when:%Y-%m-%d}"


def _print_full(record: Record) -> None:
    """Print an execution for people. ``--json`` has the fields as they were recorded."""
    console = stdout_console()
    word, style, details = _outcome(record)
    when = recorded_time(record)
    tool = record.get("tool_name")
    asked = is_answer(record)
    ran: dict[str, Part] = {
        record.get("type") or "command": str(record.get("command")),
        "duration": _duration(record) + _how_it_ran(record),
        "ended with": _ending(record),
    }
    rows: dict[str, Part] = {
        "answer" if asked else "execution": str(record.get("id")),
        "when": f"{when:%Y-%m-%d %H:%M:%S}" if when else str(record.get("timestamp")),
        "decision": (f"{word}: {details}" if details else word, style),
        "event": f"{record.get('event_name')}, tool {tool}" if tool else str(record.get("event_name")),
        "hook": str(record.get("hook")),
        **({"asked for": _duration(record), "digest": str(record.get("digest"))} if asked else ran),
        "project": str(record.get("project") or "-"),
        "session": str(record.get("session_id") or "-"),
        **{name: write_json(record[name]).decode() for name in CALLER_FIELDS if name in record},
    }
    for row in aligned([((name, "dim"), value) for name, value in rows.items()]):
        console.print(row, soft_wrap=True)
    if isinstance(arguments := record.get("tool_input"), dict):
        _print_block(console, "arguments", indented_json(arguments))
    for name in ("stdout", "stderr"):
        _print_block(console, name, str(record.get(name) or ""))
    if isinstance(payload := record.get("payload"), dict):
        _print_block(console, "stdin", indented_json(payload))
        print_line(
            console, ("run it again", "dim"), f"  llxprt-hooks fire --from-log {str(record.get('id'))[:SHORT_ID]}"
        )


def _ending(record: Record) -> str:
    if record.get("signal"):
        return str(record["signal"])
    exit_code = record.get("exit_code")
    return "no exit code" if exit_code is None else f"exit code {exit_code}"


def _print_block(console: Console, title: str, text: str) -> None:
    if text.strip():
        print_line(console, (title, "dim"))
        for each in text.rstrip("\n").split("\n"):
            print_line(console, f"  {each}")


def _warm(record: Mapping[str, Any]) -> str:
    return " (ahead)" if record.get("ahead") else " (warm)" if record.get("warm") else ""


def _how_it_ran(record: Mapping[str, Any]) -> str:
    if record.get("ahead"):
        return ", in a process that was started ahead"
    return ", in a waiting interpreter" if record.get("warm") else ""
