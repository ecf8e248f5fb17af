"""The Hooks object: tools, models, streams, sessions and watching events, for a plain Python agent."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

import anyio.to_thread
import pytest

import llxprt_hooks
from llxprt_hooks import (
    Config,
    Hooks,
    ModelCallResult,
    Restriction,
    StopRequested,
    ToolResult,
    TranslationError,
    context,
    deny,
    rewrite,
    stop,
)
from llxprt_hooks.core.engine.session import current_session
from llxprt_hooks.fleet.audit.log import log_file
from tests.support.processes import until
from tests.support.replies import DENY, done, says

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject, Texts

REQUEST: dict[str, Any] = {
    "model": "large",
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [{"type": "function", "function": {"name": "glob"}}],
}


def answer(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def text_of(response: Any) -> Any:
    return response["choices"][0]["message"]["content"]


class Model:
    """Answers with a fixed text, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        return answer("Hi.")

    @property
    def texts(self) -> list[Any]:
        return [message["content"] for message in self.asked[-1]["messages"]]


async def ask(hooks: Hooks, model: Model | None = None) -> ModelCallResult[dict[str, Any]]:
    return await hooks.call_model(REQUEST, model or Model(), translator="openai-chat")


# Loading.


async def test_it_reads_settings_files(project: EngineProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.configure(BeforeTool=project.hook(says=DENY))
    assert not Hooks.load(project.root).has_hooks_for("BeforeTool")
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    hooks = Hooks.load(project.root)
    assert hooks.has_hooks_for("BeforeTool", "any")
    assert (await hooks.run_tool("any", {}, done)).llm_content == "not today"


def test_hooks_that_were_never_enabled_are_reported_once(project: EngineProject, warnings_of_engine: Texts) -> None:
    groups = project.config({"BeforeTool": project.hook()}).hooks
    config = Config(hooks=groups)
    Hooks(config).sync.run_tool("any", {}, done)
    Hooks(config)
    assert warnings_of_engine() == [
        "Config(hooks=…) has hooks, but they are disabled: pass enable_hooks=True to run them"
    ]
    Hooks(Config(hooks=groups, enable_hooks=False))
    Hooks(Config(hooks={"enabled": True}))
    Hooks()
    assert len(warnings_of_engine()) == 1


async def test_a_trigger_warns_that_hooks_are_off(project: EngineProject, warnings_of_engine: Texts) -> None:
    config = Config(hooks=project.config({"BeforeTool": project.hook()}).hooks)
    await llxprt_hooks.execute_tool_with_hooks(config, "any", {}, done)
    assert len(warnings_of_engine()) == 1


# Tools.


@pytest.mark.requirement("HOOK-159")
@pytest.mark.parametrize("sync", [False, True])
async def test_a_call_that_did_not_run_for_another_reason_keeps_what_hooks_say_to_the_model(sync: bool) -> None:
    hooks = Hooks()
    refusal = ToolResult.failure("The user said no.")
    for said, content in (({}, "The user said no."), ({"systemMessage": "Ask."}, "The user said no.\n\n[System] Ask.")):
        hooks.on("BeforeTool", lambda payload, said=said: said)
        if sync:
            sync_call = hooks.sync.tool_call("write", {})
            assert sync_call.before() is None
            result = sync_call.not_run(refusal)
        else:
            call = hooks.tool_call("write", {})
            assert await call.before() is None
            result = call.not_run(refusal)
        assert (result.llm_content, result.return_display) == (content, "The user said no.")
    assert hooks.tool_call("write", {}).not_run(refusal) is refusal


# Decorated functions.


def test_a_decorated_function_keeps_its_signature_and_hints() -> None:
    hooks = Hooks()

    @hooks.tool
    def write(path: str, *, text: str = "") -> dict[str, int]:
        """Write a file."""
        return {path: len(text)}

    assert write.__doc__ == "Write a file."
    assert list(inspect.signature(write).parameters) == ["path", "text"]
    assert get_type_hints(write) == {"path": str, "text": str, "return": dict[str, int]}
    assert write("a", text="xyz") == {"a": 3}


def test_hooks_see_the_arguments_of_a_decorated_function_by_name() -> None:
    hooks = Hooks()
    seen: list[Any] = []
    hooks.on("BeforeTool", lambda payload: seen.append((payload["tool_name"], payload["tool_input"])))

    @hooks.tool
    def write(path: str, text: str = "empty", **more: int) -> str:
        return f"{path} {text} {more}"

    assert write("a", mode=1) == "a empty {'mode': 1}"
    assert seen == [("write", {"path": "a", "text": "empty", "mode": 1})]


async def test_hooks_do_not_see_the_object_of_a_method() -> None:
    hooks = Hooks()
    seen: list[Any] = []

    @hooks.on("BeforeTool")
    def shout(payload: dict[str, Any]) -> Any:
        seen.append(payload["tool_input"])
        return rewrite(path=payload["tool_input"]["path"].upper())

    class Files:
        def __init__(self, folder: str) -> None:
            self.folder = folder

        @hooks.tool
        def read(self, path: str) -> str:
            return self.folder + path

        @hooks.tool
        async def write(self, /, path: str, **more: int) -> str:
            return self.folder + path

        @classmethod
        @hooks.tool
        def make(cls, path: str) -> str:
            return cls.__name__ + path

        @staticmethod
        @hooks.tool
        def join(path: str) -> str:
            return path

    @hooks.tool
    def alone(self: int, path: str) -> str:
        return f"{self}{path}"

    files = Files("/tmp/")
    assert files.read("a") == "/tmp/A"
    assert await files.write(path="b") == "/tmp/B"
    assert (Files.make("c"), Files.join("d"), Files.read(files, "e")) == ("FilesC", "D", "/tmp/E")
    assert seen == [{"path": name} for name in "abcde"]
    assert alone(1, "f") == "1F"
    assert seen[-1] == {"self": 1, "path": "f"}


async def test_a_coroutine_function_may_be_decorated() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: rewrite(path="b"))

    @hooks.tool
    async def read(path: str) -> str:
        await asyncio.sleep(0)
        return f"read {path}"

    assert inspect.iscoroutinefunction(read)
    assert await read("a") == "read b"


def test_a_blocked_decorated_function_returns_the_reason_and_text_is_appended_to_text() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("no"), matcher="^delete")
    hooks.on("AfterTool", lambda payload: context("more"))

    @hooks.tool
    def delete(path: str) -> int:
        raise AssertionError

    @hooks.tool
    def read(path: str) -> str:
        return path

    @hooks.tool
    def result(path: str) -> ToolResult:
        return ToolResult(path)

    assert delete("a") == "no"
    assert read("a") == "a\n\nmore"
    assert isinstance(made := result("a"), ToolResult)
    assert made.additions == ["more"]


async def test_text_next_to_a_result_that_is_not_text_goes_into_the_next_request(warnings_of_engine: Texts) -> None:
    hooks = Hooks()
    hooks.on("AfterTool", lambda payload: context("more"))

    @hooks.tool
    def count(path: str) -> int:
        return 7

    model = Model()
    with hooks.session("s1") as session:
        assert count("a") == 7
        assert list(session.notes) == ["more"]
        await ask(hooks, model)
        assert list(session.notes) == []
    assert model.texts == ["Hello", "more"]
    assert count("a") == 7
    assert [text for text in warnings_of_engine() if "dropped" in text]


def test_what_is_not_a_function_that_returns_cannot_be_decorated() -> None:
    hooks: Any = Hooks()

    def lines(path: str) -> Iterator[str]:
        yield path

    async def async_lines(path: str) -> AsyncIterator[str]:
        yield path

    for function in (lines, async_lines):
        with pytest.raises(TypeError, match="lines: a tool must return its result; generators are not supported"):
            hooks.tool(function)
    with pytest.raises(TypeError, match=r"`@hooks\.tool` needs a function or a name"):
        hooks.tool()
    for made in (object(), partial(done)):  # callable or not
        with pytest.raises(TypeError, match=r"found (object|partial): .* put `@hooks\.tool` below that one"):
            hooks.tool(made)


def test_an_argument_without_a_name_cannot_be_shown_to_hooks() -> None:
    with pytest.raises(TypeError, match=r"`\*values` isn't supported by @hooks.tool"):

        @Hooks().tool
        def join(*values: str) -> str:
            return "".join(values)


# Models.


async def test_a_model_may_be_called_by_a_coroutine_function() -> None:
    hooks = Hooks()
    sent = answer("Hi.")

    async def call(request: dict[str, Any]) -> dict[str, Any]:
        return sent

    assert (await hooks.call_model(REQUEST, call)).response is sent
    hooks.on("AfterModel", lambda payload: None)
    assert (await hooks.call_model(REQUEST, call, translator="openai-chat")).response is sent
    assert hooks.sync.call_model(REQUEST, call, translator="openai-chat").response is sent


def test_the_two_halves_of_a_synchronous_model_call() -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: says(llm_request={"model": "small"}))
    hooks.on("AfterModel", lambda payload: says(llm_response={"text": "changed"}))
    call = hooks.sync.model_call(REQUEST, translator="openai-chat")
    assert call.before() is None
    assert call.request["model"] == "small"
    assert call.holds_back
    assert text_of(call.after(answer("Hi.")).response) == "changed"


def test_an_answer_that_was_passed_on_delivers_the_notes_of_the_session() -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    with hooks.session("s1") as session:
        session.exchange_notes((), ("be polite",))
        call = hooks.sync.model_call(REQUEST, translator="openai-chat")
        assert call.before() is None
        assert not call.holds_back
        assert list(session.notes) == ["be polite"]
        assert call.passed_on().response is None
        assert not session.notes


@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_a_request_that_no_translator_reads_raises(event: str) -> None:
    hooks = Hooks()
    model = Model()
    with pytest.raises(TranslationError, match="unknown-sdk"):
        await hooks.call_model(REQUEST, model, translator="unknown-sdk")
    hooks.on(event, lambda payload: None)
    with pytest.raises(TranslationError):
        await hooks.call_model({"no": "request"}, model, translator="openai-chat")
    with pytest.raises(TranslationError, match="unknown-sdk"):
        hooks.sync.call_model(REQUEST, model, translator="unknown-sdk")
    assert model.asked == []


async def test_an_answer_that_no_translator_reads_raises_where_a_hook_must_see_it() -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    assert (await hooks.call_model(REQUEST, lambda request: 7, translator="openai-chat")).response == 7
    hooks.on("AfterModel", lambda payload: None)
    with pytest.raises(TranslationError):
        await hooks.call_model(REQUEST, lambda request: 7, translator="openai-chat")


def test_a_missing_sdk_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from llxprt_hooks.model import registry

    missing = registry.TRANSLATORS["openai-chat"]._replace(module="not_installed")
    monkeypatch.setitem(registry.TRANSLATORS, "missing-sdk", missing)
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    with pytest.raises(TranslationError, match="pip install"):
        hooks.sync.call_model(REQUEST, Model(), translator="missing-sdk")


# Streams.


def join(chunks: list[str]) -> dict[str, Any]:
    return answer("".join(chunks))


def split(response: dict[str, Any]) -> list[str]:
    return [f"<{text_of(response)}>"]


class Source:
    """Chunks of an answer that break off, or not; notes how many were taken, and whether it was closed."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.breaks = breaks
        self.taken = 0
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        for chunk in ("It is ", "hunter2."):
            self.taken += 1
            yield chunk
        if self.breaks:
            raise ConnectionError("cut off")

    async def __aiter__(self) -> AsyncIterator[str]:
        for chunk in self:
            await asyncio.sleep(0)
            yield chunk

    def close(self) -> None:
        self.closed += 1


class SyncSource:
    """The same for a synchronous caller."""

    def __init__(self, source: Source) -> None:
        self.close = source.close
        self._source = source

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)


class Streaming:
    """Takes the chunks of a hooked stream, asynchronously or not."""

    def __init__(self, kind: str, hooks: Hooks) -> None:
        self.kind = kind
        self.hooks = hooks
        self.shown: list[tuple[str, int]] = []
        self.result: ModelCallResult[dict[str, Any]] | None = None

    async def take(self, source: Source, most: int = 9) -> list[str]:
        if self.kind == "sync":
            stream = self.hooks.sync.stream_model(
                REQUEST, lambda request: SyncSource(source), join=join, split=split, translator="openai-chat"
            )
            for chunk in stream:
                self._show(chunk, source)
                if len(self.shown) == most:
                    break
            stream.close()
            self.result = stream.result
        else:
            chunks = self.hooks.stream_model(
                REQUEST, self._awaited(source), join=join, split=split, translator="openai-chat"
            )
            async for chunk in chunks:
                self._show(chunk, source)
                if len(self.shown) == most:
                    break
            await chunks.aclose()
            self.result = chunks.result
        return [chunk for chunk, _ in self.shown]

    def _show(self, chunk: str, source: Source) -> None:
        self.shown.append((chunk, source.taken))

    def _awaited(self, source: Source) -> Any:
        async def call(request: dict[str, Any]) -> Source:
            return source

        return call if self.kind == "awaited" else lambda request: source


@pytest.fixture(params=["sync", "async", "awaited"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("event", [None, "BeforeModel"])
async def test_a_stream_is_passed_on_as_it_arrives(kind: str, event: str | None) -> None:
    hooks = Hooks()
    if event:
        hooks.on(event, lambda payload: None)
    streaming, source = Streaming(kind, hooks), Source()
    await streaming.take(source)
    assert streaming.shown == [("It is ", 1), ("hunter2.", 2)]
    assert streaming.result is not None
    assert (streaming.result.response, source.closed) == (None, 1)


async def test_a_stream_is_held_back_where_a_hook_must_see_the_answer(kind: str) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    streaming = Streaming(kind, hooks)
    await streaming.take(Source())
    assert streaming.shown == [("It is ", 2), ("hunter2.", 2)]
    assert streaming.result is not None
    assert text_of(streaming.result.response) == "It is hunter2."


async def test_a_changed_stream_shows_nothing_of_the_model(kind: str) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: says(llm_response={"text": "secret"}))
    assert await Streaming(kind, hooks).take(Source()) == ["<secret>"]


async def test_a_stream_that_breaks_off_while_it_is_held_back_shows_nothing(kind: str) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    streaming, source = Streaming(kind, hooks), Source(breaks=True)
    with pytest.raises(ConnectionError, match="cut off"):
        await streaming.take(source)
    assert (streaming.shown, source.closed) == ([], 1)


async def test_a_stream_that_nobody_reads_to_its_end_is_closed(kind: str) -> None:
    streaming, source = Streaming(kind, Hooks()), Source()
    await streaming.take(source, most=1)
    assert (source.taken, source.closed) == (1, 1)


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"decision": "block", "reason": "no"}, []),
        ({"decision": "block", "reason": "no", **says(llm_response={"text": "cached"})}, ["<cached>"]),
    ],
)
async def test_a_blocked_stream_never_begins(kind: str, reply: Any, shown: list[str]) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: reply)
    streaming, source = Streaming(kind, hooks), Source()
    assert await streaming.take(source) == shown
    assert streaming.result is not None
    assert (streaming.result.reason, source.taken) == ("no", 0)


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CHUNKS = [chunk({"role": "assistant", "content": "It is "}), chunk({"content": "hunter2."}), chunk({}, "stop")]


async def test_the_streams_of_known_apis_need_no_functions_to_join_and_split_them() -> None:
    hooks = Hooks()
    seen: list[str] = []
    hooks.on("AfterModel", lambda payload: seen.append(payload["llm_response"]["text"]))
    stream = hooks.stream_model(REQUEST, lambda request: CHUNKS, translator="openai-chat")
    assert [chunk async for chunk in stream] == CHUNKS
    assert seen == ["It is hunter2."]

    hooks.on("AfterModel", lambda payload: says(llm_response={"text": "secret"}))
    changed = hooks.sync.stream_model(REQUEST, lambda request: CHUNKS, translator="openai-chat")
    shown = list(changed)
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in shown) == "secret"


async def test_a_stream_without_its_end_raises_and_shows_nothing() -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    stream = hooks.stream_model(REQUEST, lambda request: CHUNKS[:-1], translator="openai-chat")
    with pytest.raises(ConnectionAbortedError, match="before the answer was complete"):
        await anext(aiter(stream))


async def test_the_streams_of_other_sdks_need_them(llm_request: Any) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    stream = hooks.stream_model(llm_request, lambda request: [1])
    with pytest.raises(TypeError, match="pass `join=` and `split=`"):
        await anext(aiter(stream))


async def test_any_iterable_can_be_a_stream() -> None:
    stream = Hooks().stream_model(REQUEST, lambda request: ["a", "b"], join=join, split=split)
    assert [chunk async for chunk in stream] == ["a", "b"]


# Sessions.


async def test_a_session_is_in_the_payload_and_has_a_beginning_and_an_end(project: EngineProject) -> None:
    hooks = Hooks(project.config(dict.fromkeys(("SessionStart", "SessionEnd", "BeforeTool"), project.hook())))
    async with hooks.session("inside", transcript_path="/transcript"):
        await hooks.run_tool("any", {}, done)
        await hooks.settle()
    await hooks.settle()
    await hooks.run_tool("any", {}, done)
    told = {payload["hook_event_name"]: payload for payload in project.payloads()[:-1]}
    assert {(payload["session_id"], payload["transcript_path"]) for payload in told.values()} == {
        ("inside", "/transcript")
    }
    assert (told["SessionStart"]["source"], told["SessionEnd"]["reason"]) == ("startup", "exit")
    assert (project.payload()["session_id"], project.payload()["transcript_path"]) == ("s1", "")


async def test_the_metadata_of_program_and_session_is_in_every_payload(project: EngineProject) -> None:
    events = ("SessionStart", "SessionEnd", "BeforeTool", "AfterTool", "BeforeModel", "AfterModel")
    hooks = Hooks(project.config(dict.fromkeys(events, project.hook()), metadata={"team": "shop", "user": "nobody"}))
    async with hooks.session("s2", metadata={"user": "ada", "roles": ("admin",)}):
        await hooks.run_tool("any", {}, done)
        await hooks.call_model(REQUEST, lambda request: answer("hi"), translator="openai-chat")
        await hooks.settle()
    await hooks.settle()
    payloads = project.payloads()
    assert {payload["hook_event_name"] for payload in payloads} == {*events}
    assert [payload["metadata"] for payload in payloads] == [{"team": "shop", "user": "ada", "roles": ["admin"]}] * len(
        events
    )

    await hooks.run_tool("any", {}, done)
    assert project.payload()["metadata"] == {"team": "shop", "user": "nobody"}


async def test_without_metadata_the_payload_has_no_such_field(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook()}, metadata={}))
    with hooks.session("s2"):
        await hooks.run_tool("any", {}, done)
    assert "metadata" not in project.payload()
    assert "agent" not in project.payload()


def test_later_runs_of_a_session_keep_its_metadata() -> None:
    session = Hooks().session("s1", metadata={"user": "ada"})
    assert session.next_run().metadata == session.part_of("one").metadata == {"user": "ada"}


ITSELF: dict[str, Any] = {}
ITSELF["me"] = ITSELF


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (["ada"], "`metadata` must be a mapping, found list"),
        ({"when": object()}, r"`metadata\['when'\]` must be a JSON value, found object"),
        ({"a": [{"b": float("nan")}]}, r"`metadata\['a'\]\[0\]\['b'\]` must be a JSON value, found nan"),
        ({7: "seven"}, "the keys of `metadata` must be strings, found int"),
        (ITSELF, "contains itself"),
    ],
)
def test_metadata_other_than_a_json_object_is_a_mistake_of_the_program(metadata: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Config(metadata=metadata)
    with pytest.raises(TypeError, match=problem):
        Hooks().session("s1", metadata=metadata)
    with pytest.raises(TypeError, match=problem):
        Hooks.load(metadata=metadata)


def test_a_function_in_a_pool_runs_in_the_session(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook()}))

    def work(name: str) -> str:
        return str(hooks.sync.run_tool(name, {}, done).llm_content)

    with ThreadPoolExecutor(1) as pool, hooks.session("s2", metadata={"user": "ada"}) as session:
        assert pool.submit(session.run, work, "any").result() == pool.submit(work, "other").result()
    inside, outside = project.payloads()
    assert (inside["session_id"], inside["metadata"]) == ("s2", {"user": "ada"})
    assert outside["session_id"] == "s1"


def test_a_stop_in_a_pool_stops_the_session() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: stop("enough"))
    with ThreadPoolExecutor(1) as pool, hooks.session("s2") as session:
        pool.submit(session.run, lambda: hooks.sync.run_tool("any", {}, done)).result()
        assert session.stop_reason == "enough"


@pytest.mark.parametrize("way", ["to_thread", "anyio", "copied", "session.run", "executor"])
async def test_work_in_threads_belongs_to_the_session_that_started_it(way: str) -> None:
    seen: list[str] = []
    hooks = Hooks(Config(session_id="own"))
    hooks.on("BeforeTool", lambda payload: seen.append(payload["session_id"]))
    loop = asyncio.get_running_loop()

    def work() -> None:
        hooks.sync.run_tool("any", {}, done)

    with ThreadPoolExecutor(1) as pool:
        async with hooks.session("here") as session:
            if way == "to_thread":
                await asyncio.to_thread(work)
            elif way == "anyio":
                await anyio.to_thread.run_sync(work)
            elif way == "copied":
                await loop.run_in_executor(pool, copy_context().run, work)
            elif way == "session.run":
                await loop.run_in_executor(pool, session.run, work)
            else:
                await loop.run_in_executor(pool, work)
    assert seen == ["own" if way == "executor" else "here"]  # Python passes no context to a plain executor


def test_a_coroutine_function_cannot_be_run_in_a_pool() -> None:
    async def work() -> None: ...

    with pytest.raises(TypeError, match="await a coroutine function"):
        Hooks().session("s2").run(work)  # type: ignore[unused-coroutine]  # it raises


def test_a_session_that_fails_ends_for_another_reason(project: EngineProject) -> None:
    hooks = Hooks(project.config({"SessionEnd": project.hook()}))
    with pytest.raises(LookupError), hooks.session("s2"):
        raise LookupError
    assert hooks.sync.settle() == 0
    assert (project.payload()["session_id"], project.payload()["reason"]) == ("s2", "other")


async def test_sessions_are_nested_and_concurrent_and_each_configuration_has_its_own() -> None:
    seen: list[Any] = []
    hooks, other = Hooks(Config(session_id="own")), Hooks(Config(session_id="other"))
    for each in (hooks, other):
        each.on("BeforeTool", lambda payload: seen.append((payload["tool_name"], payload["session_id"])))

    async def talk(name: str) -> None:
        with hooks.session(name):
            await asyncio.sleep(0)
            await hooks.run_tool("outer", {}, done)
            with hooks.session(f"{name} inner"), other.session("its own"):
                await hooks.run_tool("inner", {}, done)
            await asyncio.to_thread(hooks.sync.run_tool, "thread", {}, done)
            await other.run_tool("other", {}, done)

    await asyncio.gather(talk("a"), talk("b"))
    expected = [("other", "other"), ("other", "other")]
    for name in "ab":
        expected += [("outer", name), ("inner", f"{name} inner"), ("thread", name)]
    assert sorted(seen) == sorted(expected)


def test_a_session_may_be_left_in_another_context() -> None:
    """As frameworks do that run the two halves of a generator in two threads."""
    seen: list[tuple[str, str]] = []
    hooks = Hooks(Config(session_id="own"))
    for event in ("SessionStart", "SessionEnd"):
        hooks.on(event, lambda payload: seen.append((payload["hook_event_name"], payload["session_id"])))
    session = hooks.session("s1")
    thread = threading.Thread(target=session.__enter__)
    thread.start()
    thread.join()

    with hooks.session("s2") as other:
        session.__exit__(None, None, None)
        assert current_session(hooks.config) is other

    assert current_session(hooks.config) is None
    until(lambda: len(seen) == 4)
    assert sorted(seen) == sorted(itertools.product(("SessionStart", "SessionEnd"), ("s1", "s2")))


async def test_notes_go_into_the_next_request_of_the_session(warnings_of_engine: Texts) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: {"systemMessage": "be brief"})
    model = Model()
    with hooks.session("s1") as session:
        await ask(hooks, model)
        assert model.texts == ["Hello"]
        with pytest.raises(ConnectionError):
            await hooks.call_model(REQUEST, failing, translator="openai-chat")
        await ask(hooks, model)
        assert model.texts == ["Hello", "be brief"]
        assert session.notes == ("be brief",)
    assert warnings_of_engine() == []
    await ask(hooks, model)
    assert model.texts == ["Hello"]
    assert warnings_of_engine() == [
        "a hook's message for the next model request is dropped: there is no hooks.session()"
    ]


def failing(request: dict[str, Any]) -> dict[str, Any]:
    raise ConnectionError


async def test_notes_of_a_blocked_call_wait_for_the_next_one() -> None:
    hooks = Hooks()
    replies: list[Any] = [{"decision": "block", "reason": "no", "systemMessage": "second"}]
    hooks.on("BeforeModel", lambda payload: replies.pop() if replies else None)
    model = Model()
    with hooks.session("s1") as session:
        session.exchange_notes((), ("first",))
        assert (await ask(hooks, model)).blocked
        assert session.notes == ("first", "second")
        await ask(hooks, model)
    assert model.texts == ["Hello", "first", "second"]


async def test_a_note_that_two_parallel_calls_deliver_takes_no_other_note_with_it() -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: {"systemMessage": "new"})
    with hooks.session("s1") as session:
        session.exchange_notes((), ("old",))
        calls = [hooks.model_call(REQUEST, translator="openai-chat") for _ in range(2)]
        for call in calls:
            assert await call.before() is None
            await call.after(answer("Hi."))
        assert session.notes == ("new", "new")


def test_runs_of_one_conversation_share_notes_and_nested_ones_a_stop() -> None:
    session = Hooks().session("s1", "/tmp/transcript")
    nested, other = session.nested_run(), session.next_run()
    other.exchange_notes((), ("be brief",))
    nested.stop_reason = "enough"
    nested.restriction = Restriction(frozenset())
    assert (session.stop_reason, other.stop_reason) == ("enough", None)
    assert (session.notes, nested.notes) == (("be brief",), ())
    assert session.restriction.allows("glob")
    assert (nested.session_id, other.transcript_path) == ("s1", "/tmp/transcript")


def test_a_decorated_function_can_have_another_name_for_hooks() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny(payload["tool_name"]), matcher="^write_file$")

    @hooks.tool(name="write_file")
    def save(path: str) -> str:
        return path

    assert (save("a"), save.__name__) == ("write_file", "save")


def test_a_matcher_on_an_event_that_ignores_it_is_an_error_of_the_program() -> None:
    with pytest.raises(ValueError, match="BeforeModel ignores matchers, so 'x' would restrict nothing"):
        Hooks().on("BeforeModel", print, matcher="x")


@pytest.mark.parametrize("how", ["an option", "settings", "a variable", "a path", "nothing"])
async def test_any_program_can_record_its_hooks(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("HOME", str(project.home))
    hooks_config = {"log": True} if how == "settings" else {}
    guard = {"type": "command", "name": "guard", "command": "true"}
    hooks_of_user = {"BeforeTool": [{"hooks": [guard]}]}
    project.put("user", {"enableHooks": True, "hooks": hooks_of_user, "hooksConfig": hooks_config})
    if how == "a variable":
        monkeypatch.setenv("LLXPRT_HOOKS_LOG", "1")
    if how == "a path":
        monkeypatch.setenv("LLXPRT_HOOKS_LOG", str(project.root / "kept" / "hooks.jsonl"))
    hooks = Hooks.load(project.root, log=how == "an option")
    with hooks.session("one-of-many"):
        await hooks.run_tool("write_file", {}, lambda args: "done")
    assert log_file() == (project.root / "kept" / "hooks.jsonl" if how == "a path" else project.log_file)
    recorded = log_file().read_text() if log_file().exists() else ""
    assert recorded.count('"hook":"guard"') == (0 if how == "nothing" else 1)
    assert recorded.count('"session_id":"one-of-many"') == recorded.count('"session_id"')


def test_a_session_may_be_entered_again_inside_of_another_one() -> None:
    hooks = Hooks()
    with hooks.session("outer") as outer, hooks.session("inner"), outer:
        assert current_session(hooks.config) is outer
        assert current_session(object()) is None
    assert current_session(hooks.config) is None


async def test_the_restriction_of_an_answer_applies_to_the_later_tool_calls_of_the_session() -> None:
    hooks = Hooks()
    modes: list[Any] = [{"mode": "NONE"}]
    hooks.on("BeforeToolSelection", lambda payload: says(toolConfig=modes.pop()) if modes else None)
    fired: list[str] = []
    hooks.on("BeforeTool", lambda payload: fired.append(payload["tool_name"]))
    async with hooks.session("s1"):
        await ask(hooks)
        refused = await hooks.run_tool("glob", {}, done)
        assert (refused.error["type"], fired) == ("restricted", [])
        await ask(hooks)
        assert (await hooks.run_tool("glob", {}, done)).llm_content == "done"
        modes.append({"mode": "NONE"})
        async for _ in hooks.stream_model(
            REQUEST, lambda request: ["a"], join=join, split=split, translator="openai-chat"
        ):
            pass
        assert (await hooks.run_tool("glob", {}, done)).error["type"] == "restricted"
    assert (await hooks.run_tool("glob", {}, done)).llm_content == "done"


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
async def test_a_stop_by_a_tools_hook_ends_the_session_until_it_is_resumed(event: str) -> None:
    hooks = Hooks()
    replies: list[Any] = [stop("enough")]
    hooks.on(event, lambda payload: replies.pop() if replies else None)
    model = Model()
    with hooks.session("s1") as session:
        assert (await hooks.run_tool("any", {}, done)).stop_reason == "enough"
        refused = await hooks.run_tool("any", {}, done)
        assert (refused.llm_content, refused.error["type"], refused.stop_reason) == ("enough", "hook_stopped", "enough")
        result = await ask(hooks, model)
        assert (result.response, result.reason, result.stop_reason) == (None, "enough", "enough")
        assert model.asked == []
        session.resume()
        assert (await hooks.run_tool("any", {}, done)).llm_content == "done"
        assert (await ask(hooks, model)).stop_reason is None


@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_a_stop_by_a_models_hook_ends_the_session(event: str) -> None:
    hooks = Hooks()
    hooks.on(event, lambda payload: stop("enough"))
    with hooks.session("s1") as session:
        assert (await ask(hooks)).stop_reason == "enough"
    assert session.stop_reason == "enough"


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_a_stop_that_has_nowhere_to_go_raises(event: str) -> None:
    hooks = Hooks()
    hooks.on(event, lambda payload: stop("enough"))
    with pytest.raises(StopRequested, match="enough") as raised:
        await (hooks.run_tool("any", {}, done) if "Tool" in event[-4:] else ask(hooks))
    assert raised.value.reason == raised.value.result.stop_reason == "enough"


# Watching events.


@pytest.mark.parametrize(
    ("event", "fields", "sent"),
    [
        ("SessionStart", {}, {"source": "startup"}),
        ("SessionEnd", {"reason": "clear"}, {"reason": "clear"}),
        ("BeforeAgent", {"prompt": "p"}, {"prompt": "p"}),
        ("AfterAgent", {"prompt": "p", "prompt_response": "r"}, {"prompt_response": "r", "stop_hook_active": False}),
        ("PreCompress", {"trigger": "auto"}, {"trigger": "auto"}),
        ("Notification", {"notification_type": "t", "message": "m"}, {"message": "m", "details": {}}),
    ],
)
async def test_the_six_watching_events(project: EngineProject, event: str, fields: Any, sent: dict[str, Any]) -> None:
    hooks = Hooks(project.config({event: project.hook()}))
    hooks.observe(event, **fields)
    assert await hooks.settle() == 0
    assert sent.items() <= project.payload().items()


@pytest.mark.slow
def test_an_event_is_not_lost_with_the_loop_of_its_caller(project: EngineProject) -> None:
    hooks = Hooks(project.config({"AfterAgent": project.hook(first="sleep 0.3")}))

    async def main() -> None:
        hooks.observe("AfterAgent", prompt="p", prompt_response="r")

    asyncio.run(main())
    assert hooks.sync.settle(60) == 0
    assert project.runs() == 1


async def test_functions_of_a_watching_event_run_on_the_callers_loop() -> None:
    loops: list[Any] = []

    async def note(payload: dict[str, Any]) -> None:
        loops.append(asyncio.get_running_loop())

    hooks = Hooks()
    hooks.on("BeforeAgent", note)
    hooks.observe("BeforeAgent", prompt="p")
    assert await hooks.settle() == 0
    assert loops == [asyncio.get_running_loop()]


@pytest.mark.parametrize(
    ("event", "fields", "problem"),
    [
        ("BeforeTool", {"tool_name": "t"}, r"use run_tool\(\) or call_model\(\)"),
        ("Nothing", {}, "unknown hook event"),
        ("BeforeAgent", {}, "lacks `prompt`"),
        ("BeforeAgent", {"prompt": 7}, "`prompt` in the input of BeforeAgent must be"),
        ("BeforeAgent", {"prompt": "p", "text": "t"}, "has no field `text`"),
    ],
)
def test_a_wrong_event_raises(event: str, fields: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Hooks().observe(event, **fields)


@pytest.mark.parametrize(("switch", "blocks"), [({}, True), ({"enable_hooks": False}, False)])
def test_hooks_from_a_program_run_unless_it_disables_them(switch: dict[str, bool], blocks: bool) -> None:
    group = {"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    hooks = Hooks(hooks={"BeforeTool": [group]}, **switch)  # type: ignore[arg-type]

    assert (hooks.sync.run_tool("glob", {}, lambda arguments: "ran").llm_content == "no") is blocks


def test_a_configuration_and_its_arguments_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="`session_id` is part of the configuration"):
        Hooks(Config(), session_id="s1")
