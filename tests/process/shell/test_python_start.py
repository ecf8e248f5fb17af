"""Which commands are plain starts of a Python script, so that a waiting interpreter can run them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.process.shell.python_start import python_start

if TYPE_CHECKING:
    from llxprt_hooks.process.warm import PythonStart

PYTHON = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
FOLDER = str(Path(PYTHON).parent)


def start(folder: Path, command: str, **variables: str) -> PythonStart | None:
    context = SpawnContext({"PATH": f"{FOLDER}:{os.environ['PATH']}", **variables}, str(folder))
    direct = context.direct_command(command)
    assert direct is not None
    return python_start(direct, context.environment, str(folder))


def script(folder: Path, first_line: str) -> str:
    file = folder / "hook"
    file.write_text(f"{first_line}\nprint()\n")
    file.chmod(0o755)
    return "./hook"


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("script.py", ()),
        ("-I script.py", ("-I",)),
        ("-B -sE script.py --option -c", ("-B", "-sE")),
        ("-u ./sub/script.py 'an argument'", ("-u",)),
    ],
)
def test_plain_start_of_a_script(tmp_path: Path, command: str, flags: tuple[str, ...]) -> None:
    found = start(tmp_path, f"{PYTHON} {command}")

    assert found is not None
    assert (found.executable, found.argv[0], found.flags) == (PYTHON, PYTHON, flags)


@pytest.mark.parametrize(
    "arguments",
    ["", "-", "-c pass", "-m json.tool", "-O script.py", "-W error script.py", "-X dev script.py", "-IO script.py"],
)
def test_other_starts_of_python(tmp_path: Path, arguments: str) -> None:
    assert start(tmp_path, f"{PYTHON} {arguments}") is None


@pytest.mark.parametrize("line", [f"#!{PYTHON}", f"#! {PYTHON} -I", f"#!/usr/bin/env python3.{sys.version_info.minor}"])
def test_script_whose_first_line_names_python(tmp_path: Path, line: str) -> None:
    found = start(tmp_path, f"{script(tmp_path, line)} argument")

    assert found is not None
    assert found.executable == PYTHON
    assert found.argv[-2:] == ("./hook", "argument")


@pytest.mark.parametrize(
    "line",
    [
        "#!/bin/sh",
        "#!",
        "#!/usr/bin/env -S python3 -I",
        "#!/usr/bin/env bash",
        "#!/usr/bin/env python3.999",
        f"#!{PYTHON} -I -B",
        f"#!{PYTHON} -c",
        "#!" + "x" * 300,
    ],
)
def test_script_whose_first_line_names_something_else(tmp_path: Path, line: str) -> None:
    assert start(tmp_path, script(tmp_path, line)) is None


def test_program_that_is_not_a_script(tmp_path: Path) -> None:
    assert start(tmp_path, "/bin/cat script.py") is None


def test_program_that_is_gone(tmp_path: Path) -> None:
    context = SpawnContext({"PATH": FOLDER}, str(tmp_path))
    direct = context.direct_command(script(tmp_path, f"#!{PYTHON}"))
    assert direct is not None
    (tmp_path / "hook").unlink()

    assert python_start(direct, context.environment, str(tmp_path)) is None


def test_interpreter_that_is_gone(tmp_path: Path) -> None:
    assert start(tmp_path, script(tmp_path, "#!/nonexistent/python3")) is None


def test_interpreter_that_is_a_script(tmp_path: Path) -> None:
    """Such as those of pyenv, which look for a version in the working directory."""
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    (tmp_path / "python3").chmod(0o755)

    assert start(tmp_path, f"{tmp_path}/python3 script.py") is None


def test_interpreter_with_a_relative_path(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(PYTHON)

    assert start(tmp_path, "./python3 script.py") is None
    assert start(tmp_path, script(tmp_path, "#!/usr/bin/env python3"), PATH=f".:{os.environ['PATH']}") is None


@pytest.mark.parametrize(
    ("variables", "plain"),
    [
        ({"PYTHONUNBUFFERED": "1"}, True),
        ({"PYTHON": "/usr/bin/python3"}, True),
        ({"PYTHONPATH": "/one:/two"}, False),
        ({"PYTHONPATH": ""}, True),
        ({"PYTHONHOME": "/one"}, True),
        ({"PYTHONHOME": "one"}, False),
        ({"PYTHONUSERBASE": "one"}, False),
        ({"PYTHONPYCACHEPREFIX": "one"}, False),
        ({"HOME": "one"}, False),
        ({"PYTHONFAULTHANDLER": ""}, True),
        ({"PYTHONFAULTHANDLER": "1"}, False),
        ({"PYTHONSTARTUP": "x", "PYTHONINSPECT": "1"}, False),
    ],
)
def test_variables_of_python(tmp_path: Path, variables: dict[str, str], plain: bool) -> None:
    assert (start(tmp_path, f"{PYTHON} script.py", **variables) is not None) is plain


@pytest.mark.parametrize("flag", ["-I", "-sE"])
def test_variables_that_python_does_not_read(tmp_path: Path, flag: str) -> None:
    variables = {"PYTHONPATH": "one", "PYTHONFAULTHANDLER": "1", "PYTHONHOME": "one"}

    assert start(tmp_path, f"{PYTHON} {flag} script.py", **variables) is not None
    assert start(tmp_path, f"{PYTHON} {flag} script.py", HOME="one") is None
