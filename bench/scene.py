"""What every contender is given: a folder with a hook in it, its two commands, and payloads of any size."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ANSWER = '{"decision": "allow"}'
ARGUMENT = "--strict"
PYTHON_HOOK = f"""\
import json
import re
import sys

event = json.load(sys.stdin)
re.search(r"\\.env$", event["tool_input"]["file_path"])
print('{ANSWER}')
"""

BASH_HOOK = f"""\
IFS= read -r -d '' event
case $event in *'.env"'*) echo 'not this file' >&2; exit 2 ;; esac
echo '{ANSWER}'
"""
NODE_HOOK = f"""\
const event = JSON.parse(require('fs').readFileSync(0, 'utf8'));
if (event.tool_input.file_path.endsWith('.env')) {{
  console.error('not this file');
  process.exit(2);
}}
console.log('{ANSWER}');
"""


@dataclass(frozen=True)
class Scene:
    """One hook, once as a plain program and once as a command that needs a shell; both read all of their stdin."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Scene:
        scene = cls(folder)
        for program, answer in ((scene.program, ANSWER), (scene.neutral, '{"systemMessage": "seen"}')):
            program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n", encoding="utf-8")
            program.chmod(0o755)
        scene.script.write_text(PYTHON_HOOK, encoding="utf-8")
        (folder / "guard.bash").write_text(BASH_HOOK, encoding="utf-8")
        (folder / "guard.js").write_text(NODE_HOOK, encoding="utf-8")
        return scene

    @property
    def program(self) -> Path:
        return self.folder / "guard.sh"

    @property
    def neutral(self) -> Path:
        """The same program with an answer that every dialect knows."""
        return self.folder / "neutral.sh"

    @property
    def script(self) -> Path:
        return self.folder / "guard.py"

    @property
    def python(self) -> str:
        """The same hook as a Python script, with the Python of the benchmark, outside of its virtual environment."""
        return f"{sys.base_prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor} {self.script}"

    @property
    def others(self) -> dict[str, str]:
        """The same hook in other languages that are here."""
        programs = {"bash": self.folder / "guard.bash", "node": self.folder / "guard.js"}
        return {name: f"{found} {script}" for name, script in programs.items() if (found := shutil.which(name))}

    @property
    def plain(self) -> str:
        return f"{self.program} {ARGUMENT}"

    @property
    def shell(self) -> str:
        return f"cat > /dev/null; echo '{ANSWER}'; :"  # the last word takes the argument that tells 100 hooks apart

    @property
    def bash(self) -> str:
        return shutil.which("bash") or "/bin/sh"

    def payload(self, size: int = 1000) -> Path:
        """A file with the input of a BeforeTool event of about that many bytes."""
        file = self.folder / f"payload-{size}.json"
        if not file.exists():
            file.write_text(json.dumps(self._event("x" * size)), encoding="utf-8")
        return file

    def _event(self, content: str) -> dict[str, object]:
        return {
            "session_id": "bench",
            "cwd": str(self.folder),
            "timestamp": "2025-11-16T00:00:00.000Z",
            "hook_event_name": "BeforeTool",
            "transcript_path": "",
            "tool_name": "write_file",
            "tool_input": {"file_path": "src/app.py", "content": content},
        }

    def environment(self) -> dict[str, str]:
        """The environment of every contender and its hooks: no shell start-up files, no debugging."""
        unwanted = ("BASH_ENV", "ENV", "DEBUG", "NODE_OPTIONS", "PYTHONPATH", "PYTHONDEVMODE")
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        names = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
        return {**kept, **dict.fromkeys((*names, "PWD"), str(self.folder))}
