#!/usr/bin/env python3
"""BeforeModel: tells the model when this project's hooks cannot see all of a request.

Hooks see the text of messages, but no images, files, tool calls or tool results. If a request seems to have such parts,
the model is told that nobody has checked them.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import typing

from llxprt_hooks.recipes.collection.parts.locked_file import locked_file

MENTIONS = re.compile(
    r"(?i)\b(image|picture|photo|screenshot|diagram|attach(?:ed|ment)|scan|pdf|audio|video|recording)s?\b"
)

CAVEAT = (
    "The hooks that check this conversation read its text only. {why} If a rule of this project depends on such "
    "content (personal data in a picture or a card number in a tool's result), follow it yourself and say that it was "
    "not checked."
)


def seen_before(event: dict[str, typing.Any], messages: list[object]) -> bool:
    """Whether this session has sent the same text before: then something that is not text has been added to it."""
    now = hashlib.sha256(json.dumps(messages).encode("ascii")).hexdigest()
    with locked_file("text-only-caveat", event["session_id"]) as opened:
        before = opened.read()
        opened.seek(0)
        opened.truncate()
        opened.write(now)
    return before == now


def reason(event: dict[str, typing.Any]) -> str | None:
    """Why this request seems to have more than text, or None."""
    messages = event["llm_request"].get("messages", [])
    repeated = seen_before(event, messages)
    if repeated or not messages or messages[-1]["role"] == "model":
        return "They did not see the tool calls and their results."
    roles = [message["role"] for message in messages]
    if any(first == second == "model" for first, second in zip(roles, roles[1:])):
        return "They did not see the tool calls between the answers, and their results."
    if found := MENTIONS.search(messages[-1]["content"]):
        return f"The last message mentions {found.group()!r}, which they may not have seen."
    return None


def main() -> None:
    event = json.loads(sys.stdin.buffer.read())
    if why := reason(event):
        print(json.dumps({"systemMessage": CAVEAT.format(why=why)}))


main()
