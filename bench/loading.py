"""The lines about ``Config.load``: a typical project, and one with very many hooks. Both are approved."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from unittest import mock

from figures import MILLISECONDS, Line

from llxprt_hooks import Config

TYPICAL, LARGE = 5, 1000


def loading_lines(*, rounds: int) -> list[Line]:
    """Seconds to read the settings of all levels, with a script for every ten hooks."""
    lines = [Line(f"Config.load, {hooks} hooks", MILLISECONDS) for hooks in (TYPICAL, LARGE)]
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-bench-") as folder:
        environment = {"HOME": folder, "LLXPRT_TRUST_PROJECT_HOOKS": "1"}
        with mock.patch.dict(os.environ, environment):
            projects = [_project(Path(folder), hooks) for hooks in (TYPICAL, LARGE)]
            for _ in range(rounds + 1):
                for line, project in zip(lines, projects, strict=True):
                    started = time.perf_counter()
                    Config.load(project)
                    line.rounds.append(time.perf_counter() - started)
    for line in lines:
        del line.rounds[0]
    return lines


def _project(folder: Path, hooks: int) -> Path:
    project = folder / f"project-{hooks}"
    scripts = project / ".llxprt" / "hooks"
    scripts.mkdir(parents=True)
    for number in range(0, hooks, 10):
        (scripts / f"check_{number}.py").write_text("print('{}')\n", encoding="utf-8")
    groups = [
        {
            "matcher": f"^tool_{number}$",
            "hooks": [
                {
                    "type": "command",
                    "command": f"python3 -I $LLXPRT_PROJECT_DIR/.llxprt/hooks/check_{number // 10 * 10}.py {number}",
                }
            ],
        }
        for number in range(hooks)
    ]
    settings = {"enableHooks": True, "hooks": {"BeforeTool": groups}}
    (project / ".llxprt" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return project
