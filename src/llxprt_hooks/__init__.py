"""Hooks for Python agents: external scripts observe, check, change, restrict and stop tool and model calls.

The folders, from what a program calls down to what runs a hook:

- ``hooks``: one object with everything that an agent needs
- ``triggers``: what an agent calls around its tool and model calls
- ``config``: the configuration that a program passes
- ``trust``, ``settings``: which files apply, and what they contain
- ``engine``: settings in, decision out. Start with ``engine.event_handler``: one function has the pipeline of an event
- ``bus``: the same over a message bus
- ``model``: hook format to SDK types and back, one module per SDK
- ``protocol``: what the engine and a hook send each other
- ``shell``, ``process``: from a command string to a finished program

On top of these: ``audit`` (a tamper-evident record of every execution), ``inspection`` and ``diagnosis`` (what is
configured, what happened, what is wrong), ``integrations`` (hooks in clients and frameworks, one module each),
``proxy`` (hooks between two other programs), ``transport`` (what these two share), ``serve`` (hooks for agents on other
machines), ``recipes`` and ``migration``, ``testing`` and ``pytest_plugin``, the reference ``agent``, and the command
line, ``cli``.

Names are imported on first use, so importing the package is cheap.
"""

# Nothing is imported before this, not even __future__: `python -m llxprt_hooks` searches the working directory for
# modules first. In a project that was cloned, that would run its `json.py`.
import sys

if sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].endswith(__name__) and not sys.flags.safe_path:
    del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llxprt_hooks.audit.log import HookLog as HookLog
    from llxprt_hooks.bus.in_process import InProcessMessageBus as InProcessMessageBus
    from llxprt_hooks.bus.messages import HookExecutionFailure as HookExecutionFailure
    from llxprt_hooks.bus.messages import HookExecutionRequest as HookExecutionRequest
    from llxprt_hooks.bus.messages import HookExecutionResponse as HookExecutionResponse
    from llxprt_hooks.bus.messages import MessageBus as MessageBus
    from llxprt_hooks.bus.messages import MessageBusType as MessageBusType
    from llxprt_hooks.bus.messages import decode_message as decode_message
    from llxprt_hooks.bus.messages import encode_message as encode_message
    from llxprt_hooks.bus.messages import read_response as read_response
    from llxprt_hooks.bus.nats import NatsMessageBus as NatsMessageBus
    from llxprt_hooks.config import Config as Config
    from llxprt_hooks.engine.definitions import ConfigSource as ConfigSource
    from llxprt_hooks.engine.definitions import HookConfig as HookConfig
    from llxprt_hooks.engine.definitions import HookDefinition as HookDefinition
    from llxprt_hooks.engine.definitions import HookType as HookType
    from llxprt_hooks.engine.event_handler import HookEventHandler as HookEventHandler
    from llxprt_hooks.engine.observer import EventEnded as EventEnded
    from llxprt_hooks.engine.observer import EventStarted as EventStarted
    from llxprt_hooks.engine.observer import HookObserver as HookObserver
    from llxprt_hooks.engine.observer import HookStarted as HookStarted
    from llxprt_hooks.engine.observer import Observers as Observers
    from llxprt_hooks.engine.planner import ExecutionPlan as ExecutionPlan
    from llxprt_hooks.engine.registry import HookRegistry as HookRegistry
    from llxprt_hooks.engine.registry import HookRegistryEntry as HookRegistryEntry
    from llxprt_hooks.engine.registry import HookRegistryNotInitializedError as HookRegistryNotInitializedError
    from llxprt_hooks.engine.results import AggregatedHookResult as AggregatedHookResult
    from llxprt_hooks.engine.results import HookExecutionError as HookExecutionError
    from llxprt_hooks.engine.results import HookExecutionResult as HookExecutionResult
    from llxprt_hooks.engine.results import HookStageError as HookStageError
    from llxprt_hooks.engine.results import ProcessedHookResult as ProcessedHookResult
    from llxprt_hooks.engine.session import Session as Session
    from llxprt_hooks.engine.session import StopRequested as StopRequested
    from llxprt_hooks.engine.system import HookSystem as HookSystem
    from llxprt_hooks.engine.system import HookSystemNotInitializedError as HookSystemNotInitializedError
    from llxprt_hooks.engine.system import HookSystemStatus as HookSystemStatus
    from llxprt_hooks.events import HookEventName as HookEventName
    from llxprt_hooks.events import NotificationType as NotificationType
    from llxprt_hooks.events import PreCompressTrigger as PreCompressTrigger
    from llxprt_hooks.events import SessionEndReason as SessionEndReason
    from llxprt_hooks.events import SessionStartSource as SessionStartSource
    from llxprt_hooks.hooks import Hooks as Hooks
    from llxprt_hooks.hooks import SyncHooks as SyncHooks
    from llxprt_hooks.hooks import UnknownEventError as UnknownEventError
    from llxprt_hooks.model.conversation import Turn as Turn
    from llxprt_hooks.model.format import GenerateContentParameters as GenerateContentParameters
    from llxprt_hooks.model.format import HookFormat as HookFormat
    from llxprt_hooks.model.format import TranslationError as TranslationError
    from llxprt_hooks.model.outputs import AfterModelHookOutput as AfterModelHookOutput
    from llxprt_hooks.model.outputs import BeforeModelHookOutput as BeforeModelHookOutput
    from llxprt_hooks.model.outputs import BeforeToolSelectionHookOutput as BeforeToolSelectionHookOutput
    from llxprt_hooks.model.outputs import create_hook_output as create_hook_output
    from llxprt_hooks.model.restriction import Restriction as Restriction
    from llxprt_hooks.model.translator import HookTranslator as HookTranslator
    from llxprt_hooks.protocol.outputs import BeforeToolHookOutput as BeforeToolHookOutput
    from llxprt_hooks.protocol.outputs import BlockingError as BlockingError
    from llxprt_hooks.protocol.outputs import DefaultHookOutput as DefaultHookOutput
    from llxprt_hooks.protocol.outputs import HookDecision as HookDecision
    from llxprt_hooks.protocol.replies import allow as allow
    from llxprt_hooks.protocol.replies import ask as ask
    from llxprt_hooks.protocol.replies import context as context
    from llxprt_hooks.protocol.replies import deny as deny
    from llxprt_hooks.protocol.replies import rewrite as rewrite
    from llxprt_hooks.protocol.replies import stop as stop
    from llxprt_hooks.protocol.tool_result import ToolResult as ToolResult
    from llxprt_hooks.settings.extensions import Extension as Extension
    from llxprt_hooks.settings.problem import Problem as Problem
    from llxprt_hooks.settings.problem import SettingsError as SettingsError
    from llxprt_hooks.triggers.lifecycle import fire_after_agent_hook as fire_after_agent_hook
    from llxprt_hooks.triggers.lifecycle import fire_before_agent_hook as fire_before_agent_hook
    from llxprt_hooks.triggers.lifecycle import fire_notification_hook as fire_notification_hook
    from llxprt_hooks.triggers.lifecycle import fire_pre_compress_hook as fire_pre_compress_hook
    from llxprt_hooks.triggers.lifecycle import fire_session_end_hook as fire_session_end_hook
    from llxprt_hooks.triggers.lifecycle import fire_session_start_hook as fire_session_start_hook
    from llxprt_hooks.triggers.lifecycle import observe as observe
    from llxprt_hooks.triggers.lifecycle import settle as settle
    from llxprt_hooks.triggers.model import AfterModelHookResult as AfterModelHookResult
    from llxprt_hooks.triggers.model import BeforeModelHookResult as BeforeModelHookResult
    from llxprt_hooks.triggers.model import BeforeToolSelectionHookResult as BeforeToolSelectionHookResult
    from llxprt_hooks.triggers.model import fire_after_model_hook as fire_after_model_hook
    from llxprt_hooks.triggers.model import fire_before_model_hook as fire_before_model_hook
    from llxprt_hooks.triggers.model import fire_before_tool_selection_hook as fire_before_tool_selection_hook
    from llxprt_hooks.triggers.model_call import HookedModelCall as HookedModelCall
    from llxprt_hooks.triggers.model_call import ModelCallResult as ModelCallResult
    from llxprt_hooks.triggers.model_call import execute_model_with_hooks as execute_model_with_hooks
    from llxprt_hooks.triggers.relevance import has_hooks_for as has_hooks_for
    from llxprt_hooks.triggers.stream import ModelStream as ModelStream
    from llxprt_hooks.triggers.tool import HookedToolCall as HookedToolCall
    from llxprt_hooks.triggers.tool import execute_tool_with_hooks as execute_tool_with_hooks
    from llxprt_hooks.triggers.tool import fire_after_tool_hook as fire_after_tool_hook
    from llxprt_hooks.triggers.tool import fire_before_tool_hook as fire_before_tool_hook
    from llxprt_hooks.trust.load import Settings as Settings
    from llxprt_hooks.trust.load import load_settings as load_settings
    from llxprt_hooks.trust.status import TrustStatus as TrustStatus
    from llxprt_hooks.trust.status import grant_trust as grant_trust
    from llxprt_hooks.trust.status import revoke_trust as revoke_trust
    from llxprt_hooks.trust.status import trust_status as trust_status

__version__ = "0.3.0"

_EXPORTS = {
    "audit.log": "HookLog",
    "bus.in_process": "InProcessMessageBus",
    "bus.nats": "NatsMessageBus",
    "bus.messages": "HookExecutionFailure HookExecutionRequest HookExecutionResponse MessageBus MessageBusType "
    "decode_message encode_message read_response",
    "config": "Config",
    "engine.definitions": "ConfigSource HookConfig HookDefinition HookType",
    "engine.event_handler": "HookEventHandler",
    "engine.observer": "EventEnded EventStarted HookObserver HookStarted Observers",
    "engine.planner": "ExecutionPlan",
    "engine.registry": "HookRegistry HookRegistryEntry HookRegistryNotInitializedError",
    "engine.results": "AggregatedHookResult HookExecutionError HookExecutionResult HookStageError ProcessedHookResult",
    "engine.session": "Session StopRequested",
    "engine.system": "HookSystem HookSystemNotInitializedError HookSystemStatus",
    "events": "HookEventName NotificationType PreCompressTrigger SessionEndReason SessionStartSource",
    "hooks": "Hooks SyncHooks UnknownEventError",
    "model.conversation": "Turn",
    "model.format": "GenerateContentParameters HookFormat TranslationError",
    "model.outputs": "AfterModelHookOutput BeforeModelHookOutput BeforeToolSelectionHookOutput create_hook_output",
    "model.restriction": "Restriction",
    "model.translator": "HookTranslator",
    "protocol.outputs": "BeforeToolHookOutput BlockingError DefaultHookOutput HookDecision",
    "protocol.replies": "allow ask context deny rewrite stop",
    "protocol.tool_result": "ToolResult",
    "settings.extensions": "Extension",
    "settings.problem": "Problem SettingsError",
    "triggers.lifecycle": "fire_after_agent_hook fire_before_agent_hook fire_notification_hook fire_pre_compress_hook "
    "fire_session_end_hook fire_session_start_hook observe settle",
    "triggers.model": "AfterModelHookResult BeforeModelHookResult BeforeToolSelectionHookResult "
    "fire_after_model_hook fire_before_model_hook fire_before_tool_selection_hook",
    "triggers.model_call": "HookedModelCall ModelCallResult execute_model_with_hooks",
    "triggers.relevance": "has_hooks_for",
    "triggers.stream": "ModelStream",
    "triggers.tool": "HookedToolCall execute_tool_with_hooks fire_after_tool_hook fire_before_tool_hook",
    "trust.load": "Settings load_settings",
    "trust.status": "TrustStatus grant_trust revoke_trust trust_status",
}
"""Each module with the names that the package exports from it."""

_HOMES = {name: module for module, names in _EXPORTS.items() for name in names.split()}

__all__ = sorted(_HOMES)


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
