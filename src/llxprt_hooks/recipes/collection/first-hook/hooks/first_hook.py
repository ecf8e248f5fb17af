#!/usr/bin/env python3
"""Your first hook. It runs before a tool writes a file, and can block that.

A hook reads a JSON object from stdin and answers with its exit code and its output:

    exit 0, no output          the tool runs
    exit 0, text on stdout     the tool runs, and the model reads the text with the tool's result
    exit 2, text on stderr     the tool does not run, and the model reads the text instead
    anything else              the hook has failed, and the tool runs anyway

Try it without an agent:

    llxprt-hooks fire BeforeTool --tool write_file --args '{"file_path": ".env", "content": "x"}'
"""

import json
import os
import sys

call = json.load(sys.stdin)
name = os.path.basename(str(call["tool_input"].get("file_path", ""))).lower()

if name == ".env" or (name.startswith(".env.") and not name.endswith((".example", ".sample", ".template"))):
    print("A .env file holds secrets: ask the user to write it.", file=sys.stderr)
    sys.exit(2)
