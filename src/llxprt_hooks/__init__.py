"""Hooks for Python agents: external scripts see, check, change, restrict and stop tool and model calls.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llxprt_hooks.bus import (
        HookExecutionFailure,
        HookExecutionRequest,
        HookExecutionResponse,
        InProcessMessageBus,
        MessageBus,
        MessageBusType,
    )
    from llxprt_hooks.config import Config
    from llxprt_hooks.definitions import ConfigSource, HookConfig, HookDefinition, HookType
    from llxprt_hooks.event_handler import HookEventHandler
    from llxprt_hooks.events import (
        HookEventName,
        NotificationType,
        PreCompressTrigger,
        SessionEndReason,
        SessionStartSource,
    )
    from llxprt_hooks.hook_log import HookLog
    from llxprt_hooks.observer import HookObserver, Observers
    from llxprt_hooks.outputs import (
        AfterModelHookOutput,
        BeforeModelHookOutput,
        BeforeToolHookOutput,
        BeforeToolSelectionHookOutput,
        BlockingError,
        DefaultHookOutput,
        HookDecision,
        create_hook_output,
    )
    from llxprt_hooks.planner import ExecutionPlan
    from llxprt_hooks.registry import HookRegistry, HookRegistryEntry, HookRegistryNotInitializedError
    from llxprt_hooks.results import (
        AggregatedHookResult,
        HookExecutionError,
        HookExecutionResult,
        HookStageError,
        ProcessedHookResult,
    )
    from llxprt_hooks.settings import (
        Extension,
        Problem,
        Settings,
        TrustStatus,
        grant_trust,
        load_settings,
        revoke_trust,
        trust_status,
    )
    from llxprt_hooks.system import HookSystem, HookSystemNotInitializedError, HookSystemStatus
    from llxprt_hooks.tool_result import ToolResult
    from llxprt_hooks.translator import GenerateContentParameters, HookTranslator, TranslationError
    from llxprt_hooks.triggers.model import (
        AfterModelHookResult,
        BeforeModelHookResult,
        BeforeToolSelectionHookResult,
        fire_after_model_hook,
        fire_before_model_hook,
        fire_before_tool_selection_hook,
    )
    from llxprt_hooks.triggers.tool import execute_tool_with_hooks, fire_after_tool_hook, fire_before_tool_hook

__version__ = "0.2.0"

_HOMES = {
    "HookExecutionFailure": "bus",
    "HookExecutionRequest": "bus",
    "HookExecutionResponse": "bus",
    "InProcessMessageBus": "bus",
    "MessageBus": "bus",
    "MessageBusType": "bus",
    "Config": "config",
    "ConfigSource": "definitions",
    "HookConfig": "definitions",
    "HookDefinition": "definitions",
    "HookType": "definitions",
    "HookEventHandler": "event_handler",
    "HookEventName": "events",
    "NotificationType": "events",
    "PreCompressTrigger": "events",
    "SessionEndReason": "events",
    "SessionStartSource": "events",
    "HookLog": "hook_log",
    "HookObserver": "observer",
    "Observers": "observer",
    "AfterModelHookOutput": "outputs",
    "BeforeModelHookOutput": "outputs",
    "BeforeToolHookOutput": "outputs",
    "BeforeToolSelectionHookOutput": "outputs",
    "BlockingError": "outputs",
    "DefaultHookOutput": "outputs",
    "HookDecision": "outputs",
    "create_hook_output": "outputs",
    "ExecutionPlan": "planner",
    "HookRegistry": "registry",
    "HookRegistryEntry": "registry",
    "HookRegistryNotInitializedError": "registry",
    "AggregatedHookResult": "results",
    "HookExecutionError": "results",
    "HookExecutionResult": "results",
    "HookStageError": "results",
    "ProcessedHookResult": "results",
    "Extension": "settings",
    "Problem": "settings",
    "Settings": "settings",
    "TrustStatus": "settings",
    "grant_trust": "settings",
    "load_settings": "settings",
    "revoke_trust": "settings",
    "trust_status": "settings",
    "HookSystem": "system",
    "HookSystemNotInitializedError": "system",
    "HookSystemStatus": "system",
    "ToolResult": "tool_result",
    "GenerateContentParameters": "translator",
    "HookTranslator": "translator",
    "TranslationError": "translator",
    "AfterModelHookResult": "triggers.model",
    "BeforeModelHookResult": "triggers.model",
    "BeforeToolSelectionHookResult": "triggers.model",
    "fire_after_model_hook": "triggers.model",
    "fire_before_model_hook": "triggers.model",
    "fire_before_tool_selection_hook": "triggers.model",
    "execute_tool_with_hooks": "triggers.tool",
    "fire_after_tool_hook": "triggers.tool",
    "fire_before_tool_hook": "triggers.tool",
}

__all__ = [
    "AfterModelHookOutput",
    "AfterModelHookResult",
    "AggregatedHookResult",
    "BeforeModelHookOutput",
    "BeforeModelHookResult",
    "BeforeToolHookOutput",
    "BeforeToolSelectionHookOutput",
    "BeforeToolSelectionHookResult",
    "BlockingError",
    "Config",
    "ConfigSource",
    "DefaultHookOutput",
    "ExecutionPlan",
    "Extension",
    "GenerateContentParameters",
    "HookConfig",
    "HookDecision",
    "HookDefinition",
    "HookEventHandler",
    "HookEventName",
    "HookExecutionError",
    "HookExecutionFailure",
    "HookExecutionRequest",
    "HookExecutionResponse",
    "HookExecutionResult",
    "HookLog",
    "HookObserver",
    "HookRegistry",
    "HookRegistryEntry",
    "HookRegistryNotInitializedError",
    "HookStageError",
    "HookSystem",
    "HookSystemNotInitializedError",
    "HookSystemStatus",
    "HookTranslator",
    "HookType",
    "InProcessMessageBus",
    "MessageBus",
    "MessageBusType",
    "NotificationType",
    "Observers",
    "PreCompressTrigger",
    "Problem",
    "ProcessedHookResult",
    "SessionEndReason",
    "SessionStartSource",
    "Settings",
    "ToolResult",
    "TranslationError",
    "TrustStatus",
    "create_hook_output",
    "execute_tool_with_hooks",
    "fire_after_model_hook",
    "fire_after_tool_hook",
    "fire_before_model_hook",
    "fire_before_tool_hook",
    "fire_before_tool_selection_hook",
    "grant_trust",
    "load_settings",
    "revoke_trust",
    "trust_status",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
