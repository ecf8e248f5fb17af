"""Put the MCP proxy in front of the servers in a client's configuration, and take it out again.

Only ``command`` and ``args`` of servers that the client starts itself change; comments and formatting stay. Servers
that are reached over HTTP have no command, and are left alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llxprt_hooks.settings.jsonc import Kind, Node, parse

COMMAND = "mcp-proxy"


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its MCP servers."""

    project_file: str
    user_file: str
    key: str = "mcpServers"

    def file(self, project: Path) -> Path:
        """Return the project's file if it exists, otherwise the user's."""
        file = project / self.project_file
        return file if file.exists() else Path.home() / self.user_file


_VSCODE_USER = "Library/Application Support/Code" if sys.platform == "darwin" else ".config/Code"

CLIENTS = {
    "claude": Client(".mcp.json", ".claude.json"),
    "cursor": Client(".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client(".vscode/mcp.json", f"{_VSCODE_USER}/User/mcp.json", "servers"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """The text of a configuration with the change."""

    text: str
    changed: tuple[str, ...]
    skipped: tuple[str, ...]
    """Servers without a command, each with the reason."""


def installed(text: str, key: str, project: Path, program: Sequence[str]) -> Change:
    """Return a configuration in which the proxy starts each server. ``program`` starts ``llxprt-hooks``."""
    edits, changed, skipped = [], [], []
    for name, node in _servers(text, key):
        server = node.to_value()
        command, arguments = server.get("command"), server.get("args", [])
        if not isinstance(command, str) or not isinstance(arguments, list):
            skipped.append(f"{name}: it has no command")
        elif _behind_proxy(command, arguments) is None:
            proxied = [*program[1:], COMMAND, "-C", str(project), "--server-name", name, "--", command, *arguments]
            edits += _edits(node, program[0], proxied)
            changed.append(name)
    return Change(_applied(text, edits), tuple(changed), tuple(skipped))


def uninstalled(text: str, key: str) -> Change:
    """Return a configuration in which the client starts each server itself."""
    edits, changed = [], []
    for name, node in _servers(text, key):
        server = node.to_value()
        command, arguments = server.get("command"), server.get("args", [])
        if isinstance(command, str) and isinstance(arguments, list):
            original = _behind_proxy(command, arguments)
            if original:
                edits += _edits(node, original[0], original[1:])
                changed.append(name)
    return Change(_applied(text, edits), tuple(changed), ())


def this_program() -> list[str]:
    """Return the command that starts this program from any folder, with any PATH."""
    name = Path(sys.argv[0])
    if name.name == "llxprt-hooks" and os.access(name, os.X_OK):
        return [str(name.absolute())]
    return [sys.executable, "-m", "llxprt_hooks"]


def _behind_proxy(command: str, arguments: list[Any]) -> list[Any] | None:
    """Return the command that a proxy starts; None if this is not the proxy."""
    words = [Path(command).name, *arguments]
    starts = (["llxprt-hooks", COMMAND], [words[0], "-m", "llxprt_hooks", COMMAND])
    if not any(words[: len(start)] == start for start in starts) or "--" not in arguments:
        return None
    return arguments[arguments.index("--") + 1 :]


def _servers(text: str, key: str) -> list[tuple[str, Node]]:
    servers = parse(text).at(key)
    if servers is None:
        return []
    return [(member.key, member.value) for member in servers.members if member.value.kind is Kind.OBJECT]


def _edits(server: Node, command: str, arguments: list[Any]) -> list[tuple[int, int, str]]:
    """Return what to replace: start, end, and the new text."""
    written = json.dumps(arguments, ensure_ascii=False)
    command_node, arguments_node = server.at("command"), server.at("args")
    assert command_node is not None
    replaced = [(command_node.start, command_node.end, json.dumps(command, ensure_ascii=False))]
    if arguments_node is None:
        return [*replaced, (command_node.end, command_node.end, f', "args": {written}')]
    return [*replaced, (arguments_node.start, arguments_node.end, written)]


def _applied(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
