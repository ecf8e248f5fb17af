"""A new dialect is one module and one line in the table: settings and engine then know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.settings.definitions import HookSet
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust.fingerprint import commands_of
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS, "toy", "tests.dialects.toy")


async def test_its_hooks_get_its_payload_and_their_answer_is_read(tmp_path: Path) -> None:
    guard = "jq -r .about; echo toy=$TOY"
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks={"guard": guard}, dialect="toy"))

    result = await hooks.run_tool("write_file", {"file_path": "a"}, lambda _: "written")

    assert result.llm_content == "write_file\ntoy=1"
    assert result.error is not None


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown dialect 'klingon'.*'toy'"):
        Config(hooks={}, dialect="klingon")


async def _answer(root: Path) -> object:
    hooks = Hooks.load(root, dialects=("toy",))
    return (await hooks.run_tool("write_file", {"file_path": "a"}, lambda _: "written")).llm_content


async def test_its_settings_may_be_toml_and_name_a_folder_for_its_hooks(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "inside").mkdir(parents=True)
    (root / "inside" / "guard.sh").write_text("echo $PWD $LLXPRT_PROJECT_DIR")
    (root / "toy.toml").write_text('guard = "sh guard.sh"\nfolder = "inside"\n')

    assert await _answer(root) == "written"
    grant_trust(root, dialect="toy")
    assert await _answer(root) == f"{root}/inside {root}"

    (root / "inside" / "guard.sh").write_text("true")
    assert trust_status(root, "toy").state is TrustState.CHANGED


async def test_its_settings_may_disable_a_hook(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text('guard = "echo no"\ndisabled = ["echo no"]\n')
    grant_trust(tmp_path, dialect="toy")

    assert await _answer(tmp_path) == "written"


@pytest.mark.parametrize("text", ["guard = ", "a = 1\na = 2", "a = [" * 10_000])
def test_toml_that_cannot_be_read_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / "toy.toml").write_text(text)

    assert any("not valid TOML" in str(each) for each in load_settings(tmp_path, dialects=("toy",)).problems)


def test_a_date_in_toml_is_text(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text('guard = "true"\nwhen = 2026-11-18\n')
    grant_trust(tmp_path, dialect="toy")

    assert trust_status(tmp_path, "toy").statement["dialects"]["toy"]["toy.toml"]["hooks"]["when"] == "2026-11-18"


def test_what_covers_its_scripts_starts_in_the_folder_of_the_hook() -> None:
    (command,) = commands_of(HookSet({"guard": "./guard.sh", "folder": "in side"}, dialect="toy"))

    assert command.script_texts == ("cd 'in side' && ./guard.sh",)


async def test_a_plugin_is_in_the_first_dialect_that_has_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "toy.toml").write_text('guard = "echo no"')

    settings = load_settings(tmp_path, dialects=("claude", "toy"), plugins=[tmp_path / "plugin"])

    assert [hooks.dialect for hooks in settings.hook_sets] == ["toy"]
