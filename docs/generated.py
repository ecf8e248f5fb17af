"""The parts of the site that the code already knows: help of commands, fields of settings, findings, names.

A page has a block with the name of such a part. On a Git host, a reader sees in it the command that prints the same.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import llxprt_hooks
import llxprt_hooks.testing
from llxprt_hooks.cli.main import GROUPS, cli
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.validate.rules import grouped_rules
from llxprt_hooks.events import EVENTS, EventField, FieldKind, HookEventName
from llxprt_hooks.integrations.unsupported import LIMITED, NOT_HONORED, UNSUPPORTED
from llxprt_hooks.settings.hook_fields import HOOKS_CONFIG
from llxprt_hooks.settings.schema import GROUPS as HOOK_GROUPS
from llxprt_hooks.settings.schema import hook_shape, settings_executors
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```\{([a-z]+)\} ?(.*)\n(?:.*\n)*?```$", re.MULTILINE)
SHARED = ("--dialect", "--plugin-dir", "-C", "--help")
"""Options of most commands, which have a section of their own."""


def fill_in(text: str) -> str:
    """Return a page with its generated parts."""
    parts = {**PARTS, "readme": readme_section}
    return BLOCK.sub(lambda block: parts[block[1]](block[2]) if block[1] in parts else block[0], text)


def help_of(name: str) -> str:
    """Return the usage of a command, its help, a table of its options, and its examples."""
    context = click.Context(cli, info_name="llxprt-hooks")
    command = cli.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=name, parent=context)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    rows = [option_row(each, own) for each in options if each.opts[0] not in SHARED]
    shared = [f"`{each.opts[0]}`" for each in options if each.opts[0] in SHARED]
    usage = f"```text\n{' '.join(['llxprt-hooks', name, *command.collect_usage_pieces(own)])}\n```"
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    text, examples = [], []
    for paragraph in paragraphs:
        title, _, lines = paragraph.removeprefix("\b\n").partition("\n")
        if title in {"Example:", "Examples:"}:
            commented = re.sub(r"(?m)(?<=\S)( {2,})(?=\S)", r"\1# ", textwrap.dedent(lines))
            examples.append(f"{title}\n\n```sh\n{commented}\n```")
        elif paragraph.startswith("\b") and title.endswith(":"):
            text.append(f"{code_in(title)}\n\n```text\n{textwrap.dedent(lines)}\n```")
        elif paragraph.startswith("\b"):
            text.append(f"```text\n{textwrap.dedent(paragraph[2:])}\n```")
        else:
            text.append(code_in(paragraph))
    also = f"{'Also' if rows else 'It takes'} {', '.join(shared)}: [shared options](#shared-options)." if shared else ""
    return "\n\n".join(filter(None, [usage, *text, table(["Option", "What it does"], rows), also, *examples]))


def commands_of(_: str) -> str:
    """Return a table of all commands, as the help has them."""
    rows = [[title, f"[`{name}`](#{name})", does] for title, names in GROUPS.items() for name, does in names.items()]
    return table(["To", "Use", "What it does"], rows)


def statuses_of(_: str) -> str:
    """Return a table of exit statuses."""
    return table(["Status", "Meaning"], [[str(int(status)), status.meaning] for status in ExitStatus])


def option_row(option: click.Option, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    assert record is not None
    names = re.split(r"(?:, | / )(?=-)", re.sub(r"\[([a-z_|-]+)\]$", r"\1", record[0]))
    text = re.sub(r" +\[default: ([^;\]]+).*\]$", r" Default: \1.", record[1])
    return [", ".join(f"`{name}`" for name in names), code_in(re.sub(r" +\[[0-9<=>x]+\]$", "", text))]


CODE = re.compile(
    r"(?<![\w`-])--?[a-zA-Z][\w-]*|\b[A-Z]+_[A-Z_]+(?:=\d)?\b|(?<![\w.*])(?:~/|\*?\.(?=[a-z]))[\w./-]*\w/?"
)
"""Options, variables and paths, which help texts have without quotes."""


def code_in(text: str) -> str:
    """Return a help text with its code marked as such."""
    parts = text.split("`")
    return "`".join(part if number % 2 else CODE.sub(r"`\g<0>`", part) for number, part in enumerate(parts))


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table; an empty text if it has no rows."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if rows else ""


def fields_of(name: str) -> str:
    """Return a table of the fields of hook groups, of hooks of a type, or of ``hooksConfig``."""
    shapes = {"group": HOOK_GROUPS[HookEventName.BEFORE_TOOL].fields, "hook": hook_shape("command").fields}
    shapes["hooksConfig"] = HOOKS_CONFIG.fields
    fields = shapes.get(name) or settings_executors()[name].fields or {}
    return table(["Field", "Type", "Default", "Meaning"], list(field_rows(fields)))


def field_rows(fields: Mapping[str, Field], prefix: str = "") -> Iterator[list[str]]:
    """Yield a row for each field, and for the fields of objects in it."""
    for key, field in fields.items():
        name, value = f"{prefix}{key}", field.value
        kind = re.sub("^an? ", "", value.kind.value)
        if isinstance(value, ArrayOf) and value.or_boolean:
            kind = f"true, false or {kind}"
        default = "–" if field.default is None else f"`{json.dumps(field.default)}`"
        link = f"[`{name}`]({ABOUT_FIELDS[name]})" if name in ABOUT_FIELDS else f"`{name}`"
        yield [link, kind, "required" if field.required else default, field.description + choices_of(field)]
        if isinstance(value, Shape) and not value.open:
            yield from field_rows(value.fields, f"{name}.")


def choices_of(field: Field) -> str:
    """Return the allowed values, as a sentence, unless the description has them all."""
    is_array = isinstance(field.value, ArrayOf)
    value = field.value.element if isinstance(field.value, ArrayOf) else field.value
    choices = [f"`{each}`" for each in value.choices] if isinstance(value, Scalar) else []
    missing = [each for each in choices if each not in field.description and each != f"`{field.default}`"]
    return f" {'Any' if is_array else 'One'} of {', '.join(choices)}." if missing else ""


ABOUT_FIELDS = {
    "matcher": "#matchers",
    "sequential": "protocol.md#chains",
    "dialect": "migrate.md",
    "timeout": "protocol.md#time-signals-long-output-children",
    "mode": "#observe-mode",
    "stream": "#streamed-responses",
    "warm": "warm.md",
    "enabled": "#turning-hooks-on-and-off",
    "disabled": "#turning-hooks-on-and-off",
    "tools": "#tools-of-your-own",
    "environment": "#environment-variables",
    "audit": "audit.md",
    "audit.signingKey": "audit.md#signed-records",
    "profile": "acting-hooks.md",
    "log": "commands.md#log",
    "dialects": "migrate.md",
    "managed": "#managed-hooks",
}
"""What else to read about a field, from the page about settings."""


def events_of(_: str) -> str:
    """Return a table of all events, with the fields of their payloads."""
    rows = [
        [
            f"`{event}`",
            spec.description,
            ", ".join(f"`{name}` {kind_of_field(each)}" for name, each in spec.fields.items()),
        ]
        for event, spec in EVENTS.items()
    ]
    return table(["Event", "When it fires, and what hooks can do", "Its own fields"], rows)


def kind_of_field(field: EventField) -> str:
    if field.kind is FieldKind.WORD:
        return f"({', '.join(f'`{value}`' for value in field.values)})"
    return FIELD_KINDS[field.kind] + "".join(f" (`{value}`)" for value in field.values)


FIELD_KINDS = {
    FieldKind.TEXT: "string",
    FieldKind.FLAG: "boolean",
    FieldKind.OBJECT: "object",
    FieldKind.MODEL_REQUEST: "[request](#the-request)",
    FieldKind.MODEL_RESPONSE: "[response](#the-response)",
    FieldKind.TOOL_RESULT: "object",
}


def findings_of(_: str) -> str:
    """Return everything that ``validate`` finds, a table for each group."""
    header = ["Code", "Severity", "For example", "Why it matters"]
    return "\n\n".join(
        f"### {title}\n\n"
        + table(header, [[f"`{rule.code}`", rule.severity.value, rule.example, rule.why] for rule in rules])
        for title, rules in grouped_rules().items()
    )


def names_of(_: str) -> str:
    """Return the reference of every public name, as the table at the end of ``python-api.md`` groups them."""
    table = (HERE / "python-api.md").read_text(encoding="utf-8").partition("## All names")[2]
    groups: dict[tuple[str, str], list[str]] = {}
    for names, where in re.findall(r"^\| (`.+) \| (.+) \|$", table, re.MULTILINE):
        [title, link] = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", where)[0]
        groups.setdefault((title, link), []).extend(re.findall(r"`(\w+)`", names))
    seen: set[str] = set()
    parts = []
    for (title, link), names in groups.items():
        new = [name for name in names if name not in seen]
        seen.update(new)
        heading = title.removeprefix("the ")
        intro = f"How to use this: [{title}]({'python-api.md' if link.startswith('#') else ''}{link})."
        parts.append(f"## {heading[0].upper()}{heading[1:]}\n\n{intro}\n\n{reference(new)}")
    return "\n\n".join(parts)


def readme_section(title: str) -> str:
    """Return a section of README.md, with its links as from this folder."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    text = text.partition("\n## ")[0]
    return f"## {title}\n" + re.sub(r"\]\((?!docs/|[a-z]+:|#)", "](../", text).replace("](docs/", "](")


def reference(names: list[str]) -> str:
    lines = []
    for name in names:
        module = llxprt_hooks if name in llxprt_hooks.__all__ else llxprt_hooks.testing
        thing = getattr(module, name)
        lines.append(f".. {kind_of(thing)}:: {module.__name__}.{name}")
        hidden_base = inspect.isclass(thing) and thing.__base__.__name__.startswith("_")
        lines += ["   :inherited-members: object"] * hidden_base
    return "\n".join(["```{eval-rst}", *lines, "```"])


def limits(_: str) -> str:
    """Return a table of the events that never fire in an integration, and of effects that hooks cannot have."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for start, tables in (("never fire: ", UNSUPPORTED), ("fire ", LIMITED), ("act only in part: ", NOT_HONORED)):
        for name, events in tables.items():
            for reason in dict.fromkeys(events.values()):
                concerned = ", ".join(event for event in events if events[event] == reason)
                rows.setdefault((concerned, start + reason), []).append(f"`{name}`")
    lines = (f"| {', '.join(names)} | {' | '.join(what)} |" for what, names in rows.items())
    return "\n".join(["| `--for` | Hooks for | What they don't do, and why |", "|---|---|---|", *lines])


def integrations_of(_: str) -> str:
    """Return the reference of every integration."""
    return "\n\n".join(integration(*each) for each in INTEGRATIONS)


def integration(title: str, guide: str, module: str, *names: str) -> str:
    lines = [f".. automodule:: llxprt_hooks.integrations.{module}", "   :no-members:", ""]
    for name in names:
        thing = getattr(import_module(f"llxprt_hooks.integrations.{module}"), name)
        lines.append(f".. {kind_of(thing)}:: llxprt_hooks.integrations.{module}.{name}")
        inherits_all = name.endswith("Translator") or module in {"mcp", "fastmcp"}
        lines += ["   :no-members:"] if inherits_all else ["   :no-undoc-members:"] * inspect.isclass(thing)
    block = "\n".join(["```{eval-rst}", *lines, "```"])
    return f"## {title}\n\nHow to use this: [the guide]({guide}).\n\n{block}"


INTEGRATIONS = (
    ("OpenAI client", "hooks-in-ten-lines.md", "openai", "OpenAIHooks"),
    ("Anthropic client", "hooks-in-ten-lines.md", "anthropic", "AnthropicHooks"),
    ("LangChain and LangGraph", "integrations/langchain.md", "langchain", "HooksMiddleware", "LangChainTranslator"),
    (
        "pydantic-ai",
        "integrations/pydantic-ai.md",
        "pydantic_ai",
        "HooksCapability",
        "HookStopped",
        "PydanticAITranslator",
    ),
    (
        "OpenAI Agents SDK",
        "integrations/openai-agents.md",
        "openai_agents",
        *("install", "uninstall", "OpenAIAgentsHooks", "HookStopped"),
    ),
    ("Google ADK", "integrations/google-adk.md", "google_adk", "HooksPlugin"),
    ("Claude Agent SDK", "integrations/claude-agent-sdk.md", "claude_agent_sdk", "with_hooks", "hooked", "ClaudeHooks"),
    ("MCP servers", "integrations/mcp.md", "mcp", "HooksMiddleware"),
    ("FastMCP servers", "integrations/mcp.md", "fastmcp", "HooksMiddleware"),
    (
        "Approvers",
        "acting-hooks.md#asking-a-person",
        "approvers",
        *("ask_on_terminal", "ask_in_inspector", "acp_approver", "ApprovalPage"),
    ),
)


def kind_of(thing: Any) -> str:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(thing) else "autodata"


def each_recipe(_: str) -> str:
    """Return what each recipe says about itself, as a section."""
    files = sorted((HERE.parent / "src/llxprt_hooks/recipes/collection").glob("*/README.md"))
    texts = (f"##{file.read_text(encoding='utf-8')}".replace("../../../../../docs/", "") for file in files)
    return "\n".join(re.sub(r"\]\(\.\./([\w-]+)/README\.md\)", r"](#\1)", text) for text in texts)


PARTS: dict[str, Callable[[str], str]] = {
    "recipes": each_recipe,
    "help": help_of,
    "commands": commands_of,
    "statuses": statuses_of,
    "events": events_of,
    "fields": fields_of,
    "findings": findings_of,
    "limits": limits,
    "names": names_of,
    "integrations": integrations_of,
}
