#!/usr/bin/env python3
"""Takes keys and personal data out of what the model gets: tool results (AfterTool) and requests (BeforeModel)."""

from __future__ import annotations

import json
import sys
import typing

from llxprt_hooks.recipes.collection.parts.personal_data import without_personal_data
from llxprt_hooks.recipes.collection.parts.secret_scanning.context import in_context
from llxprt_hooks.recipes.collection.parts.secret_scanning.issuers import issued

# Which personal data is taken out, too. An empty list: none. Others are [phone], [address], [social security number].
PERSONAL_DATA = ["[email]", "[account]", "[card]"]


def redacted(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    found = {secret for _, secret, _ in (*issued(text), *in_context(text, "", True))}
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return without_personal_data(text, PERSONAL_DATA) if PERSONAL_DATA else text


def redacted_value(value: typing.Any) -> typing.Any:
    """The same value, with all its texts redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [redacted_value(inner) for inner in value]
    return {name: redacted_value(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def main() -> None:
    event = json.loads(sys.stdin.buffer.read())
    if event["hook_event_name"] == "AfterTool":
        name, before = "tool_response", event["tool_response"]
        after = redacted_value(before)
    else:  # calls in the history cannot be changed: what the model wrote, it knows
        name, before = "llm_request", {"messages": event["llm_request"]["messages"]}
        messages = [{**each, "content": redacted_value(each["content"])} for each in before["messages"]]
        after = {"messages": messages}
    if after != before:
        print(json.dumps({"hookSpecificOutput": {name: after}}))


if __name__ == "__main__":
    main()
