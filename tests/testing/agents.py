"""Small agents for proofs, in plain HTTP: one that guards every call, some with leaks, and some that prove nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from llxprt_hooks import Hooks

FIELDS = {"text": {"type": "string"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": ["text"]}
JOB = {"type": "object", "properties": {**FIELDS, "run_in_background": {"type": "boolean"}}, "required": ["text"]}
MCP_SERVER = Path(__file__).parents[1] / "cli" / "mcp_server.py"
Called = tuple[str, dict[str, Any]]


def converse(run_all: Callable[[list[Called]], list[str]], *tools: str) -> None:
    """One turn: ask the model and run its calls until it makes none."""
    schemas = {"job": JOB}
    declared = [
        {"type": "function", "function": {"name": name, "parameters": schemas.get(name, SCHEMA)}} for name in tools
    ]
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


def _ask_server(name: str, arguments: dict[str, Any]) -> str:
    """Call a tool of an MCP server, which runs for this call only."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    server = [sys.executable, str(MCP_SERVER), "received"]
    answer = subprocess.run(server, input=json.dumps(call).encode() + b"\n", stdout=subprocess.PIPE, check=True).stdout
    return str(json.loads(answer)["result"]["content"])


def main(kind: str, *tools: str) -> None:
    hooks = Hooks.load(".")
    approved = set()
    """What a careless agent does not ask about again."""

    def guarded(name: str, arguments: dict[str, Any]) -> str:
        return str(hooks.sync.run_tool(name, arguments, lambda args: bare(name, args)).llm_content)

    def bare(name: str, arguments: dict[str, Any]) -> str:
        if name == "delegate":
            run = bare if kind == "sub-agent" else guarded
            converse(lambda calls: [run(*call) for call in calls], *(tools if kind == "endless" else ["read_note"]))
        if name.startswith("mcp__"):
            return _ask_server(name, arguments)
        if name == "break_note":
            approved.add(name)
            return "error: there is no such note"
        return f"{name} ran"

    def run(name: str, arguments: dict[str, Any]) -> str:
        forgets = kind == "careless" and (name in approved or name.startswith("mcp__"))
        if not arguments.pop("run_in_background", False):
            return (bare if forgets else guarded)(name, arguments)
        work = bare if kind == "careless" else guarded
        threading.Thread(target=work, args=(name, arguments)).start()
        return "started"

    def run_all(calls: list[Called]) -> list[str]:
        if kind == "parallel" and len(calls) > 1:  # a fast path that forgets the hooks
            with ThreadPoolExecutor() as pool:
                return list(pool.map(lambda call: bare(*call), calls))
        if kind == "timid" and approved:
            sys.exit("a tool failed")
        return [run(*call) for call in calls]

    if kind == "broken":
        sys.exit("no model configured")
    converse(run_all, *tools)


if __name__ == "__main__":
    main(*sys.argv[1:])
