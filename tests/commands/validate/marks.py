"""Settings with marks: ``«…»`` around the text that a diagnostic is expected to point at."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from llxprt_hooks.commands.validate import Diagnostic, diagnose, inspect_file, inspect_project
from llxprt_hooks.commands.validate.rules import Rule
from tests.support.project import Project

_MARK = re.compile("[«»]")


@dataclass(frozen=True)
class Marked:
    """A text without its marks, and the spans that they enclosed: line, column, end line, end column, all 1-based."""

    text: str
    spans: list[tuple[int, int, int, int]]


def unmarked(text: str) -> Marked:
    places: list[tuple[int, int]] = []
    plain = ""
    at = 0
    for mark in _MARK.finditer(text):
        plain += text[at : mark.start()]
        at = mark.end()
        line = plain.count("\n") + 1
        places.append((line, len(plain) - (plain.rfind("\n") + 1) + 1))
    spans = [(*start, *end) for start, end in zip(places[::2], places[1::2], strict=True)]
    return Marked(plain + text[at:], spans)


def span(diagnostic: Diagnostic) -> tuple[int, int, int, int]:
    return diagnostic.line, diagnostic.column, diagnostic.end_line, diagnostic.end_column


def settings(hooks: str) -> str:
    """A settings file that turns hooks on; it is clean if the hooks are."""
    return f'{{\n  "enableHooks": true,\n  "hooks": {{\n{hooks}\n  }}\n}}\n'


def group(text: str, event: str = "BeforeTool") -> str:
    """A settings file with one group: the text in its braces, without its hook."""
    return settings(
        f'    "{event}": [\n      {{ {text}, "hooks": [{{ "type": "command", "command": "true" }}] }}\n    ]'
    )


def hook(text: str, event: str = "BeforeTool") -> str:
    """A settings file with one hook: the text in its braces."""
    return settings(f'    "{event}": [\n      {{ "hooks": [\n        {{ {text} }}\n      ] }}\n    ]')


def hooks(text: str) -> str:
    """A settings file with one group: the text in the brackets of its hooks."""
    return settings(f'    "BeforeTool": [{{ "hooks": [{text}] }}]')


def field(text: str, event: str = "BeforeTool") -> str:
    """A settings file with one hook and one more field."""
    return hook(f'"type": "command", "command": "true", {text}', event)


def run(text: str) -> str:
    """A settings file with one command as it is written, with its quotes."""
    return hook(f'"type": "command", "command": {text}')


def command(text: str, event: str = "BeforeTool") -> str:
    """A settings file with one command; marks in it stay where they are."""
    return hook(f'"type": "command", "command": {json.dumps(text, ensure_ascii=False)}', event)


def extension(text: str) -> str:
    """An extension's file with one command; marks in it stay where they are."""
    return f'{{ "hooks": {{ "BeforeTool": [\n{{ "hooks": [{{ "type": "command", "command": "{text}" }}] }}] }} }}'


class DiagnosedProject(Project):
    """A project whose settings are diagnosed."""

    def diagnose(self, *tools: str) -> list[Diagnostic]:
        """All that is found for the project, without the suggestion about Python, which many hooks here would get."""
        return [each for each in diagnose(inspect_project(self.root, tools)) if each.code != Rule.NOT_WARM.code]

    def diagnose_text(self, text: str | bytes, *tools: str) -> list[Diagnostic]:
        """All that is found in the project's settings, given their text; without that suggestion, too."""
        self.write(self.project_file, text)
        return [
            each
            for each in diagnose(inspect_file(self.project_file, self.root, tools))
            if each.code != Rule.NOT_WARM.code
        ]
