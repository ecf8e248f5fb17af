"""Results of MCP tools (``CallToolResult`` as JSON) as hooks see them, and with what hooks said.

A client that finds ``structuredContent`` may show its model nothing else. So a result that hooks add text to is sent
without it, and the tools that have hooks are listed without ``outputSchema``: clients would otherwise miss the content
that the schema announces. A hook that says nothing changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.core.protocol.tool_result import ToolResult

JSON = dict[str, Any]

STRUCTURED = "structuredContent"
OUTPUT_SCHEMA = "outputSchema"
FOR_MODEL = {"audience": ["assistant"]}
"""The annotation of content that is not for the user."""


def hook_tool_name(tool_name: Any, server_name: str | None, aliases: Mapping[str, str]) -> str:
    """Return the name under which hooks see a tool.

    >>> hook_tool_name("write_file", None, {}), hook_tool_name("write_file", "files", {})
    ('write_file', 'mcp__files__write_file')
    """
    name = name_text(tool_name)
    if alias := aliases.get(name):
        return alias
    return name if server_name is None else f"mcp__{server_name}__{name}"


def is_final(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of the tool: not a question back, and not the number of a task.

    What has content is one, whatever else it has: a client may show it to its model.

    >>> is_final({"task": {"taskId": "1"}}), is_final({"task": {"taskId": "1"}, "content": []})
    (False, True)
    """
    has_content = "content" in result or STRUCTURED in result
    return has_content or (result.get("resultType") != "input_required" and "task" not in result)


def tool_result(result: Mapping[str, Any]) -> ToolResult:
    """Return a result as AfterTool hooks see it: text as text, other content in blocks as it is.

    >>> tool_result({"content": [{"type": "text", "text": "hi"}]}).llm_content
    'hi'
    >>> tool_result({"content": [{"type": "text", "text": ["hi"]}]}).llm_content
    [{'type': 'text', 'text': ['hi']}]
    >>> tool_result({"content": "hi"}).llm_content
    'hi'
    """
    blocks = _blocks(result)
    given = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    texts = [text for text in given if isinstance(text, str)]
    text = "\n".join(texts)
    structured = result.get(STRUCTURED)
    return ToolResult(
        llm_content=text if len(texts) == len(blocks) else blocks,
        return_display=text,
        metadata=None if structured is None else {STRUCTURED: structured},
        error={"message": text} if result.get("isError") is True else None,
    )


def effects(result: Mapping[str, Any], outcome: ToolResult) -> JSON | None:
    """Return the fields of a result that hooks changed; None if they changed nothing. Pass them to ``removed_by``."""
    said = [*map(_note, outcome.additions)]
    if outcome.stop_reason is not None:  # for the user as well
        said.append(text_block(f"[System] A hook stopped the agent: {outcome.stop_reason}"))
    if not said and not outcome.suppress_display and not outcome.replaced:
        return None
    changed = _replacement(result, outcome) if outcome.replaced else {"content": _blocks(result)}
    blocks = [*changed["content"], *said]
    return {**changed, "content": [_for_model(block) for block in blocks] if outcome.suppress_display else blocks}


def removed_by(changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of the original result that must not be sent beside what hooks changed."""
    return () if STRUCTURED in changes else (STRUCTURED,)


def _replacement(result: Mapping[str, Any], outcome: ToolResult) -> JSON:
    """Return the fields of a result that a hook replaced. Structured content stays only if the hook gave another."""
    content = outcome.own_content
    blocks = [*map(_as_block, content if isinstance(content, list) else [content])]
    replaced: JSON = {"content": blocks, "isError": outcome.error is not None}
    structured = (outcome.metadata or {}).get(STRUCTURED)
    return replaced if structured in (None, result.get(STRUCTURED)) else {**replaced, STRUCTURED: structured}


def _as_block(part: Any) -> JSON:
    if isinstance(part, Mapping) and isinstance(part.get("type"), str):
        return dict(part)
    text = part.get("text") if isinstance(part, Mapping) else part
    return text_block(text if isinstance(text, str) else write_json(part).decode())


def refusal(outcome: ToolResult) -> JSON:
    """Return the result of a call that hooks did not let run."""
    reason = (outcome.error or {}).get("message") or outcome.stop_reason or ""
    return {"content": [text_block(reason), *map(_note, outcome.additions)], "isError": True}


def error_result(reason: str) -> JSON:
    """Return the result of a call that was not made."""
    return {"content": [text_block(reason)], "isError": True}


def text_block(text: str) -> JSON:
    """Return text as content."""
    return {"type": "text", "text": text}


def is_text_block(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    """Return the content; if it is not a list, a lenient client may show it all the same."""
    content = result.get("content")
    return content if isinstance(content, list) else [] if content is None else [_as_block(content)]


def _note(text: str) -> JSON:
    """Return what a hook says to the model; clients that show results leave it out (HOOK-159)."""
    return {**text_block(text), "annotations": FOR_MODEL}


def _for_model(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    annotations = block.get("annotations")
    return {**block, "annotations": {**(annotations if isinstance(annotations, Mapping) else {}), **FOR_MODEL}}
