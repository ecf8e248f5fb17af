"""The inspector's page in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from llxprt_hooks import Hooks
from tests.support.browser import browsing, need_browser
from tests.support.inspector import GUARD, fire, inspecting
from tests.support.processes import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

    from tests.support.cli import CliProject

SECRET = {"file_path": "a.txt", "content": "AKIA1234"}


class Page:
    """A person at the page."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        until(lambda: len(self.all(selector)) > 0)
        return self.all(selector)[0]

    def text(self, selector: str) -> str:
        """What a person reads there; elements that are replaced meanwhile are read again."""
        found: Any = self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText).join('\\n')", selector
        )
        return "\n".join(line for line in str(found).splitlines() if line.strip())

    def see(self, selector: str, text: str) -> None:
        until(lambda: text in self.text(selector))

    def rows(self) -> list[str]:
        """The events in the list, from the top."""
        found: list[str] = self.browser.execute_script(
            "return [...document.querySelectorAll('.row')].sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)"
            ".map((row) => [...row.querySelectorAll('.what > :not(.who)')].map((each) => each.innerText).join(' '))"
        )
        return found

    def press(self, keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(keys).perform()

    def click(self, selector: str) -> None:
        self._do(selector, "found.click()")

    def choose(self, identity: str, value: str) -> None:
        until(lambda: len(self.all(f"#{identity} option[value='{value}']")) > 0)
        self._do(f"#{identity}", "found.value = arguments[1]; found.dispatchEvent(new Event('change'))", value)

    def _do(self, selector: str, action: str, *arguments: str) -> None:
        """Find an element and use it in one step: the page may replace it at any time."""
        script = f"const found = document.querySelector(arguments[0]); if (found) {{ {action} }} return found !== null"
        until(lambda: bool(self.browser.execute_script(script, selector, *arguments)))

    def problems(self) -> list[Any]:
        """What the browser complained about: errors of the script, and what the policy forbade."""
        found: list[Any] = self.browser.get_log("browser")  # type: ignore[no-untyped-call]
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    need_browser()
    with browsing() as running:
        yield running


AGENT = """
from llxprt_hooks import Hooks

for team in ("web", "docs"):
    hooks = Hooks.load(".", log=True, metadata={"team": team})
    with hooks.session(f"session-of-{team}"):
        hooks.sync.run_tool("run_shell_command", {"command": "ls"}, lambda args: "a.txt")
        hooks.sync.run_tool("read_card", {}, lambda args: "4111 1111")
"""
CLAUDE = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "ls -l"}}}'
REDACT = '{"hookSpecificOutput": {"tool_response": "****"}}'
SLOW = f"echo '{REDACT}'; until [ -e go ]; do sleep 0.1; done"
ACTING: dict[str, Any] = {
    "BeforeTool": [
        {
            "matcher": "run_shell_command",
            "dialect": "claude",
            "hooks": [{"type": "command", "command": f"echo '{CLAUDE}'"}],
        }
    ],
    "AfterTool": [{"matcher": "read_card", "hooks": [{"type": "command", "name": "redact", "command": SLOW}]}],
}


@contextmanager
def opened(browser: Chrome, world: CliProject) -> Iterator[Page]:
    """The page of an inspector in a project; in the end, the browser must have nothing to complain about."""
    with inspecting(world) as inspector:
        page = Page(browser)
        try:
            browser.get(inspector.address)
            page.see("#live", "Live")
            yield page
            assert page.problems() == []
        finally:
            browser.get("about:blank")  # before the server ends, which the browser would complain about
            page.problems()


@pytest.fixture
def page(browser: Chrome, world: CliProject) -> Iterator[Page]:
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    with opened(browser, world) as page:
        yield page


def test_open_live_event_filter_details_fire_again_difference(page: Page, world: CliProject) -> None:
    assert "token" not in page.browser.current_url
    page.see("#empty", "Waiting for the first event")

    fire(world, "write_file", SECRET)
    until(lambda: page.rows() == ["AfterTool write_file", "BeforeTool write_file"])
    assert not page.one("#empty").is_displayed()

    page.choose("filter-event", "BeforeTool")
    until(lambda: page.rows() == ["BeforeTool write_file"])
    assert "event=BeforeTool" in page.browser.current_url
    fire(world, "read_file", {})
    page.see("#event-count", "1")

    page.click(".row.blocked")
    page.see("#details h2", "BeforeTool")
    page.see("#details .callout", "it has a key")
    page.see("#details .card", "exit code 2")
    page.see("#details .plan", "because its matcher 'write_file' matches 'write_file'")
    page.see("#details .plan", "its matcher 'Write' does not match 'write_file'")
    page.see("#details", "AKIA1234")

    page.click("#fire-button")
    editor = page.one("#fire-input")
    assert json.loads(str(editor.get_property("value"))) == {"tool_name": "write_file", "tool_input": SECRET}
    editor.clear()
    editor.send_keys("{")
    assert not page.one("#fire-run").is_enabled()
    editor.clear()
    editor.send_keys(json.dumps({"tool_name": "write_file", "tool_input": {**SECRET, "content": "harmless"}}))
    page.click("#fire-run")
    page.see("#fire-verdict", "Different: decision, reason.")
    page.see("#fire-result .verdict", "Allowed")
    page.see("#fire-result .diff .del", "AKIA1234")
    page.see("#fire-result .diff .add", "harmless")


def test_search_decisions_and_clearing(page: Page, world: CliProject) -> None:
    fire(world, "write_file", SECRET)
    fire(world, "write_file", {"file_path": "b.txt", "content": "plain words"})
    until(lambda: len(page.rows()) == 4)

    page.press("/")
    page.press("plain words")
    until(lambda: len(page.rows()) == 2)
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)
    until(lambda: len(page.rows()) == 4)

    page.click(".chip.blocked")
    until(lambda: page.rows() == ["BeforeTool write_file"])
    page.choose("filter-tool", "write_file")
    page.choose("filter-hook", "broken")
    page.see("#empty", "No event matches")
    page.click("#empty button")
    until(lambda: len(page.rows()) == 4)


def test_keyboard(page: Page, world: CliProject) -> None:
    fire(world, "write_file", SECRET)
    until(lambda: len(page.rows()) == 2)

    page.press("j")
    page.see("#details h2", "AfterTool")
    page.press("j")
    page.see("#details h2", "BeforeTool")
    page.press("k")
    page.see("#details h2", "AfterTool")
    page.press(Keys.ENTER)
    assert page.browser.switch_to.active_element.get_attribute("id") == "details"
    page.press("f")
    page.see("#fire", "Fire again")
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)
    until(lambda: not page.all("#fire-input"))
    page.press(Keys.ESCAPE)
    page.see("#details", "No event selected")
    page.press("?")
    assert page.one("#help").is_displayed()
    page.press(Keys.ESCAPE)
    page.press("h")
    page.see("#hooks-view", "no-secrets")


@pytest.mark.parametrize("width", [1280, 390])
def test_no_filter_is_hidden_and_escape_leaves_one_thing_at_a_time(world: CliProject, width: int) -> None:
    need_browser()
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    for _ in range(2):
        fire(world, "write_file", SECRET)
    with browsing(width, 800) as browser, opened(browser, world) as page:
        until(lambda: len(page.rows()) == 4)
        page.click(".chip.blocked")
        page.choose("filter-tool", "write_file")
        page.press("h")
        until(lambda: page.text("#active").split("\n") == ["blocked ×", "tool: write_file ×", "Clear filters"])
        page.see("#hooks", "no-secrets\nBeforeTool, 2 runs, 2 blocked")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width

        page.press("e")
        page.click(".row.blocked")
        page.see("#details", "it has a key")
        page.press("h")
        page.press(Keys.ESCAPE)  # the hooks
        until(lambda: page.one("#events-view").is_displayed())
        page.see("#details", "it has a key")
        page.click("#fire-button")
        page.one("#fire-input")
        page.press(Keys.ESCAPE)  # what is fired again
        until(lambda: not page.all("#fire-input"))
        page.see("#details", "it has a key")
        page.press(Keys.ESCAPE)  # the event; on a phone, its page first
        if width < 500:
            until(lambda: not page.one("#details").is_displayed())
            page.press(Keys.ESCAPE)
        until(lambda: not page.all(".row[aria-selected=true]"))
        page.press(Keys.ESCAPE)  # the filter that was set last
        until(lambda: page.text("#active").split("\n") == ["blocked ×", "Clear filters"])
        page.click("#active button")
        until(lambda: len(page.rows()) == 4)
        assert not page.one("#active").is_displayed()


def test_an_event_appears_when_it_starts_with_who_asked_and_what_changed(browser: Chrome, world: CliProject) -> None:
    world.write(world.project_file, {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": ACTING})
    environment = world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1")
    with (
        opened(browser, world) as page,
        subprocess.Popen([sys.executable, "-c", AGENT], env=environment, cwd=world.root) as agent,
    ):
        page.see(".row.running", "Running by redact")
        page.see(".row.running .who", "web")
        page.see(".row.running .who", "…ssion-of-web")
        page.click(".row.running")
        page.see("#details", "Running: redact.")
        page.see("#details .facts", "session-of-web")
        assert page.all("#fire-button") == []
        world.write(world.root / "go", "")
        page.see("#details .card", "Replaces the result.")
        assert agent.wait() == 0
        until(lambda: len(page.rows()) == 4)
        page.choose("filter-caller", "team=docs")
        until(lambda: len(page.rows()) == 2)
        page.choose("filter-session", "session-of-web")
        page.see("#empty", "No event matches")
        page.press(Keys.ESCAPE)
        page.press(Keys.ESCAPE)
        until(lambda: len(page.rows()) == 2)
        page.click(f"[id='row-{newest(page, 'run_shell_command')}']")
        page.see("#details .card", "claude")
        page.see("#details .card", "Changes the arguments.")


def newest(page: Page, tool: str) -> str:
    """The id of the newest event of a tool."""
    found: str = page.browser.execute_script(
        "const rows = [...document.querySelectorAll('.row')].filter((row) => row.innerText.includes(arguments[0]));"
        "return rows.sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)[0].id",
        tool,
    )
    return found.removeprefix("row-")


def test_hooks_that_never_fire_and_latencies(page: Page, world: CliProject) -> None:
    for _ in range(2):
        fire(world, "write_file", SECRET)
    page.see("#finding-count", "2")
    page.click("#tab-hooks")

    page.see("#findings", "Never fired\ntypo BeforeTool")
    page.see("#findings", "Always fails\nbroken AfterTool")
    page.see("#hooks", "no-secrets\nBeforeTool, 2 runs, 2 blocked")
    assert len(page.all("#hooks .hist rect:not(.zero)")) >= 2
    page.click(".hook h3 button")
    until(lambda: len(page.rows()) == 2)


def test_what_hooks_say_is_shown_as_text(browser: Chrome, world: CliProject) -> None:
    rude = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    hook = {"type": "command", "name": rude, "command": f"echo '{rude.replace(chr(39), '')}' >&2; exit 2"}
    world.write(world.project_file, {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    with opened(browser, world) as page:
        fire(world, rude, {rude: rude})
        until(lambda: len(page.rows()) == 1)
        page.click(".row")
        page.see("#details", "<img src=x")
        page.click("#fire-button")
        page.click("#fire-run")
        page.see("#fire-verdict", "The same decision.")
        page.click("#tab-hooks")
        page.see("#hooks", "<img src=x")

        assert page.browser.title == "Hook inspector"
        assert page.all("main img, main script") == []


def test_a_hook_that_only_observes_is_shown_with_what_it_would_have_done(browser: Chrome, world: CliProject) -> None:
    hook = {"type": "command", "name": "policy", "mode": "observe", "command": "echo 'not on Fridays' >&2; exit 2"}
    world.write(world.project_file, {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    fire(world, "write_file", SECRET)
    with opened(browser, world) as page:
        page.see(".row.allowed", "would block")
        page.click(".row")
        page.see("#details .card", "Only observes")
        page.see("#details .card", "It would have blocked: not on Fridays")


def test_ten_thousand_events_need_few_elements_and_can_be_scrolled_through(browser: Chrome, world: CliProject) -> None:
    events = [
        {"event_id": f"e{at}", "timestamp": f"2026-11-16T{at // 600:02}:{at // 10 % 60:02}:{at % 10:02}.000Z",
         "event_name": "BeforeTool", "subject": f"tool_{at}", "hooks": ["guard"], "wall_time": at % 700,
         "blocked": at % 50 == 0, "reason": "no" if at % 50 == 0 else None}
        for at in range(10_000)
    ]  # fmt: skip
    runs = [{**each, "id": f"x{at}", "hook": "guard", "duration": each["wall_time"]} for at, each in enumerate(events)]
    lines = [json.dumps(each) for pair in zip(runs, events, strict=True) for each in pair]
    world.write(world.log_file, "\n".join(lines) + "\n")
    with opened(browser, world) as page:
        page.see("#event-count", "10,000")
        until(lambda: page.rows()[:1] == ["BeforeTool tool_9999"])
        assert len(page.all(".row")) < 100

        def scroll() -> bool:
            browser.execute_script("document.getElementById('list').scrollTop = 1e9")
            return page.rows()[-1:] == ["BeforeTool tool_0"]

        until(scroll)
        assert len(page.all(".row")) < 100
        page.click(".chip.blocked")
        page.see("#event-count", "200")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_person_allows_and_denies_calls(world: CliProject, width: int, dark: bool) -> None:
    need_browser()
    agent = (
        "import asyncio\nfrom llxprt_hooks import ApprovalRequest\n"
        "from llxprt_hooks.integrations.approvers import ask_in_inspector\n"
        "async def main():\n"
        "    given = [{'to': to, 'note': '<b>' * 900} for to in 'ab']\n"
        "    asked = [ApprovalRequest('deploy', each, 'sure?', 'deploys', 's1') for each in given]\n"
        "    print(await asyncio.gather(*map(ask_in_inspector, asked)))\n"
        "asyncio.run(main())"
    )
    with browsing(width, 800, dark=dark) as browser, opened(browser, world) as page:
        command = [sys.executable, "-c", agent]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=world.environment(), cwd=world.root) as process:
            until(lambda: len(page.all(".question")) == 2)
            assert browser.title == "(2) Hook inspector"
            assert "deploys asks: sure?" in page.text(".question")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            answer_first(page, ".primary")
            assert browser.title == "(1) Hook inspector"
            answer_first(page, ".deny")
            assert process.stdout
            answers = process.stdout.read().decode().strip()
        assert sorted(answers.strip("[]").split(", ")) == ["False", "True"]


def answer_first(page: Page, answer: str) -> None:
    """Answer the first question, as often as it takes: a click right after the page has changed has no effect."""
    count = len(page.all(".question"))
    page.browser.execute_script("window.first = document.querySelector('.question')")

    def is_answered() -> bool:
        page.browser.execute_script("window.first.querySelector(arguments[0]).click()", answer)
        return len(page.all(".question")) == count - 1

    until(is_answered)


LENGTHS = """
const text = document.createRange();
const isWhole = (each) => {
    text.selectNodeContents(each);
    return text.getBoundingClientRect().width <= each.getBoundingClientRect().width + .01;
};
const shown = [...document.querySelectorAll(".row code, .row .who > i")].filter((each) => each.offsetWidth > 0);
return shown.map((each) => [each.innerText, isWhole(each)]);
"""
"""The tool and the session of the newest event, and whether each is there from its first letter to its last."""


@pytest.mark.parametrize(("width", "shown"), [(1280, ["write_file", "2b0e9b4c…"]), (390, ["write_file"])])
def test_who_asked_leaves_room_for_the_tool_and_the_session(world: CliProject, width: int, shown: list[str]) -> None:
    need_browser()
    session_id = "2b0e9b4c-7f0e-4c1a-9d3e-000000000001"
    metadata = {"tenant": "a-tenant-with-a-long-name", "user": "somebody.with.a.long.name@example.com"}
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    with world.inside(LLXPRT_TRUST_PROJECT_HOOKS="1"):
        hooks = Hooks.load(world.root, log=True, metadata=metadata)
        with hooks.session(session_id):
            hooks.sync.run_tool("write_file", SECRET, lambda arguments: "done")
    with browsing(width) as small, opened(small, world) as page:
        until(lambda: len(page.rows()) == 1)
        found: Any = small.execute_script(LENGTHS)
        assert found == [[each, True] for each in shown]
