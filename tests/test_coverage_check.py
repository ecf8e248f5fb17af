"""Which lines the coverage check excuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage import Coverage

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.mark.parametrize(
    ("comment", "is_excused"),
    [
        ("# pragma: no cover - only on Windows", True),
        ("# pragma: no cover", False),
        ("# pragma: no cover -", False),
        ("# pragma: no cover: only on Windows", False),
        ("", False),
    ],
)
def test_an_uncovered_line_is_excused_only_with_a_reason(tmp_path: Path, comment: str, is_excused: bool) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"first = 1\nsecond = 2  {comment}\n")
    coverage = Coverage(config_file=str(PYPROJECT), data_file=None)

    _, _, excluded, missing, _ = coverage.analysis2(str(module))

    assert excluded == ([2] if is_excused else [])
    assert missing == ([1] if is_excused else [1, 2])
