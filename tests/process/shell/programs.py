"""Folders full of programs, good and bad, and a way to run a command in them directly and through bash."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llxprt_hooks.process import Completed, run_process
from llxprt_hooks.process.shell.command_line import hook_environment, shell_arguments
from llxprt_hooks.process.shell.direct_exec import DirectCommand, SpawnContext

STDIN = b'{"hook_event_name": "BeforeTool"}\n'

PROJECTS = (
    "plain",
    "with  spaces",
    "it's",
    'say "hi"',
    "größe 😀",
    "new\nline",
    "$(touch pwned)`touch pwned`;touch pwned",
    "a*[b]?{c,d}~ #!\\",
    "-rf",
    os.fsdecode(b"\xff not UTF-8"),
)

MARK = b"\0---\0"
TELL_ALL = "/proc/self/cmdline .mark /proc/self/environ .mark -"
"""With these arguments ``cat`` tells its argv, environment, directory (where ``.mark`` is) and stdin."""

SHELLS_OWN = (b"_", b"SHLVL", b"OLDPWD", b"PS1", b"PS2")
"""A shell sets these, or takes them away, for what it runs. Run directly, a program inherits them."""

# A script's own name, arguments, directory and stdin; then both streams and an exit code.
REPORT = """#!/bin/sh
for each in "$0" "$@" "$PWD"; do printf '<%s>\\n' "$each"; done
cat
echo complaint >&2
exit 3
"""

FILES = {
    "hook.sh": (0o755, REPORT),
    "sub/hook.sh": (0o755, REPORT),
    "echo": (0o755, REPORT),
    "die.sh": (0o755, '#!/bin/sh\nkill -"$1" $$\n'),
    "no-shebang": (0o755, 'echo "$0" "$@"; exit 4\n'),
    "empty": (0o755, ""),
    "bad-shebang": (0o755, "#!/no/such/interpreter\n"),
    "shebang-of-a-folder": (0o755, "#!/usr\n"),
    "empty-shebang": (0o755, "#!\necho ran\n"),
    "not-a-program": (0o755, "\x7fELF and then some"),
    "not-executable": (0o644, REPORT),
    "folder/file": (0o644, ""),
    ".mark": (0o644, MARK.decode()),
}

TOOLS = ("hook", "with space", "größe", "echo", "if", "deploy=now", "%job", "-dash", "+plus", "@at", "[")

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Programs:
    """The folders, under one root."""

    root: Path
    projects: tuple[Path, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "projects", tuple(self.root / name for name in PROJECTS))
        for project in self.projects:
            _write(project, FILES)
            _cat(project)
        _write(self.root / "tools", dict.fromkeys(TOOLS, (0o755, REPORT)))
        _cat(self.root / "tools")
        _write(self.root / "other tools", {"hook": (0o755, REPORT)})
        _write(self.root / "blocked", {"hook": (0o644, REPORT), "cat/file": (0o644, "")})
        _write(self.root / "home", {".bashrc": (0o644, "echo bashrc\n"), "env": (0o644, "echo env; A=1\n")})
        (self.root / "alias").symlink_to(self.projects[0])

    @property
    def path(self) -> str:
        return f"{self.root}/tools:{self.root}/other tools:/usr/bin:/bin"

    def environment(self, directory: Path, changes: Mapping[str, str | None]) -> dict[str, str]:
        """A hook's environment in a project; None takes a variable away, ``{root}`` and ``{here}`` are filled in."""
        filled = {
            name: value.replace("{root}", str(self.root)).replace("{here}", str(directory))
            for name, value in {"PATH": self.path, "HOME": "{root}/home", **changes}.items()
            if value is not None
        }
        return hook_environment(filled, str(directory))


def _write(folder: Path, files: Mapping[str, tuple[int, str]]) -> None:
    for name, (mode, text) in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        file.chmod(mode)


def _cat(folder: Path) -> None:
    """A program that is not a script, and prints its input."""
    (folder / "cat").symlink_to(shutil.which("cat") or "/bin/cat")


@dataclass(frozen=True)
class ProcessOutcome:
    """All that can be seen of a run, but for its time."""

    exit_code: int | None
    signal: str | None
    stdout: tuple[bytes, frozenset[bytes], bytes]
    """What came before the environment, the environment, what came after it."""
    stderr: bytes

    @classmethod
    def of(cls, completed: Completed) -> ProcessOutcome:
        before, _, rest = completed.stdout.partition(MARK)
        environment, _, after = rest.partition(MARK)
        variables = frozenset(each for each in environment.split(b"\0") if each.partition(b"=")[0] not in SHELLS_OWN)
        told = before, variables, after
        return cls(completed.exit_code, completed.signal, told, completed.stderr)


async def through_bash(command: str, directory: Path, environment: Environment) -> ProcessOutcome:
    return ProcessOutcome.of(
        await run_process(
            shell_arguments(command),
            stdin=STDIN,
            env=SpawnContext(environment, str(directory)).environment,
            cwd=str(directory),
            timeout=60,
        )
    )


async def directly(command: DirectCommand, directory: Path, environment: Environment) -> ProcessOutcome:
    """Raises ``SpawnError`` where the system refuses; the runner then turns to the shell."""
    return ProcessOutcome.of(
        await run_process(
            command.arguments,
            executable=command.executable,
            stdin=STDIN,
            env=SpawnContext(environment, str(directory)).environment,
            cwd=str(directory),
            timeout=60,
        )
    )


def decided(command: str, directory: Path, environment: Environment) -> DirectCommand | None:
    return SpawnContext(environment, str(directory)).direct_command(command)
