#!/usr/bin/env python3
"""Turns every `rm` into one that only says what it would do."""

import json
import sys

command = json.load(sys.stdin)["tool_input"]["command"]
if command.startswith("rm "):
    print(json.dumps({"hookSpecificOutput": {"tool_input": {"command": f"echo would run: {command}"}}}))
