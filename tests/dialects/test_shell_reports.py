"""What a command wrote is found in the text that our own agent's shell tool gives to the model."""

from __future__ import annotations

import pytest

from llxprt_hooks.dialects.tools import streams_of


@pytest.mark.parametrize(
    ("text", "stdout", "stderr"),
    [
        ("stdout:\na\nb\n[exit code: 0]", "a\nb", ""),
        ("stderr:\na\n[exit code: 1]", "", "a"),
        ("stdout:\na\nstderr:\nb\n\n[exit code: 1]", "a", "b\n"),
        ("stdout:\n\nstderr:\n\n[x]", "", ""),
        ("stdout:\na\nstderr:\n[x]", "a\nstderr:", ""),
        ("[exit code: 0]", "", ""),
        ("stdout:\n[x]", "stdout:\n[x]", ""),
        ("stdout:\na\n[x]\n", "stdout:\na\n[x]\n", ""),
        ("a\n[x]", "a\n[x]", ""),
        ("of another tool", "of another tool", ""),
        ("", "", ""),
    ],
)
def test_streams(text: str, stdout: str, stderr: str) -> None:
    assert streams_of(text) == {"stdout": stdout, "stderr": stderr}


def test_no_output_keeps_the_agent_waiting() -> None:
    text = "stdout:\n" + "stderr:\n" * 300_000

    assert streams_of(f"{text}no end")["stdout"] == f"{text}no end"
    assert streams_of(f"{text}[x]")["stderr"] == text.removeprefix("stdout:\nstderr:\n")[len("stderr:\n") :][:-1]
