#!/usr/bin/env python3
"""Answers a question that was asked before without calling the model.

Hooks see the text of a conversation, not the tool calls in it, so two requests that look the same may not be the
same, and an answer that looks complete may also ask for a tool. Only questions that were answered without any tool are
kept, and a session in which a tool has run takes no further part:

BeforeModel   answers from the cache, or notes the question as open. If one is still open, the last answer led to
              another request: a tool has run, and the session is ignored from now on.
AfterModel    notes whether the answer to the open question was complete.
AfterAgent    the prompt is done with and no further request came: the answer is kept, as it was shown.
"""

from __future__ import annotations

import collections.abc
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import time
import typing

from llxprt_hooks.recipes.collection.parts.cache_folder import cache_folder

LIFETIME = float(os.environ.get("RESPONSE_CACHE_HOURS") or 24) * 3600
MAX_ENTRIES = 500


def digest(*values: object) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:40]


def folder() -> str:
    return cache_folder("response-cache")


@contextlib.contextmanager
def session(event: dict[str, typing.Any]) -> collections.abc.Iterator[dict[str, typing.Any]]:
    """The state of a session: `open` is the question that waits for its answer, `over` ends its part in this."""
    name = f"session-{digest(event['session_id'])}"
    descriptor = os.open(os.path.join(folder(), name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        try:
            state = json.load(opened)
        except ValueError:
            state = {}
        yield state
        opened.seek(0)
        opened.truncate()
        json.dump(state, opened)


def entry_file(key: str) -> str:
    return os.path.join(folder(), f"answer-{key}")


def kept_answer(key: str) -> str | None:
    try:
        with open(entry_file(key), encoding="ascii") as opened:
            entry = json.load(opened)
    except (OSError, ValueError):
        return None
    return entry["text"] if time.time() - entry["at"] < LIFETIME else None


def keep(key: str, text: str) -> None:
    temporary = f"{entry_file(key)}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        json.dump({"at": time.time(), "text": text}, opened)
    os.replace(temporary, entry_file(key))
    files = []
    for file in os.scandir(folder()):
        with contextlib.suppress(OSError):
            files.append((file.stat().st_mtime, file.path))
    for _, path in sorted(files)[:-MAX_ENTRIES]:
        with contextlib.suppress(OSError):
            os.unlink(path)


def before_model(event: dict[str, typing.Any], state: dict[str, typing.Any]) -> None:
    if state.get("over") or state.get("open"):
        state.clear()
        state["over"] = True
        return
    request = event["llm_request"]
    if any(message["role"] == "model" for message in request["messages"]):
        # Further on in a conversation the same words may follow on something else.
        state["over"] = True
        return
    key = digest(event["cwd"], request)
    text = kept_answer(key)
    if text is None:
        state["open"] = {"key": key, "complete": False}
        return
    answer = {"llm_response": {"text": text}}
    print(json.dumps({"decision": "block", "reason": "answered from the cache", "hookSpecificOutput": answer}))


def after_model(event: dict[str, typing.Any], state: dict[str, typing.Any]) -> None:
    candidates = event["llm_response"].get("candidates") or [{}]
    if state.get("open"):
        state["open"]["complete"] = len(candidates) == 1 and candidates[0].get("finishReason") == "STOP"


def after_agent(event: dict[str, typing.Any], state: dict[str, typing.Any]) -> None:
    question = state.pop("open", None)
    if question and question["complete"] and not event["stop_hook_active"] and event["prompt_response"].strip():
        keep(question["key"], event["prompt_response"])


STEPS = {"BeforeModel": before_model, "AfterModel": after_model, "AfterAgent": after_agent}


def main() -> None:
    event = json.loads(sys.stdin.buffer.read())
    with session(event) as state:
        STEPS[event["hook_event_name"]](event, state)


main()
