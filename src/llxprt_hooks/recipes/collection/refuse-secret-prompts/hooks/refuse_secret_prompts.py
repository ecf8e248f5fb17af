#!/usr/bin/env python3
"""BeforeAgent: refuses a prompt with a key, token or password, before it reaches the model.

What was found is never repeated in full: reasons are shown and logged.
"""

from __future__ import annotations

import collections.abc
import json
import sys

from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.secret_scanning.context import in_context
from llxprt_hooks.recipes.collection.parts.secret_scanning.issuers import issued

ALLOWED: collections.abc.Collection[str] = {
    # Texts that only look like a secret, such as the keys of test fixtures.
}


def refusal(prompt: str) -> str | None:
    """Why a prompt is refused, or None."""
    prompt = prompt.encode("utf-8", "replace").decode("utf-8")
    for kind, secret, _ in (*issued(prompt), *in_context(prompt, "", True)):
        if secret not in ALLOWED:
            return (
                f"Your prompt has what looks like {kind} ({secret[:4]}…, {len(secret)} characters), so it was not sent "
                "to the model. Remove it, or name the variable or file that it is in. If it is not a secret, add it to "
                "ALLOWED in refuse_secret_prompts.py."
            )
    return None


def main() -> str | None:
    return refusal(json.loads(sys.stdin.buffer.read())["prompt"])


if __name__ == "__main__":
    decide(main, unchecked="this prompt cannot be searched for secrets")
