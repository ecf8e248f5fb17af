#!/usr/bin/env python3
"""AfterTool: takes keys and personal data out of results before the model sees them."""

from __future__ import annotations

import json
import re
import sys
import typing

from llxprt_hooks.recipes.collection.parts.secret_scanning.context import in_context
from llxprt_hooks.recipes.collection.parts.secret_scanning.issuers import issued

PERSONAL_DATA = True  # whether addresses of mail, cards and accounts are taken out, too

EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\d-])")
ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,4})?\b")


def is_card(text: str) -> bool:
    digits = [int(char) for char in re.sub(r"\D", "", text)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_account(text: str) -> bool:
    plain = text.replace(" ", "")
    return 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def redacted(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    found = {secret for _, secret, _ in (*issued(text), *in_context(text, "", True))}
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    if not PERSONAL_DATA:
        return text
    text = EMAIL.sub("[email]", text)
    text = ACCOUNT.sub(lambda found: "[account]" if is_account(found.group()) else found.group(), text)
    return CARD.sub(lambda found: "[card]" if is_card(found.group()) else found.group(), text)


def without(value: typing.Any) -> typing.Any:
    """The same value, with all its texts redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [without(inner) for inner in value]
    return {name: without(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def main() -> None:
    before = json.loads(sys.stdin.buffer.read())["tool_response"]
    after = without(before)
    if after != before:
        print(json.dumps({"hookSpecificOutput": {"tool_response": after}}))


if __name__ == "__main__":
    main()
