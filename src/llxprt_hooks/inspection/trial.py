"""One event fired for the sake of its hooks: the plan, the runs, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks.config import Config
from llxprt_hooks.engine.registry import HookRegistry
from llxprt_hooks.engine.results import AggregatedHookResult, HookStageError
from llxprt_hooks.engine.runner import apply_hook_output_to_input
from llxprt_hooks.events import CAN_BLOCK
from llxprt_hooks.inspection.hints import hints_on
from llxprt_hooks.inspection.inventory import loaded_settings, unapproved_hooks, why_off
from llxprt_hooks.inspection.log_suppression import without_warnings
from llxprt_hooks.inspection.plan import Choice, choices, unapproved
from llxprt_hooks.model import HookFormat, TranslationError, request_payload, response_payload
from llxprt_hooks.model.payload import has_request_shape, has_response_shape
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.inputs import BASE_FIELDS, EVENT_FIELDS, MATCHED_FIELDS, input_problem
from llxprt_hooks.trust.load import UNHEARD

if TYPE_CHECKING:
    from llxprt_hooks.engine.observer import HookObserver
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.protocol.outputs import DefaultHookOutput


@dataclass(frozen=True, slots=True)
class Trial:
    """What was planned, what ran, and what it means."""

    event_name: HookEventName
    payload: Mapping[str, Any]
    """What the first hook is sent."""
    choices: list[Choice] = field(default_factory=list)
    result: AggregatedHookResult | None = None
    """None when nothing was to be run."""
    hints: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> list[Choice]:
        return [choice for choice in self.choices if choice.runs]

    @property
    def sequential(self) -> bool:
        return any(choice.entry.sequential for choice in self.chosen)

    @property
    def output(self) -> DefaultHookOutput | None:
        return self.result.final_output if self.result else None

    @property
    def blocked(self) -> bool:
        return self.event_name in CAN_BLOCK and self.output is not None and self.output.is_blocking_decision()

    @property
    def should_stop(self) -> bool:
        return self.output is not None and self.output.should_stop_execution()

    @property
    def reason(self) -> str | None:
        if self.output is None:
            return None
        return self.output.get_effective_reason() if self.blocked else self.output.get_stop_reason()

    @property
    def broken(self) -> bool:
        """Whether the engine itself failed."""
        return self.result is not None and any(isinstance(error, HookStageError) for error in self.result.errors)

    def payloads(self) -> list[Mapping[str, Any]]:
        """What each hook that ran was sent: in a chain, the input as the hooks before it left it."""
        sent, payload = [], self.payload
        for result in self.result.results if self.result else ():
            sent.append(payload)
            if self.sequential and result.success and result.output is not None:
                payload = apply_hook_output_to_input(self.event_name, payload, result.output)
        return sent


async def attempt(
    directory: str,
    event_name: HookEventName,
    hook_input: dict[str, Any],
    *,
    run: bool,
    observer: HookObserver | None = None,
) -> Trial:
    """Plan an event and, unless it is only to be planned, fire it."""
    problem = input_problem(event_name, hook_input)
    if problem:
        raise click.UsageError(f"{problem}.")
    with without_warnings():
        config = Config.load(directory, observer=observer)
        registry = HookRegistry(config)
        registry.initialize()
        payload = _payload(config, event_name, hook_input)
        system = config.get_hook_system() if run else None
        result = None
        if system is not None:
            fields = {name: _marked(name, value) for name, value in payload.items()}
            result = await system.ready_event_handler().fire_event(event_name, fields, keep_base_fields=True)
    planned = _planned(config, registry, event_name, payload.get(MATCHED_FIELDS.get(event_name, "")))
    advice = [hint for each in (result.results if result else ()) for hint in hints_on(each)]
    hints = [
        *_from_settings(config, registry),
        *_unknown_fields(event_name, hook_input),
        *_why_nothing_runs(config, planned, event_name),
        *advice,
    ]
    return Trial(event_name, payload, planned, result, hints)


def _payload(config: Config, event_name: HookEventName, hook_input: Mapping[str, Any]) -> dict[str, Any]:
    """All that hooks are sent; base fields that are given stand, so that a recorded payload can be fired again."""
    base = {
        "session_id": config.session_id,
        "cwd": config.working_dir,
        "timestamp": timestamp(),
        "hook_event_name": event_name.value,
        "transcript_path": config.transcript_path,
    }
    given = {name: hook_input[name] for name in BASE_FIELDS if name in hook_input}
    own = {name: hook_input[name] for name in EVENT_FIELDS[event_name]}
    with suppress(TranslationError):  # firing the event says so, with the stage at which it fails
        for name, translate in (("llm_request", request_payload), ("llm_response", response_payload)):
            if name in own:
                own[name] = translate(_marked(name, own[name]))
    return {**base, **given, **own}


def _marked(name: str, value: Any) -> Any:
    """Model data that is given to a trial is in hook format (D-38); only what cannot be is left to the translator."""
    has_shape = {"llm_request": has_request_shape, "llm_response": has_response_shape}.get(name)
    return HookFormat(value) if has_shape is not None and has_shape(value) else value


def _unknown_fields(event_name: HookEventName, hook_input: Mapping[str, Any]) -> list[str]:
    known = EVENT_FIELDS[event_name]
    unknown = [f"`{name}`" for name in hook_input if name not in known and name not in BASE_FIELDS]
    if not unknown:
        return []
    are = "are no fields" if len(unknown) > 1 else "is no field"
    return [f"{', '.join(unknown)} {are} of {event_name}, and not sent; its fields are {', '.join(known)}"]


def _planned(config: Config, registry: HookRegistry, event_name: HookEventName, subject: str | None) -> list[Choice]:
    settings = loaded_settings(config)
    why = UNHEARD.get(settings.trust.state, "the project's settings are refused")
    skipped = [unapproved(each, why) for each in unapproved_hooks(settings) if each.event_name == event_name]
    entries = [entry for entry in registry.get_all_hooks() if entry.event_name == event_name]
    return [*skipped, *choices(entries, subject, hooks_are_on=config.enable_hooks)]


def _from_settings(config: Config, registry: HookRegistry) -> list[str]:
    settings = loaded_settings(config)
    return [*map(str, settings.problems), *map(str, registry.problems), *settings.notices]


def _why_nothing_runs(config: Config, planned: list[Choice], event_name: HookEventName) -> list[str]:
    if any(choice.runs for choice in planned):
        return []
    if not planned:
        return [f"no hook is configured for {event_name}"]
    return [why_off(loaded_settings(config)) or "no hook was chosen; the plan says why"]
