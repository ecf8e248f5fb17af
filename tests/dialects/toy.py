"""A dialect in one file: its hooks get one line of text in JSON, and any output of theirs is a refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import HookConfig, HookDefinition, HookSet, read_hook
from llxprt_hooks.settings.foreign import Answer, DialectFile, NativeCall, ReadFile, Situation
from llxprt_hooks.settings.levels import Level

if TYPE_CHECKING:
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.problem import Problem


class ToyHook(NamedTuple):
    dialect: str = "toy"
    key: str = "toy"
    view: str = "toy"
    background: bool = False
    folder: str = ""

    def runs_for(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Sequence[ToyHook]:
        return (self,)

    def payload(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation
    ) -> Mapping[str, Any]:
        return {"about": hook_input["tool_name"]}

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {"TOY": "1"}

    def read(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation, ended: Completed
    ) -> Answer:
        text = ended.stdout.decode().strip()
        return Answer({"decision": "deny", "reason": text}) if text else Answer()


class Toy:
    title = "Toy"
    folders = ()

    def files(self, project: Path) -> Sequence[DialectFile]:
        return [DialectFile(project / "toy.toml", Level.PROJECT)]

    def plugin(self, folder: Path) -> DialectFile:
        return DialectFile(folder / "toy.toml", Level.USER, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        fields = document.root.to_value()
        return ReadFile(fields, disabled=fields.get("disabled", ()))

    def read_definitions(self, hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
        written = {"type": "command", "command": hook_set.hooks["guard"]}
        config, _ = read_hook(written, hook_set.before_start, hook_set.scope)
        assert config is not None
        event, path = HookEventName.BEFORE_TOOL, ("hooks", "guard")
        speaking = structs.replace(self.speaking(config), foreign=ToyHook(folder=hook_set.hooks.get("folder", "")))
        return [HookDefinition(speaking, event, hook_set.source, "toy", 0, 0, path=path)], []

    def speaking(self, config: HookConfig) -> HookConfig:
        return structs.replace(config, acts=True, foreign=ToyHook())

    def native_call(self, event: str, tool: str | None, arguments: Mapping[str, Any] | None) -> NativeCall | None:
        return None


DIALECT = Toy()
