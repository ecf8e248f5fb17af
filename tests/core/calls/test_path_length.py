"""What ``bench/trace.py`` counts in a tool call and a model call does not grow, and nothing is looked up twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.processes import DEADLINE

TRACE = Path(__file__).parents[3] / "bench" / "trace.py"
PROGRAM = """
import json, runpy, sys
trace = runpy.run_path(sys.argv[1])
print(json.dumps([trace["tool_call"](), trace["model_call"]()]))
"""


def test_a_call_looks_everything_up_once_and_reaches_the_process_in_few_steps(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    arguments = [sys.executable, "-c", PROGRAM, str(TRACE)]
    traced = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, timeout=DEADLINE, check=True)

    tool_call, model_call = json.loads(traced.stdout)

    assert tool_call["modules"] <= 28
    assert 0 < tool_call["frames to the process"] <= 13
    assert 0 < model_call["frames to the process"] <= 13
    assert tool_call["plan lookups"] == 2
    assert model_call["plan lookups"] == 3
    assert model_call["requests read"] == 1
    assert model_call["translators resolved"] == 1
