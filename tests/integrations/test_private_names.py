"""Names that frameworks do not promise to keep: all that are used here, and the test that fails without each.

A release may drop or change such a name. `make test-integrations NEWEST=1` then shows it here, by name.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import llxprt_hooks
from llxprt_hooks import integrations

SOURCE = Path(llxprt_hooks.__file__).parent
BASE = SOURCE / "integrations" / "base.py"
ROOT = Path(__file__).parents[2]


class Name(NamedTuple):
    owner: str
    """A module, or a class in one."""
    name: str
    user: str
    """The module that uses it."""
    test: str
    """What else fails without it, in the folder of tests."""


AGENTS = "integrations/openai_agents/"
LOCAL, RUNS = "integrations/test_openai_agents_local_tools.py", "integrations/test_openai_agents_runs.py"
AGENTS_CONTRACT = "integrations/test_openai_agents_contract.py"
TYPES = "integrations/mypy.ini"  # imported by type checkers only
ACTION = "agents.run_internal.tool_actions.ComputerAction"
CHAT_MODEL = "langchain_core.language_models.BaseChatModel"
HELD, STREAMING = "integrations/langchain/held_model.py", "integrations/test_langchain_streaming.py"
NAMES = [
    Name("agents.run_internal.run_loop", "get_all_tools", AGENTS + "patches.py", RUNS),
    Name("agents.run_internal.run_loop", "get_model", AGENTS + "patches.py", "integrations/test_openai_agents.py"),
    Name("agents.run_internal.run_steps", "QueueCompleteSentinel", AGENTS + "patches.py", AGENTS_CONTRACT),
    Name("agents.result.RunResultStreaming", "_event_queue", AGENTS + "patches.py", AGENTS_CONTRACT),
    Name("agents.run_internal.tool_actions", "ComputerAction", AGENTS + "patches.py", LOCAL),
    Name(ACTION, "_execute_action_and_capture", AGENTS + "patches.py", LOCAL),
    Name(ACTION, "_serialize_action_payload", AGENTS + "tools.py", LOCAL),
    Name(ACTION, "_iter_actions", AGENTS + "tools.py", LOCAL),
    Name("agents.run_internal.items", "function_tool_error_output", AGENTS + "tools.py", RUNS),
    Name("agents.run_state.RunState", "_context", AGENTS + "patches.py", RUNS),
    Name("agents.tool", "_SYNC_FUNCTION_TOOL_MARKER", AGENTS + "tools.py", RUNS),
    Name("agents.tool", "_FailureHandlingFunctionToolInvoker", AGENTS + "tools.py", RUNS),
    Name("agents.tool._FailureHandlingFunctionToolInvoker", "_invoke_tool_impl", AGENTS + "tools.py", RUNS),
    Name("agents.tool._FailureHandlingFunctionToolInvoker", "_on_handled_error", AGENTS + "tools.py", RUNS),
    Name("agents.tool_context.ToolContext", "_function_tool_arguments", AGENTS + "tools.py", RUNS),
    Name("anthropic._base_client", "BaseClient", "integrations/anthropic.py", TYPES),
    Name("anthropic._base_client.SyncAPIClient", "_client", "integrations/anthropic.py", "clients"),
    Name("anthropic._middleware", "CallNext", "integrations/anthropic.py", TYPES),
    Name("anthropic._middleware", "AsyncCallNext", "integrations/anthropic.py", TYPES),
    Name("httpx.Client", "_transport", "integrations/http_transport.py", "clients"),
    Name("httpx.Client", "_mounts", "integrations/http_transport.py", "clients/test_connections.py"),
    Name(CHAT_MODEL, "_llm_type", HELD, STREAMING),
    Name(
        "langchain_core.language_models.BaseChatModel", "_llm_type", "integrations/langchain/translator.py", STREAMING
    ),
    Name(CHAT_MODEL, "_identifying_params", HELD, STREAMING),
    Name(CHAT_MODEL, "_get_ls_params", HELD, STREAMING),
    Name(CHAT_MODEL, "_generate", HELD, STREAMING),
    Name(CHAT_MODEL, "_agenerate", HELD, STREAMING),
    Name(CHAT_MODEL, "_stream", HELD, STREAMING),
    Name(CHAT_MODEL, "_astream", HELD, STREAMING),
    Name("langchain_core.tracers.context", "_configure_hooks", HELD, STREAMING),
    Name("langgraph.types.Command", "_update_as_tuples", "integrations/langchain/middleware.py", STREAMING),
    Name("mcp.server.session.ServerSession", "_connection", "integrations/mcp_calls.py", "integrations/test_mcp.py"),
    Name("nats.aio.client.Client", "_connect_command", "fleet/nats_connection.py", "fleet"),
    Name("nats.aio.client.Client", "_current_server", "fleet/nats_connection.py", "fleet"),
    Name("nats.aio.client.Client", "_server_info", "fleet/nats_connection.py", "fleet"),
    Name("nats.aio.client.Client", "_transport", "fleet/nats_connection.py", "fleet"),
    Name("nats.aio.client.Client", "_send_unsubscribe", "fleet/nats_subscription.py", "fleet"),
    Name("nats.aio.transport.TcpTransport", "_io_writer", "fleet/nats_connection.py", "fleet"),
    Name("asyncio.streams.StreamReaderProtocol", "_over_ssl", "fleet/nats_connection.py", "fleet"),
    Name("nats.aio.subscription.Subscription", "_id", "fleet/nats_subscription.py", "fleet"),
    Name("openai._base_client.SyncAPIClient", "_client", "integrations/openai.py", "clients"),
]

NOT_PRIVATE = {"_replace", "_meta", "_llxprt_hooks", "_output"}
"""A method of every named tuple, a field of MCP, an attribute of ours, the end of a word."""


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name.owner}.{name.name}")
def test_the_installed_framework_still_has_it(name: Name) -> None:
    owner = found(name.owner)
    is_there = hasattr(owner, name.name) or (isinstance(owner, type) and any(is_set(name.name, owner.__mro__)))
    assert is_there, f"{name.user} needs {name.owner}.{name.name}"
    assert re.search(rf"\b{name.name}\b", (SOURCE / name.user).read_text()), "it is no longer used"
    assert (ROOT / "tests" / name.test).exists()


def test_no_other_private_name_is_used() -> None:
    listed = {(name.user, name.name) for name in NAMES}
    files = [*(SOURCE / "integrations").rglob("*.py"), *(SOURCE / "fleet").glob("nats*.py")]
    used = {(str(file.relative_to(SOURCE)), name) for file in files for name in private_names(file)}
    assert sorted(used.union(overridden()) - listed) == []


def found(path: str) -> object:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def is_set(name: str, kinds: Iterable[type[Any]]) -> Iterator[bool]:
    """Yield whether instances of each class get an attribute."""
    for kind in kinds:
        yield name in inspect.get_annotations(kind)
        yield inspect.isfunction(kind.__init__) and f"self.{name}" in inspect.getsource(kind.__init__)


def private_names(file: Path) -> Iterator[str]:
    """Yield the private names in a module that neither it nor the base of integrations defines."""
    own = {name for ours in (file, BASE) for name in defined(ast.parse(ours.read_text()))}
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                if re.fullmatch(r"_[a-z]\w*", name) and name not in own | NOT_PRIVATE:
                    yield name
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("llxprt_hooks"):
                is_private = re.search(r"(^|\.)_(?!_)|internal", module)
                if "run_loop" not in [alias.name for alias in names]:  # a module, whose names are listed
                    yield from (alias.name for alias in names if is_private or alias.name.startswith("_"))


def defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, value=ast.Name(id="self"), ctx=ast.Store()):
                yield name


def overridden() -> Iterator[tuple[str, str]]:
    """Yield the private methods of frameworks that a class of ours overrides, on purpose or not."""
    for module in pkgutil.walk_packages(integrations.__path__, f"{integrations.__name__}."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and kind.__module__ == module.name:
                others = [base for base in kind.__mro__ if not base.__module__.startswith("llxprt_hooks")]
                for name in vars(kind).keys() - {"_abc_impl", "_is_protocol"}:  # set by abc and typing
                    if re.fullmatch(r"_[a-z]\w*", name) and any(name in vars(base) for base in others):
                        yield str(Path(inspect.getfile(kind)).relative_to(SOURCE)), name
