"""The lines about hooks that another process on this machine answers: over HTTP, and over NATS.

python bench/remote.py http         answers POST requests on a free port, which it prints
python bench/remote.py nats URL     answers the requests on a subject of that server
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from figures import MICROSECONDS, Line, undisturbed

from llxprt_hooks import (
    Config,
    DefaultHookOutput,
    HookExecutionResponse,
    encode_message,
    fire_before_tool_hook,
)
from llxprt_hooks.engine.results import AggregatedHookResult

SUBJECT = "bench.hooks"
ANSWER = b'{"decision": "allow"}'


def remote_lines(*, rounds: int, calls: int) -> list[Line]:
    """Whole events, from the trigger function to the decision; the worker does nothing but answer."""
    return [
        _line("an http hook", "httpx", _http(), rounds, calls),
        _line("a nats hook", "nats", _nats(), rounds, calls),
    ]


def _line(name: str, package: str, hooks: Iterator[dict[str, object]], rounds: int, calls: int) -> Line:
    line = Line(f"{name}, whole event, answered on this machine", MICROSECONDS)
    if importlib.util.find_spec(package) is None:
        line.skipped = f"{package} is not installed"
        return line
    for hook in hooks:
        config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})
        line.rounds = asyncio.run(_rounds(config, rounds, calls))
    if not line.rounds:
        line.skipped = "there is no nats-server"
    return line


async def _rounds(config: Config, rounds: int, calls: int) -> list[float]:
    found = []
    for _ in range(rounds + 1):
        taken = []
        for _ in range(calls):
            started = time.perf_counter()
            output = await fire_before_tool_hook(config, "read_file", {"path": "x"})
            taken.append(time.perf_counter() - started)
            if output is None:
                raise RuntimeError("the hook got no answer")
        found.append(undisturbed(taken))
    return found[1:]  # in the first round it connects


def _http() -> Iterator[dict[str, object]]:
    with _worker("http") as printed:
        yield {"type": "http", "url": f"http://127.0.0.1:{printed}/"}


def _nats() -> Iterator[dict[str, object]]:
    program = shutil.which("nats-server", path=f"{sys.prefix}/bin") or shutil.which("nats-server")
    if program is None:
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"nats://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
        try:
            with _worker("nats", url):
                yield {"type": "nats", "servers": [url], "subject": SUBJECT}
        finally:
            server.terminate()
            server.wait()


@contextmanager
def _worker(*arguments: str) -> Iterator[str]:
    worker = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    try:
        yield worker.stdout.readline().strip()
    finally:
        worker.terminate()
        worker.wait()
        worker.stdout.close()


async def _answer_http() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer_nats(url: str) -> None:
    import nats

    client, allowed = None, AggregatedHookResult(True, final_output=DefaultHookOutput(json.loads(ANSWER)))
    while client is None:
        try:
            client = await nats.connect(url, allow_reconnect=False)
        except (OSError, nats.errors.Error):
            await asyncio.sleep(0.05)

    async def answer(message: nats.aio.msg.Msg) -> None:
        correlation_id = json.loads(message.data)["correlationId"]
        await message.respond(encode_message(HookExecutionResponse(correlation_id, success=True, output=allowed)))

    await client.subscribe(SUBJECT, "llxprt-hooks", cb=answer)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    kind, *address = sys.argv[1:]
    asyncio.run(_answer_http() if kind == "http" else _answer_nats(*address))
