"""The names of hooks and tools, completed by the shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

_PLAIN = re.compile(r"\w[\w.@%+/-]*", re.ASCII)
"""Names that mean nothing to a shell. A cloned repository may have others, and a shell puts them on the command line
as they are: those are not offered."""


def hook_names(*, enabled: bool) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes the names of hooks that are enabled, or of those that are not."""

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
    """Completes the names of hooks that have run."""
    from llxprt_hooks.inspection.log import read_log

    return _items((str(record["hook"]) for record in read_log()), incomplete)


def tool_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the names of the tools that are known."""
    from llxprt_hooks.diagnosis.foreign_names import KNOWN_TOOLS

    return _items(KNOWN_TOOLS, incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    fitting = {name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)}
    return [CompletionItem(name) for name in sorted(fitting)]
