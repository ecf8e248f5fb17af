"""An interactive session in a terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import termios
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, get_app_session
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.utils import is_dumb_terminal
from rich.console import Console
from rich.table import Table
from rich.text import Text

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import escape_for_terminal, shorten
from llxprt_hooks.agent.build import AgentOptions, build_agent
from llxprt_hooks.agent.environment import marked_as_agent
from llxprt_hooks.agent.provider import AgentError
from llxprt_hooks.agent.screen.question import MIN_COLUMNS, MIN_ROWS, CallQuestion
from llxprt_hooks.agent.screen.screen import Screen
from llxprt_hooks.agent.ui import WarningEvent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.events import PreCompressTrigger, SessionEndReason
from llxprt_hooks.settings import user_folder
from llxprt_hooks.settings.problem import SettingsError

if TYPE_CHECKING:
    from llxprt_hooks.agent.approval import Request
    from llxprt_hooks.agent.session import AgentSession

log = debug_logger("agent")

HELP = {
    "/hooks": "list the hooks",
    "/hooks disable NAME": "disable a hook for this session",
    "/hooks enable NAME": "enable it again",
    "/hooks reload": "read the settings again",
    "/compress": "replace the conversation with a summary",
    "/clear": "clear the conversation",
    "/help": "show this help",
    "/quit": "end the session",
    "Ctrl-C": "interrupt the agent, or clear the line",
    "Ctrl-D": "end the session",
    "Ctrl-R": "search earlier prompts",
    "Alt-Enter": "start a new line",
    "Tab": "complete a command",
}

_MAX_CELL = 60


async def converse(options: AgentOptions) -> ExitStatus:
    """Run an interactive session until the user ends it."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # do not fail on characters the terminal lacks
    screen = Screen(Console(highlight=False, markup=False, emoji=False))
    conversation = _Conversation(screen)
    with _warnings_on(screen), marked_as_agent():
        try:
            session = conversation.session = build_agent(options, screen, ask=conversation.ask, observer=screen)
        except AgentError as error:
            raise click.ClickException(str(error)) from error
        session.start()
        reason, status = await conversation.talk()
        session.end(reason)
        screen.leaving()
        with suppress(asyncio.CancelledError):  # interrupted again
            await conversation.interruptible(session.leave(status))
        return status


class _Conversation:
    """Reads prompts and commands, and runs them."""

    session: AgentSession

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._work: asyncio.Future[None] | None = None

    @cached_property
    def _prompts(self) -> PromptSession[str]:
        return _line_editor(
            [("bold", "> ")],
            prompt_continuation="  ",
            history=_history(),
            completer=WordCompleter(self._completions, sentence=True),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            enable_suspend=True,
            key_bindings=_keys(),
        )

    @cached_property
    def _questions(self) -> PromptSession[str]:
        return _line_editor()

    async def talk(self) -> tuple[SessionEndReason, ExitStatus]:
        """Read and run lines until the session ends. Returns the reason and the exit status."""
        self._handle_signals()
        self._greet()
        try:
            while True:
                try:
                    line = await self._read()
                except KeyboardInterrupt:
                    self._screen.notice("Press Ctrl-D or type /quit to end the session.")
                    continue
                except EOFError:
                    return SessionEndReason.PROMPT_INPUT_EXIT, ExitStatus.OK
                if line.strip() in ("/quit", "/exit"):
                    return SessionEndReason.EXIT, ExitStatus.OK
                if line.strip():
                    with _typed_keys_hidden():
                        await self.interruptible(self._run(line))
        except (asyncio.CancelledError, OSError, termios.error):  # a signal, or the terminal is gone
            return SessionEndReason.OTHER, ExitStatus.INTERRUPTED

    async def ask(self, request: Request) -> bool:
        """Ask whether a call may run. Any answer but yes means no."""
        question = self._question(request)
        if question is None:
            self._screen.handle(WarningEvent("the terminal is too small to show a call that needs approval"))
            return False
        with self._screen.asking(question.summary):
            while (answer := await self._answer(request, question)) in ("s", "show") and question.is_cut:
                self._screen.console.print(question.whole)
                question = self._question(request) or question
                self._screen.console.print(question.summary)
        return answer in ("y", "yes")

    def _question(self, request: Request) -> CallQuestion | None:
        columns, rows = self._screen.size
        is_large_enough = columns >= MIN_COLUMNS and rows >= MIN_ROWS
        return CallQuestion(request, columns=columns, rows=rows) if is_large_enough else None

    async def _answer(self, request: Request, question: CallQuestion) -> str:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # discard keys typed before the question was shown
        clear_typeahead(self._questions.input)
        choices = "[y/N/show]" if question.is_cut else "[y/N]"
        try:
            answer = await self._questions.prompt_async(
                [("bold", f"Allow {request.tool.name}?"), ("", f" {choices} ")],
                handle_sigint=False,
                set_exception_handler=False,
            )
        except EOFError:
            return ""
        except KeyboardInterrupt:
            self._interrupt()
            raise asyncio.CancelledError from None
        return answer.strip().lower()

    async def interruptible(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that Ctrl-C cancels, including its hooks and tools. The session stays usable."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # the whole program is being cancelled
            self._screen.handle(WarningEvent("interrupted"))
        except AgentError as error:
            self._screen.handle(WarningEvent(str(error)))
        except Exception as error:  # a bug in the agent must not end the session
            self._screen.handle(WarningEvent(f"internal error: {error!r}"))
            log.debug("the session continues after an internal error", exc_info=True)
        finally:
            self._work = None

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        if (task := asyncio.current_task()) is not None:
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
            loop.add_signal_handler(signal.SIGHUP, self._hang_up, task)

    def _interrupt(self) -> None:
        if self._work is not None:
            self._screen.interrupting()
            self._work.cancel()

    def _hang_up(self, task: asyncio.Task[Any]) -> None:
        self._screen.console.quiet = True  # the terminal is gone
        task.cancel()

    def _greet(self) -> None:
        system = self.session.config.get_hook_system()
        count = system.get_status().total_hooks if system else 0
        self._screen.notice(f"{_hook_count(count).capitalize()}. Type a prompt, or /help.")

    async def _read(self) -> str:
        with self._screen.prompting():
            line = await self._prompts.prompt_async(handle_sigint=False, set_exception_handler=False)
        return line.encode("utf-8", "replace").decode()  # invalid UTF-8 arrives as lone surrogates

    # Commands.

    async def _run(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        if name.startswith("/") and "/" not in name[1:] and "\n" not in line:
            await _COMMANDS.get(name, _Conversation._unknown)(self, argument.strip())
            return
        with self._screen.working():
            await self.session.respond(line.strip())

    async def _hooks(self, argument: str) -> None:
        if argument == "reload":
            await self._reload_hooks()
            return
        system = self.session.config.get_hook_system()
        if system is None:
            settings = self.session.config.settings
            for notice in settings.notices if settings else ():
                self._screen.handle(WarningEvent(notice))
            self._screen.handle(WarningEvent("hooks are disabled: set `enableHooks` to true in the settings"))
            return
        await system.initialize()
        verb, _, name = argument.partition(" ")
        if verb in ("", "list"):
            self._list_hooks()
        elif verb not in ("enable", "disable") or not name.strip():
            self._screen.handle(WarningEvent("usage: /hooks [list | enable NAME | disable NAME | reload]"))
        elif name.strip() not in self._hook_names():
            self._screen.handle(WarningEvent(f"no hook is called {name.strip()}; /hooks lists them"))
        elif not system.set_hook_enabled(name.strip(), verb == "enable"):
            self._screen.handle(WarningEvent(f"{name.strip()} is managed: only the administrator can {verb} it"))
        else:
            self._screen.notice(f"{name.strip()} is {verb}d for this session")

    async def _reload_hooks(self) -> None:
        config = self.session.config
        try:
            config.reload()
        except SettingsError as error:
            self._screen.handle(WarningEvent(f"the hooks stay as they were: {error}"))
            return
        system = config.get_hook_system()
        if system is not None:
            await system.initialize()
        count = 0 if system is None else system.get_status().total_hooks
        self._screen.notice(f"the settings were read again; {_hook_count(count)}")

    def _list_hooks(self) -> None:
        system = self.session.config.get_hook_system()
        table = Table("", "event", "matcher", "hook", box=None, header_style="bold", pad_edge=False)
        for entry in system.get_all_hooks() if system else []:
            state = Text("on", "green") if entry.enabled else Text("off", "yellow")
            if entry.managed:
                state.append(", managed", "dim")
            cells = (entry.event_name.value, entry.matcher or "*", entry.name)
            short = (shorten(escape_for_terminal(cell), _MAX_CELL) for cell in cells)  # leaves room for the others
            table.add_row(state, *(Text(cell, overflow="fold") for cell in short))
        self._screen.show(table if table.row_count else Text("no hooks are configured"))

    async def _compress(self, _: str) -> None:
        if not self.session.chat.history:
            self._screen.notice("nothing to compress yet")
            return
        with self._screen.working():
            done = await self.session.compress(PreCompressTrigger.MANUAL)
        if done:
            self._screen.notice("the conversation was replaced with a summary")
        else:
            self._screen.handle(WarningEvent("nothing was compressed: the model gave no summary"))

    async def _clear(self, _: str) -> None:
        self.session.clear()
        self._screen.notice("the conversation was cleared")

    async def _help(self, _: str) -> None:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="cyan")
        grid.add_column(overflow="fold")
        for what, does in HELP.items():
            grid.add_row(what, does)
        self._screen.show(grid)

    async def _unknown(self, _: str) -> None:
        self._screen.handle(WarningEvent("unknown command; see /help (or start the prompt with a space)"))

    def _completions(self) -> list[str]:
        switches = [f"/hooks {verb} {name}" for verb in ("enable", "disable") for name in self._hook_names()]
        return [*_COMMANDS, "/hooks reload", "/quit", *(each for each in switches if each == escape_for_terminal(each))]

    def _hook_names(self) -> list[str]:
        system = self.session.config.get_hook_system()
        known = system.get_all_hooks() if system and system.initialized else []
        return list(dict.fromkeys(entry.name for entry in known))


_COMMANDS: Mapping[str, Callable[[_Conversation, str], Awaitable[None]]] = {
    "/hooks": _Conversation._hooks,
    "/compress": _Conversation._compress,
    "/clear": _Conversation._clear,
    "/help": _Conversation._help,
}


def _hook_count(count: int) -> str:
    return {0: "no hooks are enabled", 1: "1 hook is enabled"}.get(count, f"{count} hooks are enabled")


def _line_editor(*arguments: Any, **options: Any) -> PromptSession[str]:
    """Create a line editor that sends no control sequences to a dumb terminal."""
    if not is_dumb_terminal():
        return PromptSession(*arguments, **options)
    with create_app_session(output=DummyOutput()):
        editor: PromptSession[str] = PromptSession(*arguments, **options)
    editor.app.output = get_app_session().output
    return editor


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-c", filter=~is_searching)
    def clear_line(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    @keys.add("escape", "enter")
    def start_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys


class _PromptHistory(FileHistory):
    """Prompts of this and earlier sessions. Write errors are ignored."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _history() -> History:
    """Return the history on disk, readable by the user only, or one in memory if the file cannot be used."""
    file = user_folder() / "prompt_history"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(fd, 0o600)
        finally:
            os.close(fd)
    except OSError:
        return InMemoryHistory()
    return _PromptHistory(file)


@contextmanager
def _typed_keys_hidden() -> Iterator[None]:
    """Turn off echo while the agent works. Typed keys stay in the buffer for the next prompt."""
    before = termios.tcgetattr(sys.stdin)
    hidden = termios.tcgetattr(sys.stdin)
    hidden[3] &= ~(termios.ECHO | termios.ICANON)
    hidden[6][termios.VSUSP] = bytes([os.fpathconf(sys.stdin.fileno(), "PC_VDISABLE")])
    termios.tcsetattr(sys.stdin, termios.TCSANOW, hidden)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


class _ScreenLog(logging.Handler):
    """Shows logged warnings through the screen, so that they do not disturb the display or the prompt."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        event = WarningEvent(record.getMessage())
        if threading.get_ident() == self._thread:
            self._screen.handle(event)
        else:
            self._loop.call_soon_threadsafe(self._screen.handle, event)


@contextmanager
def _warnings_on(screen: Screen) -> Iterator[None]:
    root = logging.getLogger()
    before, root.handlers = root.handlers, [_ScreenLog(screen)]
    try:
        yield
    finally:
        root.handlers = before
