"""The pytest plugin: the fixture ``hook_run``, and ``*.hooktest.json`` files as tests (D-50).

pytest loads this module at its start, in every project. So nothing else of the package is imported before it is used.

    def test_the_guard(hook_run):
        outcome = hook_run("BeforeTool", {"tool_name": "write_file", "tool_input": {"file_path": ".env"}}, hook="guard")
        assert outcome.decision == "block"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from llxprt_hooks.commands.fire import LoadedHooks
    from llxprt_hooks.commands.test.run import HookTest, Outcome, TestResult
    from llxprt_hooks.hooks import Hooks

T = TypeVar("T")

_SUFFIX = ".hooktest.json"
_loaded = pytest.StashKey["dict[Path, LoadedHooks]"]()


@pytest.fixture
def hook_run(request: pytest.FixtureRequest) -> Callable[..., Outcome]:
    """Fire events at the hooks of the project, for real, and get what they decide."""

    def fire(
        event: str,
        hook_input: Mapping[str, Any] | None = None,
        *,
        hook: str | None = None,
        env: Mapping[str, str | None] | None = None,
        project: str | os.PathLike[str] | None = None,
        hooks: Hooks | None = None,
    ) -> Outcome:
        """Fire an event; fields that are missing in its input get example values.

        ``hook`` names the only hook to run. ``env`` sets variables; None unsets one. The project is the nearest folder
        above the test that has hook settings; with ``hooks``, those of a program run, its functions included. Raises
        ``AssertionError`` if no hook matches or a hook fails, ``TypeError`` or ``ValueError`` for wrong arguments.
        """
        from llxprt_hooks.commands.fire import InvalidInputError, complete_input
        from llxprt_hooks.commands.test.run import fire_for_test
        from llxprt_hooks.core.engine.guards import known_event
        from llxprt_hooks.events import UnknownEventError

        __tracebackhide__ = True
        _check_arguments(hook_input, env, project, hooks)
        try:
            event_name = known_event(event)
            fields = complete_input(event_name, hook_input or {})
        except (UnknownEventError, InvalidInputError) as error:
            raise error.with_traceback(None) from None  # pytest shows the line of the test, and none of this package
        if hooks is None:
            folder = _project(request.config, request.path.parent) if project is None else Path(project)
            loaded = _hooks(request.config, folder)
        else:
            from llxprt_hooks.commands.fire import LoadedHooks

            loaded = LoadedHooks.of_program(hooks.config)
        ran = _wait(fire_for_test(loaded, event_name, fields, hook=hook, env=env or {}))
        if ran.failures:
            raise AssertionError("; ".join(ran.failures))
        return ran.outcome

    return fire


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the tests of a ``*.hooktest.json`` file."""
    if not file_path.name.endswith(_SUFFIX):
        return None
    collected: HookTestFile = HookTestFile.from_parent(parent, path=file_path)
    return collected


class HookTestFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from llxprt_hooks.commands.test.files import HookTestFileError, read_tests

        try:
            tests = read_tests(self.path)
        except HookTestFileError as error:
            raise self.CollectError(str(error)) from error
        for test in tests:
            yield HookTestItem.from_parent(self, name=test.name, test=test)


class HookTestItem(pytest.Item):
    def __init__(self, *, test: HookTest, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._test = test

    def runtest(self) -> None:
        from llxprt_hooks.commands.test.run import run_test

        result = _wait(run_test(_hooks(self.config, _project(self.config, self.path.parent)), self._test))
        if not result.passed:
            raise _HookTestFailedError(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, _HookTestFailedError):
            return super().repr_failure(excinfo, style)
        result = excinfo.value.result
        lines = [*result.problems, *result.difference()]
        return "\n".join([*lines, *(["- expected, + decided by the hooks"] if result.mismatches else [])])

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._test.line - 1, self.name


class _HookTestFailedError(Exception):
    def __init__(self, result: TestResult) -> None:
        super().__init__("; ".join(result.problems))
        self.result = result


def _check_arguments(hook_input: object, env: object, project: str | os.PathLike[str] | None, hooks: object) -> None:
    from llxprt_hooks.hooks import Hooks

    __tracebackhide__ = True
    if not isinstance(hook_input, Mapping | None):
        raise TypeError(f"the input must be a dict with fields of the event, found {hook_input!r:.80}")
    if not isinstance(env, Mapping | None):
        raise TypeError(f"`env` must be a dict of variables, found {env!r:.80}")
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str | None):
            raise TypeError(f"variables in `env` must be strings, or None to unset one, found {name!r}: {value!r:.80}")
    if project is not None and not Path(project).is_dir():
        raise ValueError(f"`project` must be a folder, and {project} is none")
    if not isinstance(hooks, Hooks | None):
        raise TypeError(f"`hooks` must be a Hooks object of your program, found {hooks!r:.80}")


def _project(config: pytest.Config, folder: Path) -> Path:
    """Return the nearest folder with hook settings that a folder is in, except the home folder; else pytest's own."""
    from llxprt_hooks.settings.levels import is_home, project_settings_file

    folders = (each for each in (folder.absolute(), *folder.absolute().parents) if not is_home(each))
    return next((each for each in folders if project_settings_file(each).is_file()), config.rootpath)


def _hooks(config: pytest.Config, project: Path) -> LoadedHooks:
    from llxprt_hooks.commands.fire import LoadedHooks

    loaded = config.stash.setdefault(_loaded, {})
    if project not in loaded:
        loaded[project] = LoadedHooks.load_unrecorded(project)
    return loaded[project]


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, also where an event loop is running."""
    from llxprt_hooks.core import loops

    return loops.run(coroutine)
