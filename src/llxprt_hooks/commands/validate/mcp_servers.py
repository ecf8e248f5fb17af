"""What the MCP servers of a project say to models, as far as the proxy has seen it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from llxprt_hooks.commands.validate.diagnostic import Diagnostic, diagnostic_of_file
from llxprt_hooks.commands.validate.mcp_texts import suspicions
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.mcp_pins import TOOL, offers_of

if TYPE_CHECKING:
    from pathlib import Path


def diagnose_servers(project: Path) -> tuple[list[str], list[Diagnostic]]:
    """Return the servers that the proxy has seen, and what is suspicious about what they offer."""
    found: list[Diagnostic] = []
    servers = list(offers_of(project))
    offers = [(pins, offered) for pins in servers if isinstance(offered := pins.offered(), dict)]
    tools = Counter(part for _, offered in offers for part in offered if part.startswith(TOOL))
    for pins, offered in offers:
        for part, definition in offered.items():
            subject = f"{part} of the MCP server `{pins.server}`"
            fix = f"read it with `llxprt-hooks trust --mcp {pins.server} --dry-run` before you approve it"
            for each in suspicions(definition):
                found.append(diagnostic_of_file(pins.offer_file, Rule.MCP_TEXT, f"{subject}: {each}", fix))
            if tools[part] > 1:
                message = f"{subject} has the same name as a tool of another server"
                found.append(diagnostic_of_file(pins.offer_file, Rule.MCP_SAME_NAME, message, _SAME_NAME_FIX))
    for pins in servers:
        if isinstance(problem := pins.offered(), Problem):
            found.append(diagnostic_of_file(pins.offer_file, Rule.UNREADABLE_FILE, problem.message, problem.fix))
    return [pins.server for pins in servers], found


_SAME_NAME_FIX = "hide one of them with a BeforeToolSelection hook, by its name mcp__SERVER__TOOL"
