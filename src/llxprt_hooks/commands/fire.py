"""Fires one event to try its hooks: the plan, the results, the outcome, and what each output means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks._support.text import closest, one_line, shorten
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.guards import considered_hooks
from llxprt_hooks.core.engine.hints import hints_on
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.core.engine.planner import HookPlanner, PlannedHook, Skip
from llxprt_hooks.core.engine.registry import HookRegistry, HookRegistryEntry
from llxprt_hooks.core.engine.results import (
    AggregatedHookResult,
    HookExecutionResult,
    HookStageError,
    is_asked,
    is_blocked,
)
from llxprt_hooks.core.protocol.caller import CALL_FIELDS, CALLER_FIELDS
from llxprt_hooks.core.protocol.inputs import BASE_FIELDS, input_problem
from llxprt_hooks.events import Effect, HookEventName
from llxprt_hooks.model.payload import mark_fields
from llxprt_hooks.settings.definitions import HookDefinition, dialect_of
from llxprt_hooks.settings.foreign import Situation
from llxprt_hooks.settings.load import Settings, asked_dialects, load_settings, unapproved_hooks
from llxprt_hooks.settings.matcher import compile_matcher, own_names
from llxprt_hooks.settings.trust.notices import why_off

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.observer import HookObserver
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput
    from llxprt_hooks.settings.foreign import NativeCall

_RESULT_FIELDS = (
    *("command", "success", "exit_code", "signal", "duration_ms", "dialect", "warm", "ahead"),
    *("stdout", "stderr", "error", "output", "observed"),
)
"""What ``fire --json`` shows of a hook's result, besides its name."""


ZYGOTE_PATIENCE = 10.0
"""Seconds to wait for the interpreter of a warm hook, so that the hook runs as it does in an agent from then on."""

AHEAD_PATIENCE = 0.25
"""Seconds that a process has to reach its input, for the same reason. One that acts before that is not used."""


_MAX_LENGTH = 100
"""Characters of a text that an effect is described with."""


class InvalidInputError(ValueError):
    """The input does not fit the event."""


@dataclass(frozen=True, slots=True)
class Trial:
    event_name: HookEventName
    plan: list[PlannedHook] = field(default_factory=list)
    result: AggregatedHookResult | None = None
    """None if nothing was run."""
    hints: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Settings files that cannot be read, so that their hooks are unknown."""
    unclear: bool = False
    """Whether settings that are not approved have hooks that cannot be used, for example those of an unknown event."""

    @property
    def not_run(self) -> str | None:
        """Why hooks that are configured could not be run, if so; not because of a matcher or a switch."""
        if self.unreadable:
            return f"these settings cannot be read: {', '.join(self.unreadable)}"
        count = sum(hook.skip is Skip.NOT_APPROVED for hook in self.plan)
        if not count and not self.unclear:
            return None
        what = f"{count} hook{' is' if count == 1 else 's are'}" if count else "the hook settings of this project are"
        return f"{what} not approved; `llxprt-hooks trust` approves hooks"

    @property
    def running(self) -> list[PlannedHook]:
        return [hook for hook in self.plan if hook.runs]

    @property
    def sequential(self) -> bool:
        return any(hook.definition.sequential for hook in self.running)

    @property
    def results(self) -> list[HookExecutionResult]:
        return self.result.results if self.result else []

    @property
    def output(self) -> DefaultHookOutput | None:
        return self.result.final_output if self.result else None

    @property
    def blocked(self) -> bool:
        return self.result is not None and self.result.is_blocked(self.event_name)

    @property
    def asked(self) -> bool:
        return self.result is not None and self.result.is_asked(self.event_name)

    @property
    def acts(self) -> bool:
        """Whether any hook that ran acts, so that its answer can do more."""
        return any(result.hook_config.acts for result in self.results)

    @property
    def should_stop(self) -> bool:
        if self.result is None:
            return False
        output = self.output if self.event_name.spec.awaited else self.result.acting
        return output is not None and output.should_stop_execution()

    @property
    def reason(self) -> str | None:
        if self.output is None:
            return None
        if self.blocked or self.asked:
            return self.output.get_effective_reason()
        return self.output.get_stop_reason() if self.should_stop else None

    @property
    def failures(self) -> list[str]:
        """Errors of the engine itself."""
        errors = self.result.errors if self.result else []
        return [str(error) for error in errors if isinstance(error, HookStageError)]

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``fire --json``."""
        return {
            "event": self.event_name.value,
            "plan": {"sequential": self.sequential, "hooks": [_planned(hook.definition) for hook in self.running]},
            "results": [_result(each) for each in self.results],
            "final_output": self.output.to_dict() if self.output else None,
            "blocked": self.blocked,
            "should_stop": self.should_stop,
            "reason": self.reason,
            "success": self.not_run is None and (self.result is None or self.result.success),
            "hints": [*self.failures, *self.hints],
        }


async def attempt(
    directory: str,
    event_name: HookEventName,
    hook_input: dict[str, Any],
    *,
    run: bool,
    observer: HookObserver | None = None,
    recorded: bool = True,
    require: Iterable[str] = (),
    is_question: bool = False,
) -> Trial:
    """Plan an event and, with ``run``, fire it. Uses base fields in the input unchanged.

    If it ``is_question``, the hooks run that answer whether a call may run.

    Unless it is ``recorded``, no observer and no audit trail gets it.

    Raises ``InvalidInputError`` if the input does not fit the event, and ``GuardMissingError`` if a hook in ``require``
    is missing.
    """
    if problem := input_problem(event_name, hook_input):
        raise InvalidInputError(problem)
    if recorded:
        hooks = LoadedHooks.load(directory, observer=observer, require=require)
    else:
        hooks = LoadedHooks.load_unrecorded(directory)
    hooks = hooks.for_question() if is_question else hooks
    return await hooks.fire(event_name, hook_input) if run else hooks.plan(event_name, hook_input)


def foreign_call(
    directory: str, event: str, tool: str | None = None, arguments: Mapping[str, Any] | None = None
) -> NativeCall | None:
    """Return an event in the names of a dialect that is asked for, in ours; None if it is one of ours.

    A call of one of our events may have a tool of the dialect, too.
    """
    for name in asked_dialects(directory):
        call = dialect_of(name).native_call(event, tool, arguments)
        if call is not None and (event not in set(HookEventName) or tool != call.tool_name):
            return call
    return None


def sent_to(result: HookExecutionResult) -> Mapping[str, Any]:
    """Return what a hook received, in its own language."""
    foreign, given = result.hook_config.foreign, result.hook_input
    if foreign is None:
        return given
    return foreign.payload(result.event_name, given, Situation(str(given.get("cwd", ""))))


@dataclass(frozen=True, slots=True)
class LoadedHooks:
    """The hooks of a project, loaded once, to fire any number of events at them."""

    config: Config
    registry: HookRegistry

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], *, observer: HookObserver | None = None, require: Iterable[str] = ()
    ) -> LoadedHooks:
        """Read the settings. Runs nothing."""
        with without_warnings():
            return cls._of(Config.load(directory, observer=observer, require=require))

    @classmethod
    def load_unrecorded(cls, directory: str | os.PathLike[str], named_file: Path | None = None) -> LoadedHooks:
        """Read the settings for events that are only tested or replayed, so that no audit trail records them.

        A ``named_file`` takes the place of the project's own settings.
        """
        with without_warnings():
            config = Config(working_dir=directory)
            config.use(load_settings(directory, named_file=named_file))
            return cls._of(config)

    @classmethod
    def of_program(cls, config: Config) -> LoadedHooks:
        """Return the hooks of a program, with its functions, for events that neither change nor reach the program."""
        return cls._of(config.unobserved())

    @classmethod
    def _of(cls, config: Config) -> LoadedHooks:
        registry = HookRegistry(config)
        registry.initialize()
        return cls(config, registry)

    def enforcing(self) -> LoadedHooks:
        """Return the same hooks, but those that only observe count like any other."""
        return LoadedHooks(self.config, self.registry.changed(_enforced))

    def for_question(self) -> LoadedHooks:
        """Return only the hooks that answer the question whether a call may run, which a person would be asked."""
        return LoadedHooks(self.config, self.registry.changed(_if_asked))

    def only(self, name: str) -> LoadedHooks:
        """Return the same hooks, but only those with a name may run."""
        changed = self.registry.changed(
            lambda entry: structs.replace(entry, enabled=entry.enabled and entry.name == name)
        )
        return LoadedHooks(self.config, changed)

    def plan(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Trial:
        return self._trial(event_name, hook_input, None)

    async def fire(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Trial:
        """Fire an event. Its input is used unchanged, base fields included."""
        with without_warnings():
            system = self.config.get_hook_system()
            if system is None:
                return self.plan(event_name, hook_input)
            handler = system.ready_event_handler()
            handler.use_planner(HookPlanner(self.registry))
            result = await handler.fire_event(event_name, mark_fields(hook_input), keep_base_fields=True)
        return self._trial(event_name, hook_input, result)

    def _trial(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], result: AggregatedHookResult | None
    ) -> Trial:
        found = [hint for each in (result.results if result else ()) for hint in hints_on(each)]
        matched = event_name.spec.matched_field
        subject = name_text(hook_input.get(matched)) if matched else None
        settings = self.config.settings
        if settings is None:  # the hooks of a program
            return Trial(event_name, HookPlanner(self.registry).explain(event_name, subject), result, found)
        with without_warnings():
            plan = considered_hooks(settings, self.registry, event_name, subject)
        unusable = unapproved_hooks(settings)[1]
        hints = [
            *map(str, (*unusable, *self.registry.problems)),
            *_warnings(settings, plan),
            *_unknown_fields(event_name, hook_input),
            *_why_nothing_runs(settings, plan, event_name),
            *_unknown_tools(settings.tools, plan, subject),
            *found,
        ]
        unreadable = [str(each.file) for each in settings.unreadable.values()]
        return Trial(event_name, plan, result, hints, unreadable, unclear=bool(unusable))


def meaning(result: HookExecutionResult) -> str:
    """Describe what a hook's result means for its event."""
    if result.hook_config.observe:
        would = (
            would_have(result.event_name, result.observed, acts=result.hook_config.acts)
            if result.observed and _counts(result)
            else []
        )
        return f"nothing, because it only observes: {'; '.join(would) or 'would have changed nothing, too'}"
    if not _counts(result):
        goes_ahead = result.spec.can_block
        return f"the hook failed, so {'the call goes ahead' if goes_ahead else 'it counts as not run'}"
    output = result.output
    found = effects(result.event_name, output, acts=result.hook_config.acts) if output else []
    if output and output.is_blocking_decision() and not is_blocked(result.spec, output):
        found.insert(0, f"would block, but {result.event_name} cannot be blocked")
    return "; ".join(found) or "allowed, nothing changed"


def effects(event_name: HookEventName, output: DefaultHookOutput, *, acts: bool = False) -> list[str]:
    """Return the effects of an output for its event, one phrase each; there are more if the hook acts.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> effects(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['blocks it: no secrets']
    """
    spec = event_name.spec_if(acts)
    found: list[str] = []
    if is_blocked(spec, output):
        found.append(f"blocks it{because(_cut(output.get_effective_reason()))}")
    if spec.awaited and (stop_reason := output.get_stop_reason()) is not None:
        found.append(f"stops the agent: {_cut(stop_reason)}")
    goes_on = not found
    if is_asked(spec, output):
        found.append(f"asks a person{because(_cut(output.get_effective_reason()))}")
    specific = output.hook_specific_output or {}
    for effect in spec.effects:
        if specific.get(effect.field) and effect.if_allowed in (None, goes_on):
            found.append(_WORDS[effect](specific[effect.field]))
    if output.beyond is not None and output.beyond.beside_result:
        found.append(f"adds for the model: {_cut(output.beyond.beside_result)}")
    if output.user_message:
        found.append(f"tells the user: {_cut(output.user_message)}")
    if output.system_message and spec.awaited:
        found.append(f"tells the model: {_cut(output.system_message)}")
    if output.suppress_output and spec.suppressible:
        found.append("hides it from the screen")
    return found


def would_have(event_name: HookEventName, output: DefaultHookOutput, *, acts: bool = False) -> list[str]:
    """Return what an output would have done if its hook did not only observe.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> would_have(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['would have blocked: no secrets']
    """
    return [_would_have(phrase) for phrase in effects(event_name, output, acts=acts)]


def _would_have(phrase: str) -> str:
    for does, done in (("blocks it", "blocked"), ("stops the agent", "stopped the agent")):
        if phrase.startswith(does):
            return f"would have {done}{phrase.removeprefix(does)}"
    return f"would have had an effect: {phrase}"


def because(reason: str) -> str:
    """Return a reason, to follow words that say what happened. That of ``failClosed`` begins with such words itself.

    >>> because("no secrets"), because("blocked because failClosed is set")
    (': no secrets', ', because failClosed is set')
    """
    return f": {reason}".replace(": blocked because ", ", because ", 1)


def _tool_config(value: Mapping[str, Any]) -> str:
    names = value.get("allowedFunctionNames")
    if value.get("mode") == "NONE" or names == []:
        return "allows no tool"
    return f"allows only: {', '.join(names)}" if names else f"sets the tool mode to {value.get('mode')}"


def _cut(text: str) -> str:
    return shorten(one_line(text), _MAX_LENGTH)


_WORDS: Mapping[Effect, Callable[[Any], str]] = {
    Effect.REWRITE_ARGUMENTS: lambda value: f"rewrites the arguments: {_cut(decode_text(write_json(value)))}",
    Effect.ADD_CONTEXT: lambda value: f"adds for the model: {_cut(value)}",
    Effect.CHANGE_REQUEST: lambda value: f"changes the request: {', '.join(value)}",
    Effect.ANSWER_FOR_MODEL: lambda _: "answers instead of the model",
    Effect.REPLACE_ANSWER: lambda _: "replaces the response",
    Effect.RESTRICT_TOOLS: _tool_config,
    Effect.REPLACE_RESULT: lambda _: "replaces the result",
    Effect.CLEAR_CONTEXT: lambda _: "clears the conversation",
}


def _counts(result: HookExecutionResult) -> bool:
    """Return whether an answer has effects: that of a failed hook has them only if it blocks."""
    return result.error is None or (result.answer is not None and result.answer.is_blocking_decision())


def _planned(definition: HookDefinition) -> dict[str, Any]:
    return {
        "name": definition.config.identity,
        "command": definition.config.command,
        "matcher": definition.matcher,
        "source": definition.origin,
        "timeout_ms": definition.config.timeout,
        "mode": definition.config.mode,
    }


def _result(result: HookExecutionResult) -> dict[str, Any]:
    fields = result.to_dict()
    return {"name": fields["hook"], **{name: fields[name] for name in _RESULT_FIELDS}}


def _enforced(entry: HookRegistryEntry) -> HookRegistryEntry:
    config = structs.replace(entry.definition.config, observe=False)
    return structs.replace(entry, definition=structs.replace(entry.definition, config=config))


def _if_asked(entry: HookRegistryEntry) -> HookRegistryEntry | None:
    definition = entry.definition
    if not definition.config.answers_question:
        return None
    config = structs.replace(definition.config, answers_question=False)
    return structs.replace(entry, definition=structs.replace(definition, config=config))


def _unknown_fields(event_name: HookEventName, hook_input: Mapping[str, Any]) -> list[str]:
    known = event_name.spec.fields
    others = (*BASE_FIELDS, *CALLER_FIELDS, *(CALL_FIELDS if event_name.spec.is_about_tool else ()))
    unknown = [f"`{name}`" for name in hook_input if name not in (*known, *others)]
    if not unknown:
        return []
    return [f"unknown fields of {event_name}, not sent: {', '.join(unknown)}; known fields: {', '.join(known)}"]


def _unknown_tools(tools: tuple[str, ...], plan: list[PlannedHook], subject: object) -> Iterator[str]:
    """Yield hints about names that the program's own tools, if the settings have them, do not have."""
    if not tools or not any(hook.definition.event_name.spec.is_about_tool for hook in plan):
        return
    if isinstance(subject, str) and not {subject, *own_names(subject)} & {*tools}:
        yield f"no tool in `hooksConfig.tools` is called `{_cut(subject)}`{_meant(subject, tools)}"
    for definition in (hook.definition for hook in plan if hook.skip is Skip.NOT_MATCHED):
        if not any(map(compile_matcher(definition.event_name, definition.matcher), tools)):
            words = f"the matcher `{_cut(str(definition.matcher))}` of hook `{_cut(definition.config.identity)}`"
            yield f"{words} matches no tool in `hooksConfig.tools`{_meant(str(definition.matcher), tools)}"


def _meant(name: str, tools: tuple[str, ...]) -> str:
    meant = closest(name, tools)
    return f"; did you mean `{meant}`?" if meant else ""


def _warnings(settings: Settings, plan: list[PlannedHook]) -> tuple[str, ...]:
    """Return the warnings about the settings, without those that the plan and ``not_run`` repeat."""
    if not _is_unapproved(plan):
        return settings.warnings
    repeated = {*settings.notices}.difference(settings.misplaced)
    return tuple(warning for warning in settings.warnings if warning not in repeated)


def _is_unapproved(plan: list[PlannedHook]) -> bool:
    return any(hook.skip is Skip.NOT_APPROVED for hook in plan)


def _why_nothing_runs(settings: Settings, plan: list[PlannedHook], event_name: HookEventName) -> list[str]:
    if any(hook.runs for hook in plan):
        return []
    if not plan:
        return [f"no hook is configured for {event_name}"]
    if settings.never_enabled:  # this is among the warnings
        return []
    off = why_off(settings) or ("" if _is_unapproved(plan) else "no hook was chosen; the plan shows why")
    return [off] if off else []


_TOOL_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"file_path": "README.md"},
    "write_file": {"file_path": "example.txt", "content": "Hello.\n"},
    "replace": {"file_path": "example.txt", "old_string": "Hello", "new_string": "Good day"},
    "list_directory": {"dir_path": "."},
    "glob": {"pattern": "**/*.py"},
    "search_file_content": {"pattern": "TODO", "dir_path": "."},
    "run_shell_command": {"command": "ls", "description": "list the files", "dir_path": "."},
}


def sample_input(event_name: HookEventName, tool_name: object = None) -> dict[str, Any]:
    """Return input for an event, for trying hooks without an agent; without the name of a tool, for `write_file`."""
    fields = {name: field.sample for name, field in event_name.spec.fields.items()}
    if event_name.spec.is_about_tool:
        name = tool_name if isinstance(tool_name, str) and tool_name else "write_file"
        fields |= {"tool_name": name, "tool_input": dict(_TOOL_INPUTS.get(name, {}))}
    return fields


def complete_input(event_name: HookEventName, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of an event, with example values for missing fields.

    Raises ``InvalidInputError`` if the fields do not fit the event.
    """
    recorded_for = fields.get("hook_event_name", event_name.value)
    if recorded_for != event_name:
        raise InvalidInputError(
            f"the input was recorded for {shorten(one_line(recorded_for), _MAX_LENGTH)}, not for {event_name}"
        )
    complete = {**sample_input(event_name, fields.get("tool_name")), **fields}
    if problem := input_problem(event_name, complete):
        raise InvalidInputError(problem)
    return complete
