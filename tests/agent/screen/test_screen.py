"""Answers on their way to the terminal: whatever the model writes, in whatever pieces, all of it is shown once."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from llxprt_hooks import HookConfig, HookEventName, HookExecutionResult, HookStarted
from llxprt_hooks.agent.screen.progress import Progress
from llxprt_hooks.agent.screen.screen import Screen
from llxprt_hooks.agent.ui import AnswerEnd, AnswerText
from llxprt_hooks.core.executors.command import CommandSpec
from tests.support.display import Display

WIDTH = 50

BLOCKS = st.sampled_from(
    [
        "# A heading\n\n",
        "A paragraph with **bold** words and `code` that is long enough to be wrapped once or twice.\n\n",
        "- an item\n- an item that is long enough to be wrapped in the window it is shown in\n",
        "  - an item in an item\n",
        "".join(f"{number}. step {number}\n" for number in range(1, 13)),
        "1. always\n1. the same\n1. number\n",
        "```python\nvalue = 1\n\nother = [\n    value,\n]\n```\n",
        "```\n" + "a line of text\n" * 12,
        "> quoted\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "---\n",
        "===\n",
        "    indented\n",
        "Vec<T> and <b>bold</b>, [a link](http://example.org), ![an image](a.png)\n",
        "plain\n",
        "\n",
        "-",
        "2",
        "**open\n",
        "\x1b[2J\r\n",
    ]
)


@settings(deadline=None, max_examples=40)
@given(blocks=st.lists(BLOCKS, max_size=8), sizes=st.lists(st.integers(1, 40), min_size=1), rows=st.integers(5, 30))
async def test_an_answer_in_pieces_is_shown_like_one_that_comes_whole(
    blocks: list[str], sizes: list[int], rows: int
) -> None:
    text = "".join(blocks)
    in_pieces = shown(pieces(text, sizes), rows)
    assert in_pieces == shown([text], 1000)


@settings(deadline=None)
@given(text=st.text(alphabet="ab 1.-*_`~#>|[]()!<\\\n\t&;:\x1b\x07\x9b\u202e\ud800é漢", max_size=80))
async def test_no_answer_commands_the_terminal(text: str) -> None:
    shown(pieces(text, [7]), 10)


def test_waiting_ends_for_the_right_one_of_two_hooks_with_one_name() -> None:
    hook = HookConfig("command", CommandSpec("./check"), name="check")
    progress = Progress()
    for execution_id in ("first", "second"):
        progress.hook_started(HookStarted("event", execution_id, HookEventName.BEFORE_TOOL, hook))

    progress.hook_ended(HookExecutionResult(hook, HookEventName.BEFORE_TOOL, success=True, execution_id="second"))

    assert list(progress.hooks) == ["first"]


def pieces(text: str, sizes: list[int]) -> list[str]:
    cut: list[str] = []
    position = 0
    while position < len(text):
        cut.append(text[position : position + sizes[len(cut) % len(sizes)]])
        position += len(cut[-1])
    return cut


def shown(chunks: list[str], rows: int) -> list[str]:
    """The lines that a user sees in the end, drawn after every chunk, but for empty ones."""
    file = io.StringIO()
    screen = Screen(Console(file=file, force_terminal=True, width=WIDTH, height=rows, color_system=None, _environ={}))
    with screen.working():
        for chunk in chunks:
            screen.handle(AnswerText(chunk))
            screen._draw()
        screen.handle(AnswerEnd("".join(chunks)))
    display = Display(rows, WIDTH)
    display.write(file.getvalue().replace("\n", "\r\n"))
    return [line for line in display.text.split("\n") if line.strip()]
