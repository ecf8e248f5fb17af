"""What a hook's ending means: the canonical exit-code table (requirements, section 35) with real processes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import HookEventName, fire_before_tool_hook
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.protocol.exit_codes import convert_plain_text_to_hook_output, read_outcome
from llxprt_hooks.process import Completed
from tests.support.endings import printed, said

DENY = '{"decision":"deny","reason":"from stdout"}'

OTHER_EXIT_CODES = (1, 3, 127, 130, 255)


def final_output(*results: Any) -> Any:
    return HookAggregator().aggregate_results(results, results[0].event_name).final_output


def blocks(*results: Any) -> bool:
    output = final_output(*results)
    return output is not None and output.is_blocking_decision()


# Exit code 2


@pytest.mark.requirement("HOOK-016a", "HOOK-066", "HOOK-067a", "HOOK-189", "HOOK-070")
async def test_exit_code_2_blocks_with_what_was_written_to_stderr(run_hook: Any, printing: Any) -> None:
    result = await run_hook(printing(stderr="\n  no secrets,\nplease \n", then="exit 2"))

    assert result.exit_code == 2
    assert not result.success
    assert result.output.to_dict() == {"decision": "deny", "reason": "no secrets,\nplease"}
    assert blocks(result)


@pytest.mark.requirement("HOOK-067b", "HOOK-066")
@pytest.mark.parametrize("stdout", ["", DENY, '{"decision":"allow"}'])
@pytest.mark.parametrize("stderr", ["", " \n\t\ufeff\u00a0"])
async def test_exit_code_2_without_a_reason_blocks_with_the_default_one(
    run_hook: Any, printing: Any, stdout: str, stderr: str
) -> None:
    result = await run_hook(printing(stdout, stderr, "exit 2"))

    assert not result.success
    assert result.output.to_dict() == {"decision": "deny", "reason": "Blocked by hook"}


@pytest.mark.parametrize(
    ("stdout", "stderr", "hinted"),
    [
        (DENY, "", True),
        ("because", " \n", True),
        ("because", "because", False),
        ("", "", False),
        (" \n", "", False),
        ("", "because", False),
    ],
)
async def test_a_reason_that_went_to_stdout_is_answered_with_a_hint_in_the_log(
    config_with: Any, printing: Any, caplog: pytest.LogCaptureFixture, stdout: str, stderr: str, hinted: bool
) -> None:
    config = config_with(HookEventName.BEFORE_TOOL, printing(stdout, stderr, "exit 2"))

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert output.is_blocking_decision()
    assert any("exit code 2" in message and "stderr" in message for message in caplog.messages) is hinted


# Exit code 0


@pytest.mark.requirement("HOOK-016b", "HOOK-070")
@pytest.mark.parametrize("decision", ["block", "deny"])
async def test_a_json_decision_to_block_is_a_successful_run(run_hook: Any, printing: Any, decision: str) -> None:
    result = await run_hook(printing(json.dumps({"decision": decision, "reason": "no secrets"})))

    assert result.success
    assert result.exit_code == 0
    assert blocks(result)
    assert final_output(result).get_effective_reason() == "no secrets"


@pytest.mark.requirement("HOOK-065")
@pytest.mark.parametrize("stdout", [b"", b" \n\r\t", "\ufeff\u00a0\u2028".encode()])
def test_blank_stdout_gives_no_output(stdout: bytes) -> None:
    reading = read_outcome(Completed(exit_code=0, stdout=stdout, stderr=b"chatter"))

    assert reading.success
    assert reading.output is None
    assert reading.error is None


@pytest.mark.requirement("HOOK-064", "HOOK-114", "HOOK-212")
@pytest.mark.parametrize(
    "text",
    [
        "all is well",
        '{"decision": "deny"',
        "deny",
        'Result: {"decision":"deny"}',
        '{"decision":"deny"}\n{"decision":"deny"}',
        "<html>",
        "Grüße 👋",
    ],
)
async def test_text_that_is_not_json_is_a_message_with_an_implied_allow(
    run_hook: Any, printing: Any, text: str
) -> None:
    result = await run_hook(printing(f"{text}\n"))

    assert result.success
    assert result.output.to_dict() == {"decision": "allow", "systemMessage": text}
    assert not blocks(result)


@pytest.mark.requirement("HOOK-064", "HOOK-212")
@pytest.mark.parametrize(
    "text", ["42", "-1.5e3", "[]", '[{"decision":"deny"}]', "null", "true", "false", '"deny"', '"42"', '"[]"', '""']
)
def test_json_that_is_not_an_object_is_plain_text(text: str) -> None:
    reading = read_outcome(said(text))

    assert reading.success
    assert reading.output is not None
    assert reading.output.to_dict() == {"decision": "allow", "systemMessage": text}


@pytest.mark.requirement("HOOK-193", "HOOK-201", "HOOK-212")
@pytest.mark.parametrize(
    "fields",
    [
        {"decision": "deny", "reason": "inner"},
        {"decision": "block", "reason": 'quotes " and \\ and \n and \u2028'},
        {"decision": "deny", "hookSpecificOutput": {"tool_input": {"a": "\ud800"}}},
    ],
)
async def test_json_that_was_encoded_twice_is_decoded_twice(run_hook: Any, printing: Any, fields: Any) -> None:
    result = await run_hook(printing(json.dumps(json.dumps(fields))))

    assert result.success
    assert result.output.to_dict() == fields
    assert blocks(result)


@pytest.mark.requirement("HOOK-193", "HOOK-201")
def test_what_was_encoded_twice_is_read_as_leniently_as_what_was_encoded_once() -> None:
    deep = '{"x":' + "[" * 20_000 + "]" * 20_000 + ',"n":1e999,"decision":"deny"}'

    for text in (deep, f"\ufeff{DENY}\u00a0"):
        output = read_outcome(printed(text)).output
        assert output is not None
        assert output.is_blocking_decision()


# Any other ending


@pytest.mark.requirement("HOOK-068", "HOOK-070", "HOOK-110", "HOOK-198")
@pytest.mark.parametrize("stdout", [DENY, '{"continue":false}'])
@pytest.mark.parametrize("code", OTHER_EXIT_CODES)
async def test_any_other_exit_code_is_a_failure_whose_stdout_is_not_read(
    run_hook: Any, printing: Any, code: int, stdout: str
) -> None:
    result = await run_hook(printing(stdout, then=f"exit {code}"))

    assert result.exit_code == code
    assert not result.success
    assert result.error is not None
    assert result.output is None
    assert final_output(result) is None


@pytest.mark.requirement("HOOK-209", "HOOK-069")
@pytest.mark.parametrize("code", OTHER_EXIT_CODES)
@pytest.mark.parametrize("stderr", ["cannot reach the server", '{"decision":"deny"}'])
async def test_what_a_failed_hook_wrote_to_stderr_is_kept_as_a_warning(
    run_hook: Any, printing: Any, code: int, stderr: str
) -> None:
    result = await run_hook(printing(DENY, f"{stderr}\n", f"exit {code}"))

    assert not result.success
    assert result.output.to_dict() == {"decision": "allow", "systemMessage": f"Warning: {stderr}"}
    assert not blocks(result)


@pytest.mark.requirement("HOOK-069")
@pytest.mark.parametrize("stderr", [DENY, '{"decision":"deny"}', "deny", '{"continue":false}'])
@pytest.mark.parametrize("fields", [{"systemMessage": "m"}, None])
async def test_stderr_is_kept_and_never_read_for_a_decision(
    run_hook: Any, printing: Any, fields: dict[str, Any] | None, stderr: str
) -> None:
    result = await run_hook(printing("" if fields is None else json.dumps(fields), stderr))

    assert result.success
    assert result.stderr == stderr
    assert (None if result.output is None else result.output.to_dict()) == fields


@pytest.mark.requirement("HOOK-196", "HOOK-070", "HOOK-110")
@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "USR1"])
async def test_killed_by_signal_reports_signal_and_exit_code_0(run_hook: Any, printing: Any, name: str) -> None:
    result = await run_hook(printing(DENY, "dying", f"kill -{name} $$; sleep 30"))

    assert not result.success
    assert result.exit_code == 0
    assert result.signal == f"SIG{name}"
    assert result.error is not None
    assert result.output.to_dict() == {"decision": "allow", "systemMessage": "Warning: dying"}
    assert not blocks(result)


@pytest.mark.requirement("HOOK-110")
async def test_a_hook_that_timed_out_never_blocks_even_if_it_then_exits_with_2(
    run_hook: Any, shell_script: Any
) -> None:
    command = shell_script(f"trap 'echo stopped >&2; exit 2' TERM\necho {shlex.quote(DENY)}\nsleep 30 &\nwait\n")

    result = await run_hook(command, milliseconds=300.0)

    assert not result.success
    assert result.error is not None
    assert "300 ms" in str(result.error)
    assert not blocks(result)


@pytest.mark.parametrize("milliseconds", [1.0, 60_000.0, 1_234_567.0, 86_400_000.0])
def test_a_timeout_is_reported_to_the_millisecond(milliseconds: float) -> None:
    reading = read_outcome(Completed(timed_out_after=milliseconds))

    assert reading.error is not None
    assert f"{milliseconds:.0f} ms" in reading.error


@pytest.mark.requirement("HOOK-110")
async def test_a_hook_whose_folder_is_gone_never_blocks(run_hook: Any, tmp_path: Path) -> None:
    result = await run_hook("exit 2", cwd=tmp_path / "gone")

    assert not result.success
    assert result.error is not None
    assert not blocks(result)


# Streams beyond the limit


async def test_more_stdout_than_the_limit_is_a_failure_and_never_plain_text(run_hook: Any, printing: Any) -> None:
    result = await run_hook(printing("x" * 1001), output_limit=1000)

    assert not result.success
    assert result.error is not None
    assert result.output is None
    assert final_output(result) is None


async def test_exit_code_2_blocks_however_much_was_written(run_hook: Any, printing: Any) -> None:
    result = await run_hook(printing("x" * 5000, "y" * 5000, "exit 2"), output_limit=1000)

    assert blocks(result)
    assert final_output(result).reason == "y" * 1000


async def test_much_stderr_with_exit_code_0_is_cut_and_costs_nothing(run_hook: Any, printing: Any) -> None:
    result = await run_hook(printing(DENY, "y" * 5000), output_limit=1000)

    assert result.success
    assert result.stderr == "y" * 1000
    assert blocks(result)


# Odd bytes through a real pipe


# The conversion of plain text


@pytest.mark.requirement("HOOK-064", "HOOK-067a", "HOOK-189", "HOOK-209")
@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (0, {"decision": "allow", "systemMessage": "text"}),
        (1, {"decision": "allow", "systemMessage": "Warning: text"}),
        (2, {"decision": "deny", "reason": "text"}),
        (3, {"decision": "allow", "systemMessage": "Warning: text"}),
        (-9, {"decision": "allow", "systemMessage": "Warning: text"}),
    ],
)
def test_plain_text_stands_for_a_message_a_block_or_a_warning(code: int, fields: dict[str, str]) -> None:
    assert convert_plain_text_to_hook_output("text", code).to_dict() == fields
