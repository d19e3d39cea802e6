"""Calls and results as JSON: what goes in comes out in the declared types, what does not fit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from holdfast.client.arguments import Signature, decode_call, encode_call, encode_json
from holdfast.core.errors import InvalidArguments, InvalidOptions
from holdfast.core.options import TaskOptions
from holdfast.core.task import define

LIMIT = 10_000
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime


@dataclass
class Point:
    x: int
    y: int = 0


def signature(function: Callable[..., Any]) -> Signature:
    return Signature(define(function, name="work", options=TaskOptions()))


def round_trip(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one = signature(function)
    return one.decode(one.encode(args, kwargs, limit=LIMIT))


# ---------------------------------------------------------------- calls


def plain(a: Any, b: Any = None, *rest: Any, c: Any = 3, **more: Any) -> None: ...


def test_what_is_stored_is_what_the_caller_passed() -> None:
    assert signature(plain).encode((1,), {"b": [2]}, limit=LIMIT) == b'{"args":[1],"kwargs":{"b":[2]}}'


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(first=JSON, second=JSON, rest=st.lists(JSON, max_size=3), named=st.dictionaries(st.sampled_from("cde"), JSON))
def test_any_json_comes_out_as_it_went_in(first: Any, second: Any, rest: list[Any], named: dict[str, Any]) -> None:
    args, kwargs = round_trip(plain, first, second, *rest, **named)
    assert args == (first, second, *rest)
    assert {"c": 3} | named == {"c": 3} | kwargs


def typed(point: Point, at: datetime, *, sizes: dict[int, set[str]]) -> None: ...


def test_a_call_comes_out_in_the_declared_types() -> None:
    args, kwargs = round_trip(typed, Point(1), NOON, sizes={1: {"a"}})
    assert args == (Point(1, 0), NOON)
    assert kwargs == {"sizes": {1: {"a"}}}


def positional(a: int, b: int = 2, /, c: int = 3) -> None: ...


def keyword(a: int, *, b: int) -> None: ...


def variadic(*numbers: int, **named: int) -> None: ...


def strict(one: Strict, two: Strict | None = None) -> None: ...


def strict_and_variadic(*many: Strict) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (positional, (1,), {"c": 5}, ((1, 2), {"c": 5})),
        (keyword, (1,), {"b": 2}, ((1,), {"b": 2})),
        (variadic, (1, 2, 3), {"x": 4}, ((1, 2, 3), {"x": 4})),
        (variadic, (), {}, ((), {})),
    ],
)
def test_every_kind_of_parameter_works(
    function: Callable[..., Any], args: Any, kwargs: Any, expected: tuple[Any, Any]
) -> None:
    called = round_trip(function, *args, **kwargs)
    bound, wanted = (_bind(function, *call) for call in (called, expected))
    assert bound == wanted


def _bind(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    one = signature(function)
    loaded: dict[str, Any] = json.loads(one.canonical(args, kwargs))
    return loaded


def test_a_strict_model_is_read_by_the_rules_of_json() -> None:
    """In Python a strict datetime takes no text; in JSON there is nothing else for it to take."""
    value = Strict(at=NOON)
    for args, kwargs in (((value,), {}), ((value, value), {}), ((), {"one": value, "two": None})):
        called, by_name = round_trip(strict, *args, **kwargs)
        assert [*called, *by_name.values()][0] == value


SENTENCES: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (typed, ({"x": "a"}, NOON), {"sizes": {}}, "argument 'point'['x']: Input should be a valid integer"),
    (typed, ({"x": 1}, NOON), {"sizes": {1: 5}}, "argument 'sizes'['1']: Input should be a valid set"),
    (keyword, (1, 2), {}, "argument 'b': Missing required keyword only argument; argument 2: Unexpected positional"),
    (keyword, (1,), {"b": 2, "c": 3}, "argument 'c': Unexpected keyword argument"),
    (positional, (), {"a": 1}, "argument 'a': Missing required positional only argument"),
    (positional, (1, 2, 3, 4), {}, "argument 4: Unexpected positional argument"),
    (variadic, (1, "x"), {}, "argument 2: Input should be a valid integer"),
    (variadic, (), {"n": "x"}, "argument 'n': Input should be a valid integer"),
    (strict, ({"at": 5},), {}, "argument 'one'['at']: Input should be a valid datetime"),
    (strict, ({"at": "2024-02-29T12:00:00Z"},), {"one": 1}, "argument 'one': Got multiple values for argument"),
    (strict_and_variadic, ({"at": "2024-02-29T12:00:00Z"},), {}, "argument 1['at']: Input should be a valid datetime"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "sentence"), SENTENCES)
def test_what_does_not_fit_is_named(function: Callable[..., Any], args: Any, kwargs: Any, sentence: str) -> None:
    one = signature(function)
    stored = encode_call("work", args, kwargs, limit=LIMIT)
    with pytest.raises(InvalidArguments) as caught:
        one.decode(stored)
    assert str(caught.value).startswith(f"work: {sentence}")


@pytest.mark.parametrize("stored", [b"", b"null", b"[]", b"{}", b'{"args": []}', b'{"args": 1, "kwargs": {}}', b"\xff"])
def test_what_is_no_call_is_refused(stored: bytes) -> None:
    with pytest.raises(InvalidArguments, match=r"^the stored call is not "):
        decode_call(stored)


def test_the_same_call_has_one_canonical_form() -> None:
    one = signature(typed)
    calls = [((Point(1), NOON), {"sizes": {}}), ((Point(1),), {"sizes": {}, "at": NOON})]
    assert len({one.canonical(args, kwargs) for args, kwargs in calls}) == 1
    assert one.canonical((Point(2), NOON), {"sizes": {}}) != one.canonical(*calls[0])


def test_annotations_that_cannot_be_compiled_are_the_tasks_fault() -> None:
    def odd(lock: NoSuchThing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidOptions, match=r"^task work: its annotations cannot be checked \(.*NoSuchThing"):
        signature(odd).encode((1,), {}, limit=LIMIT)


# ---------------------------------------------------------------- results


def returns(annotation: Any) -> Signature:
    def work(): ...  # type: ignore[no-untyped-def]

    if annotation is not ...:
        work.__annotations__["return"] = annotation
    return signature(work)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Point, Point(1)), (Strict, Strict(at=NOON)), (datetime, NOON), (None, None), (list[Strict], [Strict(at=NOON)])],
)
def test_a_result_comes_out_in_its_declared_type(annotation: Any, value: Any) -> None:
    one = returns(annotation)
    assert one.decode_result(one.encode_result(value, limit=LIMIT)) == value


def test_no_result_is_none_and_an_undeclared_one_is_plain_json() -> None:
    assert returns(...).decode_result(None) is None
    assert returns(None).decode_result(None) is None
    assert returns(...).decode_result(b'{"x":1}') == {"x": 1}


def test_a_result_of_another_version_is_plain_json_and_no_error() -> None:
    assert returns(Point).decode_result(b'{"z":1}') == {"z": 1}
    assert returns(int).decode_result(None) is None


def test_a_result_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(InvalidArguments, match=r"^the result of work: takes 22 bytes as JSON, the limit is 10;"):
        returns(str).encode_result("x" * 20, limit=10)


def test_what_cannot_be_written_as_json_is_told_in_one_line() -> None:
    with pytest.raises(InvalidArguments) as caught:
        encode_json("this", {"a": [object()]}, limit=LIMIT)
    assert str(caught.value) == "this cannot be written as JSON: Unable to serialize unknown type: <class 'object'>"
