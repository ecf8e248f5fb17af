"""One program, run to its end: started, fed, drained, timed, and cleared away. Knows argv, bytes and seconds only.

What holds, whatever the program does. The word in front is the one that the tests use for it.

``spawn``
    The program runs in ``cwd`` with exactly ``env``, in a session of its own: without a controlling terminal, and
    leader of its own process group. One that cannot be started is a `SpawnError` that tells the program from the
    working directory.
``stdin``
    It is given all of ``stdin`` and then end of file. One that does not read it, or closes it, is no error, and no
    danger to the caller even where SIGPIPE has its default action.
``output``
    Both streams are drained until the end, so that no program hangs on a full pipe. Each is kept up to
    ``output_limit``; what comes after that is counted as cut and takes no memory, and is no reason to kill.
``end``
    The run ends when the process ends, not when its streams do. All that it wrote is read. A child that it left
    behind, holding a stream open, is waited for a tenth of a second and lives on.
``status``
    Exit code or signal are told apart. A status that somebody else collected is told as lost, never as success; a
    kernel that keeps it with the pidfd (Linux 6.15) is asked first.
``timeout``
    When the time is over (monotonic clock) the process group gets SIGTERM and, ``grace`` later, SIGKILL. The call
    returns when nothing of the group is left. A process that has ended in time has not timed out, however late the
    event loop comes to look.
``cancel``
    Cancelled, it ends the group in the same way before the cancellation goes on; a second cancellation does not wait
    for the grace to be over.
``close``
    A run that is dropped (its coroutine closed, its event loop gone) kills the group on the spot.
``clean``
    However it ends, no descriptor, zombie or thread remains.
``loops``
    It runs on any event loop with ``add_reader`` (asyncio, uvloop), on several of them in several threads at once.
    It needs no child watcher, no signal handler and no task; where the kernel has no pidfd, one thread a run.

Not in its power: a process that left the group (a daemon with ``setsid``), and one that the caller may not signal.
"""

from llxprt_hooks.process.errors import SpawnError
from llxprt_hooks.process.run import Completed, run_process

__all__ = ["Completed", "SpawnError", "run_process"]
