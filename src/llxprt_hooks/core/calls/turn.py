"""Hooks around a turn: a prompt and the agent's answer to it.

Where BeforeAgent and AfterAgent hooks act, they refuse a prompt, add context to it, let the agent continue, or stop it
(D-46). Otherwise these events are started, and nobody waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.lifecycle import observe_detached
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.journal import open_journal
from llxprt_hooks.core.engine.session import Detached, Session, StopRequested, current_session
from llxprt_hooks.events import HookEventName, PreCompressTrigger, SessionStartSource

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.plan import ExecutionPlan
    from llxprt_hooks.core.engine.results import AggregatedHookResult
    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput

log = debug_logger("triggers")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """What hooks say about a prompt before the agent works on it."""

    prompt: str
    """The prompt as the model should get it, with what hooks add."""
    blocked: bool = False
    """Whether the prompt is refused: do not send it to the model, and show the reason to the user."""
    reason: str | None = None
    should_stop: bool = False
    stop_reason: str | None = None
    decided_by: tuple[str, ...] = field(default=(), compare=False)
    """The hooks that refused the prompt or stopped the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """What hooks say about the agent's answer to a prompt."""

    next_prompt: str | None = None
    """What the agent should work on next, because a hook wants it to continue; None if it is done."""
    clear_context: bool = False
    """Whether the conversation should be cleared before the next prompt."""
    should_stop: bool = False
    stop_reason: str | None = None
    decided_by: tuple[str, ...] = field(default=(), compare=False)
    """The hooks that let the agent continue, or stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult(Generic[T]):
    """A prompt, answered, with what hooks made of it."""

    response: T | None = None
    """The agent's last answer; None if the prompt was refused or a hook stopped the agent first."""
    blocked: bool = False
    reason: str | None = None
    """Why the prompt was refused, for the user."""
    continuations: int = 0
    """How many further turns hooks asked for."""
    clear_context: bool = False
    """Whether the conversation should be cleared before the next prompt."""
    stop_reason: str | None = None
    """If it is not None: end the agent's work, and show it to the user."""
    decided_by: tuple[str, ...] = field(default=(), compare=False)


def start_session(
    config: CallerConfig, session: Session, source: str = SessionStartSource.STARTUP, *, journaled: bool = False
) -> None:
    """Fire SessionStart in the session of the current context. What hooks that act add waits for the first prompt.

    ``journaled``: hooks that read the conversation in another form get it, although the program has a transcript.
    """
    _open_journal(config, session, journaled)
    plan = plan_for(config, HookEventName.SESSION_START, source)
    if plan is not None and plan.acts:
        session.conversation.start = loops.submit(_fired(plan, source))
    else:
        observe_detached(config, HookEventName.SESSION_START, source=source)


async def session_started(config: CallerConfig, session: Session, source: str = SessionStartSource.STARTUP) -> None:
    """Fire SessionStart the same way, and wait for the hooks if they act."""
    _open_journal(config, session)
    plan = plan_for(config, HookEventName.SESSION_START, source)
    if plan is None or not plan.acts:
        start_session(config, session, source)
        return
    decision = await _fired(plan, source)
    session.conversation.start = Future()
    session.conversation.start.set_result(decision)


def _open_journal(config: CallerConfig, session: Session, journaled: bool = False) -> None:
    if session.journal is None and (journaled or not session.transcript_path):
        session.conversation.journal = open_journal(config, session.session_id)


async def _fired(plan: ExecutionPlan, source: str) -> AggregatedHookResult:
    return await plan.fire({"source": source})


async def before_turn(config: CallerConfig, prompt: str) -> TurnStart:
    """Run the BeforeAgent hooks on a new prompt, and wait for those that act."""
    session = current_session(config)
    if session is not None:
        session.continuations = 0
        if session.journal is not None:
            session.journal.new_prompt()
    plan = plan_for(config, HookEventName.BEFORE_AGENT)
    decision = await _decided(config, plan, HookEventName.BEFORE_AGENT, prompt=prompt)
    output = decision.acting if decision is not None else None
    by = decision.decided_by if decision is not None else ()
    if output is not None and output.should_stop_execution():
        reason = output.get_stop_reason()
        return TurnStart(prompt=prompt, reason=reason, should_stop=True, stop_reason=reason, decided_by=by)
    if output is not None and output.is_blocking_decision():
        return TurnStart(prompt=prompt, blocked=True, reason=output.get_effective_reason(), decided_by=by)
    if session is not None and session.journal is not None:
        session.journal.prompt(prompt)
    contexts = (await _start_context(session), None if output is None else output.get_additional_context())
    return TurnStart(prompt="\n\n".join([prompt, *filter(None, contexts)]))


async def after_turn(
    config: CallerConfig,
    prompt: str,
    response: str,
    stop_hook_active: bool = False,
    *,
    turns: Session | Detached | None = None,
) -> TurnEnd:
    """Run the AfterAgent hooks on an answer, and wait for those that act. ``turns`` counts the continuations."""
    journal = None if (session := current_session(config)) is None else session.journal
    if journal is not None:
        journal.answer(response)
    plan = plan_for(config, HookEventName.AFTER_AGENT)
    fields = {"prompt": prompt, "prompt_response": response, "stop_hook_active": stop_hook_active}
    decision = await _decided(config, plan, HookEventName.AFTER_AGENT, **fields)
    output = decision.acting if decision is not None else None
    if output is None:
        return TurnEnd()
    by = decision.decided_by if decision is not None else ()
    clear = output.clears_context()
    if output.should_stop_execution():
        return TurnEnd(clear_context=clear, should_stop=True, stop_reason=output.get_stop_reason(), decided_by=by)
    turns = turns or session or Detached()
    if not output.is_blocking_decision() or not _may_continue(config, turns):
        return TurnEnd(clear_context=clear)
    turns.continuations += 1
    following = output.get_effective_reason()
    if journal is not None:
        journal.prompt(following)
    return TurnEnd(next_prompt=following, clear_context=clear, decided_by=by)


async def run_turn(
    config: CallerConfig, prompt: str, run: Callable[[str], Any], text: Callable[[Any], str]
) -> TurnResult[Any]:
    """Let the agent answer a prompt, and continue as long as AfterAgent hooks say so."""
    start = await before_turn(config, prompt)
    if start.blocked or start.should_stop:
        return TurnResult(
            blocked=start.blocked, reason=start.reason, stop_reason=start.stop_reason, decided_by=start.decided_by
        )
    session = current_session(config)
    turns = session or Detached()
    asked, sent, clear = prompt, start.prompt, False
    while True:
        active = turns.continuations
        try:
            response = await resolve(run(sent))
        except StopRequested as stop:
            return TurnResult(continuations=active, clear_context=clear, stop_reason=stop.reason)
        stopped = turns.stop_reason
        end = await after_turn(config, asked, text(response), active > 0, turns=turns)
        clear = clear or end.clear_context
        if stopped is not None or end.next_prompt is None:
            reason = end.stop_reason if stopped is None else stopped
            return TurnResult(response=response, continuations=active, clear_context=clear, stop_reason=reason,
                              decided_by=end.decided_by)  # fmt: skip
        asked = sent = end.next_prompt


async def before_compression(config: CallerConfig, trigger: str) -> str | None:
    """Run the PreCompress hooks, and wait for those that act; why the conversation must not be compressed, or None."""
    trigger = PreCompressTrigger(trigger)
    plan = plan_for(config, HookEventName.PRE_COMPRESS, trigger)
    decision = await _decided(config, plan, HookEventName.PRE_COMPRESS, trigger=trigger)
    output = decision.acting if decision is not None else None
    return output.get_effective_reason() if output is not None and output.is_blocking_decision() else None


async def _decided(
    config: CallerConfig, plan: ExecutionPlan | None, event_name: HookEventName, **fields: Any
) -> AggregatedHookResult | None:
    """Fire an event: the decision, where hooks act; else None, and the event goes on by itself."""
    if plan is not None and plan.acts:
        return await plan.fire(fields)
    if plan is not None:
        observe_detached(config, event_name, **fields)
    return None


async def _start_context(session: Session | None) -> str | None:
    """Return what SessionStart hooks add to the first prompt of a session, once."""
    start = None if session is None else session.conversation.start
    if session is None or start is None:
        return None
    decision = await loops.on_asyncio(_result_of(start))
    session.conversation.start = None
    output: DefaultHookOutput | None = decision.acting
    return None if output is None else output.get_additional_context()


async def _result_of(future: Future[T]) -> T:
    return await asyncio.wrap_future(future)


def _may_continue(config: CallerConfig, turns: Session | Detached) -> bool:
    if turns.continuations < config.max_continuations:
        return True
    log.warning(
        "AfterAgent: the agent has continued %d times in a row, which is the limit (hooksConfig.maxContinuations), so "
        "its turn ends although a hook wants it to continue",
        turns.continuations,
    )
    return False
