#!/usr/bin/env python3
"""AfterModel: takes personal data out of answers before anybody sees them.

It answers only when there is something to take out: an answer that a hook gives is text and nothing else, function
calls would be lost.
"""

from __future__ import annotations

import json
import sys
import typing

from llxprt_hooks.recipes.collection.parts.personal_data import without_personal_data

# What is taken out, such as ["[email]", "[card]"]. An empty list: everything below.
ONLY: list[str] = []


def said(candidate: dict[str, typing.Any]) -> str:
    """A candidate's text as a whole: what is taken out may stretch over two parts."""
    parts = (candidate.get("content") or {}).get("parts") or []
    return "".join(part if isinstance(part, str) else part.get("text") or "" for part in parts)


def main() -> None:
    response = json.loads(sys.stdin.buffer.read())["llm_response"]
    candidates = response.get("candidates") or []
    before = [said(candidate) for candidate in candidates] or [response.get("text") or ""]
    if not any(before):
        before[0] = response.get("text") or ""
    after = [without_personal_data(text, ONLY) for text in before]
    if after == before:
        return
    changed = {**response, "text": after[0]}
    if candidates:
        changed["candidates"] = [
            {**candidate, "content": {"role": "model", "parts": [text]}} for candidate, text in zip(candidates, after)
        ]
    print(json.dumps({"hookSpecificOutput": {"llm_response": changed}}))


main()
