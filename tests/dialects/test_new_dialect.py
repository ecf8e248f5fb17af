"""A new dialect is one module and one line in the table: settings and engine then know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.settings.foreign import DIALECTS


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
