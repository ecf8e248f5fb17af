"""What a value looks like: random, made of words, put in for a value to come, or the name of one."""

from __future__ import annotations

import math
import re

# Where a value comes from, instead of the value: ${X}, $(x), {{ x }}, %(x)s, <x>, x.y, f(x), !secret x, /run/secrets/x
REFERENCE = re.compile(
    r"\$\{|\$\(|\{\{|%\(\w{1,40}\)|<%|\{[\w.\[\]]{0,40}\}|^\\?\$[A-Za-z_]\w*(?:$|[\[(.:-])|^\$\d$|^%[\w.*-]{1,40}%?$|^%[\w.*()-]{1,60}%$|^<.{0,100}>?$|^\[.{0,100}\]?$|^[!@&*#.][A-Za-z_][A-Za-z_.-]{0,60}$"
    r"|^\.{0,2}/|^~/|^[A-Za-z]:\\|^[a-z][a-z0-9+.-]{1,20}://|^arn:|^#[0-9a-fA-F]{3,8}$|^\d{4}-\d\d-\d\d^ssh-|^data:|^sha\d{1,3}[:-]|^\w{0,40}env(?:iron)?\b|getenv|process\."
    r"|^(?:config|settings|secrets?|vars?|env|self|this|data|local|module|params|props|args|options|request|req)(?:[.\[/]|->)"
)
CODE_NAME = re.compile(
    r"[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->)[A-Za-z_$][\w$]{0,60})+(?:[(\[].*)?|[A-Za-z_][\w.]{0,80}[(\[].*"
)
# What remains of a value without these words, and without counting digits, is the secret in it.
WORDS_OF_EXAMPLES = re.compile(
    r"example|placeholder|change|dummy|redacted|removed|hidden|your|insert|replace|enter|here|goes|fake|sample|mock|test|demo"
    r"|default|super|very|some|with|the|this|not|real|valid|invalid|wrong|correct|long|short|enough|random|value|string|none|null|undefined|required|optional"
    r"|true|false|todo|fixme|foo|bar|baz|qux|abc|xyz|xxx+|\*\*+|\.\.\.+|###*|___+|---+|my|me|new|old|pass(?:word|wd|phrase)?|pwd|secret|token|api|key|user(?:name)?|admin|root|auth"
    r"|client|private|public|access|bearer|basic|credentials?|login|account|service|bot|app|code|0?123456789?0?|12345?|1234|123|0000+|1111+"
)
REPEATED = re.compile(r"(.)\1{9}")
WORD_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}")
PLAIN_WORD = re.compile(r"[A-Za-z]{3,18}\d{0,2}|\d{1,8}|[A-Za-z]{1,2}|v\d+")


def is_code_name(value: str) -> bool:
    """Whether a value without quotes is the name of a variable or a call of a function."""
    return bool(CODE_NAME.fullmatch(value)) and not any(is_random(part) for part in value.split(".") if len(part) > 15)


def entropy(text: str) -> float:
    """Bits per character: random text has 4 and more, words have about 3."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def is_put_in_later(value: str) -> bool:
    """Whether a value refers to a secret or is an example for one."""
    if REFERENCE.search(value) or REPEATED.search(value):
        return True
    rest = re.sub(r"[-_.:/ !]", "", WORDS_OF_EXAMPLES.sub("", value[:64].lower()))
    return len(rest) < 5 or len(set(rest)) < 3


def is_literal(value: str) -> bool:
    """Whether a value where only a password can be is one, and not where it comes from."""
    return not REFERENCE.search(value) and len(set(value)) > 2


def is_of_words(value: str) -> bool:
    """Whether a value reads as words, as names in programs do: user-password, IAMUserChangePassword, oauth2/token."""
    value = value.strip("!?.,:;@=#-_")
    parts = re.split(r"[-_./:,=\\ ]+", value)
    if len(parts) > 1 and all(PLAIN_WORD.fullmatch(part) for part in parts if part):
        return True
    stem = value.rstrip("0123456789")
    if len(stem) < 40 and len(value) - len(stem) in (1, 2) and re.search("[a-z][A-Z]|[A-Z]{2}[a-z]", stem):
        value = stem
    return not re.search(r"[^\w./:-]", value) and is_of_letter_words(value) and not re.search(r"\d", value)


def is_of_letter_words(value: str) -> bool:
    parts = WORD_PARTS.findall(value)
    letters = [part for part in parts if part[0].isalpha()]
    numbers = [part for part in parts if part.isdigit()]
    if not letters or max(map(len, letters)) > 18:
        return False
    length = sum(map(len, letters))
    if sum(len(part) for part in letters if len(part) > 2 and part[0].isupper() and part[1:].islower()) > length * 0.6:
        return True
    return (
        max(map(len, numbers), default=0) <= 4 and sum(map(len, numbers)) < length / 2 and length / len(letters) >= 3.5
    )


def may_be_password(value: str) -> bool:
    """Whether a value that is assigned to the name of a secret is one: more than a word."""
    if is_put_in_later(value) or is_of_words(value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]"))
    if value.isdigit():
        return len(value) >= 16
    return kinds >= 2 and entropy(value) >= 2.3


def is_random(value: str) -> bool:
    """Whether a value can be nothing but a key: long, of letters and digits, and not of words."""
    if UUID.fullmatch(value):
        return len(set(value)) > 5
    if len(set(value)) < 6 or not re.search(r"\d", value) or REFERENCE.search(value):
        return False
    if value.isdigit():
        return len(value) >= 24
    if not re.search("[A-Za-z]", value) or HOST.fullmatch(value):
        return False
    parts = [part for part in re.split(r"[-_./:+=~]+", value) if part]
    value = value.strip("!?.,:;@=#-_")
    if all(PLAIN_WORD.fullmatch(part) for part in parts):
        return False
    return not is_of_letter_words(value)
