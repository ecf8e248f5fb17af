"""The trust store of any content: it approves what it says and nothing else, and loses no approval."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from llxprt_hooks.settings.jsonc import JsoncError, parse
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, revoke_trust, trust_status
from tests.fuzz.documents import documents, encoded
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.fuzz.project import FuzzedProject, quiet

OURS, HASH = "/placeholder/of/the/project", "placeholder-of-the-hash"
"""Placeholders of the project and its fingerprint, which differ in every test."""

OTHERS = {"/some/other": {"hash": "0" * 64, "approved_at": "2026-01-02T03:04:05.678Z", "note": [1.0, {"a": None}]}}
STORES: list[Any] = [
    OTHERS,
    {OURS: {"hash": HASH, "approved_at": "2026-01-02T03:04:05.678Z"}},
    {**OTHERS, OURS: {"hash": HASH}},
    {OURS: {"hash": "another"}},
]
SETTINGS = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}}

stores = documents(STORES)


def store(data: bytes) -> dict[str, Any] | None:
    """What a store says; None for one that cannot be read."""
    try:
        value = parse(data.decode()).to_value()
    except (UnicodeDecodeError, JsoncError):
        return None
    return value if isinstance(value, dict) else None


def hold(world: FuzzedProject, template: bytes) -> None:
    world.clear()
    world.put("project", SETTINGS)
    with quiet():
        fresh = trust_status(world.root)
    assert fresh.state is TrustState.UNTRUSTED
    project = str(fresh.project)
    data = template.replace(OURS.encode(), project.encode()).replace(HASH.encode(), fresh.fingerprint.encode())
    file = world.put("trust", data)
    before = store(data)
    record = (before or {}).get(project)
    approved = isinstance(record, dict) and record.get("hash") == fresh.fingerprint

    with quiet():
        status = trust_status(world.root)
    assert (status.state is TrustState.TRUSTED) is approved
    assert (status.problems == ()) is (before is not None)
    assert all(str(problem).isprintable() for problem in status.problems)
    assert file.read_bytes() == data

    with quiet():
        assert grant_trust(world.root).state is TrustState.TRUSTED
        assert trust_status(world.root).state is TrustState.TRUSTED
    after = store(file.read_bytes())
    assert after is not None
    if before is None:
        assert file.with_name(f"{file.name}.corrupt").read_bytes() == data
    assert json.dumps({**after, project: 0}) == json.dumps({**(before or {}), project: 0})

    with quiet():
        assert revoke_trust(world.root)
        assert not revoke_trust(world.root)
        assert trust_status(world.root).state is TrustState.UNTRUSTED
    last = store(file.read_bytes())
    assert json.dumps(last) == json.dumps({name: each for name, each in after.items() if name != project})


@fuzz(200, template=stores)
def test_a_store_of_any_content_approves_what_it_says_and_keeps_what_it_has(
    world: FuzzedProject, template: bytes
) -> None:
    hold(world, template)


@corpus("trust_store")
@unhanged
def test_what_was_found_approves_what_it_says_and_keeps_what_it_has(
    world: FuzzedProject, case: str, data: bytes
) -> None:
    hold(world, data)


COMMANDS = (("trust", "--yes"), ("trust", "--dry-run"), ("untrust",), ("list", "--json"), ("validate", "--json"))


def hold_command(world: FuzzedProject, arguments: tuple[str, ...], data: bytes, *, installed: bool = False) -> None:
    world.clear()
    world.put("project", SETTINGS)
    file = world.put("trust", data)
    ended = world.command(*arguments, installed=installed)
    assert ended.status in (0, 1)
    assert "Traceback" not in ended.stderr
    if "--json" in arguments:
        assert ended.json is not None
    if arguments not in COMMANDS[::2] or ended.status != 0:
        assert file.read_bytes() == data
    if arguments == ("trust", "--yes"):
        assert ended.status == 0
        assert trust_status(world.root).state is TrustState.TRUSTED


@fuzz(80, arguments=st.sampled_from(COMMANDS), data=stores)
def test_a_command_ends_with_a_documented_status_whatever_is_in_the_store(
    world: FuzzedProject, arguments: tuple[str, ...], data: bytes
) -> None:
    hold_command(world, arguments, data)


def test_the_stores_that_are_mutated_do_approve(world: FuzzedProject) -> None:
    """Else the tests above would only ever see stores that approve nothing."""
    world.put("project", SETTINGS)
    status = trust_status(world.root)
    whole = encoded(STORES[2]).replace(OURS.encode(), str(status.project).encode())
    world.put("trust", whole.replace(HASH.encode(), status.fingerprint.encode()))
    assert trust_status(world.root).state is TrustState.TRUSTED
