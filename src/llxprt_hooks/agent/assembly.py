"""Assemble an agent from its parts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from llxprt_hooks.agent.approval import Approval, ApprovalMode, Ask, Request
from llxprt_hooks.agent.attribution import DecidersObserver
from llxprt_hooks.agent.audience import Audience, WarningEvent
from llxprt_hooks.agent.chat import Chat
from llxprt_hooks.agent.errors import AgentError
from llxprt_hooks.agent.provider import GeminiProvider, Provider, RecordingProvider, ReplayProvider
from llxprt_hooks.agent.scheduler import Scheduler
from llxprt_hooks.agent.session import SYSTEM_INSTRUCTION, Session
from llxprt_hooks.agent.tools import TOOLS
from llxprt_hooks.agent.tools.workspace import Workspace
from llxprt_hooks.agent.transcript import Transcript
from llxprt_hooks.audit.log import HookLog
from llxprt_hooks.config import Config
from llxprt_hooks.engine.observer import Observers
from llxprt_hooks.events import NotificationType
from llxprt_hooks.inspection.inventory import loaded_settings
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.triggers.lifecycle import fire_notification_hook

if TYPE_CHECKING:
    from llxprt_hooks.engine.observer import HookObserver

DEFAULT_MODEL = "gemini-2.5-flash"


@dataclass(frozen=True, slots=True)
class AgentOptions:
    directory: str = "."
    model: str | None = None
    replay: str | None = None
    record: str | None = None
    approval_mode: ApprovalMode = ApprovalMode.DEFAULT
    log_payloads: bool = False
    """Whether the hook log includes the payloads sent to hooks."""


def assemble(
    options: AgentOptions, audience: Audience, *, ask: Ask | None = None, observer: HookObserver | None = None
) -> Session:
    """Create a session in a project folder, with the project's hooks."""
    provider = _provider(options)  # first, so that a failure here leaves no transcript behind
    hook_log = HookLog(options.directory, payloads=options.log_payloads)
    observers = [hook_log, DecidersObserver(), *([observer] if observer else [])]
    config = Config.load(options.directory, observer=Observers(*observers))
    try:
        loaded_settings(config).require_guards()
    except SettingsError as error:
        raise AgentError(error.refusal) from error
    transcript = Transcript(config.session_id, warn=lambda message: audience.handle(WarningEvent(message)))
    config.transcript_path = transcript.path
    approval = Approval(options.approval_mode, ask=ask, announce=partial(_announce_approval, config))
    chat = Chat(
        config,
        provider,
        audience,
        model=options.model or os.environ.get("GEMINI_MODEL") or DEFAULT_MODEL,
        request_config={
            "system_instruction": SYSTEM_INSTRUCTION,
            "tools": [{"function_declarations": [tool.declaration() for tool in TOOLS.values()]}],
        },
    )
    scheduler = Scheduler(config, Workspace(config.working_dir, config), TOOLS, approval, audience)
    return Session(config, chat, scheduler, audience, transcript)


def _announce_approval(config: Config, request: Request) -> None:
    """Fire Notification hooks: a call needs approval."""
    tool = request.tool
    details = {"tool_name": tool.name, "tool_input": dict(request.arguments)}
    fire_notification_hook(config, NotificationType.TOOL_PERMISSION, f"{tool.name} needs approval", details)


def _provider(options: AgentOptions) -> Provider:
    provider: Provider = GeminiProvider() if options.replay is None else ReplayProvider(options.replay)
    return provider if options.record is None else RecordingProvider(provider, options.record)
