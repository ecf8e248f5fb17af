"""Our tools under the names that another agent has for them, both ways.

A tool that writes files and has no counterpart is shown as one edit for each file, so that no guard for files is walked
around. Any other tool keeps its own name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from llxprt_hooks.dialects.patches import patched_files

Fields = Mapping[str, Any]

SHELL: Final = "run_shell_command"
EDIT: Final = "replace"
WRITE: Final = "write_file"
SUBAGENT: Final = "task"
VIEWED: Final = ("apply_patch", "insert_at_line", "delete_line_range", "ast_edit")
"""Tools that write files and that most agents do not have."""
WRITERS: Final = (WRITE, EDIT, *VIEWED)


class Tool(NamedTuple):
    """How one of our tools is shown."""

    name: str
    arguments: Mapping[str, str] = {}
    """Our arguments that have another name there; the first of ours is the one that a changed argument becomes."""
    paths: tuple[str, ...] = ()
    """Arguments, under their name there, that are absolute paths."""
    show: Callable[[Fields], Fields] | None = None
    """Arguments that are there under no name of ours, from ours."""
    back: Mapping[str, Callable[[Any], tuple[str, Any]]] = {}
    """What such an argument is here, by its name there: the argument of ours, and its value."""
    is_view: bool = False
    """Whether it is shown as another tool, so that other changes than of ``arguments`` cannot be applied."""
    other_names: tuple[str, ...] = ()
    """Names that matchers may also use."""


class Shown(NamedTuple):
    """A call as the script is told of it."""

    name: str
    arguments: dict[str, Any]
    is_part: bool = False
    """Whether the call has other parts, so that this one cannot be changed."""


class UnusableChangeError(ValueError):
    """A hook changed an argument that the tool does not have."""


class ToolTable:
    """The tools of an agent."""

    def __init__(
        self, tools: Mapping[str, Tool], *, mcp: Callable[[str], str] = str, viewed: Sequence[str] = VIEWED
    ) -> None:
        self._tools = tools
        self._mcp = mcp
        self._viewed = viewed
        """Our tools that are shown as edits."""
        real = ((ours, tool) for ours, tool in tools.items() if not tool.is_view)
        pairs = [(name, ours) for ours, tool in real for name in (tool.name, *tool.other_names)]
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
        is_pathless = "file_path" in tool.paths and "file_path" not in shown
        return Shown(tool.name, {**({"file_path": ""} if is_pathless else {}), **shown})

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
        if shown.is_part:
            if other:
                raise UnusableChangeError(f"`{min(other)}` cannot be changed for one part of a call of {tool_name}")
            return dict(fields)
        own: dict[str, Any] = dict(fields) if tool.is_view else {}
        for theirs, value in changed.items():
            ours = next((name for name in fields if tool.arguments.get(name, name) == theirs), None)
            if theirs not in other:
                if ours is not None:
                    own[ours] = fields[ours]
                continue
            if ours is None and (tool.is_view or theirs in made_up):
                ours, value = _made_of(tool_name, tool, theirs, value)
            own[ours or _ours(tool, theirs)] = value
        return own

    def own_call(self, theirs: str, arguments: Fields | None) -> tuple[str, Fields | None]:
        """A call in the names of the agent, in ours."""
        ours = self._ours.get(theirs)
        if ours is None or arguments is None:
            return ours or theirs, arguments
        tool, given = self._tools[ours], {}
        for name, value in arguments.items():
            with suppress(UnusableChangeError):
                own, own_value = _made_of(ours, tool, name, value) if name in tool.back else (_ours(tool, name), value)
                given[own] = own_value
        return ours, given


def _ours(tool: Tool, theirs: str) -> str:
    return next((name for name, other in tool.arguments.items() if other == theirs), theirs)


def _made_of(tool_name: str, tool: Tool, theirs: str, value: Any) -> tuple[str, Any]:
    """An argument of ours from one that was made up of others."""
    try:
        return tool.back[theirs](value)
    except (KeyError, TypeError):
        raise UnusableChangeError(f"`{theirs}` cannot be changed for the tool {tool_name}") from None


def absolute(value: Any, directory: str) -> Any:
    """A path as another agent has it, without ``..``."""
    return os.path.normpath(os.path.join(directory, value)) if isinstance(value, str) and value else value  # noqa: PTH118


# Results.

_SHELLS: Final = (SHELL, "Bash")
"""Ours, and that of an agent whose tools have Claude Code's names themselves."""
_STDOUT, _STDERR = "stdout:\n", "stderr:\n"
"""How our own agent's shell tool reports a command to the model: these, if there is any, and a line in brackets."""


def text_of(response: Fields) -> str:
    """The text of a result, as the model gets it."""
    content = response.get("llmContent")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    return "" if content is None else str(content)


def failure_of(tool_name: str, response: Fields) -> str | None:
    """Why a call failed, as the product words it; None if it did not."""
    metadata = response.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
    if tool_name in _SHELLS and isinstance(code, int) and code != 0:
        streams = streams_of(text_of(response))
        return "\n".join([f"Exit code {code}", *filter(None, (streams["stdout"], streams["stderr"]))])
    error = response.get("error")
    if error is None:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    return str(message or text_of(response))


def streams_of(text: str) -> dict[str, str]:
    """What a command wrote, from the text of its result."""
    head, newline, line = text.rpartition("\n")
    if not (len(line) > 1 and line.startswith("[") and line.endswith("]")):
        return {"stdout": text, "stderr": ""}
    head += newline
    if head.startswith(_STDERR) and head != _STDERR:
        return {"stdout": "", "stderr": head[len(_STDERR) : -1]}
    if head.startswith(_STDOUT) and head != _STDOUT:
        stdout, between, stderr = head[len(_STDOUT) :].partition(f"\n{_STDERR}")
        if not stderr:
            stdout += between
        return {"stdout": stdout if stderr else stdout[:-1], "stderr": stderr[:-1]}
    return {"stdout": text if head else "", "stderr": ""}
