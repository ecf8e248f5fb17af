"""``llxprt-hooks schema``: print a JSON Schema for editors."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> int:
    """Print a JSON Schema of the hook settings in settings.json, for completion and checks in editors.

    The schema (draft 2020-12) describes enableHooks, hooks, hooksConfig and tools.enableHooks, and allows all other
    settings. It also applies to an extension's hooks/hooks.json.

    \b
    Examples:
      llxprt-hooks schema > .llxprt/settings.schema.json
      llxprt-hooks schema | jq '."$defs".hook.properties | keys'

    \b
    In VS Code, in .vscode/settings.json:
      "json.schemas": [
        { "fileMatch": ["**/.llxprt/settings.json"], "url": "./.llxprt/settings.schema.json" }
      ]
    """
    import json

    from llxprt_hooks.diagnosis import settings_schema

    click.echo(json.dumps(settings_schema(), indent=2))
    return 0
