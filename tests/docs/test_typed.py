"""What the pages show about ``Hooks`` is accepted by ``mypy --strict``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, sections

TYPED = {
    "python-api.md": {
        "a-first-tool-call",
        "a-tool-call-in-two-steps",
        "a-model-call",
        "functions-as-hooks",
        "sessions",
        "streams",
    },
    "hooks-in-ten-lines.md": {"plain-python", "openai", "anthropic", "google"},
}


def test_the_examples_of_hooks_pass_strict_type_checking(tmp_path: Path) -> None:
    programs = [
        (section, block)
        for page, anchors in TYPED.items()
        for section in sections(ROOT / "docs" / page)
        for block in section.blocks
        if section.anchor in anchors and block.language == "python"
    ]
    assert {section.anchor for section, _ in programs} == {anchor for anchors in TYPED.values() for anchor in anchors}
    for number, (section, block) in enumerate(programs):
        file = tmp_path / f"{section.page.stem}_{number}_line_{block.line}.py".replace("-", "_")
        file.write_text(block.text, encoding="utf-8")
    # With the repository's own settings, which are strict, mypy has read the package already for `make lint`.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(programs)} source files" in checked.stdout
