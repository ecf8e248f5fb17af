"""Reject phrases that readers stumbled over, in everything that people read: pages, messages, comments, test names.

    python -m tests.wording

To ban a phrase, add a line to ``PHRASES``. Released sections of the changelog are not checked, and neither are the
requirements, whose text comes from elsewhere. Of the tests, only Python files are checked, without this list.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

PHRASES = {
    r"(there )?(?:is|are|was|were) no(?= \w)(?! longer| more| less)": "is not a …, is not valid …",
    r"(there )?(?:is|are) (?-i:none)": "is not one, does not exist",
    r"time-outs?": "timeout",
    r"look-ups?": "lookup",
    r"e-mails?": "email",
    r"heed(?:s|ed|ing)?": "honor, apply, act on",
    r"mend(?:s|ed|ing)?": "fix",
    r"put (?:it |them )?right": "fix",
    r"(?:held|holds?(?: [\w']+){0,3}) against": "matched against, compared with",
    r"laid over": "merged into",
    r"(what (?:\w+ ){1,4})?(?:will|would) do(?=[.,;:)]|$)": "is enough",
    r"stands?(?! for| alone|-in)|stood": "is, is in",
    r"(?<=[,`]) say(?=,)": "for example",
    r"go(?:es)? on to hold": "stays valid",
    r"belongs? into": "belongs in",
    r"the way of (?:an?|one)": "how a … flows",
    r"those who": "name the readers: users, contributors",
    r"what is (?:there|special)": "what's included, why …",
    r"hardly meant": "probably a mistake",
    r"(?:object|record|entry) a line": "one … per line",
    r"beyond all": "out of range",
    r"(?:is|are|be) taken over|takes? over (?:those|your|hooks)": "migrate, copy",
    r"\w+'s affair": "does not affect …",
    r"by (?:its|a \w+'s) being": "use a verb",
    r"side by side": "in parallel",
    r"anew": "again",
    r"(?:is|are|was|were) (?:not )?heard|unheard": "is applied, is read",
    r"(not )?(?:allowed|known) are": "Allowed tools: …",
    r"without end": "unlimited",
    r"thereby|whereby|wherein": "start a new sentence",
    r"c[ao]mes? of|what goes over": "the result, the effect; the rest",
    r"vouch(?:es|ed|ing)?": "trust, approve",
    r"in silence": "silently, without a message",
    r"hears? of": "is notified of, sees",
    r"life (?:of an? \w+|meets)": "from start to end",
    r"has the last word|(?:have|has) (?:its|their|no) say": "decides, is ignored",
    r"lift(?:s|ed)?(?= (?:a|the|an?other|its) )|disarm(?:s|ed)?": "override, remove, disable",
    r"gets? (?:past|around)(?= (?:a|an|the|no|every|its) )": "bypasses",
    r"(?:calls?|results?|names?) of tools|what tools return(?:ed)?": "tool calls, tool results, tool names",
    r"in the model's place|as hooks left (?:it|them)": "instead of the model, after hooks have changed it",
    r"(?:take|taken|takes) (?:\w+ )?out of": "remove from, redact in",
    r"put together from|puts? together": "combine, assemble from",
    r"where there is none": "if there is none",
    r"hold(?:s|ing)? up": "delay",
    r"under way": "running, in progress",
    r"from here on": "from now on",
    r"speaks? of|tells? of": "mentions, reports",
    r"of which one|so far as|some hundred|as ever|their kin": "use a plain sentence",
    r"(?:is|are|was) paid for": "you pay for",
    r"what (?:\w+ ){1,3}c[ao]me to|does the whole of it": "the result, does all three steps",
    r"that is so": "this applies to",
    r"so (?:do|does|did) (?:it|they|the|an?)": "… too, also",
    r"whoever": "name the user or the process",
    r"shall": "should, must",
    r"as told|likewise|all the same": "see the message, the same, still",
    r"what (?:holds there|becomes of what)|had to say|have to say": "describe it: what hooks can do, messages",
    r"agents of yours": "your agents",
}
"""What to avoid, as whole words in any case, and what to write instead.

A space also matches a line break. A phrase is fine where the first group of its pattern matches.
"""

SUFFIXES = {".json", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
FOLDERS = {**dict.fromkeys((".github", "bench", "docs", "examples", "src"), SUFFIXES), "tests": {".py"}}
NOT_READ = {"__pycache__", "requirements.md", "test_wording.py", "wording.py"}

_GAP = r"(?: |\\s*\\n\\s*(?:[#>] )?)"
_PATTERNS = {
    re.compile(rf"(?<!\w)(?:{re.sub(' ', _GAP, phrase)})(?!\w)", re.IGNORECASE | re.MULTILINE): instead
    for phrase, instead in PHRASES.items()
}


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line of each phrase to avoid, the phrase, and what to write instead."""
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(text):
            if not (pattern.groups and found[1]):
                yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), instead


def files() -> Iterator[Path]:
    yield from (file for file in sorted(ROOT.iterdir()) if file.suffix in SUFFIXES or file.name == "Makefile")
    for folder, suffixes in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in suffixes and not NOT_READ.intersection(file.parts):
                yield file


def text_of(file: Path) -> str:
    """Read a file, with the names of tests as sentences; of the changelog, only what is not released."""
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"(?<=def )test_\w+", lambda name: name[0].replace("_", " ") + ".", text)
    return re.split(r"(?m)^## \[\d", text)[0] if file.name == "CHANGELOG.md" else text


def report() -> list[str]:
    """Return a line for each phrase to avoid: where it is, and what to write instead."""
    return [
        f"{file.relative_to(ROOT)}:{line}: {phrase!r}; better: {instead}"
        for file in files()
        for line, phrase, instead in findings(text_of(file))
    ]


if __name__ == "__main__":
    sys.exit("\n".join(report()) or None)
