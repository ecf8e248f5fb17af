"""Small agents for proofs, in plain HTTP: one that guards every call, two with a leak, and two that prove nothing."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llxprt_hooks import Hooks

TOOLS = ("read_note", "write_note", "delegate")
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
Called = tuple[str, dict[str, Any]]


def converse(run_all: Callable[[list[Called]], list[str]], *tools: str) -> None:
    """One turn: ask the model and run its calls until it makes none."""
    declared = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
    messages: list[Any] = [{"role": "user", "content": "hello"}]
    while calls := (message := _ask(messages, declared)).get("tool_calls"):
        texts = run_all([(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls])
        results = zip(calls, texts, strict=True)
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in results]


def _ask(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    with urllib.request.urlopen(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body) as response:
        message: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return message


def main(kind: str) -> None:
    hooks = Hooks.load(".")

    def guarded(name: str, arguments: dict[str, Any]) -> str:
        return str(hooks.sync.run_tool(name, arguments, lambda args: bare(name, args)).llm_content)

    def bare(name: str, arguments: dict[str, Any]) -> str:
        if name == "delegate":
            run = bare if kind == "sub-agent" else guarded
            converse(lambda calls: [run(*call) for call in calls], "read_note")
        return f"{name} ran"

    def run_all(calls: list[Called]) -> list[str]:
        if kind == "parallel" and len(calls) > 1:  # a fast path that forgets the hooks
            with ThreadPoolExecutor() as pool:
                return list(pool.map(lambda call: bare(*call), calls))
        return [guarded(*call) for call in calls]

    if kind == "broken":
        sys.exit("no model configured")
    converse(run_all, *(() if kind == "mute" else TOOLS))


if __name__ == "__main__":
    main(sys.argv[1])
