"""Models whose calls run between hooks."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agents import (
    AgentsException,
    FunctionTool,
    Model,
    ModelBehaviorError,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    OpenAIResponsesModel,
    Usage,
)
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent
from pydantic import TypeAdapter

from llxprt_hooks.core.calls.sentences import SentenceEvents
from llxprt_hooks.integrations.base import reason_instead
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from llxprt_hooks.model.wire.base import event_data

if TYPE_CHECKING:
    from agents import RunConfig, Tool

    from llxprt_hooks.core.calls.model_call import ModelCallResult
    from llxprt_hooks.integrations.openai_agents.patches import OpenAIAgentsHooks
    from llxprt_hooks.model.json_api import Request

_SETTINGS = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
"""Settings of the Responses API, and their names in ``ModelSettings``."""
_ENDINGS = ("response.completed", "response.incomplete")
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_ITEM: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)
_TRANSLATOR = OpenAIResponsesTranslator()


class HookStopped(AgentsException):
    """A hook ended a run whose output cannot be a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class _Target:
    """A model, the name that hooks see, and where to look for one with another name."""

    model: Model
    name: str
    run_config: RunConfig
    hooks: OpenAIAgentsHooks


class HookedModel(Model):
    """A model whose calls run with their hooks. In all else it is the model that it wraps."""

    def __init__(self, model: Model, name: str, run_config: RunConfig, hooks: OpenAIAgentsHooks) -> None:
        self._model = model
        self._target = _Target(model, name, run_config, hooks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        sending = _Sending(self._target, system_instructions, input, *args, **kwargs)
        if (result := await sending.call.before()) is not None:
            return _response(sending.answer(result))
        model, options = sending.final()
        response: ModelResponse = await model.get_response(**options)
        shown = _shown(response, sending.call.request)
        after = await sending.call.after(shown)
        if after.stop_reason is None and after.response is shown:
            kept = sending.without_refused_handoffs(response.output)
            # The server would wait for the result of a call that is left out.
            return response if kept is response.output else dataclasses.replace(response, output=kept, response_id=None)
        return _response(sending.answer(after), response)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        sending = _Sending(self._target, system_instructions, input, *args, **kwargs)
        if (result := await sending.call.before()) is not None:
            for event in _events(sending.answer(result), sending.call.request):
                yield event
            return
        model, options = sending.final()
        holds_back = sending.call.holds_back or sending.refuses_handoffs
        held_back: list[Any] = []
        endings: list[Any] = []
        released = SentenceEvents(sending.call, _TRANSLATOR.wire) if sending.call.streams_sentences else None
        async for event in model.stream_response(**options):
            if event.type in _ENDINGS:
                endings.append(event)
            elif event.type in ("response.failed", "error"):
                yield _without_output(event) if holds_back else event
                return
            elif released is not None and not sending.refuses_handoffs:
                for passed in await released.add((event, event_data(event))):
                    yield _made(passed)
                if released.sentences.result is not None:
                    break
            elif holds_back:
                held_back.append(event)
            else:
                yield event
        if released is not None and (ended := released.sentences.result) is not None:
            sending.answer(ended)  # raises if the output cannot be a text
            for event in released.rest(None, ended.response):
                yield _made(event)
            return
        if not endings:
            raise ModelBehaviorError("the stream ended before the answer was complete")
        ending = endings[-1]
        received: Any = ending.response
        after = await sending.call.after(received)
        if after.stop_reason is not None or after.response is not received:
            answer = _dumped(sending.answer(after))
            events = _TRANSLATOR.wire.events(answer, sending.call.request)
            for event in events if released is None else released.rest(None, answer):
                yield _made(event)
            return
        output = ending.response.output
        kept = sending.without_refused_handoffs(output)
        if kept is not output:
            ending = _with_response(ending, output=kept, id=None)
            left_out = {index for index, item in enumerate(output) if item not in kept}
            held_back = [event for event in held_back if getattr(event, "output_index", None) not in left_out]
        if released is not None:
            held_back += map(_made, released.rest(received, received))
        for event in [] if after.suppress_output else held_back:
            yield event
        yield ending


class _Sending:
    """One request to a model: its arguments, as the SDK has them, and as the Responses API does."""

    def __init__(
        self,
        target: _Target,
        system_instructions: Any,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **options: Any,
    ) -> None:
        self._target = target
        self._settings = model_settings
        self._tools = {tool.name: tool for tool in tools}
        self._handoffs = {handoff.tool_name: handoff for handoff in handoffs}
        self._options = {
            **options,
            "output_schema": output_schema,
            "tracing": tracing,
        }
        self._takes_text = output_schema is None or output_schema.is_plain_text()
        names = [*self._tools, *self._handoffs]
        request: Request = {
            "model": target.name,
            "instructions": system_instructions,
            "input": input,
            "tools": [{"type": "function", "name": name} for name in names],
            "tool_choice": _choice(model_settings.tool_choice),
            **{name: getattr(model_settings, ours) for name, ours in _SETTINGS.items()},
        }
        self._given = {name: value for name, value in request.items() if value is not None}
        self.call = target.hooks.hooks.model_call(self._given, translator=target.hooks.translator(_TRANSLATOR))
        if self.call.holds_back and tracing is ModelTracing.ENABLED:
            # The model's own span would keep what an AfterModel hook takes out.
            self._options["tracing"] = ModelTracing.ENABLED_WITHOUT_DATA

    def final(self) -> tuple[Model, dict[str, Any]]:
        """Return the model to call and its arguments, with the changes of hooks."""
        given, sent = self._given, self.call.request
        model = self._target.model
        if sent["model"] != given["model"]:
            model = self._target.run_config.model_provider.get_model(sent["model"])
        tools, handoffs, settings = dict(self._tools), dict(self._handoffs), self._settings
        changed = {ours: sent.get(name) for name, ours in _SETTINGS.items() if sent.get(name) != given.get(name)}
        if sent.get("tool_choice") != given.get("tool_choice"):
            changed["tool_choice"], allowed = _restricted(sent["tool_choice"])
            if allowed is not None and self._can_name_tools(model):
                extra: Any = settings.extra_body or {}  # the SDK's own setting cannot name several
                changed["extra_body"] = {**extra, "tool_choice": sent["tool_choice"]}
            elif allowed is not None:
                tools = {name: tool for name, tool in tools.items() if name in allowed}
                handoffs = {name: handoff for name, handoff in handoffs.items() if name in allowed}
        options = {
            **self._options,
            "system_instructions": sent.get("instructions"),
            "input": sent["input"],
            "model_settings": dataclasses.replace(settings, **changed) if changed else settings,
            "tools": list(tools.values()),
            "handoffs": list(handoffs.values()),
        }
        return model, options

    def _can_name_tools(self, model: Model) -> bool:
        """Whether the model's API can be told which tools it may call, so that none has to be left out (HOOK-168)."""
        return isinstance(model, OpenAIResponsesModel) and all(map(_is_plain_function, self._tools.values()))

    def answer(self, result: ModelCallResult[Any]) -> Any:
        """Return the answer that the run gets: after a stop, or a block without an answer, the reason."""
        reason = reason_instead(result)
        if reason is None:
            return result.response
        if not self._takes_text:
            raise HookStopped(reason)
        return _TRANSLATOR.from_hook_llm_response({"text": reason}, _TRANSLATOR.blank_response(self.call.request))

    @property
    def refuses_handoffs(self) -> bool:
        return bool(self._refused_handoffs())

    def _refused_handoffs(self) -> dict[str, str]:
        """Return the handoffs that the restriction does not allow, with the reasons: they fire no tool event."""
        hooks, restriction = self._target.hooks, self.call.restriction
        reasons = {name: restriction.refusal(hooks.hook_name(name)) for name in sorted(self._handoffs)}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def without_refused_handoffs(self, output: list[Any]) -> list[Any]:
        """Return an answer without handoffs that the restriction does not allow."""
        refused = self._refused_handoffs()
        kept = [item for item in output if getattr(item, "name", None) not in refused]
        if len(kept) == len(output):
            return output
        if not kept:
            answer = _TRANSLATOR.from_hook_llm_response({"text": " ".join(refused.values())})
            kept = list(_response(answer).output)
        return kept


def _is_plain_function(tool: Tool) -> bool:
    """Whether the API knows a tool by its name alone; others have a type, a namespace, or are loaded later."""
    return isinstance(tool, FunctionTool) and not tool.defer_loading and tool.qualified_name == tool.name


def _choice(choice: Any) -> Any:
    """Return a tool choice of ``ModelSettings`` as the Responses API has it."""
    if not isinstance(choice, str):
        return None
    return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


def _restricted(choice: Any) -> tuple[str, list[str] | None]:
    """Return the SDK's tool choice, and the names of the tools to declare; not every model can name several."""
    shown = _TRANSLATOR.to_hook_tool_config(choice)
    mode, allowed = shown.get("mode"), shown.get("allowedFunctionNames")
    if mode == "NONE":
        return "none", None
    if mode == "ANY":
        return (allowed[0] if allowed and len(allowed) == 1 else "required"), allowed
    return "auto", allowed


def _shown(response: ModelResponse, request: Request) -> dict[str, Any]:
    """Return a response as the API has it, for the translator."""
    return {
        **_TRANSLATOR.blank_response(request),
        "id": response.response_id,
        "status": "completed",
        "output": response.output,
        "usage": {
            "input_tokens": response.usage.input_tokens,
            "output_tokens": response.usage.output_tokens,
            "total_tokens": response.usage.total_tokens,
        },
    }


def _response(answer: Any, base: ModelResponse | None = None) -> ModelResponse:
    """Return an answer that is not the model's, without the ids by which the server would find that one."""
    output = [_ITEM.validate_python(item) for item in _unstored(answer)["output"]]
    if base is None:
        return ModelResponse(output=output, usage=Usage(), response_id=None)
    return dataclasses.replace(base, output=output, response_id=None)


def _events(answer: Any, request: Request) -> Iterator[Any]:
    return map(_made, _TRANSLATOR.wire.events(_dumped(answer), request))


def _dumped(answer: Any) -> dict[str, Any]:
    return _unstored(answer if isinstance(answer, dict) else answer.model_dump())


def _made(event: Any) -> Any:
    """Return an event in the SDK's type."""
    if not isinstance(event, dict):
        return event
    made = _EVENT.validate_python(event)
    if made.type in _ENDINGS:
        made.response.id = None  # the SDK would send it as that of the previous response
    return made


def _unstored(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer whose messages have new ids."""
    items = [item if isinstance(item, dict) else item.model_dump(exclude_unset=True) for item in answer["output"]]
    renamed = [{**item, "id": f"msg_{uuid4().hex}"} if item.get("type") == "message" else item for item in items]
    return {**answer, "output": renamed}


def _without_output(event: Any) -> Any:
    """Return an event about a failure without the part of the answer that was received before it."""
    return event if event.type == "error" else _with_response(event, output=[])


def _with_response(event: Any, **fields: Any) -> Any:
    return event.model_copy(update={"response": event.response.model_copy(update=fields)})
