"""Shell completion for the names of hooks and tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

_PLAIN = re.compile(r"\w[\w.@%+/-]*", re.ASCII)
"""Names without shell syntax. Others are not offered: they may come from a cloned repository, and shells insert
completions unquoted."""


def hook_names(*, enabled: bool) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Complete the names of enabled hooks, or of disabled ones."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from llxprt_hooks.inspection.inventory import take_inventory

        events: dict[str, list[str]] = {}
        for item in take_inventory(ctx.params.get("directory") or ".").items:
            if item.enabled == enabled and item.name.startswith(incomplete) and _PLAIN.fullmatch(item.name):
                events.setdefault(item.name, []).append(item.definition.event_name)
        return [CompletionItem(name, help=", ".join(dict.fromkeys(named))) for name, named in events.items()]

    return complete


def recorded_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of hooks in the log."""
    from llxprt_hooks.inspection.log import read_log

    return _items((str(record["hook"]) for record in read_log()), incomplete)


def tool_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of known tools."""
    from llxprt_hooks.foreign import KNOWN_TOOLS

    return _items(KNOWN_TOOLS, incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    matching = {name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)}
    return [CompletionItem(name) for name in sorted(matching)]
