"""Everything that a script can see of its own start, as JSON. Runs on Python 3.8, cold and warm."""

import sys

at_start = {
    "names": sorted(globals()),
    "main is this": sys.modules["__main__"].__dict__ is globals(),
    "file": __file__,
    "doc": __doc__,
    "spec": __spec__,
    "package": __package__,
    "cached": globals().get("__cached__", "absent"),
    "annotations": globals().get("__annotations__", "absent"),
    "loader": [type(__loader__).__name__, __loader__.name, __loader__.path],
    "builtins": type(__builtins__).__name__,
}

import faulthandler
import gc
import json
import locale
import os
import random
import resource
import signal
import threading
import time
import warnings


def stream(of):
    raw = getattr(of.buffer, "raw", of.buffer)
    return [
        of.encoding,
        of.errors,
        of.line_buffering,
        getattr(of, "write_through", None),
        of.newlines,
        of.name,
        of.mode,
        type(of.buffer).__name__,
        type(raw).__name__,
        raw.name,
        raw.mode,
        raw.closefd,
        getattr(raw, "_blksize", None),
        of.isatty(),
        os.get_inheritable(of.fileno()),
        os.get_blocking(of.fileno()),
    ]


def fields(of, names):
    return {name: repr(getattr(of, name, "absent")) for name in names}


mask = os.umask(0o77)
os.umask(mask)
print(
    json.dumps(
        {
            "main": at_start,
            "argv": sys.argv,
            "sys": fields(
                sys,
                [
                    "base_exec_prefix",
                    "base_prefix",
                    "dont_write_bytecode",
                    "exec_prefix",
                    "executable",
                    "flags",
                    "orig_argv",
                    "path",
                    "prefix",
                    "ps1",
                    "pycache_prefix",
                    "tracebacklimit",
                    "version",
                    "warnoptions",
                    "_xoptions",
                    "last_type",
                ],
            ),
            "hooks": [
                [repr(finder).partition(" at 0x")[0] for finder in sys.meta_path],
                [getattr(hook, "__qualname__", "") for hook in sys.path_hooks],
                sys.excepthook is sys.__excepthook__,
                sys.displayhook is sys.__displayhook__,
                sys.gettrace(),
                sys.getprofile(),
                sys.stdin is sys.__stdin__,
                sys.stdout is sys.__stdout__,
                sys.stderr is sys.__stderr__,
            ],
            "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), gc.get_threshold()],
            "encodings": [sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(), sys.getdefaultencoding()],
            "locale": [locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(False)],
            "time": [time.tzname, time.timezone, time.daylight],
            "streams": [stream(sys.stdin), stream(sys.stdout), stream(sys.stderr)],
            "environment": list(os.environ.items()),
            "cwd": os.getcwd(),
            "descriptors": sorted(
                int(name) for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)
            ),
            "session": [os.getpid() == os.getpgrp(), os.getpid() == os.getsid(0), os.isatty(0)],
            "signals": {str(number): repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
            "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
            "wakeup": signal.set_wakeup_fd(-1),
            "alarm": signal.getitimer(signal.ITIMER_REAL),
            "umask": mask,
            "process": [
                os.getuid(),
                os.getgroups(),
                os.sched_getscheduler(0),
                threading.main_thread().native_id == os.getpid(),
            ],
            "faults": faulthandler.is_enabled(),
            "environb": sorted(map(repr, os.environb.items())),
            "hash": hash("x") if os.environ.get("PYTHONHASHSEED") and not sys.flags.ignore_environment else None,
            "rlimits": [resource.getrlimit(i) for i in range(16)],
            "nice": os.nice(0),
            "affinity": sorted(os.sched_getaffinity(0)),
            "threads": [
                threading.active_count(),
                threading.current_thread() is threading.main_thread(),
                len(os.listdir("/proc/self/task")),
            ],
            "warnings": [list(map(repr, warnings.filters)), sorted(map(str, warnings.onceregistry))],
            "children": [resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime],
            "exe": os.readlink("/proc/self/exe"),
            "input": sys.stdin.read(),
        }
    )
)
print(random.random(), file=sys.stderr)
