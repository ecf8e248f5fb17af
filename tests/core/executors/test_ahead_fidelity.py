"""What a program observes is the same whether it was started ahead of its event or with it, except the time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.core.executors.test_started_ahead import Agent, _nothing_is_left, waiting  # noqa: F401  # a fixture
from tests.support.processes import end, lives, pids_in, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from llxprt_hooks import HookExecutionResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a process with its input")

SHELL = """
payload=$(cat)
{
    case $payload in *'"tool_name":"write_file"'*) echo "a payload" ;; esac
    for argument in "$0" "$@"; do echo "argument: $argument"; done
    if read -r line; then echo "more input"; fi
    pwd; umask; trap; set -o; ulimit -a; ulimit -Ha
    env | sort
    ls -A "$LLXPRT_SESSION_DIR"
    for fd in /proc/$$/fd/*; do
        target=$(readlink "$fd") && echo "${fd##*/} ${target%%:*} $(grep flags "/proc/$$/fdinfo/${fd##*/}")"
    done
    grep -E '^(Sig[BCIP]|Shd|Umask|Uid|Gid|Groups|Cap|NoNew|Seccomp|Threads|Cpus_allowed|Speculation)' /proc/self/status
    cat /proc/$$/cgroup /proc/$$/oom_score_adj /proc/$$/coredump_filter
    if (: < /dev/tty) 2> /dev/null; then echo "a terminal"; fi
    for fd in 0 1 2; do if [ -t "$fd" ]; then echo "terminal $fd"; fi; done
    echo "$-" "$#" "$(($(ps -o ppid= -p $$) - TESTED))" "$(($(ps -o pgid= -p $$) - $$))" "$(($(ps -o sid= -p $$) - $$))"
    (exit 7); echo "a child ended with $?"
    sh -c 'kill -TERM $$'; echo "another with $?"
} >&2
echo '{"systemMessage": "seen"}'
exit 3
"""
NODE = """
const fs = require('fs');
const payload = JSON.parse(fs.readFileSync(0, 'utf8'));
payload.timestamp = '';
const streams = [0, 1, 2].map((fd) => [fs.fstatSync(fd).mode, fs.readlinkSync(`/proc/self/fd/${fd}`).split(':')[0],
  require('tty').isatty(fd), fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8').split('\\n')[1]]);
const kept = /^(Sig[BIP]|Shd|Umask|Uid|Gid|Groups|Cap|NoNew|Seccomp|Cpus_allowed)/;
console.error(JSON.stringify({
  payload, streams, argv: process.argv, execArgv: process.execArgv, env: process.env, cwd: process.cwd(),
  umask: process.umask(), parent: process.ppid === Number(process.env.TESTED),
  status: fs.readFileSync('/proc/self/status', 'utf8').split('\\n').filter((line) => kept.test(line)),
  limits: fs.readFileSync('/proc/self/limits', 'utf8'),
  session: fs.readdirSync(process.env.LLXPRT_SESSION_DIR),
  again: fs.readSync(0, Buffer.alloc(1)),
  child: require('child_process').spawnSync('sh', ['-c', 'cat; exit 7']).status,
}, null, 1));
console.log('{"systemMessage": "seen"}');
process.exitCode = 3;
"""


def _shell(name: str) -> Callable[[Path], str]:
    def command(folder: Path) -> str:
        (folder / "probe.sh").write_text(SHELL)
        return f"{name} probe.sh 'an argument' ''"

    return command


def _node(folder: Path) -> str:
    (folder / "probe.js").write_text(NODE)
    return "node probe.js 'an argument' ''"


def _compiled(folder: Path) -> str:
    source = Path(__file__).with_name("probe.c")
    subprocess.run([_compiler(), "-o", folder / "probe", source], check=True)
    return "./probe 'an argument' ''"


def _compiler() -> str:
    return shutil.which("cc") or shutil.which("gcc") or ""


PROBES = {
    "sh": (_shell("sh"), "sh"),
    "bash": (_shell("bash"), "bash"),
    "Node": (_node, "node"),
    "C": (_compiled, _compiler()),
}


async def both(folder: Path, command: str, **fields: Any) -> tuple[HookExecutionResult, HookExecutionResult]:
    """The results of a cold run and of one that was started ahead."""
    fresh, agent = Agent(folder, command, **{**fields, "warm": False}), Agent(folder, command, **fields)
    agent.config.session_id = fresh.config.session_id
    cold = await fresh.event()
    agent.hooks.has_hooks_for("BeforeTool", "write_file")
    waiting()
    started = await agent.event()
    assert (cold.ahead, started.ahead) == (False, True)
    return cold, started


def outcome(result: HookExecutionResult) -> dict[str, Any]:
    """All that is recorded of a run, except times, ids and how it was started."""
    different = ("event_id", "execution_id", "duration_ms", "warm", "ahead")
    return {name: value for name, value in result.to_dict().items() if name not in different}


@pytest.mark.parametrize(("probe", "program"), PROBES.values(), ids=PROBES)
async def test_a_program_observes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: Callable[[Path], str], program: str
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program or 'a C compiler'} is not installed")
    monkeypatch.setenv("TESTED", str(os.getpid()))
    command = probe(tmp_path)

    cold, started = await both(tmp_path, command)

    assert cold.stderr.splitlines() == started.stderr.splitlines()
    assert outcome(cold) == outcome(started)
    assert (cold.exit_code, cold.stdout) == (3, '{"systemMessage": "seen"}\n')
    assert "LLXPRT_SESSION_DIR" in cold.stderr


ENDS = {
    "allows": "exit 0",
    "answers": """echo '{"decision": "deny", "reason": "no"}'""",
    "prints text": "echo some text; echo more >&2",
    "fails": "echo why >&2; exit 1",
    "blocks": "echo why >&2; exit 2",
    "another code": "exit 255",
    "is killed": "kill -KILL $$",
    "is terminated": "echo first; kill -TERM $$",
    "loses its reader": "kill -PIPE $$",
    "aborts": "ulimit -c 0; kill -ABRT $$",
    "closes its streams": "exec <&- >&- 2>&-; exit 4",
    "prints much": "head -c 300000 /dev/zero | tr '\\\\0' x; head -c 300000 /dev/zero | tr '\\\\0' y >&2",
    "a program is not found": "no-such-program",
    "cannot be parsed": "if",
    "traps": "trap 'echo trapped >&2; exit 6' TERM; kill -TERM $$; wait",
    "replaces itself": "exec sh -c 'echo replaced >&2; exit 5'",
}


@pytest.mark.parametrize("then", ENDS.values(), ids=ENDS)
async def test_an_end_means_the_same(tmp_path: Path, then: str) -> None:
    (tmp_path / "hook.sh").write_text(f"cat > /dev/null\n{then}\n")

    cold, started = await both(tmp_path, "bash hook.sh")

    assert outcome(cold) == outcome(started)


@pytest.mark.parametrize("reads", ["read -r _; exit 0", "head -c 10 > /dev/null", "exec 0<&-", "wc -c"])
async def test_a_large_input_is_read_as_far_as_the_program_wants(tmp_path: Path, reads: str) -> None:
    command = f"head -c 1 >&2; {reads}"
    fresh, agent = Agent(tmp_path, command, warm=False), Agent(tmp_path, command)
    for each in (fresh, agent):
        each.config.session_id = "same"
    agent.hooks.has_hooks_for("BeforeTool", "write_file")
    waiting()
    for each in (fresh, agent):
        await each.hooks.run_tool("write_file", {"text": "x" * 1_000_000}, lambda _: "ran")

    cold, started = fresh.recorder.results[-1], agent.recorder.results[-1]

    assert (cold.ahead, started.ahead) == (False, True)
    assert outcome(cold) == outcome(started)


async def test_a_child_that_is_left_behind_lives_on(tmp_path: Path) -> None:
    await both(tmp_path, "cat > /dev/null; sleep 1000 > /dev/null 2>&1 & echo $! >> pids")

    left = pids_in(tmp_path / "pids", 2)
    try:
        assert all(map(lives, left))
    finally:
        for pid in left:
            end(pid)
        until(lambda: not any(map(lives, left)))


async def test_the_folder_of_the_session_is_the_same_and_has_what_was_kept_there(tmp_path: Path) -> None:
    command = "cat > /dev/null; echo x >> $LLXPRT_SESSION_DIR/kept; cat $LLXPRT_SESSION_DIR/kept >&2"

    cold, started = await both(tmp_path, command)

    assert (cold.stderr, started.stderr) == ("x\n", "x\nx\n")
