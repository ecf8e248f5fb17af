"""Events know how many workers they have passed (D-45)."""

from __future__ import annotations

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.core.protocol.headers import hop, hop_headers
from tests.support.http_server import hook_server


def test_an_agent_sends_no_number() -> None:
    assert hop_headers() == {}


@pytest.mark.parametrize(("given", "number"), [(None, 1), ("", 1), ("2", 3), ("-1", 1), ("x", 1), ("9" * 400, 1)])
def test_each_worker_counts_one_more(given: str | None, number: int) -> None:
    with hop(given) as counted:
        assert counted == number
        assert hop_headers() == {"llxprt-hops": str(number)}
    assert hop_headers() == {}


async def test_a_hook_of_a_worker_sends_the_number_and_no_setting_can_change_it() -> None:
    with hook_server() as server:
        hook = {"type": "http", "url": server.url, "headers": {"llxprt-hops": "0"}}
        config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})
        with hop("1"):
            await fire_before_tool_hook(config, "write_file", {})

        assert server.received[0].headers["llxprt-hops"] == "2"
