"""Sources of model answers: the Gemini API through google-genai, or a recording."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from llxprt_hooks._support.text import one_line, shorten
from llxprt_hooks.agent.environment import KEY_VARIABLES
from llxprt_hooks.model.google_genai import sendable_tool_config

if TYPE_CHECKING:
    from llxprt_hooks.model import GenerateContentParameters


class AgentError(Exception):
    """A problem that the user has to fix: a missing key, an unreachable API, a malformed file."""


_MAX_REASON = 300

_RETRY = types.HttpRetryOptions(attempts=4, initial_delay=0.5, max_delay=8.0)


class Provider(Protocol):
    """Answers model requests in chunks."""

    def stream(self, request: GenerateContentParameters) -> AsyncIterator[types.GenerateContentResponse]:
        """Yield the chunks of the answer as they arrive. Raises ``AgentError`` if the model does not answer."""

    async def close(self) -> None:
        """Close connections to the model."""


class GeminiProvider:
    """The Gemini API. The SDK retries transient errors."""

    def __init__(self) -> None:
        key = next((key for name in KEY_VARIABLES if (key := os.environ.get(name))), None)
        if key is None:
            raise AgentError(
                f"no API key: set {' or '.join(KEY_VARIABLES)}, or answer from a recording with --replay FILE"
            )
        options = types.HttpOptions(retry_options=_RETRY)
        try:
            self._client = genai.Client(api_key=key, vertexai=False, http_options=options)
        except Exception as error:  # such as an unusable proxy or certificate in the environment
            raise AgentError(f"the Gemini API cannot be called: {_short_line(str(error))}") from error

    async def stream(self, request: GenerateContentParameters) -> AsyncIterator[types.GenerateContentResponse]:
        finished = False
        try:
            chunks = await self._client.aio.models.generate_content_stream(
                model=request.model, contents=request.contents, config=_sendable(request.config)
            )
            async for chunk in chunks:
                finished = finished or _is_last(chunk)
                yield chunk
        except Exception as error:  # the exception types depend on the HTTP library that the SDK uses
            reason = str(error) or type(error).__name__
            if isinstance(error, errors.APIError):
                reason = f"{error.code} {error.message or error.status or ''}"
            raise AgentError(f"the model {request.model} did not answer: {_short_line(reason)}") from error
        if not finished:  # a dropped connection can look like a normal end of the stream (HOOK-207)
            raise AgentError(f"the connection to the model {request.model} ended before its answer was complete")

    async def close(self) -> None:
        with suppress(Exception):  # a broken connection may fail to close
            await self._client.aio.aclose()
        for _ in range(2):  # asyncio closes a socket only in the next rounds of the loop, which may be its last
            await asyncio.sleep(0)


class ReplayProvider:
    """Recorded answers, in order, one per model call."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._file = Path(file)
        self._answers = iter(list(_recorded(self._file)))
        self._used = 0

    async def stream(self, request: GenerateContentParameters) -> AsyncIterator[types.GenerateContentResponse]:
        try:
            answer = next(self._answers)
        except StopIteration:
            used = "1 was" if self._used == 1 else f"{self._used} were"
            raise AgentError(
                f"{self._file} has no more recorded answers: {used} used, and the model was called again"
            ) from None
        self._used += 1
        for chunk in answer:
            yield chunk

    async def close(self) -> None:
        """Nothing is open: the recording has been read."""


class RecordingProvider:
    """Passes another provider's answers on, and appends each complete one to a new file that only the user can read."""

    def __init__(self, provider: Provider, file: str | os.PathLike[str]) -> None:
        self._provider = provider
        self._file = Path(file)
        try:
            os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as error:
            raise AgentError(f"the recording {self._file} exists already: remove it, or choose another file") from error
        except OSError as error:
            raise self._failed(error) from error

    async def stream(self, request: GenerateContentParameters) -> AsyncIterator[types.GenerateContentResponse]:
        chunks = []
        async for chunk in self._provider.stream(request):
            chunks.append(chunk.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_NOT_RECORDED))
            yield chunk
        line = json.dumps({"method": "generateContentStream", "response": chunks})
        try:
            with self._file.open("a", encoding="ascii") as recording:
                recording.write(f"{line}\n")
        except OSError as error:
            raise self._failed(error) from error

    async def close(self) -> None:
        await self._provider.close()

    def _failed(self, error: OSError) -> AgentError:
        return AgentError(f"the recording {self._file} cannot be written: {error.strerror or error}")


_NOT_RECORDED = {"sdk_http_response", "parsed"}
"""Fields that the SDK adds to what the API sends."""


def _short_line(text: str) -> str:
    """Put a server's message, possibly an HTML page, on one line and shorten it."""
    return shorten(one_line(text), _MAX_REASON)


def _is_last(chunk: types.GenerateContentResponse) -> bool:
    """Whether a chunk contains the reason for the end: the answer is finished, or the prompt was refused."""
    finished = any(candidate.finish_reason is not None for candidate in chunk.candidates or [])
    return finished or bool(chunk.prompt_feedback and chunk.prompt_feedback.block_reason)


def _sendable(config: Any) -> types.GenerateContentConfig:
    whole = config if isinstance(config, types.GenerateContentConfig) else types.GenerateContentConfig(**(config or {}))
    tool_config = sendable_tool_config(whole.tool_config, _declared(whole))
    sent: types.GenerateContentConfig = whole.model_copy(update={"tool_config": tool_config})
    return sent


def _declared(config: types.GenerateContentConfig) -> set[str]:
    return {
        declaration.name
        for tool in config.tools or []
        if isinstance(tool, types.Tool)
        for declaration in tool.function_declarations or []
        if declaration.name
    }


def _recorded(file: Path) -> Iterator[list[types.GenerateContentResponse]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise AgentError(f"the recording {file} cannot be read: {reason}") from error
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines() would also split inside JSON strings
        if line.strip():
            yield _recorded_answer(line, f"{file}:{number}")


_CHUNKS = {"generateContentStream": list, "generateContent": dict}


def _recorded_answer(line: str, where: str) -> list[types.GenerateContentResponse]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"{where}: not valid JSON: {error}") from error
    method = record.get("method") if isinstance(record, dict) else None
    if not isinstance(method, str) or method not in _CHUNKS:
        raise AgentError(f'{where}: expected an object with "method": {" or ".join(map(repr, _CHUNKS))}')
    response = record.get("response")
    if not isinstance(response, _CHUNKS[method]):
        kind = "an array of chunks" if method == "generateContentStream" else "an object"
        raise AgentError(f'{where}: "response" of {method} must be {kind}')
    chunks = response if isinstance(response, list) else [response]
    try:
        return [_read_chunk(chunk) for chunk in chunks]
    except Exception as error:  # the SDK's own validators raise other errors than ValidationError for some values
        reason = f"google-genai cannot read it ({_short_line(str(error) or type(error).__name__)})"
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"`{'.'.join(map(str, first['loc'])) or 'chunk'}`: {first['msg']}"
        raise AgentError(f"{where}: the response is not what the Gemini API sends: {reason}") from error


def _read_chunk(chunk: Any) -> types.GenerateContentResponse:
    """Read a chunk. Unknown fields are ignored, as the SDK does with API responses."""
    try:
        return types.GenerateContentResponse.model_validate(chunk)
    except ValidationError as error:
        unknown = [problem["loc"] for problem in error.errors() if problem["type"] == "extra_forbidden"]
        if not unknown:
            raise
        for *path, field in unknown:
            del reduce(getitem, path, chunk)[field]
        return _read_chunk(chunk)
