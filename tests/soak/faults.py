"""Hooks that misbehave in every way we know, and the expected result of each."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK, ALLOW = "block", "allow"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to misbehave, or to behave."""

    kind: str
    command: str
    outcome: str = ALLOW
    timeout: float = 20_000.0
    weight: int = 10
    warm: bool = False


_SIGNALS = [
    number
    for number in signal.Signals
    if number not in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)  # these end nobody
    and number not in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)  # these only halt
]


def faults(folder: Path) -> list[Fault]:
    """All faults; scripts that they need are written into the folder."""
    of_shell = [*_explicit(), *_exit_codes(), *_signals(), *_hanging(), *_noisy(), *_unstartable(folder), *_families()]
    return [*of_shell, *_warm(folder)]


def _explicit() -> list[Fault]:
    return [
        Fault("deny by exit code", "echo no >&2; exit 2", BLOCK),
        Fault("deny by JSON", """echo '{"decision": "deny", "reason": "no"}'""", BLOCK),
        Fault("deny with malformed siblings", """echo '{"decision": "block", "reason": 7, "continue": "x"}'""", BLOCK),
        Fault("deny in invalid UTF-8", """printf '{"decision": "deny", "reason": "\\377"}'""", BLOCK),
        Fault("deny after a flood on stderr", "head -c 12000000 /dev/zero >&2; exit 2", BLOCK, weight=1),
        Fault("allow by JSON", """echo '{"decision": "allow"}'"""),
        Fault("allow by text", "echo fine"),
        Fault("allow without output", "cat > /dev/null"),
    ]


def _exit_codes() -> list[Fault]:
    return [
        Fault(f"exit {code}", f"""echo '{{"decision": "deny"}}'; exit {code}""", weight=1)
        for code in range(1, 256)
        if code != 2
    ]


def _signals() -> list[Fault]:
    return [Fault(number.name, f"kill -{number.value} $$; sleep 60", weight=1) for number in _SIGNALS]


def _hanging() -> list[Fault]:
    return [
        Fault("hang", "sleep 60", timeout=150),
        Fault("hang with children", "sleep 60 & sleep 60 | sleep 60", timeout=150),
        Fault("halt", "kill -STOP $$", timeout=150, weight=1),
        Fault("SIGTERM ignored", "trap '' TERM; while :; do sleep 1; done", timeout=150, weight=1),
        Fault("deny too late", "sleep 60; exit 2", timeout=150),
        Fault("deny on SIGTERM", "trap 'exit 2' TERM; sleep 60", timeout=150, weight=1),
    ]


def _noisy() -> list[Fault]:
    return [
        Fault("flood on stdout", "head -c 12000000 /dev/zero", weight=1),
        Fault("flood on stderr", "head -c 12000000 /dev/zero >&2; exit 1", weight=1),
        Fault("half a JSON, then death", """printf '{"decision": "de'; kill -9 $$"""),
        Fault("half a JSON", """printf '{"decision": "deny"'"""),
        Fault("closed streams", "exec 0<&- 1>&- 2>&-; exit 0"),
        Fault("stdin unread", "exit 0"),
        Fault("NUL bytes", "head -c 4096 /dev/zero"),
    ]


def _unstartable(folder: Path) -> list[Fault]:
    (folder / "not-executable").write_text("#!/bin/sh\nexit 2\n")
    (folder / "folder").mkdir()
    bad_shebang = folder / "bad-shebang"
    bad_shebang.write_text("#!/no/such/interpreter\n")
    bad_shebang.chmod(0o755)
    return [
        Fault("missing", "/no/such/program"),
        Fault("not executable", "./not-executable"),
        Fault("a directory", "./folder"),
        Fault("bad shebang", "$LLXPRT_PROJECT_DIR/bad-shebang"),
        Fault("NUL in the command", "echo \0", weight=1),
        Fault("too long a command", "true " + "x" * 300_000, weight=1),
    ]


def _families() -> list[Fault]:
    return [
        Fault("double fork holding the pipes", "(sleep 2 &) ; exit 0"),
        Fault("daemon", "setsid sleep 2 & exit 0"),
        Fault("fork many", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do true & done; wait", weight=3),
    ]


_DENY = """print('{"decision": "deny"}', flush=True)"""
_WARM = {
    "deny by exit code": ("import sys; print('no', file=sys.stderr); sys.exit(2)", BLOCK, 20_000),
    "deny by JSON": (_DENY, BLOCK, 20_000),
    "deny at exit": (f"import atexit; atexit.register(lambda: {_DENY})", BLOCK, 20_000),
    "deny by os._exit": ("import os; os.closerange(0, 256); os._exit(2)", BLOCK, 20_000),
    "allow": ("import json, sys; json.load(sys.stdin); print('{}')", ALLOW, 20_000),
    "exception": (f"{_DENY}; raise ValueError", ALLOW, 20_000),
    "death": (f"import os; {_DENY}; os.kill(os.getpid(), 9)", ALLOW, 20_000),
    "abort": ("import os; os.abort()", ALLOW, 20_000),
    "children": ("import subprocess; subprocess.Popen(['sleep', '2'])", ALLOW, 20_000),
    "fork": ("import os, time; os.fork() or time.sleep(2)", ALLOW, 20_000),
    "closed streams": ("import os; os.closerange(0, 3)", ALLOW, 20_000),
    "syntax error": (f"{_DENY}; if", ALLOW, 20_000),
    "recursion": ("def f(): f()\nf()", ALLOW, 20_000),
    "flood": ("import sys; sys.stdout.buffer.write(bytes(12_000_000))", ALLOW, 20_000),
    "halt": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", ALLOW, 1500),
    "hang": ("import time; time.sleep(60)", ALLOW, 1500),
    "SIGTERM ignored": ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", ALLOW, 1500),
    "thread that hangs": (
        "import threading as t, time; t.Thread(target=time.sleep, args=(60,)).start()",
        ALLOW,
        1500,
    ),
}


def _warm(folder: Path) -> list[Fault]:
    """Python scripts for a waiting interpreter."""
    found = []
    for number, (kind, (script, outcome, timeout)) in enumerate(_WARM.items()):
        (folder / f"warm{number}.py").write_text(script)
        weight = 1 if timeout < 20_000 or kind == "flood" else 10
        found.append(Fault(f"warm: {kind}", f"{sys.executable} warm{number}.py", outcome, timeout, weight, warm=True))
    return found
