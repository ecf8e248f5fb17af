"""``llxprt-hooks inspect``: who may use it, what it serves, and what it records."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from llxprt_hooks.cli import web
from llxprt_hooks.commands.log import LogReader
from llxprt_hooks.fleet.audit.recording import is_recording, recording
from tests.support.inspector import GUARD, Inspector, fire, inspecting
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

STATIC = Path(web.__file__).parent / "static"
SECRET = {"file_path": "a.txt", "content": "AKIA1234"}


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    fire(world, "write_file", SECRET)
    return world


@pytest.fixture
def inspector(guarded: CliProject) -> Iterator[Inspector]:
    with inspecting(guarded) as running:
        yield running


# Who may use it.


def test_nothing_is_served_without_the_token(inspector: Inspector) -> None:
    paths = (
        "/",
        "/page.js",
        "/api/events",
        "/api/overview",
        "/api/stream",
        "/?token=wrong",
        "/?token=",
        "/favicon.ico",
    )
    for path in paths:
        answer = httpx.get(inspector.origin + path, timeout=DEADLINE)
        assert answer.status_code == 403, path
        assert "set-cookie" not in answer.headers
        assert "AKIA" not in answer.text


def test_the_token_opens_the_page_only_and_becomes_a_cookie(inspector: Inspector) -> None:
    token = inspector.address.partition("?")[2]
    assert httpx.get(f"{inspector.origin}/api/events?{token}", timeout=DEADLINE).status_code == 403

    answer = httpx.get(inspector.address, timeout=DEADLINE)

    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token.partition("=")[2] not in cookie


def test_another_host_name_is_refused_even_with_the_cookie(inspector: Inspector) -> None:
    with inspector.client() as client:
        port = client.base_url.port or 0
        assert client.get("/api/events").status_code == 200
        assert client.get("/api/events", headers={"Host": f"localhost:{port}"}).status_code == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
            assert client.get("/api/events", headers={"Host": host}).status_code == 403, host


FOREIGN: list[dict[str, str]] = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
]


def test_hooks_run_only_for_the_inspectors_own_page(inspector: Inspector) -> None:
    with inspector.client() as client:
        [event] = [each for each in events(client) if each["decision"] == "blocked"]
        body = {"id": event["id"], "input": {"tool_name": "write_file", "tool_input": {}}}

        for headers in FOREIGN:
            assert client.post("/api/fire", json=body, headers=headers).status_code == 403, headers
        assert client.post("/api/fire", json=body).status_code == 200


def test_a_form_of_another_site_cannot_run_hooks(inspector: Inspector) -> None:
    with inspector.client() as client:
        sent = client.post("/api/fire", content="{}", headers={"Content-Type": "text/plain"})
        preflight = client.options("/api/fire", headers={"Origin": "http://evil.example"})

    assert sent.status_code == 415
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_every_answer_forbids_foreign_code_and_frames(inspector: Inspector) -> None:
    with inspector.client() as client:
        for path in ("/", "/page.js", "/api/events", "/api/event/none"):
            headers = client.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert not [name for name in headers if name.startswith("access-control")]


def test_the_page_loads_nothing_from_elsewhere_and_sets_no_html() -> None:
    for name in ("page.html", "page.css", "page.js"):
        text = (STATIC / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"https?:|//cdn|@import|url\(", text), name
    script = (STATIC / "page.js").read_text(encoding="utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)
    page = (STATIC / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"\son\w+=|style=|<script>", page)


def test_it_listens_on_loopback_only(inspector: Inspector) -> None:
    listening = Path(f"/proc/{inspector.process.pid}/net/tcp")
    if not listening.exists():
        pytest.skip("there is no /proc")
    port = f"{httpx.URL(inspector.origin).port:04X}"
    addresses = re.findall(rf" ([0-9A-F]+):{port} [0-9A-F]+:0000 0A ", listening.read_text())

    assert addresses == ["0100007F"]


# What it serves.


def events(client: httpx.Client, **where: str) -> list[Any]:
    answer = client.get("/api/events", params=where)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["events"]
    return found


def test_events_are_listed_newest_first_with_their_results(inspector: Inspector, guarded: CliProject) -> None:
    with inspector.client() as client:
        after, before = events(client)

    assert (before["event"], before["subject"], before["decision"]) == ("BeforeTool", "write_file", "blocked")
    assert before["reason"] == "it has a key"
    assert before["project"] == str(guarded.root)
    assert (after["event"], after["decision"]) == ("AfterTool", "failed")


FILTERS: list[tuple[dict[str, str], list[str]]] = [
    ({"event": "BeforeTool"}, ["BeforeTool"]),
    ({"tool": "write_file", "decision": "blocked"}, ["BeforeTool"]),
    ({"hook": "broken"}, ["AfterTool"]),
    ({"failed": "1"}, ["AfterTool"]),
    ({"text": "akia1234 key"}, ["BeforeTool"]),
    ({"text": "nothing like it"}, []),
    ({"slow": "60000"}, []),
    ({"project": "/elsewhere"}, []),
    ({"limit": "1"}, ["AfterTool"]),
    ({"before": "2"}, ["BeforeTool"]),
]


def test_filters(inspector: Inspector) -> None:
    with inspector.client() as client:
        for where, found in FILTERS:
            assert [each["event"] for each in events(client, **where)] == found, where


def test_wrong_numbers_are_an_error_in_words(inspector: Inspector) -> None:
    with inspector.client() as client:
        for where in ({"slow": "x"}, {"before": "x"}, {"limit": "-1"}):
            answer = client.get("/api/events", params=where)
            assert answer.status_code == 400
            assert answer.json()["error"]


def test_details_have_plan_payload_output_and_what_to_copy(inspector: Inspector, guarded: CliProject) -> None:
    with inspector.client() as client:
        [event] = events(client, event="BeforeTool")
        shown = client.get(f"/api/event/{event['id']}").json()

    assert shown["payload"]["tool_input"] == SECRET
    assert shown["executions"][0]["stderr"] == "it has a key\n"
    assert shown["ended"]["output"]["decision"] == "deny"
    assert [(each["hook"], each["runs"]) for each in shown["plan"]] == [("no-secrets", True), ("typo", False)]
    assert "'Write' does not match 'write_file'" in shown["plan"][1]["why"]
    assert shown["fire_command"].startswith("llxprt-hooks fire BeforeTool --input ")
    [test] = json.loads(shown["hook_test"])
    assert test == {
        "event": "BeforeTool",
        "input": {"tool_name": "write_file", "tool_input": SECRET},
        "expect": {"decision": "deny", "reason": "it has a key"},
    }


def test_the_copied_command_does_what_the_event_did(inspector: Inspector, guarded: CliProject) -> None:
    with inspector.client() as client:
        [event] = events(client, event="BeforeTool")
        command = client.get(f"/api/event/{event['id']}").json()["fire_command"]

    shown, status = guarded.screen(command)

    assert status == 2
    assert "it has a key" in shown


def test_an_event_that_is_gone_is_an_error_in_words(inspector: Inspector) -> None:
    with inspector.client() as client:
        answer = client.get("/api/event/none")

    assert answer.status_code == 404
    assert "not in the log any more" in answer.json()["error"]


def test_the_overview_has_figures_and_hooks_to_look_at(inspector: Inspector, guarded: CliProject) -> None:
    fire(guarded, "read_file", {})
    with inspector.client() as client:
        until(lambda: len(events(client)) == 3 and "running" not in client.get("/api/overview").json()["decisions"])
        overview = client.get("/api/overview").json()

    assert overview["decisions"] == {"blocked": 1, "failed": 2}
    assert sum(sum(each.values()) for each in overview["bins"]) == 3
    assert {each["hook"]: (each["count"], sum(each["histogram"])) for each in overview["hooks"]} == {
        "no-secrets": (1, 1),
        "broken": (2, 2),
    }
    assert dict(overview["facets"]["tool"]) == {"write_file": 2, "read_file": 1}
    found = {each["hook"]: (each["kind"], each["text"]) for each in overview["findings"]}
    assert found["broken"] == ("always fails", "All 2 recorded runs failed. Last: hook `broken` exited with code 9")
    kind, text = found["typo"]
    assert kind == "never fired"
    assert "'Write' matched no recorded tool" in text
    assert overview["recording"] is False


class Stream:
    """Reads a stream of server-sent events in a thread."""

    def __init__(self, client: httpx.Client, **where: str) -> None:
        self.opened = threading.Event()
        self.received: list[Any] = []
        self.thread = threading.Thread(target=self._read, args=(client, where))
        self.thread.start()
        assert self.opened.wait(DEADLINE)

    def _read(self, client: httpx.Client, where: dict[str, str]) -> None:
        with client.stream("GET", "/api/stream", params=where) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self.opened.set()
                if line.startswith("data: "):
                    self.received += json.loads(line.removeprefix("data: "))


def test_new_events_are_sent_as_they_happen_and_the_stream_ends_with_the_inspector(
    inspector: Inspector, guarded: CliProject
) -> None:
    with inspector.client() as client:
        all_events, blocked = Stream(client), Stream(client, decision="blocked")
        fire(guarded, "write_file", SECRET)
        until(lambda: any(each.get("event") == "AfterTool" for each in all_events.received))
        until(lambda: any(each.get("gone") for each in blocked.received))

        assert {each["event"] for each in blocked.received if not each.get("gone")} == {"BeforeTool"}
        inspector.end()
        for stream in (all_events, blocked):
            stream.thread.join(DEADLINE)
            assert not stream.thread.is_alive()


# Firing again.


def again(client: httpx.Client, content: str, **headers: str) -> Any:
    [event] = events(client, event="BeforeTool")
    hook_input = {"tool_name": "write_file", "tool_input": {**SECRET, "content": content}}
    return client.post("/api/fire", json={"id": event["id"], "input": hook_input}, headers=headers)


def test_an_event_fired_again_with_a_change_shows_the_difference(inspector: Inspector) -> None:
    with inspector.client() as client:
        fired = again(client, "harmless").json()

    compared = fired["comparison"]
    assert (compared["before"]["decision"], compared["after"]["decision"]) == ("blocked", "allowed")
    assert compared["changed"] == ["decision", "reason"]
    assert ["-", '    "content": "AKIA1234"'] in compared["input"]
    assert ["+", '    "content": "harmless"'] in compared["input"]
    [hook] = compared["hooks"]
    assert [each["what"] for each in hook["changes"]] == ["exit code", "stderr"]
    assert json.loads(fired["hook_test"])[0]["expect"] == {"decision": "allow"}


def test_an_event_fired_again_unchanged_is_the_same(inspector: Inspector) -> None:
    with inspector.client() as client:
        compared = again(client, "AKIA1234").json()["comparison"]

    assert compared["changed"] == []
    assert compared["input"] == []
    assert [(each["hook"], each["status"]) for each in compared["hooks"]] == [("no-secrets", "same")]


def test_what_is_fired_again_is_not_in_the_audit_trail(guarded: CliProject) -> None:
    audit = {"nats": {"servers": ["nats://127.0.0.1:9"]}}
    guarded.write(guarded.project_file, {"enableHooks": True, "hooks": GUARD, "hooksConfig": {"audit": audit}})
    with inspecting(guarded) as inspector, inspector.client() as client:
        assert again(client, "AKIA").json()["results"]
    assert [*(guarded.home / ".llxprt").rglob("audit/*/*")] == []


def test_hooks_that_nobody_approved_do_not_run_again(guarded: CliProject) -> None:
    with inspecting(guarded, LLXPRT_TRUST_PROJECT_HOOKS="") as inspector, inspector.client() as client:
        fired = again(client, "AKIA1234").json()

    assert fired["results"] == []
    assert fired["outcome"]["decision"] == "allowed"
    assert any("not approved" in each["why"] or "approve" in each["why"] for each in fired["planned"])


NONSENSE: list[tuple[bytes, int]] = [
    (b"not JSON", 400),
    (b"[]", 400),
    (b"[" * 100_000, 400),
    (b'{"id": "none", "input": {}}', 404),
    (b'{"input": "' + b"x" * (2 * 1024 * 1024) + b'"}', 413),
]


def test_a_request_that_makes_no_sense_is_refused_in_words(inspector: Inspector) -> None:
    with inspector.client() as client:
        for body, status in NONSENSE:
            answer = client.post("/api/fire", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == status, body[:20]
            assert answer.json()["error"]
            assert client.get("/api/events").status_code == 200


def test_input_that_does_not_fit_the_event_is_refused_in_words(inspector: Inspector) -> None:
    with inspector.client() as client:
        [event] = events(client, event="BeforeTool")
        for given, words in (({}, "lacks `tool_name`"), ("text", "must be a JSON object")):
            answer = client.post("/api/fire", json={"id": event["id"], "input": given})
            assert answer.status_code == 400
            assert words in answer.json()["error"]


# Recording.


def test_payloads_are_recorded_while_an_inspector_wants_them(guarded: CliProject) -> None:
    guarded.log_file.unlink()
    folder = guarded.log_file.parent
    with inspecting(guarded, "--record") as inspector:
        fire(guarded, "write_file", SECRET, payloads=False)
        with inspector.client() as client:
            assert client.get("/api/overview").json()["recording"] is True
            until(lambda: [each["payload"] for each in events(client)] == [True, True])
        second = guarded.run("inspect", "--no-open", "--record")
        assert second.status == 1
        assert "another inspector records payloads already" in second.stderr
        inspector.end()
    assert not is_recording(folder)
    fire(guarded, "write_file", SECRET, payloads=False)

    assert ["payload" in record for record in LogReader(guarded.log_file).read()] == [True, True, False, False]
    assert [each.name for each in folder.iterdir()] == ["hooks.jsonl"]


def test_an_inspector_that_was_killed_leaves_no_recording_behind(guarded: CliProject) -> None:
    folder = guarded.log_file.parent
    with inspecting(guarded, "--record") as inspector:
        assert is_recording(folder)
        inspector.process.kill()
        inspector.process.wait(DEADLINE)

    assert (folder / "recording.lock").exists()
    assert not is_recording(folder)
    with recording(folder):
        assert is_recording(folder)


def test_without_record_nothing_more_is_recorded(guarded: CliProject) -> None:
    guarded.log_file.unlink()
    with inspecting(guarded):
        fire(guarded, "write_file", SECRET, payloads=False)

    assert "AKIA1234" not in guarded.log_file.read_text()


# The command.


def test_a_port_in_use_is_one_sentence(inspector: Inspector, guarded: CliProject) -> None:
    run = guarded.run("inspect", "--no-open", "--port", str(httpx.URL(inspector.origin).port))

    assert run.status == 1
    assert "cannot be used: Address already in use" in run.sentence()


def test_without_its_packages_it_says_what_to_install(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for module in ("llxprt_hooks.cli.web.server", "llxprt_hooks._support.http_server"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    run = call("inspect", "--no-open")

    assert run.status == 1
    assert "pip install 'llxprt-hooks[inspect]'" in run.sentence()


@contextmanager
def opened_address(world: CliProject) -> Iterator[tuple[str, str]]:
    """The address that an inspector prints, and the one that it opens a browser with."""
    note = world.note("opened")
    browser = world.write(world.folder / "bin" / "browser", f'#!/bin/sh\necho "$1" > {note}\n', 0o755)
    process = world.start("inspect", DISPLAY=":0", BROWSER=f"{browser} %s")
    with process:
        try:
            assert process.stdout
            printed = process.stdout.readline().decode().strip()
            until(lambda: note.exists() and note.read_text().endswith("\n"))
            yield printed, note.read_text().strip()
        finally:
            process.kill()


def test_a_browser_is_opened_with_an_address_that_works_once(guarded: CliProject) -> None:
    with opened_address(guarded) as (printed, opened):
        assert opened != printed
        assert [httpx.get(opened, timeout=DEADLINE).status_code for _ in range(2)] == [200, 403]
        assert [httpx.get(printed, timeout=DEADLINE).status_code for _ in range(2)] == [200, 200]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not say whose a connection is")
def test_another_user_cannot_use_the_address_on_the_browsers_command_line(guarded: CliProject) -> None:
    with opened_address(guarded) as (_, opened):
        url = httpx.URL(opened)
        os.seteuid(65534)  # the owner of a connection is who opened its socket
        try:
            stranger = socket.create_connection((url.host, url.port or 0), DEADLINE)
        finally:
            os.seteuid(0)
        with stranger:
            stranger.sendall(f"GET {url.raw_path.decode()} HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n\r\n".encode())
            assert stranger.recv(100).startswith(b"HTTP/1.1 403")
        assert httpx.get(opened, timeout=DEADLINE).status_code == 200
