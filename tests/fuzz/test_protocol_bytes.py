"""The output of a hook: any bytes are read, and a block is never lost because of the text next to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.runner import apply_hook_output_to_input
from llxprt_hooks.core.executors import EventRun, HookRun, Runtime
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.core.protocol.exit_codes import Reading, read_outcome
from llxprt_hooks.events import HookEventName
from llxprt_hooks.process import Completed
from llxprt_hooks.settings.definitions import HookConfig
from tests.fuzz.documents import any_json, any_text, documents, encoded, mutated
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.fuzz.project import quiet

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult

OUTPUTS = [
    {"decision": "deny", "reason": "no secrets", "systemMessage": "note", "suppressOutput": True},
    {"continue": False, "stopReason": "enough", "decision": "allow"},
    {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no", "additionalContext": "c"}},
    {"hookSpecificOutput": {"tool_input": {"file_path": "a.txt", "content": "x"}}},
    {
        "hookSpecificOutput": {
            "llm_request": {
                "model": "m",
                "messages": [{"role": "user", "content": "hi"}],
                "config": {"temperature": 0.5, "stopSequences": ["a"]},
                "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]},
            }
        }
    },
    {"hookSpecificOutput": {"llm_response": {"text": "t", "candidates": [{"content": {"parts": ["t"]}}]}}},
    {"hookSpecificOutput": {"toolConfig": {"mode": "NONE", "allowedFunctionNames": []}}},
    "plain text",
]
INPUT = {
    "tool_name": "glob",
    "tool_input": {"pattern": "*"},
    "prompt": "do it",
    "llm_request": {"messages": []},
    "llm_response": {},
}
A_HOOK = HookConfig("command", CommandSpec("a-hook"))

streams = documents(OUTPUTS) | documents(OUTPUTS).map(lambda data: encoded(data.decode("utf-8", "replace")))
events = st.sampled_from(HookEventName)


def aggregated(event: HookEventName, *endings: Completed) -> AggregatedHookResult:
    """Return the result of these endings, with all steps of the engine: chain, merge and record."""
    results, hook_input = [], dict(INPUT)
    for ending in endings:
        result = HookRun(A_HOOK, EventRun(event, hook_input, Runtime(lambda scope: {}, lambda: "/"))).ended(ending)
        results.append(result)
        if result.output is not None:
            hook_input = dict(apply_hook_output_to_input(event, hook_input, result.output))
    assert isinstance(read_json(write_json(hook_input)), dict)
    whole = HookAggregator().aggregate_results(results, event)
    assert isinstance(json.loads(write_json(whole.to_dict())), dict)
    return whole


def spoken(stdout: bytes) -> dict[str, Any] | None:
    """The object that a successful hook printed, read by the standard library; None where that cannot tell."""
    try:
        value = _loads(stdout.decode("utf-8", "replace"))
        value = _loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    except RecursionError:
        return None
    return value if isinstance(value, dict) else {}


def _loads(text: str) -> Any:
    return json.loads(text.strip(WHITESPACE), parse_constant=_refuse, parse_int=float)


def _refuse(name: str) -> object:
    raise ValueError(name)


WHITESPACE = " \t\n\r\v\f\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))


def hold(event: HookEventName, stdout: bytes, stderr: bytes = b"") -> Reading:
    with quiet():
        reading = read_outcome(Completed(exit_code=0, stdout=stdout, stderr=stderr))
        whole = aggregated(event, Completed(exit_code=0, stdout=stdout, stderr=stderr))
        refused = read_outcome(Completed(exit_code=2, stdout=stdout, stderr=stderr))
        failed = aggregated(event, Completed(exit_code=1, stdout=stdout, stderr=stderr))
    assert reading.success
    fields = spoken(stdout)
    if fields is not None:
        said = fields.get("decision")
        blocks = said in ("deny", "block") if isinstance(said, str) else False
        assert (reading.output is not None and reading.output.is_blocking_decision()) is blocks
        assert (reading.output is not None and reading.output.should_stop_execution()) is (
            fields.get("continue") is False
        )
    assert whole.success
    assert refused.output is not None
    assert refused.output.decision == "deny"
    assert refused.output.reason == (stderr.decode("utf-8", "replace").strip(WHITESPACE) or "Blocked by hook")
    assert failed.final_output is None or not failed.final_output.is_blocking_decision()
    return reading


@fuzz(300, event=events, stdout=streams, stderr=streams | st.just(b""))
def test_any_bytes_are_read_and_block_only_if_they_say_so(event: HookEventName, stdout: bytes, stderr: bytes) -> None:
    hold(event, stdout, stderr)


# A deny with unusual but readable JSON around it, and with text that is not JSON.

ODD_VALUES = (
    b'"\xff\xc3"',
    b'"\xed\xa0\x80"',
    b'"\\ud800"',
    b'"\\u0000"',
    b"1e999",
    b"-1e999",
    b"-" + b"9" * 5000,
    b"[" * 3000 + b"]" * 3000,
    b'{"a":' * 3000 + b"1" + b"}" * 3000,
    b'{"decision":"allow","continue":true}',
    b'"' + b"x" * 70_000 + b'"',
    b'"\xe2\x80\xa8"',
)
values = st.sampled_from(ODD_VALUES) | any_json.map(lambda value: write_json(value)) | mutated(OUTPUTS).map(write_json)
keys = any_text.filter(lambda key: key != "decision") | st.sampled_from(
    ["reason", "systemMessage", "hookSpecificOutput"]
)


@st.composite
def denials(draw: st.DrawFn) -> bytes:
    """An object of any readable members, with an allow that the deny after it overrides."""
    members = [encoded(draw(keys)) + b":" + draw(values) for _ in range(draw(st.integers(0, 3)))]
    at = draw(st.integers(0, len(members)))
    deny = [b'"decision":"allow"'] * draw(st.integers(0, 1)) + [
        draw(st.sampled_from([b'"decision":"deny"', b'"d\\u0065cision":"block"']))
    ]
    return b"{" + b",".join([*members[:at], *deny, *members[at:]]) + b"}"


@fuzz(
    100,
    before=st.sampled_from([b"", b"checking\n", b"\0", b"{", b"\x1b[31m"]),
    denial=denials(),
    after=st.sampled_from([b"", b"\ndone", b"\0", b"}", b"{}"]),
)
def test_a_deny_with_other_text_around_it_is_plain_text_with_an_implied_allow(
    before: bytes, denial: bytes, after: bytes
) -> None:
    if not before + after:
        return
    stdout = before + denial + after
    reading = hold(HookEventName.BEFORE_TOOL, stdout)
    assert reading.output is not None
    assert (reading.output.decision, reading.output.implied) == ("allow", True)
    assert reading.output.system_message == stdout.decode("utf-8", "replace").strip(WHITESPACE)


# What was found.


def hold_case(case: str, reading: Reading) -> None:
    if case.startswith("deny-"):
        assert reading.output is not None
        assert reading.output.is_blocking_decision()
    if case.startswith("text-"):
        assert reading.output is not None
        assert reading.output.implied


@corpus("protocol_bytes")
@unhanged
def test_what_was_found_means_what_its_name_says(case: str, data: bytes) -> None:
    for event in HookEventName:
        hold_case(case, hold(event, data, data))
