"""Draw docs/pictures/demo.svg: what ``llxprt-hooks demo`` shows on a terminal. ``make pictures`` runs it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 80
PICTURE = Path(__file__).with_name("demo.svg")


def draw() -> str:
    """Run the demo and return its screen as SVG."""
    command = Path(sys.executable).with_name("llxprt-hooks")
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    shown = subprocess.run([command, "demo"], env=environment, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.strip("\n")))
    svg = console.export_svg(title="llxprt-hooks demo", unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture that fetches nothing
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
