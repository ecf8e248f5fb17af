"""The parts of the site that the code already says: options of commands, diagnostics, and names of the reference.

A page has a block with the name of such a part. On a Git host, a reader sees in it the command that prints the same.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import llxprt_hooks
import llxprt_hooks.testing
from llxprt_hooks.cli.main import cli

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```\{([a-z]+)\} ?(.*)\n(?:.*\n)*?```$", re.MULTILINE)
SHARED = ("--dialect", "--plugin-dir", "-C", "--help")
"""Options of most commands, which have a section of their own."""


def fill_in(text: str) -> str:
    """Return a page with its generated parts."""
    parts = {**PARTS, "readme": readme_section}
    return BLOCK.sub(lambda block: parts[block[1]](block[2]) if block[1] in parts else block[0], text)


def help_of(name: str) -> str:
    """Return the usage of a command and a table of its options."""
    context = click.Context(cli, info_name="llxprt-hooks")
    command = cli.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=name, parent=context)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    rows = [option_row(each, own) for each in options if each.opts[0] not in SHARED]
    shared = [f"`{each.opts[0]}`" for each in options if each.opts[0] in SHARED]
    usage = f"```text\n{' '.join(['llxprt-hooks', name, *command.collect_usage_pieces(own)])}\n```\n"
    table = "\n".join(["| Option | What it does |", "|---|---|", *rows]) if rows else ""
    also = f"{'Also' if rows else 'It takes'} {', '.join(shared)}: [shared options](#shared-options)." if shared else ""
    return f"{usage}\n{table}\n\n{also}\n"


def option_row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    names = re.split(r"(?:, | / )(?=-)", re.sub(r"\[([a-z_|-]+)\]$", r"\1", record[0]))
    text = re.sub(r" +\[default: ([^;\]]+).*\]$", r" Default: \1.", record[1])
    text = re.sub(r" +\[[0-9<=>x]+\]$", "", text)
    text = re.sub(r"(?<![\w`-])--?[a-zA-Z][\w-]*(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"`\g<0>`", text)
    return "| " + ", ".join(f"`{name}`" for name in names).replace("|", "\\|") + f" | {text} |"


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
        lines.append(f".. {kind_of(getattr(module, name))}:: {module.__name__}.{name}")
    return "\n".join(["```{eval-rst}", *lines, "```"])


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
    "names": names_of,
    "integrations": integrations_of,
}
