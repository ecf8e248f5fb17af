"""Takes the pictures of docs/inspector.md: the inspector in a real browser, with a session of the agent in its log.

The session has the demo's hooks, and recorded answers of the model.

``make pictures`` runs it. It needs chromium and its driver.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from selenium.webdriver.common.by import By

import llxprt_hooks.cli
from llxprt_hooks.agent.approval import ApprovalMode
from llxprt_hooks.agent.build import AgentOptions, build_agent
from llxprt_hooks.fleet.audit.log import log_file
from tests.support.browser import browsing
from tests.support.cli import CliProject
from tests.support.inspector import inspecting
from tests.support.processes import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PICTURES = Path(__file__).parent
DEMO = Path(llxprt_hooks.cli.__file__).parent / "demo"

PROMPTS = (
    "Prepare the release.",
    "Have a look at the notes, but change nothing.",
    "What is the capital of France?",
    "Now look at everything.",
)

MORE = {
    "AfterTool": [
        {"hooks": [{"type": "command", "name": "notify-team", "command": "curl -fsS http://127.0.0.1:9/notify"}]},
        {"matcher": "WriteFile", "hooks": [{"type": "command", "name": "format", "command": "ruff format ."}]},
    ],
    "BeforeTool": [
        {
            "matcher": "write_file|run_shell_command",
            "hooks": [{"type": "command", "name": "audit", "command": "sleep 0.06"}],
        }
    ],
}
"""Hooks beside those of the demo: one that always fails, one with a wrong matcher, and a slow one."""


class Silent:
    """Nobody watches the agent itself."""

    def handle(self, event: object) -> None:
        pass


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = CliProject(Path(folder), "webshop")
        shutil.copytree(DEMO / "project", world.root, dirs_exist_ok=True)
        settings = json.loads((world.root / "settings.json").read_text(encoding="utf-8"))
        for event, groups in MORE.items():
            settings["hooks"][event] += groups
        world.write(world.project_file, settings, 0o600)
        environment = world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1")
        with patch.dict(os.environ, environment, clear=True):
            asyncio.run(session(world.root))
            spread(log_file())
        with inspecting(world, "--record") as inspector:
            for name, draw in PAGES.items():
                with browsing(dark=name in DARK) as browser:
                    browser.get(inspector.address)
                    until(lambda browser=browser: len(browser.find_elements(By.CSS_SELECTOR, ".row")) > 0)
                    draw(browser)
                    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 82})
                    (PICTURES / f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))


async def session(project: Path) -> None:
    """A conversation with four prompts, recorded with its payloads."""
    options = AgentOptions(
        str(project), replay=str(PICTURES / "session.jsonl"), approval_mode=ApprovalMode.YOLO, log_payloads=True
    )
    agent = build_agent(options, Silent())
    for prompt in PROMPTS:
        await agent.respond(prompt)
        agent.clear()


def spread(log: Path) -> None:
    """Repeat the session over the last hours, so that there is something to see over time."""
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    log.write_text("".join(json.dumps(each) + "\n" for each in copies(records)), encoding="utf-8")


def copies(records: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    minutes = (212, 205, 180, 171, 169, 140, 133, 90, 86, 71, 70, 69, 42, 38, 12, 11, 9, 3, 0)
    last = datetime.fromisoformat(str(records[-1]["timestamp"]))
    for number, ago in enumerate(minutes):
        for record in records:
            ended = datetime.fromisoformat(str(record["timestamp"]))
            moved = datetime.now(UTC) - timedelta(minutes=ago) - (last - ended)
            slower = 1 + (number * 7 % 5) / 6
            times = {key: float(str(record[key])) * slower for key in ("duration_ms", "wall_time") if key in record}
            ids = {key: f"{number:02x}{str(record[key])[2:]}" for key in ("id", "event_id") if key in record}
            stamp = moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield {**record, **times, **ids, "timestamp": stamp}


def open_event(browser: Chrome, hook: str) -> None:
    """Show the newest event in sight that a hook blocked."""
    click = (
        "const rows = [...document.querySelectorAll('.row.blocked')];"
        "const row = rows.find((each) => each.innerText.includes(arguments[0]));"
        "if (row) row.click(); return Boolean(row);"
    )
    until(lambda: bool(browser.execute_script(click, hook)))
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#details .card")) > 0)


def only_blocked(browser: Chrome) -> None:
    browser.find_element(By.CSS_SELECTOR, ".chip.blocked").click()
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".row:not(.blocked)")) == 0)


def draw_event(browser: Chrome) -> None:
    browser.execute_script("document.getElementById('list').scrollTop = 58 * 20")
    open_event(browser, "no-secrets")


def draw_fire(browser: Chrome) -> None:
    only_blocked(browser)
    open_event(browser, "no-secrets")
    browser.find_element(By.ID, "fire-button").click()
    browser.execute_script(
        "const input = document.getElementById('fire-input'), given = JSON.parse(input.value);"
        "given.tool_input.content = 'read the key from the environment';"
        "input.value = JSON.stringify(given, null, 2); input.dispatchEvent(new Event('input'));"
    )
    browser.find_element(By.ID, "fire-run").click()
    until(lambda: len(browser.find_elements(By.ID, "fire-verdict")) > 0)
    browser.execute_script(
        "const panel = document.getElementById('details'); panel.style.scrollBehavior = 'auto';"
        "document.querySelector('.fire').scrollIntoView({ block: 'start' }); panel.scrollTop -= 14;"
    )


PAGES: dict[str, Callable[[Chrome], None]] = {"inspector": draw_event, "inspector-fire": draw_fire}
DARK = {"inspector-fire"}

if __name__ == "__main__":
    main()
