"""Checks of events, types and other fields of hooks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import closest, missing_extra
from llxprt_hooks.commands.validate.checks.commands import to_act
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.process.shell.environment import process_environment
from llxprt_hooks.settings import Kind
from llxprt_hooks.settings.did_you_mean import NOT_EVENTS, event_fix
from llxprt_hooks.settings.schema import SENTENCES, settings_executor, supported_types
from llxprt_hooks.settings.shape import read_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.entries import FileEvent, FileHook
    from llxprt_hooks.commands.validate.inspection import Inspection

_SECOND: Final = 1000
_MAX_TIMEOUT: Final = 3600 * _SECOND
_DAY: Final = 24 * _MAX_TIMEOUT
_YEAR: Final = 365.25 * _DAY
_OTHER_TYPES: Final = {"shell": "command", "script": "command", "bash": "command", "cmd": "command", "exec": "command"}


def check_event(inspection: Inspection, event: FileEvent) -> Iterator[Diagnostic]:
    """Find unknown events; switches among the events are reported as misplaced keys."""
    key = event.member.key
    if event.name is None and key not in NOT_EVENTS:
        yield event.file.at_key(Rule.UNKNOWN_EVENT, event.member, f"unknown event `{key}`", event_fix(key))


def check_groups(inspection: Inspection, event: FileEvent) -> Iterator[Diagnostic]:
    """Find hooks in the place of a group, and groups without hooks."""
    for group in () if event.member.key in NOT_EVENTS else event.groups:
        hooks = group.node.at("hooks")
        if group.is_bare_hook:
            message, fix = "expected a group of hooks here, found a hook", 'Put it in a group: `{ "hooks": [ … ] }`.'
            yield event.file.at(Rule.HOOK_OUTSIDE_GROUP, group.node, message, fix)
        elif hooks and hooks.kind is Kind.ARRAY and not hooks.items:
            fix = "Add a hook, or remove the group."
            yield event.file.at(Rule.EMPTY_GROUP, hooks, "this group has no hooks", fix)


def check_unsupported_event(inspection: Inspection, event: FileEvent) -> Iterator[Diagnostic]:
    """Find events that never fire where the hooks will be used, or not always."""
    if event.name is None or not event.groups:
        return
    fix = "Use another event, or another integration."
    if reason := inspection.unsupported.get(event.name):
        message = f"hooks for {event.name} will not run: {reason}"
        yield event.file.at_key(Rule.UNSUPPORTED_EVENT, event.member, message, fix)
    elif extent := inspection.limited.get(event.name):
        message = f"hooks for {event.name} will run {extent}"
        yield event.file.at_key(Rule.UNSUPPORTED_EVENT, event.member, message, fix)


def check_lost_effect(inspection: Inspection, event: FileEvent) -> Iterator[Diagnostic]:
    """Find events at which hooks that act cannot have all their effects where they will be used."""
    reason = None if event.name is None else inspection.not_honored.get(event.name)
    if event.groups and reason and event.file.acts:
        message = f"some effects of {event.name} hooks are not available: {reason}"
        yield event.file.at_key(
            Rule.LOST_EFFECT, event.member, message, "See the integration's page for what works there."
        )


def check_type(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    node = hook.node.at("type")
    if node is None or node.kind is not Kind.STRING:
        return
    name, executor = str(node.scalar), settings_executor(node.scalar)
    if executor is None:
        typo = closest(name, supported_types()) or _OTHER_TYPES.get(name.lower())
        known = ", ".join(f"`{each}`" for each in supported_types())
        fix = f"Did you mean `{typo}`?" if typo else f"Supported types: {known}. Call anything else from a script."
        yield hook.file.at(Rule.UNKNOWN_TYPE, node, f"unknown type `{name}`", fix)
    elif executor.unsupported:
        yield hook.file.at(Rule.PLUGIN_TYPE, node, executor.unsupported, 'Write `"type": "command"` and a `command`.')


def check_own_rules(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find values that fit the schema but that the hook's type rejects."""
    executor = settings_executor(hook.type)
    own, problems = read_fields(executor.fields or {}, hook.inserted) if executor else ({}, [])
    if executor is None or any(problem.discards for problem in problems):
        return
    spec = executor.read(own)
    if isinstance(spec, list):
        for problem in spec:
            node = hook.node.at(problem.key) or hook.node
            yield hook.file.at(Rule.INVALID_VALUE, node, problem.message, "Fix it; until then the hook is skipped.")
        return
    if missing := next((name for name in executor.packages if find_spec(name) is None), None):
        error = ModuleNotFoundError(f"No module named {missing!r}")
        message = missing_extra(f"a hook of type `{hook.type}`", executor.extra, error)
        fix = "Run the command in the Python environment of the agent."
        yield hook.file.at(Rule.FAILING_HOOK, hook.node.at("type") or hook.node, message, fix)
    for problem in executor.problems(spec, process_environment()):
        node = hook.node.at(problem.key) or hook.node
        if problem.discards:
            yield hook.file.at(Rule.FAILING_HOOK, node, problem.message, "Fix it; until then the hook fails each time.")
        else:
            yield hook.file.at(Rule.DOUBTFUL_VALUE, node, problem.message, "Check that this is intentional.")


def check_timeout(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find timeouts that are invalid, look like seconds, or are implausibly long."""
    node = hook.node.at("timeout")
    if node is None or isinstance(node.scalar, bool) or not isinstance(node.scalar, (int, float)):
        return
    timeout, written = node.scalar, hook.file.document.found(node)
    if not 0 < timeout < float("inf"):
        rule, message = Rule.TIMEOUT_NOT_POSITIVE, f"{written} is not a valid timeout"
        fix = "Write milliseconds: 60000 is one minute."
    elif timeout < _SECOND:
        rule, seconds = Rule.TIMEOUT_SECONDS, f"{timeout / _SECOND:g} s"
        message = f"{written} is {seconds}, which looks like a number of seconds"
        fix = f"For {written} s write {timeout * _SECOND:.0f}."
    elif timeout > _MAX_TIMEOUT:
        rule, message = Rule.TIMEOUT_LONG, f"{written} is {_duration(timeout)}"
        fix = "Timeouts are in milliseconds: 60000 is one minute, 600000 is ten."
    else:
        return
    yield hook.file.at(rule, node, message, fix)


def _duration(milliseconds: float) -> str:
    if milliseconds > 30 * _YEAR:
        return "more than 30 years"
    if milliseconds >= 2 * _YEAR:
        return f"{milliseconds / _YEAR:.0f} years"
    if milliseconds >= 2 * _DAY:
        return f"{milliseconds / _DAY:.0f} days"
    hours = f"{milliseconds / _MAX_TIMEOUT:.3g}"
    return "more than an hour" if hours == "1" else f"{hours} hours"


def check_fail_closed(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find ``failClosed`` on events that cannot be blocked."""
    node = hook.node.at("failClosed")
    if node and hook.fails_closed and hook.event and hook.spec and not hook.spec.can_block:
        message = f"`failClosed` has no effect for {hook.event}, which cannot be blocked"
        fix = f"Remove it, or use an earlier event: BeforeTool or BeforeModel.{to_act(hook.event)}"
        yield hook.file.at(Rule.FAIL_CLOSED_NO_EFFECT, node, message, fix)


def check_stream(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find hooks that want sentences of an answer and will not get them."""
    node = hook.node.at("stream")
    if node is None or not _streams(hook) or hook.event is None or hook.spec is None:
        return
    fix = "Remove it; the hook gets the whole answer."
    if not hook.spec.streams:
        reason, fix = f"{hook.event} has no answer that could be streamed", "Remove it."
    elif inspection.unstreamed and hook.event not in inspection.unsupported:
        reason = inspection.unstreamed
    elif any(other.event is hook.event and not _streams(other) for other in inspection.hooks):
        reason, fix = "another AfterModel hook needs the whole answer", "Add it to all AfterModel hooks, or to none."
    else:
        return
    yield hook.file.at(Rule.STREAM_NO_EFFECT, node, f"`stream` has no effect: {reason}", fix)


def _streams(hook: FileHook) -> bool:
    node = hook.node.at("stream")
    return node is not None and node.scalar == SENTENCES
