#!/usr/bin/env python3
"""First of three: makes line ends and the end of the file what they should be. Later hooks see the tidied text."""

import json
import re
import sys

call = json.loads(sys.stdin.buffer.read())
content = call["tool_input"].get("content")
if isinstance(content, str):
    tidied = content.replace("\r\n", "\n")
    if not str(call["tool_input"].get("file_path")).endswith(".md"):  # there, two spaces at an end are a line break
        tidied = re.sub(r"[ \t]+$", "", tidied, flags=re.MULTILINE)
    tidied = tidied.rstrip("\n") + "\n" if tidied.strip() else ""
    if tidied != content:
        print(json.dumps({"hookSpecificOutput": {"tool_input": {"content": tidied}}}))
