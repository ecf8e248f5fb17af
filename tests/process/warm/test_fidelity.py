"""A warm script sees what it would see in a fresh interpreter: each script here is run both ways and compared."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks.process import Child, Completed, run_child, spawn
from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.process.shell.python_start import python_start
from llxprt_hooks.process.warm import ZygotePool

pytestmark = pytest.mark.slow

PROBE = Path(__file__).with_name("probe.py")
SUPPORTED = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
PATIENCE = 60.0
BASE_PYTHON = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))


def _pythons() -> Iterator[Any]:
    """The Python of these tests; with LLXPRT_TEST_PYTHONS=all, as in `make matrix`, all that are installed."""
    own = Path(BASE_PYTHON)
    yield pytest.param(BASE_PYTHON, id="own")
    if os.environ.get("LLXPRT_TEST_PYTHONS") != "all":
        return
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for version in SUPPORTED:
        for candidate in [Path("/usr/bin", f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python3")]:
            if candidate.exists() and candidate.resolve() != own.resolve():
                yield pytest.param(
                    str(candidate), id=f"{candidate.parent.parent.name}-{version}", marks=pytest.mark.slow
                )


def _scripts(name: str) -> dict[str, str]:
    parts = Path(__file__).with_name(name).read_bytes().decode().split("=== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


every_python = pytest.mark.parametrize("python", list(_pythons()))
SCRIPTS, REFUSED = _scripts("scripts.txt"), _scripts("refused.txt")
ENVIRONMENT = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ZZ": "last", "AA": "not first"}


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    pool = ZygotePool()
    pool.patience = PATIENCE
    with pytest.MonkeyPatch.context() as patched:  # each test needs another one
        patched.setattr("llxprt_hooks.process.warm.pool._RECENT_SECONDS", 0.0)
        yield pool
    pool.close(60.0)


class _RefusedError(Exception):
    pass


class Comparison:
    """Runs a command cold and warm in the same folder."""

    def __init__(self, pool: ZygotePool, folder: Path, command: str, stdin: bytes = b"", **variables: str) -> None:
        context = SpawnContext({**ENVIRONMENT, **variables}, str(folder))
        direct = context.direct_command(command)
        assert direct is not None
        env = context.environment
        given: Any = {"stdin": stdin, "env": env, "cwd": str(folder), "output_limit": 10_000_000}
        start = python_start(direct, env, str(folder))
        assert start is not None, "not recognized as a start of Python"
        self._cold = partial(spawn, direct.arguments, executable=direct.executable, **given)
        self._warm = partial(pool.offer, start, **given, otherwise=self._refuse)

    async def cold(self) -> Completed:
        return await run_child(self._cold, timeout=PATIENCE)

    async def warm(self) -> Completed | None:
        """None if the zygote refuses the script."""
        offer = self._warm()
        assert offer is not None, "there is no zygote"
        try:
            return await run_child(lambda: offer, timeout=PATIENCE)
        except _RefusedError:
            return None

    def _refuse(self) -> Child:
        raise _RefusedError

    async def warm_stdout(self) -> bytes:
        return (await self.both())[1].stdout

    async def both(self) -> tuple[Completed, Completed]:
        cold, warm = await self.cold(), await self.warm()
        assert warm is not None, "the script was refused"
        return cold, warm


def seen(completed: Completed | None, folder: Path) -> tuple[object, ...]:
    """What others see of a run; addresses and counts of references are different each time."""
    if completed is None:
        return ("refused",)
    streams = (stream.decode(errors="backslashreplace") for stream in (completed.stdout, completed.stderr))
    texts = (re.sub(r"0x[0-9a-f]+|object refcount : \d+", "", text) for text in streams)
    left_open = folder / "left-open"
    kept = left_open.read_text() if left_open.exists() else None
    left_open.unlink(missing_ok=True)
    return completed.exit_code, completed.signal, *texts, kept


@every_python
@pytest.mark.parametrize("flags", ["", "-I", "-E", "-s", "-S", "-u", "-B", "-P", "-IB", "-Es -u", "-IEsSuB"])
async def test_warm_script_sees_a_fresh_start(pool: ZygotePool, tmp_path: Path, python: str, flags: str) -> None:
    if "P" in flags and _version(python) < (3, 11):
        pytest.skip("this Python has no -P")
    shutil.copy(PROBE, tmp_path / "probe.py")

    await assert_same_report(pool, tmp_path, f"{python} {flags} ./probe.py --option 'an argument'")


@every_python
@pytest.mark.parametrize(
    "variables",
    [
        {"LANG": "C"},
        {"LANG": "C", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
        {"LANG": "xx_YY.UTF-8"},
        {"TZ": "Asia/Tokyo"},
        {"TZ": ""},
        {"PYTHONUTF8": "1"},
        {"PYTHONIOENCODING": "latin-1:replace"},
        {"PYTHONUNBUFFERED": "1"},
        {"PYTHONDONTWRITEBYTECODE": "1"},
        {"PYTHONWARNINGS": "error,ignore::DeprecationWarning"},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONNOUSERSITE": "1"},
        {"PYTHONPYCACHEPREFIX": "/nonexistent/cache"},
        {"PYTHONHASHSEED": "7"},
        {"PYTHONBREAKPOINT": "0"},
        {"EMPTY": "", "SIGN": "a=b", "LINES": "1\n2", "BYTES": os.fsdecode(b"\xff")},
    ],
    ids=lambda variables: ",".join(variables),
)
async def test_warm_script_sees_its_environment(
    pool: ZygotePool, tmp_path: Path, python: str, variables: dict[str, str]
) -> None:
    shutil.copy(PROBE, tmp_path / "probe.py")

    await assert_same_report(pool, tmp_path, f"{python} probe.py", **variables)


@every_python
@pytest.mark.parametrize("script", ["sub/probe.py", "./sub/probe.py", "sub/../sub/probe.py", "{}/sub/probe.py", "link"])
async def test_warm_script_is_found_in_the_same_place(
    pool: ZygotePool, tmp_path: Path, python: str, script: str
) -> None:
    (tmp_path / "sub").mkdir()
    shutil.copy(PROBE, tmp_path / "sub/probe.py")
    (tmp_path / "link").symlink_to("sub/probe.py")

    await assert_same_report(pool, tmp_path, f"{python} {script.format(tmp_path)} -x '' 'ü'")


@every_python
async def test_warm_script_with_a_shebang(pool: ZygotePool, tmp_path: Path, python: str) -> None:
    script = tmp_path / "probe"
    for line in (f"#!{python}", f"#! {python} -B", "#!/usr/bin/env python3"):
        script.write_text(f"{line}\n{PROBE.read_text()}")
        script.chmod(0o755)

        path = f"{Path(python).parent}:{os.environ['PATH']}"
        await assert_same_report(pool, tmp_path, "./probe --option", PATH=path)


@every_python
async def test_warm_script_in_a_virtual_environment(pool: ZygotePool, tmp_path: Path, python: str) -> None:
    subprocess.run([python, "-m", "venv", "--without-pip", "environment"], cwd=tmp_path, check=True)
    site = next((tmp_path / "environment/lib").glob("python3*/site-packages"))
    (site / "added.pth").write_text("/usr/share\nimport sys; sys.added = 1\n")
    (tmp_path / "probe.py").write_text(PROBE.read_text().replace('"base_prefix"', '"added", "base_prefix"'))

    await assert_same_report(pool, tmp_path, f"{tmp_path}/environment/bin/python3 probe.py")
    await assert_same_report(pool, tmp_path, f"{tmp_path}/environment/bin/python -I probe.py")


async def assert_same_report(pool: ZygotePool, folder: Path, command: str, **variables: str) -> None:
    cold, warm = await Comparison(pool, folder, command, b"input", **variables).both()

    assert cold.exit_code == warm.exit_code == 0, (cold.stderr, warm.stderr)
    assert json.loads(warm.stdout) == json.loads(cold.stdout)
    assert warm.stderr != cold.stderr, "the random number generator has the same state"


@every_python
async def test_warm_scripts_end_like_cold_ones(pool: ZygotePool, tmp_path: Path, python: str) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 'beside'")
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    (tmp_path / "warns.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning, 2)")
    (tmp_path / "holds.py").write_text("FILE = open('left-open', 'w')")
    (tmp_path / "finalizes.py").write_text("class C:\n    def __del__(self):\n        1 / 0\nc = C()")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/inner.py").touch()

    differences = {}
    for name, script in SCRIPTS.items():
        (tmp_path / "script.py").write_bytes(script.encode())
        comparison = Comparison(pool, tmp_path, f"{python} script.py", b"one\ntwo\n")
        expected = seen(await comparison.cold(), tmp_path)
        for _ in range(2):  # the second time it is compiled already
            if (found := seen(await comparison.warm(), tmp_path)) != expected:
                differences[name] = found, expected
    assert not differences, "\n".join(f"{name}: {found}" for name, found in differences.items())


@every_python
async def test_warm_scripts_that_cannot_be_the_same_are_refused(pool: ZygotePool, tmp_path: Path, python: str) -> None:
    for name, script in REFUSED.items():
        (tmp_path / "script.py").write_bytes(script.encode())
        comparison = Comparison(pool, tmp_path, f"{python} script.py")
        for _ in range(2):
            assert await comparison.warm() is None, name


@pytest.mark.parametrize("name", ["json.py", "json", "_json.so", "typing.pyc"])
async def test_warm_script_next_to_a_module_of_a_known_name_is_refused(
    pool: ZygotePool, tmp_path: Path, name: str
) -> None:
    (tmp_path / "script.py").touch()
    comparison = Comparison(pool, tmp_path, f"{sys.executable} script.py")
    assert await comparison.warm() is not None

    (tmp_path / name).touch()

    assert await comparison.warm() is None


async def test_warm_script_finds_a_module_that_is_new(pool: ZygotePool, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("try:\n    import new\nexcept ImportError:\n    print('absent')")
    comparison = Comparison(pool, tmp_path, f"{sys.executable} script.py")
    first = await comparison.warm_stdout()

    (tmp_path / "new.py").write_text("print('found')")
    second = await comparison.warm_stdout()

    assert first == b"absent\n"
    assert second == b"found\n"


async def test_warm_script_is_read_again_when_it_changes(pool: ZygotePool, tmp_path: Path) -> None:
    comparison = Comparison(pool, tmp_path, f"{sys.executable} script.py")
    for text in ("a", "b", "a"):
        (tmp_path / "script.py").write_text(f"print('{text}')")

        completed = await comparison.warm_stdout()

        assert completed == f"{text}\n".encode()


async def test_warm_interpreter_starts_again_when_something_is_installed(pool: ZygotePool, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "environment"], cwd=tmp_path, check=True)
    site = next((tmp_path / "environment/lib").glob("python3*/site-packages"))
    (tmp_path / "script.py").write_text("import sys; print(hasattr(sys, 'added'))")
    comparison = Comparison(pool, tmp_path, f"{tmp_path}/environment/bin/python script.py")
    before = await comparison.warm_stdout()

    (site / "added.pth").write_text("import sys; sys.added = 1\n")
    changed, after = await comparison.warm(), await comparison.warm_stdout()

    assert before == b"False\n"
    assert changed is None
    assert after == b"True\n"


@pytest.mark.parametrize("edited", ["sitecustomize.py", "early.py", "early.pth"])
async def test_warm_interpreter_starts_again_when_its_start_up_code_is_edited_in_place(
    pool: ZygotePool, tmp_path: Path, edited: str
) -> None:
    """That does not change the folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "environment"], cwd=tmp_path, check=True)
    site = next((tmp_path / "environment/lib").glob("python3*/site-packages"))
    (site / "early.pth").write_text("import early\n")
    (site / "early.py").write_text("import sys; sys.added = 1\n")
    if edited == "sitecustomize.py":
        (site / edited).touch()
    (tmp_path / "script.py").write_text("import sys; print(sys.added)")
    comparison = Comparison(pool, tmp_path, f"{tmp_path}/environment/bin/python script.py")
    before = await comparison.warm_stdout()

    with (site / edited).open("a") as file:
        file.write("import sys; sys.added = 2\n")
    changed = await comparison.warm()

    assert before == b"1\n"
    assert changed is None
    assert await comparison.warm_stdout() == b"2\n"


async def test_warm_interpreter_starts_again_when_start_up_code_changed_while_it_started(
    pool: ZygotePool, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "environment"], cwd=tmp_path, check=True)
    site = next((tmp_path / "environment/lib").glob("python3*/site-packages"))
    (site / "sitecustomize.py").write_text("open(__file__, 'a').write('#')")
    (tmp_path / "script.py").touch()

    assert await Comparison(pool, tmp_path, f"{tmp_path}/environment/bin/python script.py").warm() is None


@pytest.fixture
def own_library(tmp_path: Path) -> Path:
    """A standard library that a test can change, for PYTHONHOME."""
    home = tmp_path / "home"
    library = home / "lib" / f"python3.{sys.version_info.minor}"
    library.mkdir(parents=True)
    for each in Path(os.__file__).parent.iterdir():
        (library / each.name).symlink_to(each)
    (library / "textwrap.py").unlink()
    shutil.copyfile(textwrap.__file__, library / "textwrap.py")
    return home


async def test_warm_interpreter_restarts_after_a_loaded_module_is_edited_in_place(
    pool: ZygotePool, tmp_path: Path, own_library: Path
) -> None:
    (tmp_path / "script.py").write_text("import textwrap; print(hasattr(textwrap, 'ADDED'))")
    comparison = Comparison(pool, tmp_path, f"{BASE_PYTHON} script.py", PYTHONHOME=str(own_library))
    assert await comparison.warm_stdout() == b"False\n"

    with next(own_library.glob("lib/python3*/textwrap.py")).open("a") as file:
        file.write("\nADDED = True\n")

    for _ in range(100):
        if await comparison.warm_stdout() == b"True\n":
            return
        await asyncio.sleep(0.5)
    pytest.fail("it was not noticed")


async def test_warm_script_is_refused_if_a_zip_file_comes_before_the_standard_library(
    pool: ZygotePool, tmp_path: Path, own_library: Path
) -> None:
    (tmp_path / "script.py").write_text("import json; print(json.VALUE)")
    comparison = Comparison(pool, tmp_path, f"{BASE_PYTHON} script.py", PYTHONHOME=str(own_library))
    with zipfile.ZipFile(own_library / "lib" / f"python3{sys.version_info.minor}.zip", "w") as archive:
        archive.writestr("json.py", "VALUE = 'of the archive'")

    cold, warm = await comparison.cold(), await comparison.warm()

    assert cold.stdout == b"of the archive\n"
    assert warm is None


async def test_very_large_file_is_refused(pool: ZygotePool, tmp_path: Path) -> None:
    with (tmp_path / "script.py").open("wb") as file:
        file.truncate(1 << 40)

    assert await Comparison(pool, tmp_path, f"{sys.executable} script.py").warm() is None


async def test_warm_scripts_share_the_hash_seed_unless_it_is_given(pool: ZygotePool, tmp_path: Path) -> None:
    """The one thing that stays the same from script to script."""
    (tmp_path / "script.py").write_text("print(hash('text'))")
    comparison = Comparison(pool, tmp_path, f"{sys.executable} script.py")
    assert await comparison.warm_stdout() == await comparison.warm_stdout()

    cold, warm = await Comparison(pool, tmp_path, f"{sys.executable} script.py", PYTHONHASHSEED="11").both()

    assert warm.stdout == cold.stdout


def _version(python: str) -> tuple[int, int]:
    text = subprocess.check_output([python, "-c", "import sys; print(*sys.version_info[:2])"], text=True)
    major, minor = map(int, text.split())
    return major, minor
