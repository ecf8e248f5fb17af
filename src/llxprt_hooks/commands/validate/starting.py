"""Starts hooks ahead of an example event, to see what that saves, and what they do before they have their input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks._support.text import one_line, plural, shorten
from llxprt_hooks.commands.fire import sample_input
from llxprt_hooks.commands.validate.diagnostic import Diagnostic, Source, diagnostic_at
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.core.executors.base import EventRun, HookRun, Runtime, StartRefusedError
from llxprt_hooks.core.executors.command import CommandExecutor, CommandSpec
from llxprt_hooks.process import Completed, SpawnError, run_child, spawn
from llxprt_hooks.settings import Document, read_document
from llxprt_hooks.settings.load import load_settings, skipped_hooks, unapproved_hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from llxprt_hooks.commands.validate.inspection import Inspection
    from llxprt_hooks.process import Child
    from llxprt_hooks.process.ahead import Start
    from llxprt_hooks.settings.definitions import HookDefinition

_PATIENCE: Final = 10.0
"""Seconds that a program has to reach its input."""
_LOOK: Final = 0.002
_LOOKS: Final = 10
"""A program waits if none of its threads runs in so many looks, each so many seconds after the other."""
_LITTLE: Final = 0.8
"""Of the time that a hook takes, what remains if starting it ahead saves little."""
_MAX_FILES: Final = 20_000
_MAX_NAMED: Final = 3
_MAX_NAME: Final = 60
_SESSION: Final = "validate"


@dataclass(frozen=True)
class StartedHook:
    """What the start of a hook has shown. Times are in milliseconds."""

    definition: HookDefinition
    to_input: float
    """From its start until it waited for its input, or had ended."""
    to_end: float
    """From its input to its end."""
    early: tuple[str, ...]
    """What it did before it had its input, each as the end of a sentence that starts with the hook."""
    dropped: bool
    """Whether that would keep it from being used."""
    warm: bool
    timed_out: bool

    @property
    def cold(self) -> float:
        return self.to_input + self.to_end

    def to_dict(self) -> dict[str, Any]:
        """Return an element of ``started`` in ``validate --json``."""
        return {
            "event": self.definition.event_name.value,
            "hook": self.definition.config.identity,
            "source": self.definition.origin,
            "warm": self.warm,
            "cold_ms": None if self.timed_out else round(self.cold, 3),
            "ahead_ms": None if self.dropped or self.timed_out else round(self.to_end, 3),
            "before_input": list(self.early),
        }


@dataclass(frozen=True)
class Starts:
    """The hooks that were started, what there is to report about them, and why others were not started."""

    hooks: tuple[StartedHook, ...]
    diagnostics: tuple[Diagnostic, ...]
    not_started: tuple[str, ...]


def start_hooks(inspection: Inspection, file: Path | None, starting: Callable[[str], object]) -> Starts:
    """Start every command once that an agent would run in the project, except Python scripts, and give it an example
    event; ``file`` is the only one whose hooks are started. ``starting`` is called with each command before that.
    """
    with without_warnings():
        config = Config(working_dir=inspection.directory)
        config.use(settings := load_settings(inspection.directory))
        registry = HookRegistry(config)
        registry.initialize()
    extensions = {f"extension {each.name}": each.document.file for each in settings.extensions if each.document}
    only = None if file is None else Path(os.path.abspath(file))  # noqa: PTH100  # as settings name it
    found = [each.definition for each in registry.get_all_hooks() if each.enabled]
    definitions = found if settings.enabled else []
    runtime = Runtime(config.inherited_environment, lambda: config.working_dir, config.output_limit)
    hooks: dict[tuple[str, bool], StartedHook] = {}
    diagnostics: list[Diagnostic] = []
    others = [(each, "they are not approved") for each in unapproved_hooks(settings)[0]]
    others += skipped_hooks(settings) if settings.enabled else [(each, "hooks are off") for each in found]

    def place_of(definition: HookDefinition) -> Path:
        return extensions.get(definition.origin, Path(definition.origin))

    refused = {
        f"The hooks of {each.origin} were not started: {why}.": None
        for each, why in others
        if only in (None, place_of(each))
    }
    if only not in (None, *map(place_of, found), *(place_of(each) for each, _ in others)):
        refused[f"Nothing was started: an agent would run no hooks of {only} here."] = None
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-") as root, session_memory.kept_below(Path(root)):
        for definition in definitions:
            key = definition.config.deduplication_key, definition.config.warm
            place = place_of(definition)
            if key in hooks or only not in (None, place):
                continue
            run = HookRun(*_example(definition, inspection, runtime))
            start = _start(run)
            if start is None:
                continue
            try:
                run.check_start()
                starting(definition.config.command)
                hook = asyncio.run(_started(definition, run, start, warm=definition.config.warm and config.warm))
                hooks[key] = hook
                diagnostics += filter(None, [_diagnostic(hook, place, inspection)])
            except (StartRefusedError, SpawnError) as error:
                refused[f"`{_named(definition)}` {error}."] = None
    return Starts(tuple(hooks.values()), tuple(diagnostics), tuple(refused))


def _named(definition: HookDefinition) -> str:
    return shorten(one_line(definition.config.identity), _MAX_NAME)


def _example(definition: HookDefinition, inspection: Inspection, runtime: Runtime) -> tuple[Any, EventRun]:
    """A hook, and an event that it is for."""
    event, config = definition.event_name, definition.config
    matches = definition.matching(event, None if definition.matches_all else definition.matcher)
    tool = next(filter(matches, inspection.tools), "write_file") if event.spec.is_about_tool else "write_file"
    base = {"session_id": _SESSION, "transcript_path": "", "cwd": runtime.working_dir()}
    fields = {**base, "hook_event_name": event.value, "timestamp": timestamp(), **sample_input(event, tool)}
    run = EventRun(event, fields, runtime)
    if config.foreign is not None:
        foreign = next(iter(config.foreign.runs_for(event, fields)), config.foreign)
        config = structs.replace(config, foreign=foreign)
    return config, run


def _start(run: HookRun) -> Start | None:
    """What the program is started with; None if it is not one that would be started ahead."""
    executor, spec = run.config.executor, run.config.spec
    if not isinstance(executor, CommandExecutor) or not isinstance(spec, CommandSpec) or spec.warm is False:
        return None
    session_memory.open_folder(_SESSION)
    return executor.first_start(spec, run)


async def _started(definition: HookDefinition, run: HookRun, start: Start, *, warm: bool) -> StartedHook:
    times: list[float] = []
    early: list[str] = []
    ended = dropped = False

    def begun() -> Child:
        nonlocal ended, dropped
        before = _files(start.cwd)
        times.append(time.monotonic())
        child = spawn(
            start.argv,
            executable=start.executable,
            stdin=None,
            env=start.env,
            cwd=start.cwd,
            output_limit=start.output_limit,
        )
        waits_since, streams, ended = _looked_at(child)
        dropped = ended or bool(streams)
        times.append(waits_since)
        early.extend(streams)
        early.extend(_changes(before, _files(start.cwd)))
        times.append(time.monotonic())
        return child.begin(run.payload())

    end = await run_child(begun, timeout=run.timeout_ms / 1000)
    began, waited, had_input = times
    if ended:
        early.insert(0, _how(end))
    after_input = 0.0 if ended else (time.monotonic() - had_input) * 1000
    return StartedHook(definition, (waited - began) * 1000, after_input, tuple(early), dropped, warm, end.timed_out)


def _how(end: Completed) -> str:
    return f"ended with exit code {end.exit_code}" if end.signal is None else f"was ended by {end.signal}"


def _looked_at(child: Child) -> tuple[float, list[str], bool]:
    """Return since when a program has waited, to what it has written, and whether it has ended."""
    poll, until = select.poll(), time.monotonic() + _PATIENCE
    poll.register(child.watch.fd, select.POLLIN)
    since, looks, ended = time.monotonic(), 0, False
    while looks < _LOOKS and not ended and (now := time.monotonic()) < until:
        since, looks = (since, looks + 1) if _all_wait(child.pid) else (now, 0)
        ended = bool(poll.poll(_LOOK * 1000))
    if ended:
        since = time.monotonic()
    names = {child.stdout.fd: "stdout", child.stderr.fd: "stderr"}
    for fd in names:
        poll.register(fd, select.POLLIN)
    ready = dict(poll.poll(0))
    return since, [f"wrote to {name}" for fd, name in names.items() if ready.get(fd, 0) & select.POLLIN], ended


def _all_wait(pid: int) -> bool:
    """Whether no thread of a process and of its children runs."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "S":
                return False
            if not all(_all_wait(int(child)) for child in (task / "children").read_text().split()):
                return False
    except OSError:  # it has just ended, which is work
        return False
    return True


def _files(folder: str) -> dict[str, tuple[int, ...]] | None:
    """The files of a folder, and what changes if they do; None if there are too many to compare."""
    found: dict[str, tuple[int, ...]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                found[path] = status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode
        if len(found) > _MAX_FILES:
            return None
    return found


def _changes(
    before: Mapping[str, tuple[int, ...]] | None, after: Mapping[str, tuple[int, ...]] | None
) -> Iterator[str]:
    if before is None or after is None:
        return
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    if changed:
        names = ", ".join(f"`{shorten(os.path.basename(path), _MAX_NAME)}`" for path in changed[:_MAX_NAMED])  # noqa: PTH119
        rest = len(changed) - _MAX_NAMED
        yield f"changed {names}" + (f" and {rest} other {plural(rest, 'file')}" if rest > 0 else "")


def _diagnostic(hook: StartedHook, place: Path, inspection: Inspection) -> Diagnostic | None:
    early = " and ".join(filter(None, (", ".join(hook.early[:-1]), *hook.early[-1:])))
    rule, fix = Rule.AHEAD_TIMES, 'Add `"warm": true` to the hook.'
    if early:
        rule = Rule.ACTS_BEFORE_INPUT if hook.warm else rule
        instead = 'set `"warm": false`' if hook.warm else "leave it cold"
        fix = f"Let it read all of stdin before it does anything else, or {instead}."
    elif hook.timed_out:
        fix = "Let it end, or raise `timeout`: nobody knows yet what `warm` would save."
    elif hook.to_end > _LITTLE * hook.cold:
        fix = "`warm` saves little here: the time goes into what the hook does."
    elif hook.warm:
        fix = "Nothing to do: the hook is warm."
    message = f"takes {_milliseconds(hook.cold)} cold"
    if hook.timed_out:
        message = f"did not end within its timeout of {_milliseconds(hook.definition.config.timeout)}"
    elif not hook.dropped:
        message += f", and {_milliseconds(hook.to_end)} if it is started ahead"
    if early:
        message += f"; started ahead, it {early} before it had its input"
    if hook.dropped:
        message += ", so it would not be used"
    return _at(hook.definition, place, inspection, rule, message, fix)


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def _at(
    definition: HookDefinition, place: Path, inspection: Inspection, rule: Rule, message: str, fix: str
) -> Diagnostic | None:
    """Return a diagnostic for the command of a hook."""
    known = next((each for each in inspection.files if each.document.file == place), None)
    document = read_document(place) if known is None else known.document
    if not isinstance(document, Document):
        return None
    source = Source(place, document.text) if known is None else known.source
    way = definition.path or ("hooks", definition.event_name, definition.group_number or 0, "hooks", definition.number)
    entry = document.root.at(*way) or document.root
    node = entry.at("command") or entry
    return diagnostic_at(source, rule, node.start, node.end, message, fix)
