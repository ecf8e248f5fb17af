"""Our tools under the names that another agent has for them, both ways.

A tool that writes files and has no counterpart is shown as one edit for each file, so that no guard for files is walked
around. Any other tool keeps its own name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from llxprt_hooks.dialects.claude.tools import Fields, Shown, Tool, UnusableChangeError
from llxprt_hooks.dialects.patches import patched_files

SHELL: Final = "run_shell_command"
EDIT: Final = "replace"
WRITE: Final = "write_file"
SUBAGENT: Final = "task"
VIEWED: Final = ("apply_patch", "insert_at_line", "delete_line_range", "ast_edit")
"""Tools that write files and that most agents do not have."""
WRITERS: Final = (WRITE, EDIT, *VIEWED)


class ToolTable:
    """The tools of an agent."""

    def __init__(
        self, tools: Mapping[str, Tool], *, mcp: Callable[[str], str] = str, viewed: Sequence[str] = VIEWED
    ) -> None:
        self._tools = tools
        self._mcp = mcp
        self._viewed = viewed
        """Our tools that are shown as edits."""
        pairs = [(name, ours) for ours, tool in tools.items() for name in (tool.name, *tool.other_names)]
        self._ours = dict(reversed(pairs))

    def names(self, tool_name: str) -> tuple[str, ...]:
        """The names under which matchers find one of our tools."""
        if tool_name in self._viewed:
            return tuple(dict.fromkeys((*self.names(EDIT), *self.names(WRITE))))
        tool = self._tools.get(tool_name)
        if tool is None:
            return (self._mcp(tool_name),)
        return (tool.name, *tool.other_names)

    def names_of(self, theirs: str) -> tuple[str, ...]:
        """All names of a tool that has this one."""
        return self.names(self._ours.get(theirs, theirs))

    def calls(self, tool_name: str, given: object, directory: str) -> list[list[Shown]]:
        """The calls that one of ours is there. Each is a list of ways to see it, the most fitting one first."""
        if tool_name not in self._viewed:
            return [[self.shown(tool_name, given, directory)]]
        files = patched_files(given) if isinstance(given, Mapping) else []
        shown = []
        for path, text, content in [(each.path, each.text, each.content if each.is_new else None) for each in files]:
            edit = self.shown(EDIT, {"file_path": path, "old_string": "", "new_string": text}, directory)
            ways = [edit]
            if content is not None:
                ways.insert(0, self.shown(WRITE, {"file_path": path, "content": content}, directory))
            shown.append([way._replace(is_part=True) for way in ways])
        return shown or [[self.shown(EDIT, given, directory)._replace(is_part=True)]]

    def shown(self, tool_name: str, given: object, directory: str) -> Shown:
        """A call under its name there, with the names of its arguments and absolute paths."""
        fields = given if isinstance(given, Mapping) else {}
        tool = self._tools.get(tool_name)
        if tool is None:
            return Shown(self._mcp(tool_name), dict(fields))
        shown: dict[str, Any] = {}
        for name, value in {**fields, **(tool.show(fields) if tool.show else {})}.items():
            theirs = tool.arguments.get(name, name)
            shown[theirs] = absolute(value, directory) if theirs in tool.paths else value
        return Shown(tool.name, shown)

    def own_input(self, tool_name: str, given: object, changed: Fields, shown: Shown) -> dict[str, Any]:
        """The arguments in a hook's answer under our names. Those that it did not change stay as they were written.

        Raises ``UnusableChangeError`` if a change cannot be applied to the tool that runs.
        """
        fields = given if isinstance(given, Mapping) else {}
        tool = self._tools.get(tool_name, Tool(tool_name))
        made_up = tool.show(fields) if tool.show else {}
        other = {
            name for name, value in changed.items() if name not in shown.arguments or shown.arguments[name] != value
        }
        if unusable := next((name for name in other if shown.is_part or name in made_up), None):
            raise UnusableChangeError(f"`{unusable}` cannot be changed for the tool {tool_name}")
        if shown.is_part:
            return dict(fields)
        own: dict[str, Any] = {}
        for theirs, value in changed.items():
            ours = next((name for name in fields if tool.arguments.get(name, name) == theirs), None)
            if theirs in other:
                own[ours or self._back(tool, theirs)] = value
            elif ours is not None:
                own[ours] = fields[ours]
        return own

    def _back(self, tool: Tool, theirs: str) -> str:
        return next((name for name, other in tool.arguments.items() if other == theirs), theirs)

    def own_call(self, theirs: str, arguments: Fields | None) -> tuple[str, Fields | None]:
        """A call in the names of the agent, in ours."""
        ours = self._ours.get(theirs)
        if ours is None or arguments is None:
            return ours or theirs, arguments
        return ours, {self._back(self._tools[ours], name): value for name, value in arguments.items()}


def absolute(value: Any, directory: str) -> Any:
    """A path as another agent has it, without ``..``."""
    return os.path.normpath(os.path.join(directory, value)) if isinstance(value, str) and value else value  # noqa: PTH118
