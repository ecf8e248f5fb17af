"""The hash chain of an agent's records: every change to it is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks.fleet.audit.chain import Chain, checked_hash, verify
from llxprt_hooks.fleet.audit.signing import IsSigned, Sign, SigningKeyError, new_key, signature_check, signer


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


@pytest.mark.parametrize("line", [b"[1]", b'{"hook": "x"}', b"{nonsense", b'{"agent": ""}', b'{"agent": 7}', b"\xff"])
def test_a_line_that_cannot_be_read_is_a_problem(line: bytes) -> None:
    """It could have been a record."""
    agent, lines = _chain()
    assert _problems([b"", *lines[:-1], line]) == ["line 4 is not a record of an agent"]
    assert verify([*lines, line])[agent].problems == []


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sign, IsSigned]:
    file = tmp_path_factory.mktemp("keys") / "audit.nk"
    public = new_key(file)
    return signer(file), signature_check(public)


def _signed(keys: tuple[Sign, IsSigned]) -> tuple[str, list[bytes]]:
    chain = Chain(keys[0])
    return chain.agent, [*(chain.link({"hook": f"h{number}"}) for number in range(3)), chain.close("now")]


def test_a_signed_chain_is_whole_and_closed(keys: tuple[Sign, IsSigned]) -> None:
    agent, lines = _signed(keys)
    verdict = verify(lines, keys[1])[agent]
    assert (verdict.records, verdict.problems, verdict.is_closed) == (4, [], True)
    assert not verify(lines[:-1], keys[1])[agent].is_closed
    assert _problems(lines) == []


@pytest.mark.parametrize("signature", [b"", b',"signature":"%s"' % (b"A" * 86 + b"==")])
def test_a_chain_whose_hashes_were_computed_again_is_not_signed(keys: tuple[Sign, IsSigned], signature: bytes) -> None:
    """Without the key, a record cannot be left out, changed or added."""
    forger = Chain()
    lines = [line[:-1] + signature + b"}" for line in (forger.link({"hook": "h0"}), forger.close("now"))]
    words = "is not signed with this key: it is forged, or of another key"
    assert verify(lines, keys[1])[forger.agent].problems == [f"record 1 {words}", f"record 2 {words}"]


def test_a_signature_of_another_record_or_key_does_not_count(keys: tuple[Sign, IsSigned], tmp_path: Path) -> None:
    agent, lines = _signed(keys)
    moved = lines[1][: lines[1].rindex(b',"signature"')] + lines[0][lines[0].rindex(b',"signature"') :]
    assert len(verify([lines[0], moved, *lines[2:]], keys[1])[agent].problems) == 1
    other = signature_check(new_key(tmp_path / "other.nk"))
    assert len(verify(lines, other)[agent].problems) == 4
    assert verify([lines[0], *lines[2:]], keys[1])[agent].problems == ["record 2 is missing"]
    assert verify([lines[1], lines[0], *lines[2:]], keys[1])[agent].problems


@pytest.mark.parametrize("public", ["", "UNOTAKEY", "U" * 56, "ü"])
def test_a_public_key_that_is_not_valid_is_an_error(public: str) -> None:
    with pytest.raises(ValueError, match="expected a public key"):
        signature_check(public)


def test_a_key_that_cannot_be_used_is_an_error_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "audit.nk"
    new_key(file)
    with pytest.raises(FileExistsError):
        new_key(file)
    file.chmod(0o644)
    with pytest.raises(SigningKeyError, match="others can read"):
        signer(file)
    file.write_text("s3cret")
    file.chmod(0o600)
    with pytest.raises(SigningKeyError) as raised:
        signer(file)
    assert "s3cret" not in str(raised.value)
    with pytest.raises(SigningKeyError, match="cannot be read"):
        signer(tmp_path / "missing")


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
