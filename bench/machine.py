"""The machine that the figures come from, in words."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path


def machine() -> dict[str, str]:
    """What a reader has to know to compare the figures with those of another machine."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "bash": _version("bash"),
        "sh": str(Path(shutil.which("sh") or "/bin/sh").resolve()),
        "node": _version("node"),
    }


def busy() -> str:
    """A warning where others use the processors at the same time; empty where they are ours."""
    load = os.getloadavg()[0]
    cores = os.cpu_count() or 1
    if load < cores / 2:
        return ""
    return f"this machine is busy (load {load:.1f} on {cores} cores): the figures are worth less than on a quiet one"


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or "unknown processor"


def _version(program: str) -> str:
    if not shutil.which(program):
        return "none"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found.group() if found else "unknown"
