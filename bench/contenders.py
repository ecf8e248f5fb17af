"""The three that run the same hooks, each in turn: the operating system's floor, ours, and the Node peer.

Each is a process of its own that waits for orders, so that a round can go from one to the other within milliseconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from figures import undisturbed
from scene import ARGUMENT

if TYPE_CHECKING:
    from scene import Scene

HERE = Path(__file__).parent
PEER_PACKAGE = "@google/gemini-cli-core"
PEER_VERSION = "0.61.0"
COMPILED = "compiled"
"""The kind of the smallest program, which is there if there is a C compiler."""


class Contender:
    """A process that runs hooks on demand."""

    def __init__(self, name: str, command: Sequence[str], scene: Scene) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=scene.folder,
            env=scene.environment(),
        )

    def times(self, kind: str, *, count: int, width: int = 1, payload: Path) -> list[float]:
        """Seconds of each of ``count`` batches of ``width`` hooks at once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {count} {width} {payload}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if len(answer) != count:
            raise RuntimeError(f"{self.name} gave up; what it said is above")
        return [int(nanoseconds) / 1e9 for nanoseconds in answer]

    def per_hook(self, kind: str, *, count: int, width: int = 1, payload: Path) -> float:
        """Seconds for one hook: a batch, divided by its width."""
        return undisturbed(self.times(kind, count=count, width=width, payload=payload)) / width

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Field:
    """Who takes part, and why others do not."""

    floor: Contender
    ours: Contender
    peer: Contender | None
    floor_kind: str
    has_compiler: bool
    kinds: Collection[str]
    """The kinds of hooks that ours runs."""
    peer_note: str

    @property
    def all(self) -> list[Contender]:
        return [each for each in (self.floor, self.ours, self.peer) if each is not None]

    def close(self) -> None:
        for each in self.all:
            each.close()


def line_up(scene: Scene, *, with_peer: bool = True) -> Field:
    """Build, install and start the contenders."""
    floor_program = compiled("floor", scene.folder)
    floor = [str(floor_program)] if floor_program else [sys.executable, str(HERE / "floor_python.py")]
    core, note = _installed_peer() if with_peer else (None, "not asked for")
    peer = None
    if core is not None:
        commands = [scene.plain, scene.shell, scene.python, scene.others["node"]]
        peer = Contender("peer", ["node", str(HERE / "peer.mjs"), str(core), *commands], scene)
    bare = ["plain", str(scene.program), ARGUMENT, "--", "shell", scene.bash, "-c", scene.shell]
    hooked = ["plain", scene.plain, "shell", scene.shell, "python", scene.python, "neutral", str(scene.neutral)]
    hooked += [word for pair in scene.others.items() for word in pair]
    smallest = compiled("hook", scene.folder)
    if smallest is not None:
        bare += ["--", COMPILED, str(smallest), ARGUMENT]
        hooked += [COMPILED, f"{smallest} {ARGUMENT}"]
    return Field(
        floor=Contender("floor", [*floor, *bare], scene),
        ours=Contender("ours", [sys.executable, str(HERE / "ours.py"), *hooked], scene),
        peer=peer,
        has_compiler=floor_program is not None,
        kinds=hooked[::2],
        floor_kind="C" if floor_program else "Python (no C compiler here)",
        peer_note=note,
    )


def compiled(name: str, folder: Path, *options: str) -> Path | None:
    """A program of this folder; None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    binary = folder / f"{name}{''.join(options)}"
    subprocess.run([compiler, "-O2", *options, "-o", str(binary), str(HERE / f"{name}.c")], check=True)
    return binary


def _installed_peer() -> tuple[Path | None, str]:
    """The peer's folder, installed into the user's cache if need be, or why there is none."""
    missing = [program for program in ("node", "npm") if not shutil.which(program)]
    if missing:
        return None, f"{' and '.join(missing)} not found"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "llxprt-hooks-bench" / f"gemini-cli-core-{PEER_VERSION}"
    core = folder / "node_modules" / PEER_PACKAGE
    done = folder / ".installed"
    if not done.exists():
        print(f"installing {PEER_PACKAGE}@{PEER_VERSION} into {folder}, once …", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        npm = [
            "npm",
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
            str(folder),
        ]
        installed = subprocess.run([*npm, f"{PEER_PACKAGE}@{PEER_VERSION}"], stdout=subprocess.DEVNULL)
        if installed.returncode:
            return None, f"npm could not install {PEER_PACKAGE}@{PEER_VERSION}"
        done.touch()
    return core, f"{PEER_PACKAGE} {PEER_VERSION}"
