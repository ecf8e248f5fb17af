"""Every example of the documentation is run, and says what the documentation says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import AggregatedHookResult, Config, load_settings
from llxprt_hooks.settings import parse
from llxprt_hooks.settings.trust import status
from tests.docs.pages import PAGES, WALKTHROUGHS, Block, Section, every_section, sections
from tests.docs.screens import check_screen, typed

LOOKED_AT = frozenset({"console", "mermaid", "text"})
"""Languages of blocks that are for the eye."""

SETTINGS = Path(".llxprt/settings.json")
SETTINGS_KEYS = frozenset({"enableHooks", "hooks", "hooksConfig", "tools"})

INPUTS: dict[str, dict[str, Any]] = {
    "BeforeTool": {"tool_name": "write_file", "tool_input": {}},
    "AfterTool": {"tool_name": "write_file", "tool_input": {}, "tool_response": {}},
    "BeforeModel": {"llm_request": {"messages": []}},
    "BeforeToolSelection": {"llm_request": {"messages": []}},
    "SessionStart": {"source": "startup"},
}
"""What an event says where its section does not."""

SECTIONS = [section for section in every_section() if section.blocks and section.page not in WALKTHROUGHS]


@dataclass
class SectionRun:
    """The folder that the blocks of one section share, and what the last of them came to."""

    folder: Path
    home: Path
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ})
    """Not what the system has: in a process with readline, that includes the width of the terminal."""
    printed: str = ""
    scripts: list[Path] = field(default_factory=list)
    prints: list[Any] = field(default_factory=list)
    fired: tuple[str, dict[str, Any]] | None = None

    def set_up(self, block: Block) -> None:
        """Go where the reader goes before each section of the page, with the variables that are set there."""
        script = f"set -e\n{block.text}\npwd -P\nenv -0"
        environment = {**self.environment, "TMPDIR": str(self.folder)}
        done = subprocess.run(["bash", "-c", script], env=environment, stdout=subprocess.PIPE, text=True, check=True)
        folder, _, variables = done.stdout.partition("\n")
        self.folder = Path(folder)
        self.environment = dict(each.split("=", 1) for each in variables.split("\0")[:-1])
        self.home = Path(self.environment["HOME"]).resolve()

    def write(self, block: Block) -> None:
        file = self.file(block)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        is_script = block.text.startswith("#!")
        file.chmod(0o755 if is_script else 0o644)
        if is_script:
            self.scripts.append(file)

    def file(self, block: Block) -> Path:
        path = block.words["file"]
        return self.home / path[2:] if path.startswith("~/") else self.folder / path

    def execute(self, *command: str, stderr: int, status: int = 0) -> None:
        done = subprocess.run(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=stderr)
        self.printed = done.stdout.decode()
        assert done.returncode == status, (done.stderr or done.stdout).decode()

    def config(self) -> Config:
        """The section's own settings, or else its scripts and printed outputs as hooks, in order."""
        if (self.folder / SETTINGS).exists():
            return Config.load(self.folder)
        commands = [shlex.quote(str(script)) for script in self.scripts]
        commands += [f"echo {shlex.quote(json.dumps(output))}" for output in self.prints]
        hooks = [{"type": "command", "command": command} for command in commands]
        event = self.fired[0] if self.fired else ""
        return Config(enable_hooks=True, working_dir=self.folder, hooks={event: [{"hooks": hooks}]})


async def _program(run: SectionRun, block: Block) -> None:
    (run.folder / "program.py").write_text(block.text, encoding="utf-8")
    run.execute(sys.executable, "-W", "error", "program.py", stderr=subprocess.PIPE)


async def _shell(run: SectionRun, block: Block) -> None:
    if "answer" in block.words:
        run.printed = typed(block.text, [block.words["answer"]], folder=run.folder, environment=run.environment)
        return
    run.execute("bash", "-c", block.text, stderr=subprocess.STDOUT, status=int(block.words.get("exits", 0)))


async def _output(run: SectionRun, block: Block) -> None:
    check_screen(block.text, run.printed, folder=run.folder, home=run.home)


async def _stdin(run: SectionRun, block: Block) -> None:
    """Compared with what the engine sends, in test_payloads.py."""
    assert block.words["stdin"] or json.loads(block.text)["hook_event_name"]


async def _fire(run: SectionRun, block: Block) -> None:
    run.fired = block.words["fire"], json.loads(block.text)


async def _prints(run: SectionRun, block: Block) -> None:
    run.prints.append(json.loads(block.text))


async def _result(run: SectionRun, block: Block) -> None:
    event = block.words["result"]
    if event:
        run.fired = event, INPUTS[event]
    assert run.fired, "a result needs an event"
    result = await fire(run.config(), *run.fired)
    assert result.final_output is not None
    assert result.final_output.to_dict() == json.loads(block.text)


async def _json(run: SectionRun, block: Block) -> None:
    value = parse(block.text).to_value() if block.language == "jsonc" else json.loads(block.text)
    if "broken" in block.words or not isinstance(value, dict) or not SETTINGS_KEYS & value.keys():
        return
    if "file" not in block.words:
        (run.folder / SETTINGS.parent).mkdir(exist_ok=True)
        (run.folder / SETTINGS).write_text(block.text, encoding="utf-8")
    assert load_settings(run.folder).problems == ()
    system = Config.load(run.folder).get_hook_system()
    if system is not None:
        await system.initialize()
        assert system.get_registry().problems == []


BY_WORD: dict[str, Callable[[SectionRun, Block], Awaitable[None]]] = {
    "output": _output,
    "stdin": _stdin,
    "fire": _fire,
    "prints": _prints,
    "result": _result,
}
BY_LANGUAGE: dict[str, Callable[[SectionRun, Block], Awaitable[None]]] = {
    "python": _program,
    "sh": _shell,
    "json": _json,
    "jsonc": _json,
}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
async def test_the_examples_of_a_section(section: Section, tmp_path: Path, home: Path) -> None:
    for program in {block.words["needs"] for block in section.blocks if "needs" in block.words}:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    run = SectionRun(tmp_path / "shop", home)
    run.folder.mkdir()
    for setup in (block for each in sections(section.page) for block in each.blocks if "setup" in block.words):
        run.set_up(setup)
    for block in section.blocks:
        try:
            await _take(run, block)
        except Exception as error:
            error.add_note(f"in {section.page.name}, line {block.line}: ```{block.info}")
            raise


def test_every_block_is_run_or_meant_for_the_eye() -> None:
    known = {*LOOKED_AT, *BY_LANGUAGE}
    blocks = [(section, block) for section in SECTIONS for block in section.blocks]
    assert [
        f"{section.name}, line {block.line}"
        for section, block in blocks
        if block.language not in known and "file" not in block.words
    ] == []
    for_the_eye = sum(block.language in LOOKED_AT and not block.words for _, block in blocks)
    assert for_the_eye <= len(blocks) / 10


async def _take(run: SectionRun, block: Block) -> None:
    if "file" in block.words:
        run.write(block)
        if block.language in {"json", "jsonc"}:
            await _trusted(_json, run, block)
        return
    word = next((word for word in block.words if word in BY_WORD), None)
    take = BY_WORD[word] if word else BY_LANGUAGE.get(block.language)
    if take is not None:
        await (_trusted(take, run, block) if take in {_result, _json} else take(run, block))


async def _trusted(take: Callable[[SectionRun, Block], Awaitable[None]], run: SectionRun, block: Block) -> None:
    """The engine takes the example's hooks as approved, for each block as if in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
        patch.setattr(status, "_approved_for_process", {})
        await take(run, block)


async def fire(config: Config, event: str, hook_input: dict[str, Any]) -> AggregatedHookResult:
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    return await system.get_event_handler().fire_event(event, hook_input)


def test_no_example_replaces_the_readers_own_files() -> None:
    """A page that writes to the home directory has one made for it."""
    pages = [[block for section in sections(page) for block in section.blocks] for page in PAGES]
    unsafe = [
        block.info
        for blocks in pages
        if not any("setup" in block.words for block in blocks)
        for block in blocks
        if "file=~" in block.info and "~/.llxprt/extensions/" not in block.info
    ]
    assert unsafe == []
