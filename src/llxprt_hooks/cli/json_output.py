"""Print JSON for programs."""

from __future__ import annotations

import click

from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import escape_in_json


def print_json(value: object) -> None:
    """Print a value as one line of JSON, in which everything that a terminal would act on or hide is escaped.

    Written as bytes: JSON is UTF-8, whatever the terminal's encoding is.
    """
    click.echo(escape_in_json(decode_text(write_json(value))).encode())
