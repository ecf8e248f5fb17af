#!/usr/bin/env python3
"""BeforeTool: asks a service whether a tool may run.

POLICY_SERVICE_URL       the address of the service
POLICY_SERVICE_TOKEN     sent as a bearer token, if set
POLICY_SERVICE_TIMEOUT   seconds to wait for the answer, 2 by default; keep it below the hook's `timeout`
POLICY_SERVICE_ON_ERROR  what to do without a valid answer: `deny` (the default) or `allow` the call

The question is {"tool_name", "tool_input", "session_id", "cwd"}; the answer {"decision": "allow" | "deny", "reason"}.
"""

from __future__ import annotations

import json
import os
import sys
import typing
import urllib.error
import urllib.parse
import urllib.request

MAX_ANSWER = 64 * 1024


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is not an answer: arguments of tools go to the one place that was named."""

    def redirect_request(self, *_: object) -> None:
        return None


def ask(url: str, event: dict[str, typing.Any]) -> tuple[str, str]:
    """The decision and its reason; raises OSError or ValueError where there is no usable answer."""
    question = {name: event[name] for name in ("tool_name", "tool_input", "session_id", "cwd")}
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token := os.environ.get("POLICY_SERVICE_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(question).encode(), headers)
    seconds = float(os.environ.get("POLICY_SERVICE_TIMEOUT") or 2)
    with urllib.request.build_opener(NoRedirect).open(request, timeout=seconds) as response:
        answer = json.loads(response.read(MAX_ANSWER))
    if not isinstance(answer, dict) or answer.get("decision") not in ("allow", "deny"):
        raise ValueError('it did not answer with {"decision": "allow"} or {"decision": "deny"}')
    return answer["decision"], str(answer.get("reason") or "")


def main() -> None:
    event = json.loads(sys.stdin.buffer.read())
    url = os.environ.get("POLICY_SERVICE_URL", "")
    try:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("POLICY_SERVICE_URL is not set to an http(s) address")
        decision, reason = ask(url, event)
    except (OSError, ValueError) as error:
        if os.environ.get("POLICY_SERVICE_ON_ERROR") == "allow":
            print(f"the policy service could not be asked, so the call is allowed: {error}", file=sys.stderr)
            return
        decision, reason = "deny", f"the policy service could not be asked: {error}"
    if decision == "deny":
        print(reason or "the policy service does not allow this call", file=sys.stderr)
        sys.exit(2)


main()
