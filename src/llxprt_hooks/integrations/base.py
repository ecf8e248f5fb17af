"""What all integrations share: how one is made, and the names under which hooks see a framework's tools.

>>> from llxprt_hooks import HookEventName
>>> class Example(Integration):
...     unsupported = {HookEventName.PRE_COMPRESS: "the framework does not compress"}
>>> example = Example(hooks={"BeforeTool": []}, aliases={"shell": "run_shell_command"})
>>> example.hooks.config.enable_hooks, example.hook_name("shell"), example.hook_name("glob")
(True, 'run_shell_command', 'glob')

An integration whose framework has a base class of its own inherits from both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

from llxprt_hooks.config import Config
from llxprt_hooks.hooks import Hooks
from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from llxprt_hooks.bus.messages import MessageBus
    from llxprt_hooks.engine.observer import HookObserver
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.model import TranslatorChoice
    from llxprt_hooks.settings import Extension

log = debug_logger("integrations")


class ConfigFields(TypedDict, total=False):
    """The keyword arguments of ``Config``."""

    session_id: str | None
    working_dir: str | os.PathLike[str] | None
    enable_hooks: bool | None
    hooks: Mapping[str, Any] | None
    extensions: Iterable[Extension]
    disabled_hooks: Iterable[str]
    message_bus: MessageBus | None
    transcript_path: str | os.PathLike[str]
    translator: TranslatorChoice
    observer: HookObserver | None
    output_limit: int
    max_processes: int


class Integration:
    """The hooks of a configuration, for one framework.

    Pass a ``Config``, or its keyword arguments: then hooks are enabled if ``hooks`` is given. ``aliases`` maps a tool's
    name in the framework to the name that hooks see, such as ``{"shell": "run_shell_command"}``.
    """

    unsupported: ClassVar[Mapping[HookEventName, str]] = {}
    """The events that the framework does not have, each with the reason."""

    hooks: Hooks

    def __init__(
        self,
        config: Config | None = None,
        *,
        aliases: Mapping[str, str] | None = None,
        **config_fields: Unpack[ConfigFields],
    ) -> None:
        if config is None:
            if config_fields.get("hooks") is not None:
                config_fields.setdefault("enable_hooks", True)
            config = Config(**config_fields)
        elif config_fields:
            raise TypeError(f"`{min(config_fields)}` is part of the configuration: pass it to Config(…)")
        self.hooks = Hooks(config)
        self._aliases = dict(aliases or {})
        self._reported: set[HookEventName] = set()
        self.report_unsupported()

    @classmethod
    def load(
        cls, project_dir: str | os.PathLike[str] = ".", *, strict: bool = False, watch: bool = False, **options: Any
    ) -> Self:
        """Read the settings files, as ``Config.load`` does. Other options are passed to the constructor."""
        return cls(Config.load(project_dir, strict=strict, watch=watch), **options)

    def hook_name(self, tool_name: str) -> str:
        """Return the name under which hooks see a tool of the framework."""
        return self._aliases.get(tool_name, tool_name)

    def report_unsupported(self) -> None:
        """Warn about hooks that will never run, once for each event."""
        for event, reason in self.unsupported.items():
            if event not in self._reported and self.hooks.has_hooks_for(event):
                self._reported.add(event)
                log.warning("hooks for %s are configured but will not run: %s", event, reason)
