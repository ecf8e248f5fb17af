"""Guardrails for AI agents, written as plain scripts.

The folders, from what a program calls down to what runs a hook:

- ``hooks``: one object with everything that an agent needs; ``config``: the configuration that a program passes
- ``core``: an event becomes a decision. Start with ``core.engine.plan``: one function has the pipeline
- ``settings``: from settings files to the hooks that may run
- ``model``: hook format to SDK types and back, one module per SDK
- ``process``: from a command string to a finished program

On top of these: ``integrations`` (hooks in clients and frameworks, and between two other programs), ``fleet`` (workers,
NATS, the audit trail), ``commands`` and ``cli`` (the command line, and its logic), ``recipes`` (hooks ready to use),
``testing`` and ``pytest_plugin``, and the reference ``agent``.

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
    from llxprt_hooks.config import Config as Config
    from llxprt_hooks.core.calls.approval import Answered as Answered
    from llxprt_hooks.core.calls.approval import Approval as Approval
    from llxprt_hooks.core.calls.approval import ApprovalRequest as ApprovalRequest
    from llxprt_hooks.core.calls.approval import NobodyToAsk as NobodyToAsk
    from llxprt_hooks.core.calls.lifecycle import fire_after_agent_hook as fire_after_agent_hook
    from llxprt_hooks.core.calls.lifecycle import fire_before_agent_hook as fire_before_agent_hook
    from llxprt_hooks.core.calls.lifecycle import fire_notification_hook as fire_notification_hook
    from llxprt_hooks.core.calls.lifecycle import fire_pre_compress_hook as fire_pre_compress_hook
    from llxprt_hooks.core.calls.lifecycle import fire_session_end_hook as fire_session_end_hook
    from llxprt_hooks.core.calls.lifecycle import fire_session_start_hook as fire_session_start_hook
    from llxprt_hooks.core.calls.lifecycle import observe as observe
    from llxprt_hooks.core.calls.lifecycle import settle as settle
    from llxprt_hooks.core.calls.lookup import has_hooks_for as has_hooks_for
    from llxprt_hooks.core.calls.model import AfterModelHookResult as AfterModelHookResult
    from llxprt_hooks.core.calls.model import BeforeModelHookResult as BeforeModelHookResult
    from llxprt_hooks.core.calls.model import BeforeToolSelectionHookResult as BeforeToolSelectionHookResult
    from llxprt_hooks.core.calls.model import fire_after_model_hook as fire_after_model_hook
    from llxprt_hooks.core.calls.model import fire_before_model_hook as fire_before_model_hook
    from llxprt_hooks.core.calls.model import fire_before_tool_selection_hook as fire_before_tool_selection_hook
    from llxprt_hooks.core.calls.model_call import HookedModelCall as HookedModelCall
    from llxprt_hooks.core.calls.model_call import ModelCallResult as ModelCallResult
    from llxprt_hooks.core.calls.model_call import execute_model_with_hooks as execute_model_with_hooks
    from llxprt_hooks.core.calls.stream import ModelStream as ModelStream
    from llxprt_hooks.core.calls.tool import HookedToolCall as HookedToolCall
    from llxprt_hooks.core.calls.tool import execute_tool_with_hooks as execute_tool_with_hooks
    from llxprt_hooks.core.calls.tool import fire_after_tool_hook as fire_after_tool_hook
    from llxprt_hooks.core.calls.tool import fire_before_tool_hook as fire_before_tool_hook
    from llxprt_hooks.core.calls.turn import TurnEnd as TurnEnd
    from llxprt_hooks.core.calls.turn import TurnResult as TurnResult
    from llxprt_hooks.core.calls.turn import TurnStart as TurnStart
    from llxprt_hooks.core.engine.event_handler import HookEventHandler as HookEventHandler
    from llxprt_hooks.core.engine.guards import GuardMissingError as GuardMissingError
    from llxprt_hooks.core.engine.in_process_bus import InProcessMessageBus as InProcessMessageBus
    from llxprt_hooks.core.engine.messages import HookExecutionFailure as HookExecutionFailure
    from llxprt_hooks.core.engine.messages import HookExecutionRequest as HookExecutionRequest
    from llxprt_hooks.core.engine.messages import HookExecutionResponse as HookExecutionResponse
    from llxprt_hooks.core.engine.messages import MessageBus as MessageBus
    from llxprt_hooks.core.engine.messages import MessageBusType as MessageBusType
    from llxprt_hooks.core.engine.messages import decode_message as decode_message
    from llxprt_hooks.core.engine.messages import encode_message as encode_message
    from llxprt_hooks.core.engine.messages import read_response as read_response
    from llxprt_hooks.core.engine.observer import EventEnded as EventEnded
    from llxprt_hooks.core.engine.observer import EventStarted as EventStarted
    from llxprt_hooks.core.engine.observer import HookObserver as HookObserver
    from llxprt_hooks.core.engine.observer import HookStarted as HookStarted
    from llxprt_hooks.core.engine.observer import Observers as Observers
    from llxprt_hooks.core.engine.observer import QuestionEnded as QuestionEnded
    from llxprt_hooks.core.engine.plan import ExecutionPlan as ExecutionPlan
    from llxprt_hooks.core.engine.registry import HookRegistry as HookRegistry
    from llxprt_hooks.core.engine.registry import HookRegistryEntry as HookRegistryEntry
    from llxprt_hooks.core.engine.registry import HookRegistryNotInitializedError as HookRegistryNotInitializedError
    from llxprt_hooks.core.engine.results import AggregatedHookResult as AggregatedHookResult
    from llxprt_hooks.core.engine.results import HookExecutionError as HookExecutionError
    from llxprt_hooks.core.engine.results import HookExecutionResult as HookExecutionResult
    from llxprt_hooks.core.engine.results import HookStageError as HookStageError
    from llxprt_hooks.core.engine.results import ProcessedHookResult as ProcessedHookResult
    from llxprt_hooks.core.engine.session import Session as Session
    from llxprt_hooks.core.engine.session import StopRequested as StopRequested
    from llxprt_hooks.core.engine.session import current_session as current_session
    from llxprt_hooks.core.engine.system import HookSystem as HookSystem
    from llxprt_hooks.core.engine.system import HookSystemNotInitializedError as HookSystemNotInitializedError
    from llxprt_hooks.core.engine.system import HookSystemStatus as HookSystemStatus
    from llxprt_hooks.core.protocol.inputs import AfterAgentInput as AfterAgentInput
    from llxprt_hooks.core.protocol.inputs import AfterModelInput as AfterModelInput
    from llxprt_hooks.core.protocol.inputs import AfterToolInput as AfterToolInput
    from llxprt_hooks.core.protocol.inputs import BeforeAgentInput as BeforeAgentInput
    from llxprt_hooks.core.protocol.inputs import BeforeModelInput as BeforeModelInput
    from llxprt_hooks.core.protocol.inputs import BeforeToolInput as BeforeToolInput
    from llxprt_hooks.core.protocol.inputs import BeforeToolSelectionInput as BeforeToolSelectionInput
    from llxprt_hooks.core.protocol.inputs import HookInput as HookInput
    from llxprt_hooks.core.protocol.inputs import NotificationInput as NotificationInput
    from llxprt_hooks.core.protocol.inputs import PreCompressInput as PreCompressInput
    from llxprt_hooks.core.protocol.inputs import SessionEndInput as SessionEndInput
    from llxprt_hooks.core.protocol.inputs import SessionStartInput as SessionStartInput
    from llxprt_hooks.core.protocol.model_outputs import AfterModelHookOutput as AfterModelHookOutput
    from llxprt_hooks.core.protocol.model_outputs import BeforeModelHookOutput as BeforeModelHookOutput
    from llxprt_hooks.core.protocol.model_outputs import BeforeToolSelectionHookOutput as BeforeToolSelectionHookOutput
    from llxprt_hooks.core.protocol.model_outputs import create_hook_output as create_hook_output
    from llxprt_hooks.core.protocol.outputs import BeforeToolHookOutput as BeforeToolHookOutput
    from llxprt_hooks.core.protocol.outputs import BlockingError as BlockingError
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput as DefaultHookOutput
    from llxprt_hooks.core.protocol.outputs import HookDecision as HookDecision
    from llxprt_hooks.core.protocol.replies import allow as allow
    from llxprt_hooks.core.protocol.replies import ask as ask
    from llxprt_hooks.core.protocol.replies import change_request as change_request
    from llxprt_hooks.core.protocol.replies import context as context
    from llxprt_hooks.core.protocol.replies import deny as deny
    from llxprt_hooks.core.protocol.replies import message as message
    from llxprt_hooks.core.protocol.replies import replace_answer as replace_answer
    from llxprt_hooks.core.protocol.replies import replace_result as replace_result
    from llxprt_hooks.core.protocol.replies import restrict as restrict
    from llxprt_hooks.core.protocol.replies import rewrite as rewrite
    from llxprt_hooks.core.protocol.replies import stop as stop
    from llxprt_hooks.core.protocol.tool_result import ToolResult as ToolResult
    from llxprt_hooks.events import HookEventName as HookEventName
    from llxprt_hooks.events import NotificationType as NotificationType
    from llxprt_hooks.events import PreCompressTrigger as PreCompressTrigger
    from llxprt_hooks.events import SessionEndReason as SessionEndReason
    from llxprt_hooks.events import SessionStartSource as SessionStartSource
    from llxprt_hooks.events import UnknownEventError as UnknownEventError
    from llxprt_hooks.fleet.audit.log import HookLog as HookLog
    from llxprt_hooks.fleet.nats_bus import NatsMessageBus as NatsMessageBus
    from llxprt_hooks.hooks import Hooks as Hooks
    from llxprt_hooks.hooks import SyncHooks as SyncHooks
    from llxprt_hooks.model.conversation import Turn as Turn
    from llxprt_hooks.model.format import GenerateContentParameters as GenerateContentParameters
    from llxprt_hooks.model.format import HookFormat as HookFormat
    from llxprt_hooks.model.format import TranslationError as TranslationError
    from llxprt_hooks.model.restriction import Restriction as Restriction
    from llxprt_hooks.model.translator import HookTranslator as HookTranslator
    from llxprt_hooks.settings.definitions import ConfigSource as ConfigSource
    from llxprt_hooks.settings.definitions import HookConfig as HookConfig
    from llxprt_hooks.settings.definitions import HookDefinition as HookDefinition
    from llxprt_hooks.settings.definitions import HookType as HookType
    from llxprt_hooks.settings.extensions import Extension as Extension
    from llxprt_hooks.settings.load import Settings as Settings
    from llxprt_hooks.settings.load import load_settings as load_settings
    from llxprt_hooks.settings.problem import Problem as Problem
    from llxprt_hooks.settings.problem import SettingsError as SettingsError
    from llxprt_hooks.settings.trust.status import TrustStatus as TrustStatus
    from llxprt_hooks.settings.trust.status import grant_trust as grant_trust
    from llxprt_hooks.settings.trust.status import revoke_trust as revoke_trust
    from llxprt_hooks.settings.trust.status import trust_status as trust_status

__version__ = "0.3.0"

_EXPORTS = {
    "fleet.audit.log": "HookLog",
    "core.engine.guards": "GuardMissingError",
    "core.engine.in_process_bus": "InProcessMessageBus",
    "fleet.nats_bus": "NatsMessageBus",
    "core.engine.messages": "HookExecutionFailure HookExecutionRequest HookExecutionResponse MessageBus MessageBusType "
    "decode_message encode_message read_response",
    "config": "Config",
    "core.engine.event_handler": "HookEventHandler",
    "core.engine.observer": "EventEnded EventStarted HookObserver HookStarted Observers QuestionEnded",
    "core.engine.plan": "ExecutionPlan",
    "core.engine.registry": "HookRegistry HookRegistryEntry HookRegistryNotInitializedError",
    "core.engine.results": "AggregatedHookResult HookExecutionError HookExecutionResult HookStageError "
    "ProcessedHookResult",
    "core.engine.session": "Session StopRequested current_session",
    "core.engine.system": "HookSystem HookSystemNotInitializedError HookSystemStatus",
    "events": "HookEventName NotificationType PreCompressTrigger SessionEndReason SessionStartSource UnknownEventError",
    "hooks": "Hooks SyncHooks",
    "model.conversation": "Turn",
    "model.format": "GenerateContentParameters HookFormat TranslationError",
    "core.protocol.inputs": "AfterAgentInput AfterModelInput AfterToolInput BeforeAgentInput BeforeModelInput "
    "BeforeToolInput BeforeToolSelectionInput HookInput NotificationInput PreCompressInput SessionEndInput "
    "SessionStartInput",
    "core.protocol.model_outputs": "AfterModelHookOutput BeforeModelHookOutput BeforeToolSelectionHookOutput "
    "create_hook_output",
    "model.restriction": "Restriction",
    "model.translator": "HookTranslator",
    "core.protocol.outputs": "BeforeToolHookOutput BlockingError DefaultHookOutput HookDecision",
    "core.protocol.replies": "allow ask change_request context deny message replace_answer replace_result restrict "
    "rewrite stop",
    "core.protocol.tool_result": "ToolResult",
    "settings.definitions": "ConfigSource HookConfig HookDefinition HookType",
    "settings.extensions": "Extension",
    "settings.load": "Settings load_settings",
    "settings.problem": "Problem SettingsError",
    "core.calls.approval": "Answered Approval ApprovalRequest NobodyToAsk",
    "core.calls.lifecycle": "fire_after_agent_hook fire_before_agent_hook fire_notification_hook "
    "fire_pre_compress_hook fire_session_end_hook fire_session_start_hook observe settle",
    "core.calls.model": "AfterModelHookResult BeforeModelHookResult BeforeToolSelectionHookResult "
    "fire_after_model_hook fire_before_model_hook fire_before_tool_selection_hook",
    "core.calls.model_call": "HookedModelCall ModelCallResult execute_model_with_hooks",
    "core.calls.lookup": "has_hooks_for",
    "core.calls.stream": "ModelStream",
    "core.calls.tool": "HookedToolCall execute_tool_with_hooks fire_after_tool_hook fire_before_tool_hook",
    "core.calls.turn": "TurnEnd TurnResult TurnStart",
    "settings.trust.status": "TrustStatus grant_trust revoke_trust trust_status",
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
