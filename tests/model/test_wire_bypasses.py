"""Which HTTP requests reach a model besides a model call (D-91)."""

from __future__ import annotations

import pytest

from llxprt_hooks import Config
from llxprt_hooks.core.calls.lookup import enforces
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model import resolve_translator

BYPASSES = {
    "openai-chat": ("POST", "/v1/batches"),
    "openai-responses": ("GET", "/v1/responses/resp_1"),
    "anthropic-messages": ("post", "/v1/messages/batches/"),
}


def bypassed(api: str, method: str, path: str) -> bool:
    wire = resolve_translator(api).wire
    assert wire is not None
    return any(bypass.matches(method, path) for bypass in wire.bypasses)


@pytest.mark.parametrize(("api", "request_"), BYPASSES.items(), ids=BYPASSES)
def test_a_request_is_recognized_by_its_method_and_path(api: str, request_: tuple[str, str]) -> None:
    method, path = request_
    assert bypassed(api, method, path)
    assert not bypassed(api, "DELETE", path)
    assert not bypassed(api, method, "/v1/models")


@pytest.mark.parametrize(
    ("api", "request_", "later"),
    [
        ("openai-responses", {"background": True}, True),
        ("openai-responses", {"background": False}, False),
        ("openai-chat", {"background": True}, False),
    ],
)
def test_only_responses_are_answered_later(api: str, request_: dict[str, bool], later: bool) -> None:
    wire = resolve_translator(api).wire
    assert wire is not None
    assert wire.answers_later(request_) is later


@pytest.mark.parametrize(("modes", "can_change"), [(["observe"], False), (["observe", "enforce"], True), ([], False)])
def test_hooks_that_only_observe_enforce_nothing(modes: list[str], can_change: bool) -> None:
    hooks = [{"type": "command", "command": f"echo {mode}", "mode": mode} for mode in modes]
    config = Config(enable_hooks=True, hooks={"AfterModel": [{"hooks": hooks}]})
    assert enforces(config, HookEventName.AFTER_MODEL) is can_change
