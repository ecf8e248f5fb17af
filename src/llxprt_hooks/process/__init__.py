"""Run one program to its end: start it, write its stdin, read its output, enforce its timeout, and clean up.

This package knows argv, bytes and seconds. It knows nothing about hooks. `run` is one run from start to end, `child` is
a started process with our ends of its pipes, `launch` is the system call that starts it.

The guarantees below hold whatever the program does. Each begins with the word that its tests use (``test_spawn_…``).

``spawn``
    The program runs in ``cwd`` with exactly the environment ``env``. It has its own session: no controlling terminal,
    and it leads its own process group. If it cannot be started, `SpawnError` says whether the program or the working
    directory is the problem.
``stdin``
    All of ``stdin`` is written, then end of file. A program that does not read its stdin, or closes it, is not an
    error. It does not kill the caller either, even if the caller restored the default action of SIGPIPE.
``output``
    Both streams are read to their end, so a full pipe never blocks the program. Each is kept up to ``output_limit``.
    The rest is discarded, uses no memory and is reported as cut; the program is not killed for it.
``end``
    The run ends when the process ends, not when its streams do. Everything the process wrote is read. If a child that
    it left behind keeps a stream open, the run waits 0.1 s for that stream. The child keeps running.
``status``
    Exit codes and signals are reported separately. If other code reaped the process, its status is reported as unknown,
    never as success. Linux 6.15 and newer keep the status with the pidfd; there it is recovered.
``timeout``
    At the timeout (monotonic clock) the process group gets SIGTERM and, ``grace`` seconds later, SIGKILL. The call
    returns when the group has no members left. A process that ended in time has not timed out, even if the event loop
    notices its end late.
``cancel``
    On cancellation the group is ended the same way before CancelledError propagates. A second cancellation skips the
    rest of the grace period.
``close``
    If a run is dropped (its coroutine or its event loop is closed), the group is killed immediately.
``clean``
    However a run ends, it leaves no file descriptor, zombie or thread behind.
``kill``
    If the caller is killed, the groups that it runs are killed right after it, by a small shell that waits for that.
    The shell is started when a program runs for longer than a few milliseconds.
``fork``
    If the caller forks while programs run, they stay the parent's. The child neither signals nor reaps them, nor does
    it keep their input open. While a program is being started, another thread waits before it forks.
``limit``
    `ProcessSlots` limits how many run at once. The others wait, also on other event loops, for any of them to end.
``blocking``
    Where a tool forbids blocking calls on the event loop, as blockbuster does, they are made in a thread,
    for which the loop waits.
``loops``
    Runs work on any event loop with ``add_reader`` (asyncio, uvloop), and on several loops in several threads at once.
    They need no child watcher, no signal handler and no task. Where the kernel has no pidfd, each run uses one thread.

Two kinds of process are out of reach: one that left the group (a daemon that called ``setsid``), and one that the
caller has no permission to signal.
"""

from llxprt_hooks.process.blocking import call_blocking
from llxprt_hooks.process.child import Child, spawn
from llxprt_hooks.process.errors import SpawnError, is_out_of_stack
from llxprt_hooks.process.forks import ForkSafeLock, no_fork
from llxprt_hooks.process.run import Completed, run_child, run_process
from llxprt_hooks.process.slots import ProcessSlots
from llxprt_hooks.process.watchdog import watchdog

__all__ = [
    "Child",
    "Completed",
    "ForkSafeLock",
    "ProcessSlots",
    "SpawnError",
    "call_blocking",
    "is_out_of_stack",
    "no_fork",
    "run_child",
    "run_process",
    "spawn",
    "watchdog",
]
