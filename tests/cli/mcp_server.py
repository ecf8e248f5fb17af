"""An MCP server without any SDK. It records every line as it came; what it answers depends on the tool's name.

It is started in most tests of the proxy, so it imports little.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

received = sys.argv[1]


def send(message: Any) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def result_of(name: str, arguments: Any) -> dict[str, Any]:
    match name:
        case "data":
            return text('{"n": 1.50}', structuredContent={"n": 1.5})
        case "image":
            return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
        case "failing":
            return text("it went wrong", isError=True)
        case "asking":
            return {"resultType": "input_required", "inputRequests": {}}
        case "long":
            return {"task": {"taskId": "task-1", "status": "working"}}
        case "big":
            return text("x" * 10_000_000)
        case "huge":
            return text("x" * (1 << 26))
        case "progress":
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
        case "sampling":  # a request of the server with the id of the call
            send({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}})
    return text(f"ran {name} {json.dumps(arguments)}")


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message.get("method"), message.get("params") or {}
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
    if "id" not in message or method is None:
        return None
    offer = f"{os.path.dirname(received)}/{method.replace('/', '-')}.json"
    if os.path.exists(offer):  # what a test lets it offer
        with open(offer, "rb") as file:
            return {**reply, "result": json.load(file)}
    if method == "tools/list":
        is_last = params.get("cursor") == "2"
        names = ("long",) if is_last else ("data", "free")
        tools = [{"name": name, "inputSchema": {}, "outputSchema": {"type": "object"}} for name in names]
        return {**reply, "result": {"tools": tools} if is_last else {"tools": tools, "nextCursor": "2"}}
    if method == "notify":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if method == "tasks/result":
        return {**reply, "result": text("the task is done")}
    if method != "tools/call":
        return {**reply, "result": {"method": method}}
    if params["name"] == "silent":
        return None
    if params["name"] == "raw":  # answers with these lines, whatever they are
        os.write(1, "".join(f"{each}\n" for each in params["arguments"]["lines"]).encode())
        return None
    if params["name"] == "exit":
        sys.exit(7)
    if params["name"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if params["name"] == "unknown":
        return {**reply, "error": {"code": -32602, "message": "unknown tool"}}
    return {**reply, "result": result_of(params["name"], params.get("arguments"))}


for line in sys.stdin.buffer:
    with open(received, "ab") as notes:
        notes.write(line)
    message = json.loads(line)
    if isinstance(message, list):
        send([reply for each in message if (reply := answer(each)) is not None])
    elif (reply := answer(message)) is not None:
        send(reply)
