#!/usr/bin/env python3
"""BeforeTool: blocks a tool call that would write down, or use in a command, a key, token or password.

Looks at every text that a call carries, except at what it takes away (`old_string`): as it is, with string literals
joined ("AKIA…" + "…"), and with escapes and base64 decoded. What was found is never repeated in full:
reasons go to the model and into logs.
"""

from __future__ import annotations

import base64
import collections.abc
import json
import math
import re
import sys
import unicodedata

from llxprt_hooks.recipes.collection.parts.fail_closed import decide

ALLOWED: collections.abc.Collection[str] = {
    # Texts that only look like a secret, such as the keys of test fixtures.
}

REPLACED_OR_PATH = {"old_string", "file_path", "absolute_path", "path", "dir_path"}

MAX_LENGTH = 2_000_000  # characters of a call; longer ones are refused

# What issuers give their keys a form for: next to no false alarms.
KEYS = [
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"),
    ("a private key", r"AGE-SECRET-KEY-1\w{20}"),
    ("an AWS access key id", r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[0-9A-Z])[0-9A-Z]{16}\b"),
    ("an AWS secret access key", r"(?i:aws[\w.-]{0,30}(?:secret|key)[\w.-]{0,30})['\"\s:=]{1,6}[0-9A-Za-z/+]{40}\b"),
    ("an Azure key", r"\b(?:Account|SharedAccess)Key=[0-9A-Za-z+/]{40,}={0,2}|[?&]sig=[0-9A-Za-z%+/]{40,}"),
    ("an Azure key", r"\b[0-9A-Za-z_~.]{3}8Q~[0-9A-Za-z_~.-]{34}"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    ("a Google OAuth secret", r"\bGOCSPX-[0-9A-Za-z_-]{24,}|\bya29\.[0-9A-Za-z_-]{30,}"),
    ("a GitHub token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{50,})"),
    ("a GitLab token", r"\bgl(?:pat|ptt|rt|dt|oas|cbt|soat|ft|imt|agent)-[0-9A-Za-z_-]{20,}"),
    ("a GitLab token", r"\bGR1348941[0-9A-Za-z_-]{20,50}(?![\w-])"),
    ("a Bitbucket or Atlassian token", r"\bAT(?:ATT3|BB|CTT3)[0-9A-Za-z_=-]{24,}"),
    ("a Slack token", r"\b(?:xox[abeoprs]-[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,})"),
    ("a chat webhook address", r"https://hooks\.slack\.com/(?:services|workflows)/[0-9A-Za-z/_-]{20,}"),
    ("a chat webhook address", r"https://discord(?:app)?\.com/api/webhooks/[0-9]+/[0-9A-Za-z_-]{30,}"),
    ("a bot token", r"\b[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,}"),
    ("a bot token", r"\b\d{8,10}:AA[0-9A-Za-z_-]{30,}"),
    ("an Anthropic key", r"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    ("an OpenAI key", r"\bsk-(?:(?:proj|svcacct|admin|or-v1)-[0-9A-Za-z_-]{20,}|[0-9A-Za-z]{32,})"),
    ("a key of a model service", r"\b(?:gsk_|pplx-|r8_|xai-|hf_|nvapi-|fw_|csk-)[0-9A-Za-z_-]{30,}"),
    ("a Stripe key", r"\b(?:[sr]k_live_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,})"),
    ("a Square or PayPal token", r"\bsq0(?:atp|csp|idp)-[0-9A-Za-z_-]{22,}|\bEAAA[0-9A-Za-z_-]{60}"),
    ("a Square or PayPal token", r"access_token\$production\$"),
    ("a Shopify token", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b"),
    ("an npm token", r"\bnpm_[0-9A-Za-z]{36}\b"),
    ("a package registry token", r"\bpypi-[0-9A-Za-z_-]{50,}|\brubygems_[0-9a-f]{48}|\bdckr_pat_[0-9A-Za-z_-]{20,}"),
    ("a package registry token", r"\bAKCp[0-9A-Za-z]{60,}"),
    ("a SendGrid, Mailgun or Mailchimp key", r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|\bkey-[0-9a-f]{32}\b"),
    ("a SendGrid, Mailgun or Mailchimp key", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("a Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("a cloud or platform token", r"\bdo[opr]_v1_[0-9a-f]{64}\b|\bdapi[0-9a-f]{32}\b|\bhv[sb]\.[0-9A-Za-z_-]{24,}"),
    ("a cloud or platform token", r"\bFlyV1 \S{20,}|\bfo1_[\w-]{30,}"),
    ("a cloud or platform token", r"\bLTAI[0-9A-Za-z]{16,}|\bAKID[0-9A-Za-z]{32}|\bdp\.(?:pt|st)\.[\w.-]{40,}"),
    ("a cloud or platform token", r"\bpscale_(?:tkn|pw)_[\w.-]{30,}|\bsbp_[0-9a-f]{40}"),
    ("a monitoring key", r"\bNRAK-[0-9A-Z]{27}\b|\bsntrys_[\w=+/.-]{40,}|\bgl(?:c|sa)_[0-9A-Za-z_=]{32,}"),
    ("a monitoring key", r"\bsq[upa]_[0-9a-f]{40}\b"),
    ("a token of a tool", r"\blin_api_[0-9A-Za-z]{32,}|\b(?:secret|ntn)_[0-9A-Za-z]{43,}|\bfigd_[\w-]{30,}"),
    ("a token of a tool", r"\bPMAK-[0-9a-f-]{50,}|\bpat[0-9A-Za-z]{14}\.[0-9a-f]{64}"),
    ("a JSON Web Token", r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}"),
]

# What only the words around it give away; group "value" is looked at, and placeholders are let pass.
SECRET_NAME = (
    r"(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|auth[_-]?key|private[_-]?key"
    r"|encryption[_-]?key|signing[_-]?key|credential|client[_-]?secret|bearer)"
)
NAME_END = (  # names of things about secrets, not of secrets
    r"(?![\w.-]{0,60}(?:type|field|name|url|uri|path|file|env|header|label|prompt|hint|regex|pattern|length|len|count|limit"
    r"|policy|expiry|expires|ttl|id)s?\b)"
)
ASSIGNED = [
    (
        "a password in an address",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,80}:(?P<value>[^\s/@'\"<>]{3,100})@[\w.-]",
        False,
    ),
    (
        "a secret in an assignment",
        (
            rf"(?i)(?<![\w$.-]){NAME_END}[\w.-]{{0,40}}{SECRET_NAME}(?:[_-]?\w{{0,20}})?['\"\]]{{0,2}}"
            r"\s{0,4}(?:=>?|:=?)\s{0,4}[rbfu]?['\"`](?P<value>[^'\"`\s]{6,200})['\"`]"
        ),
        True,
    ),
    (
        "a secret in a header",
        r"(?i)\bauthorization['\"\]]{0,2}\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic|token)\s+(?P<value>[\w.~+/=-]{12,})",
        True,
    ),
    ("a secret in an XML element", rf"(?i)<\w{{0,20}}{SECRET_NAME}\w{{0,20}}>(?P<value>[^<\s]{{6,100}})</", True),
]
# In files that are not programs, and in commands, a value needs no quotes.
BARE = [
    (
        "a secret in an assignment",
        (
            rf"(?im)(?:^|[\s;,{{])(?:export\s+|set\s+|ENV\s+|ARG\s+|-e\s+)?{NAME_END}[\w.-]{{0,40}}{SECRET_NAME}"
            r"\w{0,20}\s{0,3}[:=]\s{0,3}(?P<value>[^\s'\"`;,&|]{6,200})"
        ),
        True,
    ),
    (
        "a secret in a command",
        rf"(?i)\s--?[\w-]{{0,20}}{SECRET_NAME}(?:=|\s+)['\"]?(?P<value>[^\s'\"-][^\s'\"]{{5,200}})",
        True,
    ),
    (
        "a password in a command",
        (
            r"\s(?:-u|--user)[= ]?['\"]?[\w.@-]{1,60}:(?P<value>[^\s'\"]{4,100})"
            r"|\bsshpass\s+-p\s*['\"]?(?P<other>[^\s'\"]{4,100})|\bmysql\w*\s[^|;]{0,80}-p(?P<third>[^\s'\"-][^\s'\"]{5,60})"
        ),
        True,
    ),
    (
        "a password in a file of accounts",
        r"(?im)^\s*machine\s+\S+\s+login\s+\S+\s+password\s+(?P<value>\S{4,})|^[\w.-]+:\$(?:2[aby]|apr1|[156])\$[^$\s]{1,40}\$?(?P<other>[^$\s]{20,})",
        False,
    ),
]
CODE = (".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".swift", ".c", ".h", ".cc",
        ".cpp", ".hpp", ".cs", ".rb", ".php", ".scala", ".lua", ".pl", ".md", ".rst", ".txt", ".html", ".vue", ".css",
        ".sql", ".graphql", ".proto")  # fmt: skip
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|change_?-?me|dummy|redacted|your[_-]|my[_-]|secret$|^pass(word|wd)?\d?$|^(?:test|fake|sample|mock|foo|bar)"
    r"|xxx|\*\*\*|\.\.\.|^<|[${}%()\[\]]|^env[.:(\[]|environ|getenv|process\.|config\.|settings\.|secrets?[./]|^(?:true|false|null|none|string|str)$"
    r"|^[a-z]+(?:[_-][a-z]+)*$|^/|^\.|://"
)


def texts(value: object, name: str = "") -> collections.abc.Iterator[tuple[str, str]]:
    """Every text in the arguments, with the name of the argument."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in REPLACED_OR_PATH:
                yield from texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, name)


def entropy(text: str) -> float:
    """Bits per character: random text has 4 and more, words have about 3."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def looks_random(value: str) -> bool:
    """Whether a value is more than a word: letters and something else, or mixed without a pattern."""
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w]"))
    return kinds >= 2 and entropy(value) >= (2.5 if len(value) < 12 else 2.7)


def readings(text: str) -> collections.abc.Iterator[str]:
    """The text as it is, and as it is meant: literals joined, escapes and base64 decoded, invisible characters gone."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    plain = unicodedata.normalize("NFKC", re.sub("[\u00ad\u200b-\u200f\u2060\ufeff]", "", text))
    yield plain
    joined = re.sub(r"['\"`]\s{0,9}(?:\+|\.\.?|&|,|\\)?\s{0,9}[rbfu]?['\"`]", "", plain)
    joined = re.sub(r"\\\r?\n\s{0,40}", "", joined)
    if joined != plain:
        yield joined
    escaped = re.sub(r"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|%([2-7][0-9a-fA-F])|&#(\d{2,3});", character, plain)
    if escaped != plain:
        yield escaped
    for found in re.finditer(r"[A-Za-z0-9+/_-]{24,4000}={0,2}", plain):
        data = found.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            inner = base64.b64decode(data + "=" * (-len(data) % 4)).decode("ascii")
        except ValueError:
            continue
        if inner.isprintable() or "\n" in inner:
            yield inner


def character(found: re.Match[str]) -> str:
    number = next(each for each in found.groups() if each)
    return chr(int(number) % 128 if found.group().startswith("&") else int(number, 16))


def in_text(text: str, bare: bool) -> collections.abc.Iterator[tuple[str, str, int]]:
    """What is found in one reading: its kind, the text, and where it begins."""
    for kind, pattern in KEYS:
        for found in re.finditer(pattern, text):
            yield kind, found.group(), found.start()
    for kind, pattern, must_be_random in ASSIGNED + (BARE if bare else []):
        for found in re.finditer(pattern, text):
            value = next(each for each in found.groups() if each)
            if not PLACEHOLDER.search(value) and (looks_random(value) or not must_be_random):
                yield kind, value, found.start() + found.group().index(value)


def secrets(text: str, bare: bool = True) -> collections.abc.Iterator[tuple[str, str, int]]:
    """What is found: its kind, the text, and where it begins."""
    for number, reading in enumerate(readings(text)):
        for kind, secret, at in in_text(reading, bare):
            yield kind, secret, at if number == 0 else 0


def is_code(given: dict[str, object]) -> bool:
    path = given.get("file_path") or given.get("absolute_path") or given.get("path")
    return isinstance(path, str) and path.lower().endswith(CODE)


def judge(given: dict[str, object]) -> str | None:
    """Why a call with these arguments is blocked, or None."""
    for name, text in texts(given):
        if len(text) > MAX_LENGTH:
            return f"`{name}` is too long to be searched for secrets: write it in parts."
        for kind, secret, at in secrets(text, bare=not is_code(given)):
            if secret in ALLOWED:
                continue
            line = text.count("\n", 0, at) + 1
            return (
                f"Line {line} of `{name}` has what looks like {kind} ({secret[:4]}…, {len(secret)} characters). Do not "
                "write it down: read it from the environment or a secret store. If it is not a secret, ask the user to "
                "add it to ALLOWED in the script of this hook, secret_scanning.py."
            )
    return None


def main() -> str | None:
    return judge(json.loads(sys.stdin.buffer.read())["tool_input"])


if __name__ == "__main__":
    decide(main, unchecked="this call cannot be searched for secrets")
