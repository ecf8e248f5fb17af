"""The hash chain of an agent's records: every change to it is found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks.fleet.audit.chain import Chain, checked_hash, verify


def _chain(count: int = 4) -> tuple[str, list[bytes]]:
    chain = Chain()
    return chain.agent, [chain.link({"hook": f"h{number}", "reason": 'says "no",'}) for number in range(count)]


def _problems(lines: list[bytes]) -> list[str]:
    return [problem for verdict in verify(lines).values() for problem in verdict.problems]


def test_a_whole_chain_has_no_problem() -> None:
    agent, lines = _chain()
    verdict = verify(lines)[agent]
    assert (verdict.records, verdict.first, verdict.problems) == (4, 1, [])


def test_each_record_names_the_hash_of_the_one_before() -> None:
    _, lines = _chain()
    records = [json.loads(line) for line in lines]
    assert [record["seq"] for record in records] == [1, 2, 3, 4]
    assert [record["prev"] for record in records] == ["", *(record["hash"] for record in records[:-1])]
    assert all(checked_hash(line) == record["hash"] for line, record in zip(lines, records, strict=True))


def test_two_agents_have_a_chain_each() -> None:
    (one, ones), (two, twos) = _chain(2), _chain(2)
    found = verify([ones[0], twos[0], ones[1], twos[1]])
    assert set(found) == {one, two}
    assert all(verdict.problems == [] for verdict in found.values())


def test_other_lines_do_not_matter() -> None:
    _, lines = _chain()
    assert _problems([b"", b"[1]", b'{"hook": "x"}', b"{nonsense", *lines]) == []


def test_a_missing_record_is_named() -> None:
    _, lines = _chain(6)
    assert _problems([lines[0], *lines[2:]]) == ["record 2 is missing"]
    assert _problems([lines[0], *lines[4:]]) == ["records 2 to 4 are missing"]


def test_a_missing_start_is_known() -> None:
    agent, lines = _chain()
    verdict = verify(lines[2:])[agent]
    assert (verdict.first, verdict.problems) == (3, [])


def test_a_changed_record_is_named() -> None:
    _, lines = _chain()
    lines[1] = lines[1].replace(b'"h1"', b'"h9"')
    assert _problems(lines) == ["record 2 was changed: its hash is not that of its content"]


def test_a_replaced_record_is_named_even_with_a_hash_of_its_own() -> None:
    agent, lines = _chain()
    forger = Chain()
    forger.agent = agent
    forged = [forger.link({"hook": "harmless"}) for _ in lines]
    assert _problems([lines[0], forged[1], *lines[2:]]) == [
        "record 2 does not follow record 1: one of them was replaced",
        "record 3 does not follow record 2: one of them was replaced",
    ]


def test_records_in_another_order_are_named() -> None:
    _, lines = _chain(3)
    assert "record 2 comes after record 3" in _problems([lines[0], lines[2], lines[1]])


@pytest.mark.parametrize("number", ['"1"', "true", "0", "null", "1.5"])
def test_a_record_without_a_number_is_a_problem(number: str) -> None:
    assert _problems([b'{"agent":"a","seq":%s}' % number.encode()]) == ["a record without a number"]


def test_a_first_record_that_names_one_before_it_is_a_problem() -> None:
    chain = Chain()
    chain._last = "0" * 64
    assert _problems([chain.link({})]) == ["record 1 names a record before it"]


@given(st.data())
def test_no_single_change_of_a_byte_goes_unnoticed(data: st.DataObject) -> None:
    _, lines = _chain(3)
    which = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[which]) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[which][at]))
    changed = [*lines]
    changed[which] = lines[which][:at] + bytes([other]) + lines[which][at + 1 :]
    found = verify(changed)
    whole = len(found) == 1 and next(iter(found.values())).records == len(lines)
    is_last = which == len(lines) - 1  # nothing follows it that would miss it
    assert _problems(changed) or not whole or is_last
    if is_last and whole:
        assert _problems(changed)
