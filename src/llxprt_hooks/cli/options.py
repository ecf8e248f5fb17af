"""Options and arguments that several commands share, and completions for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.audit import DEFAULT_STREAM

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_PLAIN = re.compile(r"\w[\w.@%+/-]*", re.ASCII)
"""Names without shell syntax. Others are not offered: they may come from a cloned repository, and shells insert
completions unquoted."""

Command = TypeVar("Command", bound=Callable[..., Any])


class EventType(click.Choice[str]):
    """The name of an event. For a misspelled name, the error suggests the right one."""

    def __init__(self) -> None:
        super().__init__([event.value for event in HookEventName])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(_unknown_event(value), param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        typed = incomplete.casefold()
        return [CompletionItem(event) for event in self.choices if event.casefold().startswith(typed)]


class NatsType(click.ParamType[tuple[str, ...]]):
    """The addresses of NATS servers, separated by commas."""

    name = "addresses"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        from llxprt_hooks.settings.nats_address import server_problem

        servers = tuple(server.strip() for server in str(value).split(","))
        for server in servers:
            if problem := server_problem(server):
                self.fail(problem, param, ctx)
        return servers


class RequiredHookType(click.ParamType[str]):
    """An event that must have a hook, with or without a tool."""

    name = "required hook"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from llxprt_hooks.core.engine.guards import RequiredHook

        try:
            return str(RequiredHook.parse(value))
        except ValueError as error:
            self.fail(f"{error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return EventType().shell_complete(ctx, param, incomplete)


def _unknown_event(value: str) -> str:
    from llxprt_hooks.settings.did_you_mean import meant_event

    meant = meant_event(value)
    guess = f" Did you mean {meant}?" if meant else ""
    return f"Unknown event {value!r}.{guess} Events: {', '.join(HookEventName)}."


def _folder_option(name: str, *, resolve_path: bool = False) -> Callable[[Command], Command]:
    folder = click.Path(exists=True, file_okay=False, resolve_path=resolve_path)
    words = "The project folder. Default: the current folder."
    return click.option("-C", name, type=folder, default=".", is_eager=True, metavar="DIR", help=words)


directory_option = _folder_option("directory")

project_option = _folder_option("project", resolve_path=True)


def _ask_for(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Let all settings that this command loads include the hooks of other agents."""
    from llxprt_hooks.settings.definitions import known_dialects
    from llxprt_hooks.settings.foreign import UnknownDialectError
    from llxprt_hooks.settings.load import asked_for

    if not names:
        return names
    asked = asked_for.get()
    if param.name == "dialects":
        try:
            token = asked_for.set(asked._replace(dialects=known_dialects(names)))
        except UnknownDialectError as error:
            raise click.BadParameter(f"{error}.", ctx, param) from error
    else:
        token = asked_for.set(asked._replace(plugins=names))
    ctx.call_on_close(lambda: asked_for.reset(token))
    return names


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class SinceType(click.ParamType[datetime]):
    """A time: how long ago (7d), or a date."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        ago = re.fullmatch(r"(\d{1,6})([smhdw])", value)
        try:
            if ago:
                return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a duration such as 30m, 12h, 7d or 2w, nor a date such as 2026-11-01.")


class FieldType(click.ParamType[tuple[str, str]]):
    """A field of ``metadata`` with its value."""

    name = "field"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"expected FIELD=VALUE, such as tenant=shop or agent.host=build-7, found {value!r}", param, ctx)
        return name, text


def dialect_options(command: Command) -> Command:
    """Add the options for the hooks of other agents, for a command that loads settings."""
    plugins = click.option(
        "--plugin-dir",
        "plugins",
        type=click.Path(exists=True, file_okay=False),
        multiple=True,
        metavar="DIR",
        is_eager=True,
        expose_value=False,
        callback=_ask_for,
        help="Also use the hooks of a plugin in this folder: of the first --dialect that has any there, by default "
        "Claude Code. Repeatable.",
    )
    dialects = click.option(
        "--dialect",
        "dialects",
        multiple=True,
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=_ask_for,
        help="Also use the hooks of another agent, from its own settings files: claude, gemini, codex, cursor or "
        "copilot. Repeatable.",
    )
    return dialects(plugins(command))


require_option = click.option(
    "--require-hook",
    "required",
    type=RequiredHookType(),
    multiple=True,
    metavar="EVENT[:TOOL]",
    help="Do not start if no hook would run for this event, or this tool. Repeatable.",
)

client_metadata_option = click.option(
    "--client-metadata",
    is_flag=True,
    help="Show hooks what clients say about who asks, as `metadata`. Nothing verifies it.",
)
unguarded_option = click.option(
    "--allow-unguarded", is_flag=True, help="Start even if hooks are configured that may not run."
)

ask_option = click.option(
    "--ask-in-inspector",
    is_flag=True,
    help="If a hook asks about a call, ask the person who has `llxprt-hooks inspect` open.",
)

all_projects_option = click.option("--all", "all_projects", is_flag=True, help="Executions in all projects.")

_nats_option = click.option(
    "--nats",
    "nats",
    type=NatsType(),
    metavar="URL",
    help="Read the audit trail of all agents from this NATS server (or several, with commas) instead of the local log.",
)

_stream_option = click.option(
    "--stream", metavar="NAME", default=DEFAULT_STREAM, show_default=True, help="The stream, with --nats."
)

_credentials_option = click.option(
    "--credentials", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Credentials, with --nats."
)


def audit_options(command: Command) -> Command:
    """The options of a command that can read the audit trail of all agents."""
    return _nats_option(_stream_option(_credentials_option(command)))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def hook_names(*, enabled: bool) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Complete the names of enabled hooks, or of disabled ones."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from llxprt_hooks.commands.list import take_inventory

        events: dict[str, list[str]] = {}
        for item in take_inventory(ctx.params.get("directory") or ".").items:
            if item.enabled == enabled and item.name.startswith(incomplete) and _PLAIN.fullmatch(item.name):
                events.setdefault(item.name, []).append(item.definition.event_name)
        return [CompletionItem(name, help=", ".join(dict.fromkeys(named))) for name, named in events.items()]

    return complete


def recorded_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from llxprt_hooks.commands.log import read_log

    return _items((str(record["hook"]) for record in read_log()), incomplete)


def tool_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from llxprt_hooks.settings.other_agents import KNOWN_TOOLS

    return _items(KNOWN_TOOLS, incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    matching = {name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)}
    return [CompletionItem(name) for name in sorted(matching)]


_FILTERS = (
    click.option("--event", type=EventType(), metavar="E", help="Only this event."),
    click.option("--hook", metavar="NAME", shell_complete=recorded_names, help="Only this hook."),
    click.option("--tool", metavar="NAME", help="Only this tool."),
    click.option("--session", metavar="ID", help="Only the session with this ID, or whose ID begins with it."),
    click.option("--since", type=SinceType(), metavar="WHEN", help="Only since then: 30m, 12h, 7d, or a date."),
    click.option(
        "--where",
        "caller",
        type=FieldType(),
        multiple=True,
        metavar="FIELD=VALUE",
        help="Only who asked: a field of `metadata`, or agent.host and the like. Repeatable.",
    ),
    click.option("--failed", is_flag=True, help="Only failed executions. A block is not a failure."),
    click.option("--blocked", is_flag=True, help="Only executions that blocked."),
)

_CONDITIONS = ("event", "hook", "tool", "session", "since", "caller", "failed", "blocked")


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose recorded executions. The command gets them as one filter, ``where``."""

    @wraps(command)
    def filtered(**options: Any) -> Any:
        from llxprt_hooks.commands.log import LogFilter

        return command(where=LogFilter(**{name: options.pop(name) for name in _CONDITIONS}), **options)

    for option in reversed(_FILTERS):
        filtered = option(filtered)
    return filtered
