#!/usr/bin/env python3
"""BeforeTool: blocks a tool call that would write down, or use in a command, a key, token or password.

Looks at every text that a call carries, except at what it takes away (`old_string`). What it found is never repeated
in full: reasons go to the model and into logs.
"""

import json
import math
import re
import sys

ALLOWED = {
    # Texts that look like a secret and are none: the keys of test fixtures, say.
}

REPLACED_OR_PATH = {"old_string", "file_path", "absolute_path", "path", "dir_path"}

# What issuers give their keys a form for: next to no false alarms.
KEYS = [
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("an AWS access key id", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("an AWS secret access key", r"(?i:aws[\w.-]{0,30}(?:secret|key)[\w.-]{0,30})['\"\s:=]{1,6}[0-9A-Za-z/+]{40}\b"),
    ("an Azure storage key", r"\bAccountKey=[0-9A-Za-z+/]{80,}={0,2}"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    ("a Google OAuth client secret", r"\bGOCSPX-[0-9A-Za-z_-]{24,}"),
    ("a GitHub token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{50,})"),
    ("a GitLab token", r"\bgl(?:pat|ptt|rt|dt|oas|cbt|soat)-[0-9A-Za-z_-]{20,}"),
    ("a Slack token", r"\b(?:xox[abeoprs]-[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,})"),
    ("a chat webhook address", r"https://hooks\.slack\.com/(?:services|workflows)/[0-9A-Za-z/_-]{20,}"),
    ("a chat webhook address", r"https://discord(?:app)?\.com/api/webhooks/[0-9]+/[0-9A-Za-z_-]{30,}"),
    ("an Anthropic key", r"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    ("an OpenAI key", r"\bsk-(?:(?:proj|svcacct|admin)-[0-9A-Za-z_-]{20,}|[0-9A-Za-z]{32,})"),
    ("a Stripe key", r"\b(?:[sr]k_live_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,})"),
    ("an npm token", r"\bnpm_[0-9A-Za-z]{36}\b"),
    ("a PyPI token", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    ("a Hugging Face token", r"\bhf_[0-9A-Za-z]{30,}\b"),
    ("a SendGrid key", r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}"),
    ("a DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    ("a JSON Web Token", r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
]

# What only the words around it give away; group 1 is the value, and placeholders are let pass.
ASSIGNED = [
    ("a password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{1,80}:([^\s/@'\"<>]{3,100})@[\w.-]", 0.0),
    (
        "a secret in an assignment",
        (
            r"(?i)\b[\w.-]{0,40}(?:passw(?:or)?d|secret|token|api_?-?key|access_?-?key|private_?-?key|credential)"
            r"[\w.-]{0,20}['\"]?\s{0,4}(?:=>?|:=?)\s{0,4}['\"]([^'\"\s]{12,200})['\"]"
        ),
        3.3,
    ),
]
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|change_?-?me|dummy|redacted|your[_-]|secret$|^pass(word|wd)?$|^test|xxx|\*\*\*|\.\.\.|^<"
    r"|[${}%]|^env[.:(\[]|environ|getenv"
)


def texts(value, name=""):
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


def entropy(text):
    """Bits per character: random text has 4 and more, words have about 3."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def secrets(text):
    """What is found: its kind, the text, and where it begins."""
    for kind, pattern in KEYS:
        for found in re.finditer(pattern, text):
            yield kind, found.group(), found.start()
    for kind, pattern, randomness in ASSIGNED:
        for found in re.finditer(pattern, text):
            value = found.group(1)
            if not PLACEHOLDER.search(value) and entropy(value) >= randomness:
                yield kind, value, found.start(1)


def main():
    call = json.loads(sys.stdin.buffer.read())
    for name, text in texts(call["tool_input"]):
        for kind, secret, at in secrets(text):
            if secret in ALLOWED:
                continue
            line = text.count("\n", 0, at) + 1
            print(
                f"Line {line} of `{name}` has what looks like {kind} ({secret[:4]}…, {len(secret)} characters). Do not "
                "write it down: read it from the environment or a secret store. If it is no secret, ask the user to "
                "add it to ALLOWED in the script of this hook, secret_scanning.py.",
                file=sys.stderr,
            )
            sys.exit(2)


main()
