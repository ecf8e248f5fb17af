"""``llxprt-hooks schema``: print a JSON Schema for editors."""

from __future__ import annotations

import json

import click

from llxprt_hooks.commands.test.files import hooktest_schema
from llxprt_hooks.commands.validate import settings_schema


@click.command("schema")
@click.option(
    "--for",
    "kind",
    type=click.Choice(["settings", "hooktest"]),
    default="settings",
    metavar="settings|hooktest",
    help="Which files the schema is for: settings.json, or *.hooktest.json. Default: settings.",
)
def command(kind: str) -> int:
    """Print a JSON Schema of the hook settings in settings.json, for completion and checks in editors.

    The schema (draft 2020-12) describes enableHooks, hooks, hooksConfig and tools.enableHooks, and allows all other
    settings. It also applies to an extension's hooks/hooks.json. With --for hooktest it describes tests for hooks.

    \b
    Examples:
      llxprt-hooks schema > .llxprt/state/settings.schema.json
      llxprt-hooks schema --for hooktest > .llxprt/state/hooktest.schema.json
      llxprt-hooks schema | jq '."$defs".hook.properties | keys'

    \b
    In VS Code, in .vscode/settings.json:
      "json.schemas": [
        { "fileMatch": ["**/.llxprt/settings.json"], "url": "./.llxprt/state/settings.schema.json" }
      ]
    """
    schema = settings_schema() if kind == "settings" else hooktest_schema()
    click.echo(json.dumps(schema, indent=2))
    return 0
