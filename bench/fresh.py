"""The lines that take an interpreter of their own: import, the command's help, memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from figures import MEBIBYTES, MILLISECONDS, Line, middle

if TYPE_CHECKING:
    from scene import Scene

IMPORT = "import llxprt_hooks"
IMPORT_NAMES = "from llxprt_hooks import Config, execute_tool_with_hooks, fire_before_model_hook"
"""What an agent needs. The package loads its names when they are first used, so that the bare import is not all."""

NO_SDK = "import sys; sys.exit(any(name == 'google' or name.startswith('google.') for name in sys.modules))"
MEMORY = Path(__file__).parent / "memory.py"
COMMAND = Path(sys.executable).with_name("llxprt-hooks")


def fresh_lines(scene: Scene, *, rounds: int) -> list[Line]:
    return [*_imports(scene, rounds), _help(scene, rounds), _memory(scene)]


def _imports(scene: Scene, rounds: int) -> list[Line]:
    bare = Line("`import llxprt_hooks`, processor time over `import asyncio`", MILLISECONDS, 40e-3)
    names = Line("the same, with the names that an agent uses", MILLISECONDS)
    alone = []
    for _ in range(rounds + 1):
        alone.append(_processor_time("import asyncio", scene))
        bare.rounds.append(_processor_time(f"import asyncio; {IMPORT}", scene) - alone[-1])
        names.rounds.append(_processor_time(f"import asyncio; {IMPORT_NAMES}", scene) - alone[-1])
    del bare.rounds[0], names.rounds[0]
    bare.beside = f"`import asyncio` {middle(alone[1:])}"
    imports_sdk = subprocess.run(
        [sys.executable, "-c", f"{IMPORT_NAMES}; {NO_SDK}"], env=_environment(scene), check=False
    )
    names.beside = "an SDK is imported!" if imports_sdk.returncode else "no SDK imported"
    return [bare, names]


def _help(scene: Scene, rounds: int) -> Line:
    line = Line("`llxprt-hooks --help`", MILLISECONDS, 200e-3)
    if not COMMAND.exists():
        line.skipped = f"{COMMAND} is not installed"
        return line
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run([COMMAND, "--help"], env=_environment(scene), stdout=subprocess.DEVNULL, check=True)
        line.rounds.append(time.perf_counter() - started)
    del line.rounds[0]
    return line


def _memory(scene: Scene) -> Line:
    line = Line("a hook that prints 1 GiB: memory grows by", MEBIBYTES, 32 * 1024**2)
    told = subprocess.run(
        [sys.executable, str(MEMORY)], env=_environment(scene), capture_output=True, text=True, check=True
    ).stdout.split()
    growth, seconds = int(told[0]), float(told[1])
    line.rounds = [float(growth)]
    line.beside = f"peak resident size; took {seconds:.1f} s"
    return line


def _processor_time(code: str, scene: Scene) -> float:
    """User and system time of a fresh interpreter that runs the code."""
    argv = [sys.executable, "-c", code]
    _, status, usage = os.wait4(os.posix_spawn(argv[0], argv, _environment(scene)), 0)
    if status:
        raise RuntimeError(f"`{code}` failed")
    return usage.ru_utime + usage.ru_stime


def _environment(scene: Scene) -> dict[str, str]:
    """Compiled files are used, as anywhere but on a developer's machine that forbids them."""
    return {name: value for name, value in scene.environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
