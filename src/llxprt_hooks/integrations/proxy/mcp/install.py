"""Put the MCP proxy in front of the servers in a client's configuration, and take it out again.

Only ``command`` and ``args`` of servers that the client starts itself change; comments and formatting stay. Servers
that are reached over HTTP have no command, and are left alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
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
class Proxied:
    """A server that is behind the proxy already, and the command that starts the proxy, without the server's."""

    name: str
    words: tuple[str, ...]

    def option(self, name: str) -> str | None:
        """Return the value of an option of the proxy."""
        following = dict(zip(self.words, self.words[1:], strict=False))
        joined = (word.partition("=")[2] for word in self.words if word.startswith(f"{name}="))
        return following.get(name) or next(joined, None)


@dataclass(frozen=True, slots=True)
class EditedConfiguration:
    """The text of a configuration with the change."""

    text: str
    changed: tuple[str, ...]
    skipped: tuple[str, ...]
    """Servers that the client does not start itself."""
    kept: tuple[Proxied, ...] = ()


def installed(
    text: str, key: str, folder: str, program: Sequence[str], options: Sequence[str] = ()
) -> EditedConfiguration:
    """Return a configuration in which the proxy, with these options, starts each server.

    ``program`` starts ``llxprt-hooks``.
    """
    edits, changed, skipped, kept = [], [], [], []
    for name, node, words in _servers(text, key):
        if not words:
            skipped.append(name)
        elif _behind_proxy(words) is None:
            edits += _edits(node, [*program, COMMAND, "-C", folder, "--server-name", name, *options, "--", *words])
            changed.append(name)
        else:
            end = words.index("--", 1) if "--" in words else len(words)
            kept.append(Proxied(name, tuple(map(str, words[:end]))))
    return EditedConfiguration(_applied(text, edits), tuple(changed), tuple(skipped), tuple(kept))


def uninstalled(text: str, key: str) -> EditedConfiguration:
    """Return a configuration in which the client starts each server itself."""
    edits, changed = [], []
    for name, node, words in _servers(text, key):
        if original := _behind_proxy(words):
            edits += _edits(node, original)
            changed.append(name)
    return EditedConfiguration(_applied(text, edits), tuple(changed), ())


def this_program() -> list[str]:
    """Return the command that starts this program from any folder, with any PATH."""
    name = Path(sys.argv[0])
    if name.name == "llxprt-hooks" and os.access(name, os.X_OK):
        return [str(name.absolute())]
    return [sys.executable, "-m", "llxprt_hooks"]


def _behind_proxy(words: list[Any]) -> list[Any] | None:
    """Return the command that a proxy starts, empty for one before a URL; None if this is not the proxy."""
    if not words:
        return None
    started = [Path(words[0]).name, *words[1:]]
    starts = (["llxprt-hooks", COMMAND], [started[0], "-m", "llxprt_hooks", COMMAND])
    is_proxy = any(started[: len(start)] == start for start in starts)
    if not is_proxy:
        return None
    return words[words.index("--", 1) + 1 :] if "--" in words[1:] else []


def _servers(text: str, key: str) -> Iterator[tuple[str, Node, list[Any]]]:
    """Yield each server's name, its object, and its command with arguments, which is empty if it has none."""
    servers = parse(text).at(key)
    for member in [] if servers is None else servers.members:
        server = member.value.to_value() if member.value.kind is Kind.OBJECT else {}
        command, arguments = server.get("command"), server.get("args", [])
        has_command = isinstance(command, str) and isinstance(arguments, list)
        yield member.key, member.value, [command, *arguments] if has_command else []


def _edits(server: Node, words: list[Any]) -> list[tuple[int, int, str]]:
    """Return what to replace: start, end, and the new text."""
    command, *arguments = words
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
