"""How an integration is made."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from llxprt_hooks import Config, HookEventName
from llxprt_hooks.integrations.base import Integration

HOOKS = {"PreCompress": [{"hooks": [{"type": "command", "command": "true"}]}]}


class Example(Integration):
    unsupported: ClassVar[Mapping[HookEventName, str]] = {
        HookEventName.PRE_COMPRESS: "the framework does not compress",
        HookEventName.NOTIFICATION: "the framework asks nobody",
    }


def test_an_integration_takes_a_configuration() -> None:
    config = Config(session_id="s1")
    assert Integration(config).hooks.config is config
    assert Integration(config=config).hooks.config is config


def test_an_integration_takes_the_keyword_arguments_of_a_configuration() -> None:
    """Hooks that are given in code are meant to run."""
    given = Integration(hooks=HOOKS, session_id="s1")
    assert given.hooks.config.session_id == "s1"
    assert given.hooks.has_hooks_for("PreCompress")
    assert not Integration(hooks=HOOKS, enable_hooks=False).hooks.has_hooks_for("PreCompress")
    assert not Integration().hooks.config.enable_hooks


def test_a_configuration_and_its_keyword_arguments_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="`hooks` is part of the configuration"):
        Integration(Config(), session_id="s1", hooks=HOOKS)


def test_an_integration_loads_settings_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    settings = tmp_path / ".llxprt" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"enableHooks": True, "hooks": HOOKS}))
    loaded = Integration.load(tmp_path, aliases={"shell": "run_shell_command"})
    assert loaded.hooks.has_hooks_for("PreCompress")
    assert loaded.hook_name("shell") == "run_shell_command"
    assert loaded.hook_name("glob") == "glob"


# Who asks.


def test_fixed_metadata_is_part_of_the_configuration(tmp_path: Path) -> None:
    assert Integration(metadata={"team": "a"}).hooks.config.metadata == {"team": "a"}
    assert Integration.load(tmp_path, metadata={"team": "a"}).hooks.config.metadata == {"team": "a"}
    with pytest.raises(TypeError, match="`metadata` is part of the configuration"):
        Integration(Config(), metadata={"team": "a"})


async def _nobody(context: Any) -> Any:
    return {}


@pytest.mark.parametrize("wrong", [_nobody, "ada", 7], ids=["coroutine", "text", "number"])
def test_metadata_is_a_mapping_true_or_a_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match="`metadata` must"):
        Integration(metadata=wrong)


FAILURES: dict[str, Callable[[Any], Any]] = {
    "ZeroDivisionError": lambda context: 1 / 0,
    "must be a mapping, found list": lambda context: ["ada"],
    "must be a JSON value, found object": lambda context: {"user": object()},
}


@pytest.mark.parametrize("said", FAILURES)
@pytest.mark.parametrize("acts", [False, True], ids=["standard", "full"])
async def test_what_hooks_could_block_is_blocked_if_nobody_knows_who_asks(
    said: str, acts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Before a tool there is a guard. After it, the standard profile can block nothing, so that hooks see the event."""
    integration = Integration(Config(profile="full" if acts else "standard"), metadata=FAILURES[said])
    seen: list[Any] = []
    integration.hooks.on("AfterTool", seen.append)
    ran: list[Any] = []
    with integration.asked_by("a request"):
        result = await integration.hooks.run_tool("search", {}, ran.append)
        assert (len(ran), result.error is None) == (1, not acts)
        assert [payload.get("metadata") for payload in seen] == ([] if acts else [None])
        integration.hooks.on("BeforeTool", seen.append)
        result = await integration.hooks.run_tool("search", {}, ran.append)
    assert len(ran) == 1
    assert result.error is not None
    assert said in result.error["message"]
    assert said in caplog.text


async def test_what_the_program_says_wins_over_the_framework() -> None:
    config = Config(metadata={"tenant": "shop", "region": "eu"})
    integration = Integration(config, metadata=lambda context: dict.fromkeys(("tenant", "region", "user"), context))
    seen: list[Any] = []
    integration.hooks.on("BeforeTool", lambda payload: seen.append(payload["metadata"]))
    with integration.hooks.session("s", metadata={"region": "us"}), integration.asked_by("claimed"):
        await integration.hooks.run_tool("search", {}, str)
    assert seen == [{"tenant": "shop", "region": "us", "user": "claimed"}]


def test_hooks_that_will_never_run_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Example(hooks=HOOKS)
    assert [record.getMessage() for record in caplog.records] == [
        "hooks for PreCompress are configured but will not run: the framework does not compress"
    ]


@pytest.mark.parametrize(
    ("alias", "advice"),
    [
        ({"shel": "run_shell_command"}, "Did you mean `shell`?"),
        ({"run_shell_command": "shell"}, "Write the name of the tool first: `shell`, then `run_shell_command`"),
        ({"bash": "run_shell_command"}, None),
        ({"shell": "run_shell_command"}, None),
    ],
)
def test_an_alias_for_no_tool_is_reported_once(
    caplog: pytest.LogCaptureFixture, alias: dict[str, str], advice: str | None
) -> None:
    example = Integration(Config(), aliases=alias)
    [name] = alias
    for tools in ([], ["shell", "glob"], ["shell", "glob"]):
        example.check_tools(tools)
    expected = [] if advice is None else [f"the alias `{name}` has no effect: no tool has this name. {advice}"]
    assert caplog.messages == expected


def test_an_alias_for_a_tool_of_another_agent_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    example = Integration(Config(), aliases={"bash": "run_shell_command", "shel": "run_shell_command", "glob": "find"})
    example.check_tools(["glob"])
    assert caplog.messages == []
    example.check_tools(["shell"])
    assert caplog.messages == ["the alias `shel` has no effect: no tool has this name. Did you mean `shell`?"]


def test_a_list_of_tools_is_checked_when_its_last_page_has_come(caplog: pytest.LogCaptureFixture) -> None:
    example = Integration(Config(), aliases={"shel": "run_shell_command", "writ": "write_file"})
    example.check_tools(["shell", "write"], more_follow=True)
    example.check_tools(["writ", None])
    assert caplog.messages == ["the alias `shel` has no effect: no tool has this name. Did you mean `shell`?"]


def test_an_integration_that_was_given_no_hooks_says_so(caplog: pytest.LogCaptureFixture) -> None:
    class Example(Integration): ...

    Example(aliases={"shell": "run_shell_command"})
    (text,) = caplog.messages
    assert text.startswith("Example was made without a configuration and without hooks")
    assert "Use `.load(…)`" in text


@pytest.mark.parametrize("given", [{"config": Config()}, {"hooks": {}}, {"enable_hooks": True}, {"session_id": "s1"}])
def test_an_integration_with_a_configuration_of_its_own_says_nothing(
    caplog: pytest.LogCaptureFixture, given: dict[str, Any]
) -> None:
    Integration(**given)
    assert caplog.messages == []


def test_a_matcher_that_a_later_tool_matches_is_reported_once_at_most(caplog: pytest.LogCaptureFixture) -> None:
    example = Integration(Config(enable_hooks=True))
    example.hooks.on("BeforeTool", lambda payload: None, matcher="^refund$")
    example.check_tools(["search"], more_follow=True)
    example.check_tools(["write"], are_all=False)
    assert caplog.messages == []
    example.check_tools([])
    example.check_tools(["glob"])
    (text,) = caplog.messages
    assert text == (
        "hooks.on('BeforeTool'): the matcher `^refund$` matches none of the tools here, so this hook does not run. "
        "The tools are `search`, `write`."
    )


@pytest.mark.parametrize("matcher", ["", "*", "^refund$", "refund|pay", "^(?!search)"])
def test_a_matcher_with_a_tool_is_not_reported(caplog: pytest.LogCaptureFixture, matcher: str) -> None:
    example = Integration(Config(enable_hooks=True))
    example.hooks.on("AfterTool", lambda payload: None, matcher=matcher)
    example.check_tools(["search", "refund"])
    assert caplog.messages == []


@pytest.mark.parametrize("profile", ["standard", "full"])
def test_effects_that_a_framework_lacks_are_reported_in_one_warning(
    profile: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Limited(Integration):
        not_honored: ClassVar[Mapping[HookEventName, str]] = {
            HookEventName.PRE_COMPRESS: "it compresses alone",
            HookEventName.AFTER_AGENT: "it never continues",
            HookEventName.BEFORE_AGENT: "nobody has such a hook",
        }

    Limited(hooks={**HOOKS, "AfterAgent": HOOKS["PreCompress"]}, profile=profile)
    expected = "PreCompress (it compresses alone); AfterAgent (it never continues)"
    assert caplog.messages == (
        [f"some effects of these hooks are not available here: {expected}"] if profile == "full" else []
    )
