"""Run the engine's tests on every supported Python that is installed, each in an environment below ``.venv-matrix``.

    python tests/python_matrix.py [PYTEST ARGUMENTS]

A version is looked up as ``python3.X`` on PATH, then in pyenv. One that is not installed is skipped with a line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
ENGINE = ("process", "core", "hooks", "settings", "model", "_support")


def main() -> None:
    arguments = sys.argv[1:] or ["-q", "--numprocesses", "auto", "--dist", "worksteal", *(f"tests/{d}" for d in ENGINE)]
    verdicts = {version: _tested(version, arguments) for version in VERSIONS}
    print(*(f"Python {version}: {verdict}" for version, verdict in verdicts.items()), sep="\n")
    sys.exit("failed" in verdicts.values())


def _tested(version: str, arguments: list[str]) -> str:
    python = _find(version)
    if python is None:
        return "skipped, not installed"
    print(f"Python {version}: {python}", flush=True)
    environment = _environment(version, python)
    done = subprocess.run([environment / "bin" / "python", "-m", "pytest", *arguments], cwd=ROOT, check=False)
    return "failed" if done.returncode else "passed"


def _find(version: str) -> str | None:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    return next((str(each) for each in candidates if each and _version_of(each) == version), None)


def _version_of(python: str | Path) -> str:
    """Ask the program itself: a shim of pyenv exists even for versions that are not active, and fails."""
    code = "import sys; print(*sys.version_info[:2], sep='.')"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def _environment(version: str, python: str) -> Path:
    """The version's environment, made again when ``pyproject.toml`` has changed."""
    folder, project = ROOT / ".venv-matrix" / version, ROOT / "pyproject.toml"
    installed = folder / ".installed"
    if not installed.exists() or installed.stat().st_mtime < project.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "pip>=25.1"], check=True)  # an older one does not know groups
        packages = ["--constraint", "constraints/dev.txt", "--editable", ".", "--group", "dev"]
        subprocess.run([*pip, *packages], cwd=ROOT, check=True)
        installed.touch()
    return folder


if __name__ == "__main__":
    main()
