"""Writing JSON never fails, whatever the value, and what is written is JSON (D-04)."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from collections import UserDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llxprt_hooks._support.json_codec import read_json, write_json
from tests.support.endings import any_json, any_text

LONE = "\ud800"


class Unspeakable:
    """An object that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnspeakableText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no text")


class UnspeakableInteger(int):
    def __int__(self) -> int:
        raise RuntimeError("no number")

    __str__ = __repr__ = __index__ = __int__  # type: ignore[assignment]


class UnspeakableFloat(float):
    def __float__(self) -> float:
        raise RuntimeError("no number")

    __str__ = __repr__ = __float__  # type: ignore[assignment]


class UnreadableMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError("no item")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class UnreadableDict(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("no items")


class UnreadableList(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("no items")


class Classless:
    @property  # type: ignore[misc]  # a class that cannot be read is the point
    def __class__(self) -> type:
        raise RuntimeError("no class")


class Secretive:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no attributes")


class TextIsNoText:
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class LoneSurrogateText:
    def __str__(self) -> str:
        return LONE


class FailingModel:
    def model_dump(self, **_: object) -> object:
        raise RuntimeError("no dump")


class EndlessModel:
    def model_dump(self, **_: object) -> object:
        return EndlessModel()


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Port(int):
    pass


class Ratio(float):
    pass


class Path(str):
    __slots__ = ()


@dataclass
class Point:
    x: object
    y: object = 2


Pair = namedtuple("Pair", "left right")  # noqa: PYI024  # the untyped kind is what programs have


def endless_list() -> object:
    value: list[object] = []
    value.append(value)
    return value


def endless_list_twice() -> object:
    value: list[object] = []
    value.extend([value, value])
    return value


def endless_mapping() -> object:
    value: dict[str, object] = {"name": "x"}
    value["self"] = value
    value["again"] = [value, value]
    return value


def endless_dataclass() -> object:
    value = Point(1)
    value.y = [value, value]
    return value


def deep_list() -> object:
    value: object = "core"
    for _ in range(20_000):
        value = [value]
    return value


def deep_mapping() -> object:
    value: object = "core"
    for _ in range(20_000):
        value = {"a": value, "b": 1}
    return value


ODD_VALUES: dict[str, Callable[[], object]] = {
    "lone surrogate": lambda: LONE,
    "lone surrogate as a key": lambda: {LONE: 1},
    "nan": lambda: math.nan,
    "infinities": lambda: [math.inf, -math.inf],
    "nan beside a lone surrogate": lambda: [math.nan, math.inf, LONE],
    "nan as a key": lambda: {math.nan: 1, math.inf: LONE},
    "integer of 65 bits": lambda: 2**64,
    "integer of 400 digits": lambda: 10**400,
    "integer of 6000 digits": lambda: [10**6000, -(10**6000)],
    "integer of 6000 digits as a key": lambda: {10**6000: 1},
    "integer of 6000 digits as a key beside a lone surrogate": lambda: [{10**6000: 1}, LONE],
    "endless list": endless_list,
    "list that holds itself twice": endless_list_twice,
    "endless mapping": endless_mapping,
    "endless dataclass": endless_dataclass,
    "deep list": deep_list,
    "deep mapping": deep_mapping,
    "object without text": Unspeakable,
    "object without text as a key": lambda: {Unspeakable(): 1},
    "object whose text is not text": TextIsNoText,
    "object whose text has a lone surrogate": LoneSurrogateText,
    "object without attributes": Secretive,
    "object without a class": Classless,
    "object without a class in a list": lambda: [Classless(), LONE],
    "text without text": lambda: UnspeakableText("x"),
    "text without text beside a lone surrogate": lambda: [UnspeakableText("x"), LONE],
    "integer without number": lambda: [UnspeakableInteger(3), LONE],
    "float without number": lambda: [UnspeakableFloat(3), LONE],
    "mapping without items": UnreadableMapping,
    "mapping without items beside a lone surrogate": lambda: [UnreadableMapping(), LONE],
    "dict without items": lambda: [UnreadableDict(a=1), LONE],
    "list without items": lambda: [UnreadableList([1]), LONE],
    "model without dump": FailingModel,
    "model that dumps a model endlessly": EndlessModel,
    "bytes": lambda: [b"\xff", bytearray(b"\xff"), memoryview(b"\xff"), LONE],
    "sets": lambda: [{1}, frozenset({LONE})],
    "keys of every kind": lambda: {None: 1, True: 2, 1.5: 3, (1, 2): 4, b"x": 5, Color.RED: 6, LONE: 7},
    "functions, classes and generators": lambda: [len, int, (x for x in "a"), LONE],
    "exception": lambda: ValueError(LONE),
    "complex": lambda: [1j, LONE],
    "not-a-number decimal": lambda: [decimal.Decimal("sNaN"), LONE],
    "longest time span": lambda: [datetime.timedelta.max, LONE],
}


def parsed(data: bytes) -> Any:
    """Strict reading: what the standard library takes, and neither NaN nor Infinity."""

    def refuse(name: str) -> object:
        raise ValueError(f"{name} is not valid JSON")

    return json.loads(data, parse_constant=refuse)


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in ODD_VALUES.items()])
def test_any_value_is_written_as_json(make: Callable[[], object]) -> None:
    parsed(write_json(make()))


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in ODD_VALUES.items()])
def test_an_unusual_value_does_not_affect_the_values_next_to_it(make: Callable[[], object]) -> None:
    payload = {"tool_name": "write_file", "tool_input": {"odd": make(), "file_path": "/etc/passwd", "n": 7}}

    written = parsed(write_json(payload))

    assert written["tool_name"] == "write_file"
    assert written["tool_input"]["file_path"] == "/etc/passwd"
    assert written["tool_input"]["n"] == 7


def test_a_key_without_text_costs_neither_its_value_nor_its_neighbours() -> None:
    written = parsed(write_json({"before": 1, Unspeakable(): "kept", "after": 2}))

    assert written["before"] == 1
    assert written["after"] == 2
    assert "kept" in written.values()


def test_what_holds_itself_is_written_once_and_its_other_fields_stay() -> None:
    value: dict[str, object] = {"command": "rm"}
    value["again"] = [value, value]

    assert parsed(write_json(value)) == {"command": "rm", "again": [None, None]}


def test_a_value_that_is_shared_but_holds_no_part_of_itself_is_written_each_time() -> None:
    shared = {"a": LONE}

    assert parsed(write_json([shared, shared, {"b": shared}])) == [shared, shared, {"b": shared}]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("\ud800", b'"\\ud800"'),
        ("a\udfffb", b'"a\\udfffb"'),
        ("\ud83d\ude00", b'"\\ud83d\\ude00"'),
    ],
)
def test_lone_surrogates_are_written_as_escapes_that_every_json_reader_takes(text: str, form: bytes) -> None:
    assert write_json(text) == form


@pytest.mark.parametrize("frames", [300, 500, 700, 850])
@pytest.mark.parametrize("make", [deep_list, deep_mapping, endless_list_twice, lambda: {"a": [LONE]}])
def test_writing_works_near_the_end_of_the_stack(make: Callable[[], object], frames: int) -> None:
    def at_depth(left: int) -> bytes:
        return at_depth(left - 1) if left else write_json(make())

    parsed(at_depth(frames))


WELL_BEHAVED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from([Color.RED, Level.HIGH, Word.YES, Port(8080), Ratio(0.5), Path("/etc")])
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.dates()
    | st.decimals(allow_nan=False)
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(UserDict, st.dictionaries(st.text(max_size=3), inner, max_size=3))
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9) | st.sampled_from(Color), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(WELL_BEHAVED)
@example(Point(Point(1), Color.RED))
@example([Port(8080), Ratio(0.5), Path("/etc"), Level.HIGH])
@example({Color.RED: uuid.UUID(int=0), 1: datetime.date(2026, 1, 1)})
def test_a_lone_surrogate_does_not_change_how_its_neighbours_are_written(value: object) -> None:
    assert parsed(write_json([value, LONE]))[0] == parsed(write_json([value, "x"]))[0]


@pytest.mark.parametrize(
    ("value", "form"),
    [(Port(8080), 8080), (Ratio(0.5), 0.5), (Path("/etc"), "/etc"), (Level.HIGH, 3), (Word.YES, "yes")],
)
def test_a_number_or_text_of_a_class_of_its_own_stays_a_number_or_text(value: object, form: object) -> None:
    assert parsed(write_json(value)) == form


# Hypothesis itself asks what it draws for its class, and shows it.
DRAWN_ODD_VALUES = [make for name, make in ODD_VALUES.items() if "deep" not in name and "without a class" not in name]
ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**60).map(lambda n: n**90)
    | st.floats()
    | any_text
    | st.binary(max_size=8)
    | st.complex_numbers()
    | st.decimals()
    | st.timedeltas()
    | st.sampled_from(DRAWN_ODD_VALUES).map(lambda make: make()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.builds(Point, inner)
        | st.builds(UserDict, st.dictionaries(any_text, inner, max_size=3))
        | st.dictionaries(
            any_text | st.integers() | st.floats() | st.none() | st.booleans() | st.builds(Unspeakable),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(ANY_VALUE)
def test_any_python_value_is_written_as_json(value: object) -> None:
    parsed(write_json(value))


@given(any_json)
def test_json_is_written_so_that_it_reads_back_as_it_was(value: object) -> None:
    assert read_json(write_json(value)) == json.loads(json.dumps(value))
