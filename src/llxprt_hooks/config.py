"""The configuration that a program passes to the hook functions.

Create it in code with ``Config(…)``, or read settings files with ``Config.load(…)``. Neither runs a hook or creates any
part of the engine; that happens when the first event fires.
"""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.guards import RequiredHook, require_hooks, required_hooks
from llxprt_hooks.core.engine.observer import HookObserver, Observers
from llxprt_hooks.core.engine.system import HookSystem
from llxprt_hooks.core.executors.base import DEFAULT_MAX_PROCESSES, DEFAULT_OUTPUT_LIMIT
from llxprt_hooks.core.protocol.caller import checked_metadata
from llxprt_hooks.process import ForkSafeLock
from llxprt_hooks.process.shell.command_line import PROJECT_TRUSTED_VARIABLE
from llxprt_hooks.process.shell.environment import process_environment, without_relative_path
from llxprt_hooks.settings import Extension, Level
from llxprt_hooks.settings.definitions import HookDefinition, HookScope, HookSet, known_dialects
from llxprt_hooks.settings.foreign import NATIVE
from llxprt_hooks.settings.hook_entries import SWITCHES
from llxprt_hooks.settings.hook_fields import DEFAULT_MAX_CONTINUATIONS, PROFILES, STANDARD
from llxprt_hooks.settings.levels import wants_log
from llxprt_hooks.settings.load import Settings, extension_hook_set, load_settings, merge_hooks
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.settings.trust.notices import missing_project
from llxprt_hooks.settings.trust.status import TrustState, has_approval
from llxprt_hooks.settings.trust.watch import SettingsWatch

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.approval import Approver
    from llxprt_hooks.core.engine.messages import MessageBus
    from llxprt_hooks.fleet.audit.trail import AuditTrail
    from llxprt_hooks.model import TranslatorChoice

log = debug_logger("system")


_GONE = (
    "The approved hooks are gone from the settings of the project. To remove them from a running program, run "
    "`llxprt-hooks untrust`, then reload; or start the program again."
)


class IntegrationFields(TypedDict, total=False):
    """The keyword arguments of ``Config`` that integrations pass on."""

    session_id: str | None
    working_dir: str | os.PathLike[str] | None
    enable_hooks: bool | None
    hooks: Mapping[str, Any] | None
    extensions: Iterable[Extension]
    disabled_hooks: Iterable[str]
    message_bus: MessageBus | None
    transcript_path: str | os.PathLike[str]
    translator: TranslatorChoice
    observer: HookObserver | None
    output_limit: int
    max_processes: int
    profile: str
    approver: Approver | None
    max_continuations: int
    dialect: str


class ConfigFields(IntegrationFields, total=False):
    """The keyword arguments of ``Config``."""

    metadata: Mapping[str, Any] | None


class LoadOptions(TypedDict, total=False):
    """The keyword arguments of ``Config.load``, which ``Hooks.load`` and the ``load`` of every integration take too."""

    session_id: str | None
    message_bus: MessageBus | None
    transcript_path: str | os.PathLike[str]
    translator: TranslatorChoice
    observer: HookObserver | None
    output_limit: int
    strict: bool
    max_processes: int
    watch: bool
    require: Iterable[str]
    log: bool
    profile: str | None
    approver: Approver | None
    metadata: Mapping[str, Any] | None
    dialects: Iterable[str]
    plugins: Iterable[str | os.PathLike[str]]


class Config:
    """The hooks, whether they are enabled, and the session fields of every payload.

    >>> config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]})

    All arguments are optional and, except for ``dialect``, also attributes:

    - ``session_id`` and ``transcript_path``: fields of every payload. The default id is a new UUID.
    - ``working_dir``: ``cwd`` in every payload, and the folder in which hooks run; by default the current folder.
    - ``enable_hooks`` and ``hooks``: the ``hooks`` object of a settings file, as a dict. Without ``enable_hooks=True``,
      its hooks stay off, and the first use logs a warning.
    - ``extensions`` and ``disabled_hooks``: ``Extension(name=…, hooks={…}, is_active=True)``, and names of hooks.
    - ``message_bus``: where other parts of the program request hooks.
    - ``translator``: a name or a ``HookTranslator``, by default ``"google-genai"``.
    - ``observer``: a ``HookObserver`` that is notified of every event and hook.
    - ``output_limit``: how many bytes of a hook's stdout and of its stderr are kept, by default 10 MiB.
    - ``max_processes``: how many hooks run as processes at once, in all events, event loops and threads, by default 64,
      or fewer if the process may open only a few files (``ulimit -n``). The others wait; a hook's timeout starts when
      the hook does.
    - ``metadata``: who asks, a dict of JSON values for the field ``metadata`` of every payload.
    - ``profile``, ``approver`` and ``max_continuations``: for hooks that act.
    - ``dialect``: the agent whose format ``hooks`` has.
    """

    _witness: ClassVar[HookObserver | None] = None
    """What observes every configuration whose first event fires meanwhile: ``testing.prove`` does."""

    def __init__(
        self,
        *,
        session_id: str | None = None,
        working_dir: str | os.PathLike[str] | None = None,
        enable_hooks: bool | None = None,
        hooks: Mapping[str, Any] | None = None,
        extensions: Iterable[Extension] = (),
        disabled_hooks: Iterable[str] = (),
        message_bus: MessageBus | None = None,
        transcript_path: str | os.PathLike[str] = "",
        translator: TranslatorChoice = None,
        observer: HookObserver | None = None,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        profile: str = STANDARD,
        approver: Approver | None = None,
        max_continuations: int = DEFAULT_MAX_CONTINUATIONS,
        metadata: Mapping[str, Any] | None = None,
        dialect: str = NATIVE,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Mapping):
            raise TypeError(f"`hooks` must map event names to lists of hook groups, found {type(hooks).__name__}")
        _check_profile(profile)
        known_dialects([dialect])
        if max_processes < 1:
            raise ValueError(f"`max_processes` must be at least 1, found {max_processes}")
        self.session_id = session_id or str(uuid.uuid4())
        self.working_dir = os.path.abspath(working_dir or os.getcwd())  # noqa: PTH100, PTH109  # hooks receive it as text
        self.transcript_path = os.fspath(transcript_path)
        self.enable_hooks = bool(enable_hooks)
        self.extensions = tuple(extensions)
        self.disabled_hooks: Sequence[str] = (*disabled_hooks, *_disabled_names(hooks or {}))
        self.message_bus = message_bus
        self.translator = translator
        self.observer = observer
        self.output_limit = output_limit
        self.max_processes = max_processes
        self.profile = profile
        """``standard``, or ``full``: then hooks act (D-46)."""
        self.approver = approver
        """Who decides about a call if a hook that acts asks."""
        self.max_continuations = max_continuations
        self.metadata: Mapping[str, Any] = checked_metadata(metadata)
        """Who asks, in the program's own words: a JSON object for every payload, unless it is empty (D-141)."""
        self.approval_mode = "default"
        """Which calls the program runs without asking: ``default``, ``auto_edit`` or ``yolo``."""
        self._own_profile: str | None = None
        self._spoken: tuple[tuple[str, ...], tuple[str | os.PathLike[str], ...]] = ((), ())
        self.settings: Settings | None = None
        """The result of ``load``: problems, notices, trust. None for a configuration created in code."""
        self.audit: AuditTrail | None = None
        """What sends the record of every execution to a server, if the settings say so."""
        self.required: tuple[RequiredHook, ...] = ()
        """What must have a hook in the settings, now and after every reload."""
        events = {event: groups for event, groups in (hooks or {}).items() if event not in SWITCHES}
        self._settings_hooks: tuple[HookSet, ...] = (HookSet(events, dialect=dialect),) if events else ()
        self._settings_enabled = self.enable_hooks
        self._forgotten_switch = enable_hooks is None and bool(events)
        self._function_hooks: tuple[HookDefinition, ...] = ()
        self._inherited: dict[HookScope, tuple[Mapping[str, str], Settings | None, Mapping[str, str]]] = {}
        self._lock = ForkSafeLock()
        self._hook_system: HookSystem | None = None

    @classmethod
    def load(
        cls,
        project_dir: str | os.PathLike[str] = ".",
        *,
        session_id: str | None = None,
        message_bus: MessageBus | None = None,
        transcript_path: str | os.PathLike[str] = "",
        translator: TranslatorChoice = None,
        observer: HookObserver | None = None,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        strict: bool = False,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        watch: bool = False,
        require: Iterable[str] = (),
        log: bool = False,
        profile: str | None = None,
        approver: Approver | None = None,
        metadata: Mapping[str, Any] | None = None,
        dialects: Iterable[str] = (),
        plugins: Iterable[str | os.PathLike[str]] = (),
    ) -> Config:
        """Read the settings files of system, user and project, and the extensions.

        A broken file is reported in ``config.settings.problems``, and the other files apply; with ``strict``,
        ``SettingsError`` is raised for a file that exists and cannot be read or parsed, and for a folder that does not
        exist. Hooks of a project run only if the user has approved them; skipped ones are listed in
        ``config.settings.notices``. With ``watch`` the files are read again within about a second after one of them, an
        extension or an approval has changed: an error is then a warning, and hooks of a deleted user or system file
        stay. A ``profile`` takes the place of that of the settings. ``metadata`` is in every payload.

        ``dialects`` names other agents whose hooks run as well, unchanged, from their own settings files:
        ``("claude",)``. ``plugins`` are folders with more of these.

        ``require`` lists what must have a hook: ``"BeforeTool:write_file"``, or just the event. If none would run,
        because none is configured, hooks are off, the project is not approved or has changed, or the hook is disabled
        or only observes, ``GuardMissingError`` is raised. A reload that would lose such a hook keeps the old ones.

        With ``log``, with ``hooksConfig.log`` or with the variable ``LLXPRT_HOOKS_LOG=1``, executions are recorded for
        ``llxprt-hooks log``. A path in that variable is the file to record them in.
        """
        _check_profile(profile)
        required = required_hooks(require)
        spoken = known_dialects(dialects), tuple(plugins)
        watched = SettingsWatch(project_dir, *spoken) if watch else None
        settings = load_settings(project_dir, profile=profile, dialects=spoken[0], plugins=spoken[1])
        if strict:
            settings.require_readable(*Level)
            if missing := missing_project(project_dir):
                raise SettingsError((missing,))
        config = cls(
            session_id=session_id,
            working_dir=project_dir,
            message_bus=message_bus,
            transcript_path=transcript_path,
            translator=translator,
            observer=observer,
            output_limit=output_limit,
            max_processes=max_processes,
            approver=approver,
            metadata=metadata,
        )
        config._own_profile = profile
        config._spoken = spoken
        config.use(settings)
        config._require(required)
        if settings.audit is not None:
            from llxprt_hooks.fleet.audit.trail import AuditTrail

            config.audit = AuditTrail(settings.audit, config.working_dir)
            config._observe_too(config.audit)
        if log or settings.log or wants_log():
            config._log()
        if watched is not None:
            watched.start(config)
        return config

    def unobserved(self) -> Config:
        """Return a configuration with the same hooks and a hook system of its own, whose events nobody observes."""
        other = copy.copy(self)
        other.observer = other.audit = other.message_bus = other._hook_system = None
        other._lock, other._inherited = ForkSafeLock(), {}
        return other

    def _log(self) -> None:
        """Record executions in the local log, unless the program's own observer does."""
        from llxprt_hooks.fleet.audit.log import HookLog

        observers = self.observer.observers if isinstance(self.observer, Observers) else (self.observer,)
        if not any(isinstance(each, HookLog) for each in observers):
            self._observe_too(HookLog(self.working_dir))

    def _observe_too(self, observer: HookObserver) -> None:
        self.observer = observer if self.observer is None else Observers(observer, self.observer)

    def reload(self) -> None:
        """Read the settings files again. Events that have started finish with the old hooks.

        Hooks that the program registered stay, and changes made with ``set_hook_enabled`` are lost. A configuration
        that was created in code has nothing to read. Raises ``SettingsError``, and keeps the old hooks, if a file that
        exists cannot be read, if the hooks of an approved project have changed or are gone, and that is not approved,
        or if a required hook would be missing. ``LLXPRT_TRUST_PROJECT_HOOKS=1`` approves only the hooks that existed
        when the process first loaded the project.
        """
        old = self.settings
        if old is None:
            return
        new = load_settings(
            self.working_dir, profile=self._own_profile, dialects=self._spoken[0], plugins=self._spoken[1]
        )
        new.require_readable(*Level)
        if old.trust.counts and not new.trust.counts and has_approval(new.trust.project):
            gone = not new.trust.statement and new.trust.state is not TrustState.REFUSED
            changed = f"{new.trust.file}: {new.not_approved}" if new.not_approved else None
            raise SettingsError((_GONE,) if gone else (*([changed] if changed else ()), *new.trust.problems))
        candidate = Config(working_dir=self.working_dir)
        candidate.use(new)
        candidate._require(self.required)
        with self._lock:
            if self._hook_system is None:
                self.use(new)
            else:
                self._hook_system.reload(lambda: self.use(new))

    def use(self, settings: Settings) -> None:
        """Use settings that were read before. Called before the first event."""
        self.settings = settings
        self.extensions = settings.extensions
        self.disabled_hooks = settings.disabled
        self.profile = settings.profile
        self.max_continuations = settings.max_continuations
        self._settings_hooks = settings.hook_sets
        self._settings_enabled = settings.enabled
        self.enable_hooks = settings.enabled or bool(self._function_hooks)

    def _require(self, required: tuple[RequiredHook, ...]) -> None:
        """Raise ``GuardMissingError`` if the settings have no hook for something that is required."""
        if required and self.settings is not None:
            require_hooks(self.settings, self, required)
        self.required = required

    @property
    def hooks(self) -> dict[str, list[Any]]:
        """All hook groups by event: managed ones first, then the project's, the user's, and the system's."""
        return merge_hooks(hook_set.hooks for hook_set in self._settings_hooks)

    @property
    def hook_sets(self) -> Sequence[HookSet]:
        """The hooks of each file; all settings levels count as the project's (HOOK-085)."""
        if not self._settings_enabled and self._function_hooks:
            return ()  # only the functions run
        extensions = [extension_hook_set(extension) for extension in self.extensions if extension.is_active]
        if self.settings is not None:
            extensions = [self.settings.warmed(each, "extensions") for each in extensions]
        return (*self._settings_hooks, *extensions)

    @property
    def function_hooks(self) -> Sequence[HookDefinition]:
        """The hooks that the program registered. They run after all others."""
        return self._function_hooks

    def add_function_hook(self, definition: HookDefinition) -> None:
        """Register a hook. It runs even if hooks are disabled; the hooks of settings stay as they are."""
        with self._lock:
            if not self._function_hooks:
                self._settings_enabled = self.enable_hooks
            self._function_hooks = (*self._function_hooks, definition)
            self.enable_hooks = True
            if self._hook_system is not None:
                self._hook_system.add(definition)

    @property
    def warm(self) -> bool:
        """Whether hooks may be warm; ``hooksConfig.warm`` can forbid it."""
        return self.settings is None or self.settings.warm

    def inherited_environment(self, scope: HookScope = HookScope.PROJECT) -> Mapping[str, str]:
        """Return the environment that hooks inherit: all of this process's, unless the settings restrict it.

        It also says whether the project is trusted. The same object while nothing has changed.
        """
        variables, settings = process_environment(), self.settings
        known_variables, known_settings, inherited = self._inherited.get(scope, (None, None, {}))
        if known_variables is not variables or known_settings is not settings:
            inherited = self._inherit(scope, variables)
            self._inherited[scope] = variables, settings, inherited
        return inherited

    def _inherit(self, scope: HookScope, variables: Mapping[str, str]) -> Mapping[str, str]:
        settings = self.settings
        trusted = settings is None or settings.project_trusted
        inherited = variables if settings is None else settings.environment_of(scope).restricted(variables)
        inherited = {**inherited, PROJECT_TRUSTED_VARIABLE: str(int(trusted))}
        if scope is HookScope.PROJECT:
            # Byte code of another version of Python would end the approval, because nobody can tell what it does.
            return inherited if settings is None else {**inherited, "PYTHONDONTWRITEBYTECODE": "1"}
        inherited, project_environment = without_relative_path(inherited), self.inherited_environment()
        return project_environment if inherited == project_environment else inherited

    def get_hook_system(self) -> HookSystem | None:
        """Return the hook system, created on the first call; None while hooks are disabled."""
        if not self.enable_hooks:
            if self._forgotten_switch:
                self._forgotten_switch = False
                log.warning("Config(hooks=…) has hooks, but they are disabled: pass enable_hooks=True to run them")
            return None
        return self._hook_system or self._make_hook_system()

    def _make_hook_system(self) -> HookSystem:
        with self._lock:
            if self._hook_system is None:
                if self._witness is not None:
                    self._observe_too(self._witness)
                self._hook_system = HookSystem(self)
            return self._hook_system


def _check_profile(profile: str | None) -> None:
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"`profile` must be {' or '.join(map(repr, PROFILES))}, found {profile!r}")


def _disabled_names(hooks: Mapping[str, Any]) -> list[str]:
    """Return the hooks that a ``hooks`` object disables itself, as in settings files."""
    names = hooks.get("disabled")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def configured(config: Config | None, fields: ConfigFields) -> Config:
    """Return the configuration that a program passes, or makes of keyword arguments: then ``hooks`` enables hooks."""
    if config is None:
        return Config(**{"enable_hooks": True, **fields} if fields.get("hooks") is not None else fields)
    if fields:
        raise TypeError(f"`{min(fields)}` is part of the configuration: pass it to Config(…)")
    return config
