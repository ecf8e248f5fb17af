"""Starting a process, and failing to start it."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

import llxprt_hooks.process.child as child_module
from llxprt_hooks.process import SpawnError, child, exit_watch
from tests.process.run.runs import ENV, bash, in_python, marked, run


async def test_spawn_uses_the_working_directory_and_just_the_environment(tmp_path: Path) -> None:
    completed = await run("/usr/bin/env", env={"A": "1", "Ä": "ö"}, cwd=str(tmp_path))

    assert sorted(completed.stdout.decode().split()) == ["A=1", "Ä=ö"]
    assert (await run("pwd", "-P", cwd=str(tmp_path))).stdout.decode().strip() == os.path.realpath(tmp_path)


async def test_spawn_passes_arguments_untouched() -> None:
    completed = await run("printf", "%s|", "a b", "$HOME", "", "*", "ü\udcff")

    assert completed.stdout == b"a b|$HOME||*|\xc3\xbc\xff|"


def _other_signature(*_arguments: object) -> int:
    raise TypeError("fork_exec() takes other arguments in this version")


@pytest.mark.parametrize("fork_exec", [None, _other_signature])
async def test_spawn_does_without_the_function_that_is_not_public(
    fork_exec: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_fork_exec", fork_exec)

    completed = await run("/bin/sh", "-c", "cat; exit 7", stdin=b"input")

    assert (completed.exit_code, completed.stdout) == (7, b"input")


async def test_spawn_starts_a_program_once(tmp_path: Path) -> None:
    program(tmp_path / "log", f"#!/bin/sh\necho started >> {tmp_path}/starts\n")

    await run(str(tmp_path / "log"))

    assert (tmp_path / "starts").read_text() == "started\n"


async def test_spawn_gives_a_session_of_its_own_without_a_terminal() -> None:
    completed = await run(
        "python3", "-c", "import os; print(os.getpid() == os.getpgrp() == os.getsid(0)); open('/dev/tty')"
    )

    assert completed.stdout == b"True\n"
    assert b"OSError" in completed.stderr


async def test_spawn_gives_no_other_descriptor_of_ours() -> None:
    with open("/dev/null") as ours:
        os.set_inheritable(ours.fileno(), True)

        completed = await bash(f"test -e /dev/fd/{ours.fileno()}")

    assert completed.exit_code == 1


async def test_spawn_finds_the_program_in_the_path_of_the_environment_it_is_given(tmp_path: Path) -> None:
    program(tmp_path / "greet", "#!/bin/sh\necho hello\n")

    assert (await run("greet", env={"PATH": str(tmp_path)})).stdout == b"hello\n"


async def test_spawn_runs_the_executable_under_the_name_in_argv() -> None:
    completed = await run("my-name", "-c", "echo $0", executable="/bin/bash")

    assert completed.stdout == b"my-name\n"


async def test_spawn_failure_names_the_executable_that_was_tried() -> None:
    with pytest.raises(SpawnError, match=r"^Cannot start '/no/such/true': there is no such file\.$"):
        await run("true", executable="/no/such/true")


async def test_spawn_takes_a_relative_program_from_the_working_directory(tmp_path: Path) -> None:
    program(tmp_path / "greet", "#!/bin/sh\necho hello\n")

    assert (await run("./greet", cwd=str(tmp_path))).stdout == b"hello\n"


def test_spawn_is_seen_by_audit_hooks(tmp_path: Path) -> None:
    printed = in_python(
        """
import asyncio, sys
from llxprt_hooks.process import run_process

def note(event, arguments):
    if event == "subprocess.Popen":
        print(*arguments)

sys.addaudithook(note)
asyncio.run(run_process(["true", "x"], stdin=b"", env={"PATH": "/usr/bin:/bin"}, cwd="/", timeout=60))
""",
        cwd=tmp_path,
    )

    assert printed.startswith("true ['true', 'x'] / {'PATH': ")


def test_spawn_starts_nothing_after_an_exception_of_a_signal_handler(tmp_path: Path) -> None:
    printed = in_python(
        """
import signal, sys
from llxprt_hooks.process import spawn

class LateError(Exception): ...

def late(*_):
    raise LateError

def alarm(event, arguments):
    if event == "subprocess.Popen" and not rung:
        rung.append(True)
        signal.raise_signal(signal.SIGALRM)

rung = []
signal.signal(signal.SIGALRM, late)
sys.addaudithook(alarm)
try:
    spawn(["/bin/true"], stdin=b"", env={}, cwd="/", output_limit=1)
except LateError:
    print("late")
""",
        cwd=tmp_path,
    )

    assert printed == "late\n"


def test_spawn_leaves_nothing_running_after_a_timeout_of_a_signal_handler(tmp_path: Path) -> None:
    printed = in_python(
        """
import os, signal, sys
from llxprt_hooks.process import SpawnError, child, spawn

def late(*_):
    raise TimeoutError

def read(*arguments, of_the_system=os.read):
    signal.raise_signal(signal.SIGALRM)
    return of_the_system(*arguments)

signal.signal(signal.SIGALRM, late)
child._fork_exec = None
os.read = read
try:
    spawn(["/bin/sleep", "1000"], stdin=b"", env={}, cwd="/", output_limit=1)
except SpawnError as error:
    print(error.started)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nothing is left")
""",
        cwd=tmp_path,
    )

    assert printed == "True\nnothing is left\n"


async def test_spawn_takes_each_environment_as_it_is_then() -> None:
    env = {"PATH": os.environ["PATH"], "A": "1"}
    first = await run("printenv", "A", env=env)
    env["A"] = "2"

    assert (first.stdout, (await run("printenv", "A", env=env)).stdout) == (b"1\n", b"2\n")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["no-such-program"], "Cannot start 'no-such-program': there is no such program in PATH"),
        (["./missing"], "Cannot start './missing': there is no such file."),
        (["./plain"], "Cannot start './plain': it is not executable (run chmod +x on it)."),
        (["./folder"], "Cannot start './folder': it is a directory."),
        (["./bad-shebang"], "Cannot start './bad-shebang': the interpreter in its first line does not exist."),
        (["./no-shebang"], "Cannot start './no-shebang': it is neither a program for this system nor a script"),
        (["./plain/x"], "Cannot start './plain/x': a part of its path is not a directory."),
        (["true", "x" * 10_000_000], "Cannot start 'true': its arguments and environment together are larger"),
        (["true", "a\0b"], "Cannot start 'true': an argument contains a NUL character"),
        (["true", "\ud800"], "Cannot start 'true': 'utf-8' codec can't encode"),
        ([], "Cannot start a program: the command is empty."),
    ],
    ids=lambda value: value[0][:20] if value and isinstance(value, list) else None,
)
async def test_spawn_failure_says_what_is_wrong_with_the_program(
    tmp_path: Path, argv: list[str], sentence: str, way: None
) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "folder").mkdir()
    program(tmp_path / "bad-shebang", "#!/no/such/interpreter\n")
    program(tmp_path / "no-shebang", "text\n")

    with pytest.raises(SpawnError) as failure:
        await run(*argv, cwd=str(tmp_path), stdin=bytes(200_000))

    assert str(failure.value).startswith(sentence)
    assert isinstance(failure.value.__cause__, OSError | ValueError)


@pytest.mark.parametrize(
    ("cwd", "sentence"),
    [
        ("gone", "does not exist."),
        ("file", "is not a directory."),
        ("file/x", "is not a directory."),
        ("a\0b", "contains a NUL character."),
    ],
)
async def test_spawn_failure_distinguishes_the_working_directory_from_the_program(
    tmp_path: Path, cwd: str, sentence: str
) -> None:
    (tmp_path / "file").write_text("")
    directory = f"{tmp_path}/{cwd}"

    with pytest.raises(SpawnError) as failure:
        await run("true", cwd=directory)

    assert str(failure.value) == f"Cannot start 'true': its working directory {directory!r} {sentence}"


async def test_spawn_failure_of_a_folder_that_is_also_the_working_directory(tmp_path: Path) -> None:
    with pytest.raises(SpawnError, match="it is a directory"):
        await run(str(tmp_path), cwd=str(tmp_path))


@pytest.mark.parametrize("variable", [("A\0", "1"), ("A", "1\0"), ("A=B", "1")])
async def test_spawn_failure_names_the_environment_variable(variable: tuple[str, str]) -> None:
    with pytest.raises(SpawnError, match=r"the environment variable 'A.*' contains a NUL character"):
        await run("true", env={**ENV, variable[0]: variable[1]})


@pytest.mark.parametrize("lacking", ["", "pidfd_open"])
def test_spawn_failure_for_lack_of_descriptors_leaves_none_open(tmp_path: Path, lacking: str) -> None:
    """With every number of free descriptors, from none to enough."""
    printed = in_python(
        f"""
import asyncio, os, resource
from llxprt_hooks.process import SpawnError, run_process
from llxprt_hooks.process.watchdog import watchdog

watchdog.start = lambda: None  # it opens descriptors of its own, when a program takes long
for name in {lacking!r}.split():
    delattr(os, name)

async def main():
    await start()
    outcomes = set()
    before = os.listdir("/dev/fd")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for limit in range(len(before) - 1, len(before) + 15):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try:
            outcomes.add("started: " + (await start()).stdout.decode())
        except SpawnError as error:
            outcomes.add(str(error))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        assert os.listdir("/dev/fd") == before
    print(*sorted(outcomes), sep="\\n")

async def start():
    return await run_process(["cat"], stdin=b"in", env=os.environ, cwd="/", timeout=60)

asyncio.run(main())
""",
        cwd=tmp_path,
    )

    assert printed.splitlines() == ["Cannot start 'cat': this process has too many files open.", "started: in"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who has no other processes")
@pytest.mark.parametrize("lacking", ["", "pidfd_open"])
def test_spawn_failure_for_lack_of_processes_leaves_none_behind(tmp_path: Path, lacking: str) -> None:
    """With room for no process, for one, and for its waiter thread too."""
    printed = in_python(
        f"""
import asyncio, os, resource
from llxprt_hooks.process import SpawnError, run_process
from llxprt_hooks.process.watchdog import watchdog

watchdog.start = lambda: None  # its shell is a process, too
for name in {lacking!r}.split():
    delattr(os, name)

async def main():
    await run_process(["/bin/cat"], stdin=b"", env=os.environ, cwd="/", timeout=60)  # now the watchdog has its table
    before = os.listdir("/dev/fd")
    for limit in range(4):
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, 10))
        try:
            done = await run_process(["/bin/cat"], stdin=b"in", env=os.environ, cwd="/", timeout=60)
            outcomes.add("started: " + done.stdout.decode())
        except SpawnError as error:
            outcomes.add(str(error))
        assert os.listdir("/dev/fd") == before
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            continue
        raise AssertionError("a child is left")

outcomes = set()
with asyncio.Runner() as runner:
    runner.run(asyncio.sleep(0))
    os.setuid(100_000 + os.getpid())  # a user without any other process
    runner.run(main())
print(*sorted(outcomes), sep="\\n")
""",
        cwd=tmp_path,
    )

    assert printed.splitlines() == [
        "Cannot start '/bin/cat': the system or the user's process limit allows no further process or thread.",
        "started: in",
    ]


def test_spawn_from_a_caller_whose_own_streams_are_closed(tmp_path: Path) -> None:
    """Then our pipes have the numbers 0 to 2 themselves."""
    in_python(
        """
import asyncio, os
from llxprt_hooks.process import run_process

async def main():
    for closed in (0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2):
        kept = [os.dup(fd) for fd in (0, 1, 2)]
        for fd in closed:
            os.close(fd)
        done = await run_process(["bash", "-c", "cat; echo err >&2"], stdin=b"in", env=os.environ, cwd="/", timeout=60)
        for copy, fd in zip(kept, (0, 1, 2)):
            os.dup2(copy, fd)
            os.close(copy)
        assert (done.stdout, done.stderr) == (b"in", b"err\\n"), (closed, done)

asyncio.run(main())
""",
        cwd=tmp_path,
    )


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


async def test_stdin_is_made_when_the_program_has_been_started(tmp_path: Path) -> None:
    def made() -> bytes:
        while not (tmp_path / "started").exists():
            pass
        return b"made"

    completed = await bash(f"touch {tmp_path}/started; cat", stdin=made)

    assert completed.stdout == b"made"


async def test_stdin_that_cannot_be_made_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        await bash("exec sleep 1000", stdin=lambda: bytes(1 // 0))


async def test_spawn_failure_after_the_start_ends_the_program_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(pid: int) -> None:
        raise OSError(errno.EMFILE, "no descriptor")

    monkeypatch.setattr(child_module, "watch_exit", refused)

    with pytest.raises(SpawnError) as failure:
        await bash("exec sleep 1000")

    assert failure.value.started
    assert failure.value.is_resource_exhaustion


async def test_spawn_that_fails_does_not_wait_for_what_it_may_not_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def refused(pid: int) -> None:
        pids.append(pid)
        raise OSError(errno.EMFILE, "no descriptor")

    monkeypatch.setattr(child_module, "watch_exit", refused)
    monkeypatch.setattr(exit_watch, "_KILL_TIMEOUT", 0.1)
    with monkeypatch.context() as no_signals:
        no_signals.setattr(exit_watch, "signal_group", lambda *_: None)
        with pytest.warns(ResourceWarning, match="still running"), pytest.raises(SpawnError):
            await bash("exec sleep 1000")

    os.kill(pids[0], signal.SIGKILL)
    os.waitid(os.P_PID, pids[0], os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it was killed
    monkeypatch.undo()
    await run("true")  # reaps it


async def test_spawn_that_a_signal_handler_interrupts_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "read", interrupted)  # Popen waits here until the program has been executed
    with pytest.raises(KeyboardInterrupt):
        await run("sleep", "60")
    monkeypatch.undo()

    assert marked() == []
