#!/usr/bin/env python3
"""AfterTool: takes keys and personal data out of results before the model sees them."""

from __future__ import annotations

import json
import sys
import typing

from llxprt_hooks.recipes.collection.parts.personal_data import without_personal_data
from llxprt_hooks.recipes.collection.parts.secret_scanning.context import in_context
from llxprt_hooks.recipes.collection.parts.secret_scanning.issuers import issued

PERSONAL_DATA = True  # whether addresses of mail, cards and accounts are taken out, too


def redacted(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    found = {secret for _, secret, _ in (*issued(text), *in_context(text, "", True))}
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return without_personal_data(text, ("[email]", "[card]", "[account]")) if PERSONAL_DATA else text


def redacted_value(value: typing.Any) -> typing.Any:
    """The same value, with all its texts redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [redacted_value(inner) for inner in value]
    return {name: redacted_value(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def main() -> None:
    before = json.loads(sys.stdin.buffer.read())["tool_response"]
    after = redacted_value(before)
    if after != before:
        print(json.dumps({"hookSpecificOutput": {"tool_response": after}}))


if __name__ == "__main__":
    main()
