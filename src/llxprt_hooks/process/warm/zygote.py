"""A warm Python interpreter that forks to run scripts: the program that is started once per interpreter.

It runs on Python 3.8 and newer with the standard library only, because the interpreter is the hook's, not ours. It runs
no script itself: a child that was forked in advance waits for a script, becomes it and leaves; the parent forks the
next one and reports how the script ended. It has one thread and no timer. Never more than one child waits, so it can
read the control socket by itself; it passes the request on to the parent, which learns from it. The parent can always
take it over: it keeps a descriptor in reserve, and before it leaves it waits until the child has ended or taken a
request. So a request either has been accepted and its end will be reported, or its status socket closes and the other
side starts the script itself.

The other side is ``pool``. On the control socket each request is a length, then argv, environment and directory, and
four descriptors: stdin, stdout, stderr and one end of a status socket. Messages on the status socket are five bytes:

``A`` pid      the child accepted the request and is about to run the script
``R`` reason   it refuses, and the script has to be started in the usual way; ``REASONS`` has the words
``E`` status   the wait status of the script; the process is reaped when the other side closes the socket

The other side answers ``A`` with one byte, ``LISTED``, when something else will end the script if that side is killed.
Until then we do that.

On the control socket we send ``R`` when we are ready, and ``I`` before we leave because nothing was to do, or because
files that we have loaded were changed.
"""

from __future__ import annotations

import sys

_AT_START = frozenset(sys.modules)  # what a plain start imports cannot be shadowed by files beside the script

import array
import atexit
import gc
import os
import select
import signal
import socket
import stat
import struct
import threading
import time
import types
import warnings
import weakref
from importlib.machinery import SourceFileLoader, all_suffixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    Script = tuple[types.ModuleType, types.CodeType]

PRELOADED = """
    argparse base64 collections contextlib copy dataclasses datetime enum errno fnmatch functools glob hashlib io
    itertools json locale math operator pathlib random re shlex shutil stat string subprocess tempfile textwrap
    threading time traceback typing urllib.parse zlib
""".split()
"""What many hooks import; each module makes a fork a little slower.

Not ``logging`` or ``uuid``: they remember when they were imported.
"""

REASONS = (
    "it cannot be read, or is not a text file",
    "its folder has a file with the name of a module of the standard library, or that library is in a zip file",
    "it does not compile, or not without a warning",
    "it asks for its parent process, command line or call stack, in which a zygote shows",
    "the working directory cannot be entered",
    "something was installed for this interpreter, or its start-up files were changed",
)
_UNREADABLE, _SHADOWED, _NOT_COMPILED, _ASKS_FOR_ORIGIN, _NO_DIRECTORY, STALE = range(len(REASONS))

_ASKING_FOR_ORIGIN = (b"getppid", b"/cmdline", b"_getframe", b"currentframe", b"f_back", b"_stack(", b"inspect.stack")

LISTED = b"L"

LENGTH = struct.Struct("!I")
STATUS = struct.Struct("!ci")
_DESCRIPTORS = 4
_MAX_SOURCE = 1024 * 1024
_IDLE_SECONDS = 600.0
_PARENT_CHECK_SECONDS = 1.0
_FILE_CHECK_SECONDS = 1.0


_DROPPED_FIRST = "path argv ps1 ps2 last_exc last_type last_value last_traceback path_hooks meta_path".split()
"""What the interpreter removes from ``sys`` when it ends, before any module."""


_kept: list[_Server] = []
"""Not freed in a child: to free memory that was shared with the parent means to copy it first."""


class Refused(Exception):
    """This script cannot be run here as in a fresh interpreter."""

    def __init__(self, reason: int) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


def main() -> Script:
    """Serve requests until the other side closes the control socket, its process ends, or nothing was to do for long.

    Returns only in a child, with the script that it has to run: so that no frame of ours is below the script's, except
    that of this module.

    We are started as ``./zygote.py``, so that ``__file__`` shows how this interpreter makes such a path absolute.
    """
    if threading.active_count() > 1 or sys.gettrace() or sys.getprofile():
        sys.exit("the interpreter starts a thread or a tracer by itself")  # that a fork would lose, or measure once
    os.chdir("/")
    base_path = list(sys.path) if _is_safe_path() else sys.path[1:]
    sys.path[:] = base_path[_standard_library_index(base_path) :]
    for name in PRELOADED:
        try:
            __import__(name)
        except ImportError:  # an interpreter without sqlite3, for example
            pass
    sys.path[:] = base_path
    control, parent, started = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    _kept.append(_Server(control, parent, started, base_path))
    return _kept[0].serve()


def _is_safe_path() -> bool:
    """Whether the folder of the script is not in ``sys.path``: -P, -I, or PYTHONSAFEPATH."""
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def _standard_library_index(path: list[str]) -> int:
    """The position of the standard library. Modules in folders before it shadow those that we have loaded."""
    folder = os.path.dirname(os.__file__)
    return path.index(folder) if folder in path else len(path)


class _Server:
    def __init__(self, control: socket.socket, parent: int, started: int, base_path: list[str]) -> None:
        self._control = control
        self._parent = parent
        self._base_path = base_path
        self._installation = _signatures(_installation(base_path), started)
        self._loaded = _signatures(_loaded(), started)
        self._checked = time.monotonic()  # when the files that are loaded were compared
        self._script_cache = _ScriptCache()
        self._environment: bytes | None = None  # the block that os.environ was set from, if it was
        self._coerced_locale = os.environb.get(b"LC_CTYPE")
        self._running: dict[int, int] = {}  # pid -> status socket
        self._ended: dict[int, int] = {}  # status socket -> pid, not reaped yet
        self._waiting: tuple[int, socket.socket] | None = None  # the child that was forked in advance
        self._latest: bytes | None = None  # the latest request
        self._script: Script | None = None  # in the child that will run it
        self._closed = False  # the other side closed the control socket
        self._shadowable = _shadowable_names()
        self._own_child_signal = signal.getsignal(signal.SIGCHLD)
        self._wakeup, wakeup_writer = os.pipe()
        for fd in (self._wakeup, wakeup_writer):
            os.set_blocking(fd, False)
        self._descriptors = {self._wakeup, wakeup_writer}
        self._spare = -1
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._watches_parent = self._watch_parent()
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        sys.path_importer_cache.clear()  # it remembers which files are absent, and they may be there later
        gc.collect()
        gc.freeze()

    def serve(self) -> Script:
        """Run until there is nothing left to do; in a child, return its script.

        Scripts that the other side has listed stay when it has ended: what has to end them then is not our business.
        """
        self._fork_ahead()
        if self._script is None:
            self._control.send(b"R")
        idle = 0.0
        while self._script is None:
            if os.getppid() != self._parent:
                self._kill_unlisted()
                os._exit(0)
            if self._closed and not self._running and not self._ended:
                os._exit(0)
            pause = _IDLE_SECONDS if self._watches_parent else _PARENT_CHECK_SECONDS
            events = self._poll.poll(pause * 1000)
            idle = 0.0 if events or self._running else idle + pause
            if idle >= _IDLE_SECONDS and not self._closed:
                self._leave(b"I")
            for fd, _ in events:
                if fd == self._wakeup:
                    self._report_ended()
                elif fd in self._ended:
                    self._reap(fd)
                # Anything else is the waiting child, or the descriptor of our parent: getppid shows if that has ended.
            if self._waiting is not None and any(fd == self._waiting[1].fileno() for fd, _ in events):
                self._replace_child()
        return self._script

    def _leave(self, message: bytes = b"") -> None:
        """Take no more requests. One that is on its way gets no answer, and its script is started in the usual way.

        Without a message, it is a failure to the other side.
        """
        try:
            self._control.send(message)
        except OSError:  # nobody is there any more
            pass
        self._control.close()
        if self._waiting is not None:
            self._waiting[1].shutdown(socket.SHUT_WR)  # the child ends now, unless it has just read a request
            self._take_over()
        self._closed = True

    def _kill_unlisted(self) -> None:
        """Kill the scripts that were accepted when the other side could not note it any more."""
        for pid, fd in self._running.items():
            try:
                listed = socket.socket(fileno=fd).recv(1, socket.MSG_DONTWAIT)
            except OSError:
                listed = b""
            if listed != LISTED:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except OSError:  # it has ended
                    pass

    def _check_files(self) -> None:
        """Compare all files that are loaded, while the script runs: it takes too long while somebody waits for it."""
        if time.monotonic() - self._checked < _FILE_CHECK_SECONDS or self._poll.poll(0):
            return
        self._checked = time.monotonic()
        if _is_changed(self._loaded):
            self._leave(b"I")

    def _watch_parent(self) -> bool:
        try:
            parent = os.pidfd_open(self._parent)  # type: ignore[attr-defined, unused-ignore]
        except (AttributeError, OSError):
            return False
        self._descriptors.add(parent)
        self._poll.register(parent, select.POLLIN)
        return True

    def _replace_child(self) -> None:
        """Fork the next child: the waiting one has taken a request, or has ended because there will be no more."""
        request = self._take_over()
        if request is None:  # nothing more will come, or the child was killed
            self._closed = _is_closed(self._control)
            if not self._closed:
                self._leave()
            return
        try:
            self._learn(request)
        except Exception:  # noqa: S110  # the next child does without it
            pass
        self._fork_ahead()
        if self._waiting is not None:  # we are the parent, and stay
            self._check_files()

    def _take_over(self) -> bytes | None:
        """Read the request that the waiting child has taken, and watch the script; None if it ended without one."""
        assert self._waiting is not None
        pid, pair = self._waiting
        self._waiting = None
        self._poll.unregister(pair.fileno())
        os.close(self._spare)  # so that there is a number for the descriptor that comes
        request, fds = _receive(pair, 1)
        pair.close()
        if request is None:
            _wait(pid)
            return None
        self._running[pid] = fds[0]
        self._descriptors.add(fds[0])
        self._report_if_ended(pid)  # the signal may have come too early
        return request

    def _learn(self, request: bytes) -> None:
        """Cache what the next identical request needs."""
        self._latest = request
        argv, environment, directory = _parse(request)
        if environment != self._environment:
            _set_environment(environment, self._coerced_locale)
            self._environment = environment
        file = _main_file(directory, argv[_script_index(argv)])
        self._script_cache.remember(file, _read(os.path.join(directory, file)))

    def _fork_ahead(self) -> None:
        try:
            self._spare = os.dup(self._wakeup)
            ours, theirs = socket.socketpair()
            pid = os.fork()  # if it fails, the sockets are closed when they are freed
        except OSError:  # too many processes or descriptors: the other side waits for a while, then starts another
            self._leave()
            return
        if pid:
            theirs.close()
            self._waiting = pid, ours
            self._poll.register(ours.fileno(), select.POLLIN)
            return
        ours.close()
        self._script = self._accept_script(theirs)

    def _accept_script(self, pair: socket.socket) -> Script:
        """In a child: wait for the script."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, self._own_child_signal)
        for fd in (*self._descriptors, self._spare):
            os.close(fd)
        if hasattr(threading.main_thread(), "_set_native_id"):
            threading.main_thread()._set_native_id()  # type: ignore[attr-defined]  # old versions forget it
        try:
            self._rehearse()
            return self._next_script(pair)
        except BaseException:  # whatever it is: without an answer the script is started in the usual way
            os._exit(0)

    def _next_script(self, pair: socket.socket) -> Script:
        ready = select.poll()
        ready.register(pair, select.POLLIN)
        ready.register(self._control, select.POLLIN)
        if any(fd == pair.fileno() for fd, _ in ready.poll()):  # the parent is gone
            os._exit(0)
        request, fds = _receive(self._control, _DESCRIPTORS)
        self._control.close()
        if request is None:
            os._exit(0)
        _send(pair, request, fds[3:])
        pair.close()
        for number in range(3):
            os.dup2(fds[number], number)
            os.close(fds[number])
        try:
            script = self._prepare(request)
        except Refused as refused:
            os.write(fds[3], STATUS.pack(b"R", refused.reason))
            os._exit(0)
        self._latest = self._environment = None  # of an earlier script
        os.write(fds[3], STATUS.pack(b"A", os.getpid()))  # raises if nobody waits for us any more
        os.close(fds[3])
        return script

    def _rehearse(self) -> None:
        """Prepare for the latest script while nobody waits: it copies the pages of memory that are needed for it."""
        ready = select.poll()
        ready.register(self._control, select.POLLIN)
        if self._latest is not None and not ready.poll(0):
            try:
                self._prepare(self._latest)
            except Refused:
                pass
            os.chdir("/")

    def _prepare(self, request: bytes) -> Script:
        """Become what a fresh interpreter would be before it runs the script. Nothing of it has been run yet."""
        argv, environment, directory = _parse(request)
        try:
            os.chdir(directory)
        except OSError as error:
            raise Refused(_NO_DIRECTORY) from error
        if environment != self._environment:
            _set_environment(environment, self._coerced_locale)
        index = _script_index(argv)
        script = argv[index]
        file = _main_file(directory, script)
        folder = [] if _is_safe_path() else [os.path.dirname(os.path.realpath(script))]
        search_path = folder + self._base_path
        self._refuse_shadowed(search_path)
        if _is_changed(self._installation):
            raise Refused(STALE)
        source = _read(script)
        if any(word in source for word in _ASKING_FOR_ORIGIN):
            raise Refused(_ASKS_FOR_ORIGIN)
        code = self._script_cache.code(file, source)
        sys.argv[:] = argv[index:]
        if sys.version_info >= (3, 10):
            sys.orig_argv[:] = argv
        sys.path[:] = search_path
        return _main_module(file), code

    def _refuse_shadowed(self, path: list[str]) -> None:
        for entry in path[: _standard_library_index(path)]:
            try:
                names = os.listdir(entry)
            except NotADirectoryError as error:  # a zip file
                raise Refused(_SHADOWED) from error
            except OSError:
                continue
            if not self._shadowable.isdisjoint(names):
                raise Refused(_SHADOWED)

    def _report_ended(self) -> None:
        try:
            while os.read(self._wakeup, 512):
                pass
        except BlockingIOError:
            pass
        for pid in list(self._running):
            self._report_if_ended(pid)

    def _report_if_ended(self, pid: int) -> None:
        status = _status_of(pid)
        if status is None:
            return
        fd = self._running.pop(pid)
        try:
            os.write(fd, STATUS.pack(b"E", status))
        except OSError:  # nobody reads it any more
            pass
        self._ended[fd] = pid
        self._poll.register(fd, 0)  # an error is always reported: the other end was closed

    def _reap(self, fd: int) -> None:
        _wait(self._ended.pop(fd))
        self._poll.unregister(fd)
        self._descriptors.discard(fd)
        os.close(fd)


def _status_of(pid: int) -> int | None:
    """The wait status of a child that has ended, which stays a zombie where the system can do that; else None."""
    if not hasattr(os, "waitid"):
        ended, status = os.waitpid(pid, os.WNOHANG)
        return status if ended else None
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    if info.si_code == os.CLD_EXITED:
        return info.si_status << 8
    return info.si_status | (0x80 if info.si_code == os.CLD_DUMPED else 0)


def _wait(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:  # waited for already
        pass


# Messages.


def _is_closed(connection: socket.socket) -> bool:
    """Whether nothing will come any more."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _receive(connection: socket.socket, descriptors: int) -> tuple[bytes | None, list[int]]:
    try:
        data, ancillary, _, _ = connection.recvmsg(LENGTH.size, socket.CMSG_SPACE(_DESCRIPTORS * 4))
    except ConnectionError:
        return None, []
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    data += _receive_all(connection, LENGTH.size - len(data)) if data else b""
    if len(data) < LENGTH.size:
        return None, []
    length = LENGTH.unpack(data)[0]
    request = _receive_all(connection, length)
    return (request, list(fds)) if len(request) == length and len(fds) == descriptors else (None, [])


def _receive_all(connection: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        data = connection.recv(length - len(received))
        if not data:
            break
        received += data
    return bytes(received)


def _send(connection: socket.socket, request: bytes, fds: list[int]) -> None:
    data = LENGTH.pack(len(request)) + request
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    if sent < len(data):  # the other side may have what it needs, and be gone
        connection.sendall(data[sent:])


def _parse(request: bytes) -> tuple[list[str], bytes, str]:
    """A request is three parts, each with its length before it: argv, environment, directory."""
    parts, start = [], 0
    for _ in range(3):
        length = LENGTH.unpack_from(request, start)[0]
        start += LENGTH.size
        parts.append(request[start : start + length])
        start += length
    argv, environment, directory = parts
    return [os.fsdecode(word) for word in argv.split(b"\0")], environment, os.fsdecode(directory)


# A fresh interpreter, as far as a script can see.


def _shadowable_names() -> set[str]:
    names = {name.partition(".")[0] for name in sys.modules} - {name.partition(".")[0] for name in _AT_START}
    names -= set(sys.builtin_module_names) | {"__main__", "__mp_main__"}
    return {name + suffix for name in names for suffix in ["", *all_suffixes()]}


def _installation(base_path: list[str]) -> list[str]:
    """The files and folders that decide how an interpreter starts: they are compared before each script.

    The interpreter itself, its settings, the standard library, where packages are, what is loaded from there at every
    start, and the time zone.
    """
    packages = [entry for entry in base_path if entry.endswith(("site-packages", "dist-packages"))]
    user = getattr(sys.modules.get("site"), "USER_SITE", None)
    packages += [user] if user and user not in packages else []
    library = os.path.dirname(os.__file__)
    own = [sys.executable, os.path.join(sys.prefix, "pyvenv.cfg"), library, "/etc/localtime"]
    at_start = [_file(name) for name in _AT_START if _is_added(name, library)]
    return [*own, *packages, *filter(None, at_start), *_path_files(packages)]


def _is_added(name: str, library: str) -> bool:
    """Whether a module does not belong to the standard library."""
    folder = os.path.dirname(_file(name) or library)
    return name in ("sitecustomize", "usercustomize") or not (folder + "/").startswith(library + "/")


def _path_files(folders: list[str]) -> list[str]:
    found = []
    for folder in folders:
        try:
            found += [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pth")]
        except OSError:
            pass
    return found


def _loaded() -> list[str]:
    """The files of all modules that are loaded."""
    return [file for file in map(_file, list(sys.modules)) if file]


def _file(module: str) -> str | None:
    return None if module == "__main__" else getattr(sys.modules.get(module), "__file__", None)


def _signatures(paths: list[str], since: int) -> dict[str, object]:
    """Signatures by path; one that nothing equals for what was changed since a time, as we may have its old content."""
    found = {}
    for path in paths:
        signature = _signature(path)
        is_changed = signature is not None and since <= signature[-1] <= time.time_ns()
        found[path] = object() if is_changed else signature
    return found


def _is_changed(signatures: dict[str, object]) -> bool:
    return any(_signature(path) != known for path, known in signatures.items())


def _signature(path: str) -> tuple[int, ...] | None:
    """What changes when a file is changed or replaced, or something is added to a folder or removed from it."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _script_index(argv: list[str]) -> int:
    """The position of the script in argv."""
    return next(index for index, word in enumerate(argv) if index and not word.startswith("-"))


def _main_file(directory: str, script: str) -> str:
    """``__file__`` of the main module, made absolute or not as this version of Python does it."""
    if not os.path.isabs(__file__):
        return script
    if script.startswith("./") and "/./" not in __file__:
        script = script[2:]
    return os.path.join(directory, script)


def _read(script: str) -> bytes:
    try:
        fd = os.open(script, os.O_RDONLY | os.O_NONBLOCK)  # a fifo would block
        try:
            found = os.fstat(fd)
            source = os.read(fd, min(found.st_size, _MAX_SOURCE) + 1) if stat.S_ISREG(found.st_mode) else b"\0"
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        raise Refused(_UNREADABLE) from error
    # With a zero byte, it is a zip file, or different in each version. With another size, it is not really a file.
    if b"\0" in source or len(source) != found.st_size or len(source) > _MAX_SOURCE:
        raise Refused(_UNREADABLE)
    return source


def _set_environment(block: bytes, coerced_locale: bytes | None) -> None:
    variables = [entry.partition(b"=")[::2] for entry in block.split(b"\0") if entry]
    for name in list(os.environb):
        del os.environb[name]
    for name, value in variables:
        os.environb[name] = value
    if coerced_locale is not None and b"LC_CTYPE" not in os.environb:
        os.environb[b"LC_CTYPE"] = coerced_locale
    if "time" in sys.modules:
        sys.modules["time"].tzset()


class _ScriptCache:
    """Compiled scripts. Used only if the file still has the same bytes."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[bytes, types.CodeType]] = {}
        self._size = 0

    def code(self, file: str, source: bytes) -> types.CodeType:
        known = self._codes.get(file)
        if known is not None and known[0] == source:
            return known[1]
        # The messages of a compiler that reads a file itself are different, and its warnings come every time.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return compile(source, file, "exec", dont_inherit=True)
        except Exception as error:
            raise Refused(_NOT_COMPILED) from error

    def remember(self, file: str, source: bytes) -> None:
        code = self.code(file, source)
        if self._size + len(source) > _MAX_SOURCE:
            self._codes.clear()
            self._size = 0
        if file not in self._codes or self._codes[file][1] is not code:
            self._codes[file] = source, code
            self._size += len(source)


def _main_module(file: str) -> types.ModuleType:
    main_module = types.ModuleType("__main__")
    main_module.__file__ = file
    main_module.__dict__["__builtins__"] = sys.modules["builtins"]
    main_module.__loader__ = SourceFileLoader("__main__", file)
    if sys.version_info < (3, 14):
        main_module.__annotations__ = {}
        main_module.__dict__["__cached__"] = None
    sys.modules["__main__"] = main_module
    return main_module


# The end of a script, as the interpreter would do it.


def _status(failure: BaseException | None) -> int | None:
    """The exit status of a script that ended with an exception, which is reported; None: ended by SIGINT."""
    if failure is None:
        return 0
    return _exit_status(failure) if isinstance(failure, SystemExit) else _report(failure)


def _exit_status(ending: SystemExit) -> int:
    code: object = ending.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    if sys.stderr is not None:
        print(code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> int | None:
    """Print the traceback without our frames, and return the exit status; None: ended by SIGINT."""
    traceback = error.__traceback__ = _without_our_frames(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    failure = None
    try:
        sys.excepthook(type(error), error, traceback)
    except SystemExit as ending:
        return _exit_status(ending)
    except BaseException as other:
        failure = other
    if failure is not None:
        print("Error in sys.excepthook:", file=sys.stderr)
        failure.__traceback__ = _without_our_frames(failure.__traceback__)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, traceback)
    return None if isinstance(error, KeyboardInterrupt) else 1


def _without_our_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == main.__code__.co_filename:
        traceback = traceback.tb_next
    return traceback


def _finish(status: int | None, last_prepared: str) -> NoReturn:
    """Wait for threads, run exit functions, flush, release what the script left open, leave."""
    threading._shutdown()  # type: ignore[attr-defined]
    try:
        atexit._run_exitfuncs()
    except BaseException:  # noqa: S110  # Python 3.9 and older have reported it, and then raise it
        pass
    if not _flushed():
        sys.exit(status)  # the interpreter itself knows best how to report that
    _release_modules(last_prepared)
    _flushed()
    if status is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        status = 1
    os._exit(status)


def _release_modules(last_prepared: str) -> None:
    """Release what the modules of the script hold, in the order of the interpreter: files are written, finalizers run.

    What nothing refers to any more is collected; what is left then loses its names, those with an underscore first. The
    modules that were there when the script began stay: to take them apart is what makes Python slow to end.
    """
    gc.collect()  # so that in cycles a text stream is finalized before the file under it, as at the end of Python
    imported = ["__main__"]
    for name in reversed(sys.modules):  # not all of them: to look at one means to copy its page of memory
        if name == last_prepared:
            break
        if isinstance(sys.modules[name], types.ModuleType):  # anything may be there
            imported.append(name)
    modules = [weakref.ref(sys.modules.pop(name)) for name in imported]
    for name in _DROPPED_FIRST:
        sys.__dict__[name] = None
    sys.modules["io"] = None  # type: ignore[assignment]  # tracebacks show no lines of source any more
    gc.collect()
    for reference in modules:
        module = reference()
        if module is not None:
            names = [name for name in module.__dict__ if name != "__builtins__"]
            for name in sorted(names, key=lambda name: not name.startswith("_") or name.startswith("__")):
                module.__dict__[name] = None
        del module
    gc.collect()


def _flushed() -> bool:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except Exception:
        return False
    return True


if __name__ == "__main__":
    _main_module_of_script, _code = main()
    _last_prepared = next(reversed(sys.modules))
    __name__ = "zygote"
    _namespace, _failure = _main_module_of_script.__dict__, None
    del _main_module_of_script
    try:
        exec(_code, _namespace)
    except BaseException as _error:
        _failure = _error
    _status_to_report = _status(_failure)  # not inside `except`: it would be the context of other errors
    del _namespace, _failure
    _finish(_status_to_report, _last_prepared)
