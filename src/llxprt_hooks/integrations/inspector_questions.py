"""How an agent's question reaches the inspectors that are open on this machine, and how the answer comes back.

An open inspector announces itself in a private folder of the user, with its port and the key for agents, and holds a
lock there: what has taken over the port of one that has ended is told nothing. An agent tells every open inspector of
its question, again and again, until one of them has the answer. So a question that is not repeated is gone, however its
agent ended. The key is enough to ask, but not to answer, which only the inspector's page can.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from llxprt_hooks._support.json_codec import read_json_object, write_json
from llxprt_hooks.core.calls.approval import Answer, Approval, ApprovalRequest, NobodyToAsk
from llxprt_hooks.settings import exclusive_lock, make_private_folder, write_atomically
from llxprt_hooks.settings.atomic import is_locked
from llxprt_hooks.settings.levels import inspectors_folder

EXPIRES: Final = 300.0
"""Seconds that a person has to answer."""

REPEATED: Final = 0.3
"""Seconds after which an agent repeats its question."""

WORDS: Final[Mapping[str, tuple[Answer, str]]] = {
    "once": (True, "Allow once"),
    "session": (Approval.FOR_SESSION, "Allow for this session"),
    "no": (False, "Deny"),
}
"""The answers on a page: what they mean to the agent, and what is on their button."""

PATH: Final = "/api/ask"
_TIMEOUT: Final = 5.0
_PATIENCE: Final = 1.0


@dataclass(frozen=True, slots=True)
class OpenInspector:
    """An inspector of this user: its port on loopback, and the key that agents show it."""

    port: int
    key: str


@contextmanager
def announced(port: int, key: str) -> Iterator[None]:
    """Let agents find an inspector meanwhile."""
    file = inspectors_folder() / f"{port}.json"
    make_private_folder(file.parent)
    with exclusive_lock(file, timeout=_PATIENCE):
        write_atomically(file, json.dumps({"port": port, "key": key}), mode=0o600)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def open_inspectors() -> list[OpenInspector]:
    """Return the inspectors that are open now."""
    return [found for file in sorted(inspectors_folder().glob("*.json")) if (found := _announced_in(file)) is not None]


def _announced_in(file: Path) -> OpenInspector | None:
    try:
        if not is_locked(file) or file.is_symlink() or file.stat().st_uid != os.getuid():
            return None
        said = read_json_object(file.read_bytes()) or {}
    except OSError:  # it has just ended
        return None
    port, key = said.get("port"), said.get("key")
    return OpenInspector(port, key) if isinstance(port, int) and isinstance(key, str) else None


async def ask_everywhere(request: ApprovalRequest, expires: float = EXPIRES) -> Answer:
    """Ask in every open inspector, also in one that is opened later, and return the first answer."""
    started, identity = time.monotonic(), secrets.token_urlsafe(12)
    question = {
        "id": identity,
        "digest": request.digest,
        "tool_name": request.tool_name,
        "tool_input": request.tool_input,
        "reason": request.reason,
        "hook": request.hook,
        "session_id": request.session_id,
        "project": str(Path.cwd()),
        "pid": os.getpid(),
    }
    is_announced = False
    while (left := expires - (time.monotonic() - started)) > 0:
        inspectors = await asyncio.to_thread(open_inspectors)
        if not inspectors and not is_announced:
            print("llxprt-hooks: a hook asks. To answer, run: llxprt-hooks inspect", file=sys.stderr, flush=True)
            is_announced = True
        for inspector in inspectors:
            answer = await asyncio.to_thread(_told, inspector, {**question, "seconds_left": left})
            if answer is not None:
                return answer
        await asyncio.sleep(min(REPEATED, left))
    raise NobodyToAsk(f"nobody answered within {expires:.0f} seconds")


def _told(inspector: OpenInspector, question: Mapping[str, Any]) -> Answer | None:
    """Tell an inspector of a question, and return the answer to it if there is one."""
    connection = HTTPConnection("127.0.0.1", inspector.port, timeout=_TIMEOUT)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {inspector.key}"}
    try:
        connection.request("POST", PATH, write_json(question), headers)
        response = connection.getresponse()
        said = read_json_object(response.read()) or {}
    except (OSError, HTTPException):  # it is being closed
        return None
    finally:
        connection.close()
    if response.status != 200 or said.get("id") != question["id"] or said.get("digest") != question["digest"]:
        return None
    word = said.get("answer")
    return WORDS[word][0] if isinstance(word, str) and word in WORDS else None
