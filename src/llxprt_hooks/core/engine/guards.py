"""The hooks that a program requires: whether one would run for each requirement, and if not, why (D-116).

>>> str(RequiredHook.parse("BeforeTool:write_file")), RequiredHook.parse("BeforeModel").subject
('BeforeTool:write_file', None)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks._support.text import escape_for_terminal, one_line, shorten
from llxprt_hooks.core.engine.planner import HookPlanner, PlannedHook, Skip
from llxprt_hooks.core.engine.registry import HookRegistry, RegistryConfig
from llxprt_hooks.events import HookEventName, UnknownEventError
from llxprt_hooks.settings.load import Settings, skipped_hooks, unapproved_hooks
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.settings.trust.notices import NOT_TRUSTED_REASONS, why_off
from llxprt_hooks.settings.trust.status import TrustState

if TYPE_CHECKING:
    from llxprt_hooks.settings.definitions import HookDefinition

_FORM: Final = '"EVENT" or "EVENT:TOOL", for example "BeforeTool:write_file"'
_MAX_REASONS: Final = 5
"""A project may have thousands of hooks that do not match."""
_MAX_NAME: Final = 80


class GuardMissingError(SettingsError):
    """No hook would run where the program requires one. One line per requirement, with the reasons."""

    @property
    def refusal(self) -> str:
        return f"Required hooks are missing:\n{self}"


class RequiredHook(NamedTuple):
    """An event that must have a hook; for a tool event, optionally the tool that the hook must be for."""

    event: HookEventName
    subject: str | None = None

    @classmethod
    def parse(cls, text: str) -> RequiredHook:
        """Read ``EVENT`` or ``EVENT:TOOL``. Raises ``UnknownEventError``, ``TypeError`` or ``ValueError``."""
        if not isinstance(text, str):
            raise TypeError(f"a required hook must be {_FORM}, found {text!r:.80}")
        name, colon, subject = text.partition(":")
        event = known_event(name)
        if colon and not event.spec.matched_field:
            raise ValueError(f"{event} is not about a tool: write `{event}`, found {text!r:.80}")
        if colon and not subject.strip():
            raise ValueError(f"a required hook must be {_FORM}, found {text!r:.80}")
        return cls(event, subject if colon else None)

    def __str__(self) -> str:
        return self.event if self.subject is None else f"{self.event}:{self.subject}"


def known_event(name: str) -> HookEventName:
    """Return the event of that name. Raises ``UnknownEventError``, which suggests the closest one."""
    try:
        return HookEventName(name)
    except ValueError:
        from llxprt_hooks.settings.did_you_mean import event_fix

        raise UnknownEventError(f"unknown hook event {name!r:.80}. {event_fix(str(name))}") from None


def required_hooks(require: Iterable[str]) -> tuple[RequiredHook, ...]:
    """Read what a program requires."""
    if isinstance(require, str | bytes | Mapping) or not isinstance(require, Iterable):
        raise TypeError(f"`require` must be a list of {_FORM}, found {type(require).__name__} {require!r:.80}")
    return tuple(map(RequiredHook.parse, require))


def require_hooks(settings: Settings, config: RegistryConfig, required: Iterable[RequiredHook]) -> None:
    """Raise ``GuardMissingError`` unless a hook that can enforce would run for each requirement."""
    registry = HookRegistry(config)
    with without_warnings():  # the hook system reports the same problems
        registry.initialize()
        missing = [f"{each}: no hook would run. {' '.join(why)}" for each in required
                   if (why := list(_why_missing(settings, registry, each)))]  # fmt: skip
    if missing:
        raise GuardMissingError(map(escape_for_terminal, missing))


def considered_hooks(
    settings: Settings, registry: HookRegistry, event_name: HookEventName, subject: str | None = None
) -> list[PlannedHook]:
    """Return every configured hook of an event, whether it runs, and why; also those that are not approved."""
    unapproved = [
        PlannedHook(each, Skip.NOT_APPROVED, _why_not_approved(settings, each))
        for each in unapproved_hooks(settings)[0]
    ]
    skipped = [PlannedHook(each, Skip.HOOKS_OFF, why) for each, why in skipped_hooks(settings)]
    planned = HookPlanner(registry).explain(event_name, subject, hooks_enabled=settings.enabled)
    return [hook for hook in (*unapproved, *planned, *skipped) if hook.definition.event_name == event_name]


def _why_not_approved(settings: Settings, definition: HookDefinition) -> str:
    state = settings.trust_of(definition.origin).state
    return NOT_TRUSTED_REASONS.get(state, "the project's settings are refused")


def _why_missing(settings: Settings, registry: HookRegistry, required: RequiredHook) -> Iterator[str]:
    """Yield why no hook would run, in sentences; nothing if one would."""
    reasons: dict[str, list[str]] = {}
    for hook in considered_hooks(settings, registry, *required):
        obstacle = _obstacle(hook, settings)
        if obstacle is None:
            return
        reasons.setdefault(obstacle, []).append(f"`{shorten(one_line(hook.definition.config.identity), _MAX_NAME)}`")
    for reason, names in list(reasons.items())[:_MAX_REASONS]:
        more = f" and {len(names) - _MAX_REASONS} more" if len(names) > _MAX_REASONS else ""
        yield f"{', '.join(names[:_MAX_REASONS])}{more}: {reason.removesuffix('.')}."
    if len(reasons) > _MAX_REASONS:
        yield f"{len(reasons) - _MAX_REASONS} more do not run either: see `llxprt-hooks list`."
    if not reasons:
        yield f"None is configured for {required.event}."
    refused = settings.trust.problems if settings.trust.state is TrustState.REFUSED else ()
    place = f"hooks.{required.event}["
    unusable = (each for each in (*unapproved_hooks(settings)[1], *registry.problems) if each.where.startswith(place))
    for problem in dict.fromkeys((*settings.unreadable.values(), *refused, *unusable)):
        yield f"{str(problem).removesuffix('.')}."
    yield from settings.misplaced


def _obstacle(hook: PlannedHook, settings: Settings) -> str | None:
    """Return why a hook guards nothing; None if it would run and can enforce."""
    definition = hook.definition
    config = definition.config
    is_held_back = bool(settings.held_back) and config.before_start is not None  # it blocks every call instead
    if hook.skip is Skip.NOT_APPROVED or is_held_back:
        return settings.not_approved or hook.why
    if hook.skip is Skip.HOOKS_OFF:
        return why_off(settings) or hook.why
    if hook.skip is not None:
        return hook.why
    if definition.has_invalid_matcher:
        return f"its matcher {definition.matcher!r} is not a valid regular expression, so it matches almost nothing"
    if config.observe:
        return 'it only observes (`"mode": "observe"`)'
    return config.executor.unsupported or None
