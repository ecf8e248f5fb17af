#!/usr/bin/env python3
"""AfterModel: takes personal data out of answers before anybody sees them.

Cards and account numbers are checked by their check digits, so that other long numbers stay. It answers only when
there is something to take out: an answer that a hook gives is text and nothing else, function calls would be lost.
"""

from __future__ import annotations

import collections.abc
import ipaddress
import json
import re
import sys
import typing


def is_card(text: str) -> bool:
    digits = [int(char) for char in re.sub(r"\D", "", text)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    plain = re.sub(r"\s", "", text).upper()
    moved = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def is_public_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def is_public_address_6(text: str) -> bool:
    return text.count(":") > 2 and is_public_address(text)


def is_phone(text: str) -> bool:
    return 8 <= len(re.sub(r"\D", "", text)) <= 15


def anything(text: str) -> bool:
    return True


SPACE = "[ \u00a0\u2007\u2009\u202f]"  # the ones that people and programs put between digits

# What to look for, what it has to pass to count, and what takes its place.
KINDS = [
    (r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", anything, "[email]"),
    (
        rf"\b[A-Za-z]{{2}}\d{{2}}(?:{SPACE}?[0-9A-Za-z]{{4}}){{2,7}}(?:{SPACE}?[0-9A-Za-z]{{1,4}})?\b",
        is_iban,
        "[account]",
    ),
    (rf"(?<![\d.-])\d(?:(?:{SPACE}|[-.])?\d){{12,18}}(?![\d-])", is_card, "[card]"),
    (r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])", anything, "[social security number]"),
    (rf"(?<![\w.+])\+\d{{1,3}}(?:(?:{SPACE}|[.()/-]){{0,2}}\d){{6,13}}(?!\d)", is_phone, "[phone]"),
    (
        rf"(?<![\d.-])\(?[2-9]\d{{2}}\)?(?:{SPACE}|[.-]){{1,2}}\d{{3}}(?:{SPACE}|[.-])\d{{4}}(?![\d-])",
        is_phone,
        "[phone]",
    ),
    (
        rf"(?<![\d.-])(?<!\d{SPACE})\(?0\d{{2,4}}\)?(?:{SPACE}|[/-])\d{{3,4}}(?:{SPACE}|[-])?\d{{3,5}}(?!{SPACE}?\d|-)",
        is_phone,
        "[phone]",
    ),
    (
        r"(?i)(?:(?<=phone )|(?<=phone: )|(?<=mobile )|(?<=call )|(?<=tel ))\d{9,12}\b",
        is_phone,
        "[phone]",
    ),
    (r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])", is_public_address_6, "[address]"),
    (r"(?<![\d.v])(?<!ersion )(?:\d{1,3}\.){3}\d{1,3}(?![\d.]\d)", is_public_address, "[address]"),
]


def redacted(text: str) -> str:
    for kind in KINDS:
        text = without(text, *kind)
    return text


def without(text: str, pattern: str, counts: collections.abc.Callable[[str], bool], instead: str) -> str:
    return re.sub(pattern, lambda found: instead if counts(found.group()) else found.group(), text)


def said(candidate: dict[str, typing.Any]) -> str:
    """A candidate's text as a whole: what is taken out may stretch over two parts."""
    parts = (candidate.get("content") or {}).get("parts") or []
    return "".join(part if isinstance(part, str) else part.get("text") or "" for part in parts)


def main() -> None:
    response = json.loads(sys.stdin.buffer.read())["llm_response"]
    candidates = response.get("candidates") or []
    before = [said(candidate) for candidate in candidates] or [response.get("text") or ""]
    if not any(before):
        before[0] = response.get("text") or ""
    after = [redacted(text) for text in before]
    if after == before:
        return
    changed = {**response, "text": after[0]}
    if candidates:
        changed["candidates"] = [
            {**candidate, "content": {"role": "model", "parts": [text]}} for candidate, text in zip(candidates, after)
        ]
    print(json.dumps({"hookSpecificOutput": {"llm_response": changed}}))


main()
