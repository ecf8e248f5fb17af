"""Print JSON for programs."""

from __future__ import annotations

import click

from llxprt_hooks.protocol.json_codec import write_json


def print_json(value: object) -> None:
    """Print a value as one line of JSON. Written as bytes: JSON is UTF-8, whatever the terminal's encoding is."""
    click.echo(write_json(value))
