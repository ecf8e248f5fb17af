"""Draws docs/pictures/demo.svg: what ``llxprt-hooks demo`` shows on a terminal."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 118
PICTURE = Path(__file__).with_name("demo.svg")


def main() -> None:
    command = Path(sys.executable).with_name("llxprt-hooks")
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    shown = subprocess.run([command, "demo"], env=environment, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.strip("\n")))
    svg = console.export_svg(title="llxprt-hooks demo", unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture that fetches nothing
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
