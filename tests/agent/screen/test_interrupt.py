"""Ctrl-C: it ends what runs, leaves no process behind, and the session goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.gemini import answer, call
from tests.support.processes import lives, pids_in, until
from tests.support.terminal import CTRL_C, Terminal

if TYPE_CHECKING:
    from tests.agent.screen.project import InteractiveProject

ENDLESS = "sleep 600 & echo $$ $! > ../{name}.pids; wait"
"""A script with a child, neither of which ends by itself."""


def test_ctrl_c_ends_hooks_and_tools_at_work(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "endless", ENDLESS.format(name="hook"), matcher="glob")
    project.add_hook(
        "BeforeModel", "stubborn", "[ -e ../stubborn ] || exit 0; trap '' TERM; " + ENDLESS.format(name="deaf")
    )
    project.add_hook("AfterTool", "noted", "true", matcher="list_directory")
    shell = call("run_shell_command", command=ENDLESS.format(name="tool"))
    answers = [
        answer(call("glob", pattern="*")),
        answer(shell),
        answer(shell, call("list_directory", dir_path=".")),
        answer("Still here."),
    ]
    with project.session(*answers) as terminal:
        terminal.see_prompt()

        terminal.enter("hook")
        terminal.see_flash("waiting for hook endless (BeforeTool)")
        assert "✗ glob" in interrupted(terminal, pids_in(project.folder / "hook.pids", 2))

        terminal.enter("tool")
        terminal.see("Allow run_shell_command? [y/N]")
        terminal.enter("y")
        pids = pids_in(project.folder / "tool.pids", 2)
        assert "✗ run_shell_command" in interrupted(terminal, pids)

        terminal.enter("question")
        terminal.see("Allow run_shell_command? [y/N]")
        until(lambda: '"hooks":["noted"]' in project.log_file.read_text())
        time.sleep(0.1)  # the call itself is over a moment after its last event, which nothing on the screen tells
        shown = interrupted(terminal, [])
        assert "✗ run_shell_command" in shown
        assert "✓ list_directory" in shown

        (project.folder / "stubborn").touch()
        terminal.enter("stubborn")
        terminal.see_flash("waiting for hook stubborn (BeforeModel)")
        (project.folder / "stubborn").unlink()
        interrupted(terminal, pids_in(project.folder / "deaf.pids", 2))

        assert "Still here." in terminal.ask("and now?")


def test_ctrl_c_ends_a_slow_answer(project: InteractiveProject) -> None:
    with (
        slow_model() as (url, gone),
        project.terminal("run", GEMINI_API_KEY="test", GOOGLE_GEMINI_BASE_URL=url) as terminal,
    ):
        terminal.see_prompt()
        terminal.enter("tell me")
        terminal.see("Once upon")
        terminal.see_flash("answering")
        assert "Once upon" in terminal.display.text
        interrupted(terminal, [])
        assert "\n\nOnce upon\n\n! interrupted\n" in terminal.display.text
        assert gone.wait(40)
        terminal.enter("go on")
        terminal.see("Once upon")
        interrupted(terminal, [])


def test_ctrl_c_at_the_prompt_clears_the_line(project: InteractiveProject) -> None:
    with project.session(answer("Yes?")) as terminal:
        terminal.see_prompt()
        terminal.type("never mind")
        terminal.see("never mind")
        terminal.type(CTRL_C)
        until(lambda: terminal._read() and "never mind" not in terminal.display.text)
        terminal.type(CTRL_C)
        terminal.see_flash("Press Ctrl-D or type /quit to end the session.")
        terminal.see_prompt()
        assert "Yes?" in terminal.ask("you there?")
    assert "never mind" not in terminal.display.text


def interrupted(terminal: Terminal, pids: list[int]) -> str:
    """Press Ctrl-C; what is shown up to the next prompt, when these processes are gone."""
    assert all(map(lives, pids))
    terminal.type(CTRL_C)
    shown = terminal.see_prompt()
    assert "\n! interrupted\n" in shown
    assert not any(map(lives, pids))
    return shown


@contextmanager
def slow_model() -> Iterator[tuple[str, threading.Event]]:
    """The Gemini API, which begins an answer and never ends it; and whether a client has gone away meanwhile."""
    gone = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Once upon"}]}}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\r\n\r\n".encode())
            self.wfile.flush()
            self.connection.recv(1)
            gone.set()

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", gone
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
