"""Printing for programs."""

from __future__ import annotations

import click

from llxprt_hooks.protocol.json_codec import write_json


def print_json(value: object) -> None:
    """Print a value as JSON on one line; as bytes, because JSON is UTF-8 whatever the terminal's encoding is."""
    click.echo(write_json(value))
