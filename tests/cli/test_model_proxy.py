"""``llxprt-hooks model-proxy`` as a command: alone, and around an agent."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.support import cli
from tests.support.processes import DEADLINE, until
from tests.support.project import SCRIPTS, Project

if TYPE_CHECKING:
    from tests.support.api_server import APIServer

PROXY = [str(SCRIPTS / "llxprt-hooks"), "model-proxy"]

ASK = """
import json, os, urllib.request
body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode())
print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, approved=True)


def run(project: Project, *arguments: str, **environment: str) -> cli.Run:
    env = project.environment(**environment)
    return cli.run("model-proxy", "-C", str(project.root), *arguments, cwd=project.folder, env=env)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_an_agent_runs_with_the_hooks_of_the_project(project: Project, api_server: APIServer) -> None:
    project.configure(BeforeModel=project.hook(says={"decision": "block", "reason": "not today"}))
    ended = run(project, "--upstream", api_server.url, "--", *python(ASK))
    assert (ended.status, ended.stdout, ended.stderr) == (0, "not today\n", "")
    assert api_server.requests == []
    assert json.loads(project.log_file.read_text().splitlines()[0])["event_name"] == "BeforeModel"


def test_without_hooks_the_agent_gets_the_answer_of_the_upstream(project: Project, api_server: APIServer) -> None:
    ended = run(project, "--", *python(ASK), ANTHROPIC_BASE_URL=api_server.url)
    assert (ended.status, ended.stdout) == (0, "the model's answer\n")
    assert api_server.paths == ["/v1/messages"]


def test_the_environment_of_an_agent(project: Project) -> None:
    names = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "NO_PROXY", "LLXPRT_AGENT", "KEPT")
    code = f"import os; print(*[os.environ[name] for name in {names}])"
    ended = run(project, "--", *python(code), NO_PROXY="internal", KEPT="kept")
    messages, chat, direct, agent, kept = ended.stdout.split()
    assert messages.startswith("http://127.0.0.1:")
    assert messages.endswith("/anthropic")
    assert chat == messages.replace("/anthropic", "/openai/v1")
    assert (direct, agent, kept) == ("internal,127.0.0.1,localhost", "1", "kept")


def test_the_exit_status_is_that_of_the_agent(project: Project) -> None:
    assert run(project, "--", "sh", "-c", "exit 7").status == 7
    assert run(project, "--", "sh", "-c", "kill -9 $$").status == -signal.SIGKILL
    missing = run(project, "--", "./missing-agent")
    assert missing.status == 127
    assert "cannot start ./missing-agent: No such file" in missing.stderr
    assert run(project, "--", "/").status == 126


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_for_the_agent(project: Project, number: signal.Signals) -> None:
    ready = project.note("ready")
    code = (
        "import signal, sys, time, pathlib\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "while True: time.sleep(0.01)\n"  # the signal may come right before a call that waits, and not end it
    )
    command = [*PROXY, "-C", str(project.root), "--", *python(code)]
    process = subprocess.Popen(command, env=project.environment(), start_new_session=True)
    until(ready.exists)
    process.send_signal(number)
    assert process.wait(DEADLINE) == 5


def test_an_agent_gets_a_key_of_the_terminal_once(project: Project) -> None:
    """The terminal sends Ctrl-C to both processes."""
    code = (
        "import signal, time\n"
        "times = []\n"
        "signal.signal(signal.SIGINT, lambda *_: times.append(1))\n"
        "print('ready', flush=True)\n"
        "while not times: time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
        "print('interrupted', len(times), flush=True)\n"
    )
    arguments = [*PROXY[1:], "-C", str(project.root), "--", *python(code)]
    terminal = pexpect.spawn(PROXY[0], arguments, env=project.environment(), encoding="utf-8", timeout=DEADLINE)
    terminal.expect("ready")
    terminal.sendintr()
    terminal.expect("interrupted 1")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_alone_it_prints_base_urls_and_runs_until_it_is_interrupted(
    project: Project, api_server: APIServer, number: signal.Signals
) -> None:
    project.configure(BeforeModel=project.hook(), BeforeTool=project.hook("tool"), SessionEnd=project.hook("end"))
    command = [*PROXY, "-C", str(project.root), "--port", "0", "--upstream", api_server.url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=project.environment()
    )
    assert process.stdout is not None
    exported = [process.stdout.readline().split() for _ in range(2)]
    assert [words[0] for words in exported] == ["export", "export"]
    urls = dict(words[1].split("=", 1) for words in exported)
    assert urls.keys() == {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"}
    asked = subprocess.run(python(ASK), env={**os.environ, **urls}, capture_output=True, text=True, check=True)
    assert asked.stdout == "the model's answer\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
    assert "hooks for BeforeTool are configured but will not run: the agent runs its tools itself" in said
    assert "no request" not in said
    assert len(project.payloads()) == len(project.payloads("end")) == 1


def test_hooks_that_are_not_approved_do_not_run(project: Project, api_server: APIServer) -> None:
    project.approved = False
    project.configure(BeforeModel=project.hook(says={"decision": "block", "reason": "never"}))
    refused = run(project, "--upstream", api_server.url, "--", *python(ASK))
    assert (refused.status, refused.stdout, api_server.requests) == (1, "", [])
    ended = run(project, "--upstream", api_server.url, "--allow-unguarded", "--", *python(ASK))
    assert ended.stdout == "the model's answer\n"
    assert "llxprt-hooks trust" in ended.stderr
    assert f"no hook of {project.root} runs in this proxy: nothing is checked." in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--host", "example.com"], "--allow-remote"),
        (["--upstream", "gemini=https://x"], "unknown API 'gemini'; expected one of anthropic, openai"),
        (["--upstream", "api.example.com"], "must be a URL such as https://"),
        (["--upstream", "https://user:secret@x"], "must not have a user"),
        (["--port", "99999"], "99999"),
        (["--allow-path", "embeddings"], "expected a path such as /v1/embeddings"),
    ],
)
def test_wrong_usage(project: Project, arguments: list[str], message: str) -> None:
    ended = run(project, *arguments)
    assert ended.status == 64
    assert message in ended.stderr
    assert "secret" not in ended.stderr


def test_a_path_that_hooks_do_not_see_is_allowed_by_name(project: Project, api_server: APIServer) -> None:
    project.configure(BeforeModel=project.hook())
    code = (
        "import os, urllib.request, urllib.error\n"
        "try: urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/embeddings', b'{}')\n"
        "except urllib.error.HTTPError as error: print(error.read().decode())\n"
    )
    refused = run(project, "--upstream", api_server.url, "--", *python(code))
    assert "model-proxy --allow-path /v1/embeddings" in refused.stdout
    assert api_server.paths == []
    run(project, "--upstream", api_server.url, "--allow-path", "/v1/embeddings", "--", *python(code))
    assert api_server.paths == ["/v1/embeddings"]


def test_a_port_that_is_in_use(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(project, "--port", str(port))
        assert ended.status == 1
        assert f"cannot listen at 127.0.0.1:{port}: Address already in use. To use another port, " in ended.stderr


@pytest.mark.parametrize("package", ["httpx", "uvicorn"])
def test_a_missing_package(project: Project, package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\nfrom llxprt_hooks.cli.main import main; main(['model-proxy'])"
    ended = subprocess.run(
        python(code), capture_output=True, text=True, env=project.environment(), timeout=DEADLINE, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'llxprt-hooks[model-proxy]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_proxy_whose_hooks_see_no_request_says_so(project: Project) -> None:
    agent = ["--", "echo", "hi"]
    folder = project.root
    nothing = f"llxprt-hooks: no hooks are configured in {folder}: nothing is checked. To use those of another project,"
    ended = run(project, *agent)
    assert (ended.stdout, ended.stderr) == ("hi\n", f"{nothing} pass -C\n")
    project.configure(SessionStart=project.hook())
    ended = run(project, *agent)
    assert (ended.stdout, ended.stderr) == ("hi\n", "")
    project.configure(BeforeModel=project.hook())
    ended = run(project, *agent)
    assert ended.stdout == "hi\n"
    assert ended.stderr == (
        "llxprt-hooks: no request came to the model proxy, so no model hook ran."
        " Does the agent use ANTHROPIC_BASE_URL or OPENAI_BASE_URL?\n"
    )
    assert "no request" not in run(project, "--", "./missing-agent").stderr


def test_a_key_is_in_no_log(project: Project, api_server: APIServer) -> None:
    project.configure(BeforeModel=project.hook())
    code = ASK.replace(".encode())", '.encode(), {"x-api-key": "the-secret-key"})')
    ended = run(project, "--upstream", api_server.url, "--", *python(code), DEBUG="*")
    assert ended.stdout == "the model's answer\n"
    assert "the-secret-key" not in ended.stderr + project.log_file.read_text()
