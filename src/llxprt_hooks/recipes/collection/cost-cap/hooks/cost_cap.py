#!/usr/bin/env python3
"""A budget for each session or user. AfterModel adds up what answers cost, BeforeModel stops when it is used up.

COST_CAP_TOKENS                     the budget of a session in tokens, 1000000 by default
COST_CAP_USD                        the budget in dollars instead; also needs the prices of your model:
COST_CAP_USD_PER_MILLION_INPUT      dollars per million tokens of the prompt
COST_CAP_USD_PER_MILLION_OUTPUT     dollars per million tokens of the answer
COST_CAP_PER                        a field of `metadata`, such as `user`: each of its values has a budget for each day
"""

from __future__ import annotations

import collections.abc
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import tempfile
import time
import typing

from llxprt_hooks.recipes.collection.parts.cache_folder import cache_folder

WARN_AT = 0.8
FORGET_AFTER = 30 * 24 * 3600  # seconds after which a session's account is deleted


def number(name: str) -> float | None:
    value = os.environ.get(name, "")
    try:
        return float(value) if value else None
    except ValueError:
        sys.exit(f"{name} must be a number, found {value!r}")


class Budget:
    """What may be spent, and what tokens cost in it."""

    def __init__(self) -> None:
        self.dollars = number("COST_CAP_USD")
        if self.dollars is None:
            self.limit, self.input_price, self.output_price = number("COST_CAP_TOKENS") or 1_000_000, 1.0, 1.0
            return
        input_price, output_price = number("COST_CAP_USD_PER_MILLION_INPUT"), number("COST_CAP_USD_PER_MILLION_OUTPUT")
        if input_price is None or output_price is None:
            sys.exit("COST_CAP_USD needs COST_CAP_USD_PER_MILLION_INPUT and COST_CAP_USD_PER_MILLION_OUTPUT")
        self.limit, self.input_price, self.output_price = self.dollars, input_price / 1e6, output_price / 1e6

    def cost(self, usage: dict[str, int]) -> float:
        return usage["input"] * self.input_price + usage["output"] * self.output_price

    def shown(self, amount: float) -> str:
        return f"{amount:,.0f} tokens" if self.dollars is None else f"${amount:,.2f}"


@contextlib.contextmanager
def account(session_id: str) -> collections.abc.Iterator[dict[str, int]]:
    """What a session has used so far; changes are kept. Only one hook at a time has it."""
    folder = cache_folder("cost-cap")
    name = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    path = os.path.join(folder, f"{name}.json")
    if not os.path.exists(path):
        forget_old(folder)
        begin(path)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CLOEXEC), "r+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        used = json.loads(opened.read())  # an account that was emptied is an error, and stops the agent
        before = dict(used)
        yield used
        if used != before:
            opened.seek(0)
            opened.truncate()
            json.dump(used, opened)


def begin(path: str) -> None:
    """Make an account with nothing used, all at once: another hook never sees it empty."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), encoding="utf-8") as new:
        json.dump({"input": 0, "output": 0, "warned": False}, new)
        new.flush()
        with contextlib.suppress(FileExistsError):
            os.link(new.name, path)


def forget_old(folder: str) -> None:
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > FORGET_AFTER:
                os.unlink(entry.path)


def payer(event: dict[str, typing.Any]) -> tuple[str, str]:
    """Whose budget it is, as the name of an account and for people. Without a user, nobody could be charged."""
    field = os.environ.get("COST_CAP_PER", "")
    if not field:
        return event["session_id"], "this session"
    value = (event.get("metadata") or {}).get(field)
    if not isinstance(value, str | int) or value == "":
        print(f"COST_CAP_PER is {field}, but the metadata of this event has no such text or number", file=sys.stderr)
        sys.exit(2)
    return json.dumps([field, value, time.strftime("%Y-%m-%d", time.gmtime())]), f"{field} {value}"


def tokens(event: dict[str, typing.Any]) -> tuple[int, int]:
    """The cost of an answer; without usage data, assume four characters per token."""
    usage = event["llm_response"].get("usageMetadata") or {}
    spent_in, total = usage.get("promptTokenCount"), usage.get("totalTokenCount")
    if spent_in is None:
        spent_in = sum(len(message["content"]) for message in event["llm_request"].get("messages", [])) // 4
    spent_out = usage.get("candidatesTokenCount")
    if total is not None:
        spent_out = max(total - spent_in, spent_out or 0)  # thinking counts in the total only
    if spent_out is None:
        spent_out = len(event["llm_response"].get("text") or "") // 4
    return spent_in, spent_out


def main() -> None:
    event, budget = json.loads(sys.stdin.buffer.read()), Budget()
    name, whose = payer(event)
    with account(name) as used:
        if event["hook_event_name"] == "BeforeModel":
            spent = budget.cost(used)
            if spent >= budget.limit:
                reason = f"the budget of {whose} is used up: {budget.shown(spent)} of {budget.shown(budget.limit)}"
                print(json.dumps({"continue": False, "stopReason": reason}))
            return
        spent_in, spent_out = tokens(event)
        used["input"] += spent_in
        used["output"] += spent_out
        spent = budget.cost(used)
        if spent >= WARN_AT * budget.limit and not used["warned"]:
            used["warned"] = True
            shown = f"{budget.shown(spent)} of {whose}'s budget of {budget.shown(budget.limit)} are used."
            print(json.dumps({"systemMessage": f"{shown} Finish the most important work, and be brief."}))


main()
