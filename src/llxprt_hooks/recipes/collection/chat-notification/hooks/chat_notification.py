#!/usr/bin/env python3
"""Posts a line to a chat when the agent waits for the user or is done, without holding the agent.

CHAT_WEBHOOK_URL is the incoming webhook of Slack, Mattermost, Rocket.Chat, Google Chat, Teams or Discord. Without it
nothing is sent. What leaves the machine is the project's name and one line, never a file, a command or an answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing
import urllib.parse
import urllib.request

TIME_LIMIT = 10  # seconds; nobody waits for it


def line(event: dict[str, typing.Any]) -> str | None:
    """What to say, or None."""
    project = os.path.basename(event["cwd"].rstrip("/")) or "/"
    kind = event["hook_event_name"]
    if kind == "Notification":
        details = event.get("details") or {}
        tool = details.get("tool_name") or details.get("title") or details.get("type") or "a tool"
        return f"{project}: the agent waits for your approval of {tool}"
    if kind == "AfterAgent":
        return f"{project}: the agent was stopped" if event["stop_hook_active"] else f"{project}: the agent is done"
    return None


def message(url: str, text: str) -> dict[str, object]:
    """The body that the service at an address expects."""
    if "discord" in (urllib.parse.urlsplit(url).hostname or ""):
        return {"content": text, "allowed_mentions": {"parse": []}}
    for char, safe in {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.items():
        text = text.replace(char, safe)
    return {"text": text}


def send(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIME_LIMIT) as answer:
        answer.read(1000)


def main() -> None:
    url = os.environ.get("CHAT_WEBHOOK_URL", "")
    if not url:
        return
    if urllib.parse.urlsplit(url).scheme not in ("https", "http"):
        sys.exit("CHAT_WEBHOOK_URL must begin with https://")
    if sys.argv[1:] == ["--send"]:
        send(url, sys.stdin.buffer.read())
        return
    text = line(json.loads(sys.stdin.buffer.read()))
    if text is None:
        return
    # A process of its own session, with none of our pipes: the agent goes on, and the line is still sent.
    sender = subprocess.Popen(
        [sys.executable, "-I", os.path.abspath(__file__), "--send"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert sender.stdin is not None
    sender.stdin.write(json.dumps(message(url, text)).encode())
    sender.stdin.close()
    sender.returncode = 0  # it is not waited for


main()
