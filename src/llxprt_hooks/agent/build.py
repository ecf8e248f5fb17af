"""Assemble an agent from its parts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from llxprt_hooks._support.text import one_line, shorten
from llxprt_hooks.agent.approval import ApprovalMode, Approver, Ask, Request
from llxprt_hooks.agent.chat import Chat
from llxprt_hooks.agent.provider import AgentError, GeminiProvider, Provider, RecordingProvider, ReplayProvider
from llxprt_hooks.agent.scheduler import Scheduler
from llxprt_hooks.agent.session import SYSTEM_INSTRUCTION, AgentSession
from llxprt_hooks.agent.tools import TOOLS
from llxprt_hooks.agent.tools.workspace import Workspace
from llxprt_hooks.agent.transcript import Transcript
from llxprt_hooks.agent.ui import UserInterface, WarningEvent
from llxprt_hooks.commands.list import loaded_settings
from llxprt_hooks.config import Config
from llxprt_hooks.core.calls.lifecycle import fire_notification_hook
from llxprt_hooks.core.engine.observer import HookObserver, Observers
from llxprt_hooks.events import NotificationType
from llxprt_hooks.fleet.audit.log import HookLog
from llxprt_hooks.hooks import Hooks
from llxprt_hooks.integrations.approvers import ask_in_inspector
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.settings.trust.fingerprint import commands_of

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult

DEFAULT_MODEL = "gemini-2.5-flash"

_MAX_COMMAND = 80
_PROJECT_RUNNER = re.compile(
    r"(?:^|[\s;&|(/])(?:make|ninja|cmake|just|rake|npm|npx|yarn|pnpm|bun|jest|vitest|mocha|eslint|tsc|pytest|tox|nox|hatch|"
    r"poetry|pre-commit|cargo|go (?:test|build|run|generate)|gradlew?|mvnw?|bundle|rspec|dotnet|bazel|composer|phpunit)"
    r"(?=$|[\s;&|)])"
)
"""Programs that run code of the project: a build file, a test, or a configuration that is code."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    directory: str = "."
    model: str | None = None
    replay: str | None = None
    record: str | None = None
    approval_mode: ApprovalMode = ApprovalMode.DEFAULT
    log_payloads: bool = False
    required: tuple[str, ...] = ()
    """What must have a hook, as ``Config.load`` takes it."""
    asks_in_inspector: bool = False
    """Whether the person who has the inspector open answers what hooks ask."""


def build_agent(
    options: AgentOptions, ui: UserInterface, *, ask: Ask | None = None, observer: HookObserver | None = None
) -> AgentSession:
    """Create a session in a project folder, with the project's hooks."""
    # First, so that a failure here leaves no transcript behind.
    provider: Provider = GeminiProvider() if options.replay is None else ReplayProvider(options.replay)
    if options.record is not None:
        provider = RecordingProvider(provider, options.record)
    hook_log = HookLog(options.directory, payloads=options.log_payloads)
    observers = Observers(hook_log, _UserMessages(ui), *([] if observer is None else [observer]))
    try:
        config = Config.load(options.directory, observer=observers, require=options.required)
        loaded_settings(config).require_guards()
    except SettingsError as error:
        raise AgentError(error.refusal) from error
    config.approval_mode = options.approval_mode.value
    if options.approval_mode is ApprovalMode.AUTO_EDIT:
        for warning in _hooks_that_run_the_project(config):
            ui.handle(WarningEvent(warning))
    transcript = Transcript(config.session_id, warn=lambda message: ui.handle(WarningEvent(message)))
    config.transcript_path = transcript.path
    hooks = Hooks(config)
    approval = Approver(options.approval_mode, ask=ask, announce=partial(_announce_approval, hooks))
    chat = Chat(
        hooks,
        provider,
        ui,
        model=options.model or os.environ.get("GEMINI_MODEL") or DEFAULT_MODEL,
        request_config={
            "system_instruction": SYSTEM_INSTRUCTION,
            "tools": [{"function_declarations": [tool.declaration() for tool in TOOLS.values()]}],
        },
    )
    scheduler = Scheduler(hooks, Workspace(config.working_dir, config), TOOLS, approval, ui)
    own = scheduler.answer if approval.interactive else None
    config.approver = ask_in_inspector if options.asks_in_inspector else own
    return AgentSession(hooks, chat, scheduler, ui, transcript)


class _UserMessages(HookObserver):
    """Shows what hooks of other dialects say to the user; the model does not get it."""

    def __init__(self, ui: UserInterface) -> None:
        self._ui = ui

    def hook_ended(self, result: HookExecutionResult) -> None:
        if result.output is not None and (message := result.output.user_message):
            self._ui.handle(WarningEvent(f"{result.hook_config.identity}: {message}"))


def _hooks_that_run_the_project(config: Config) -> Iterator[str]:
    """Warn about hooks through which a mode that allows edits also allows commands (D-29)."""
    hooks = (hook for hook_set in config.hook_sets for hook in commands_of(hook_set))
    for command in dict.fromkeys(hook.command for hook in hooks if any(map(_PROJECT_RUNNER.search, hook.script_texts))):
        yield (
            f"The hook `{shorten(one_line(command), _MAX_COMMAND)}` runs the project's own build or tests. Under "
            "auto_edit the model can edit these without asking, so it can run any command."
        )


def _announce_approval(hooks: Hooks, request: Request) -> None:
    """Fire Notification hooks: a call needs approval."""
    tool = request.tool
    details = {"tool_name": tool.name, "tool_input": dict(request.arguments)}
    fire_notification_hook(hooks.config, NotificationType.TOOL_PERMISSION, f"{tool.name} needs approval", details)
