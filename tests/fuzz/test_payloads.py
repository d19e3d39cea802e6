"""Stored calls, options and results: whatever the bytes, an answer or the error that the decoder names."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from tests.fuzz.examples import fuzzed
from tests.fuzz.outside import ABYSS, any_value, good_value, near_json, plain_text, raw_bytes

from holdfast import InvalidArguments
from holdfast.client.arguments import Signature, decode_call, encode_call, encode_json
from holdfast.core.errors import HoldfastError
from holdfast.core.json_text import MAX_DEPTH, check_json, decode_json
from holdfast.core.options import TaskOptions
from holdfast.core.overdue import Verdicts
from holdfast.core.task import define
from holdfast.stores.job_reports import call_of, value_of
from holdfast.worker.executor import Plan, _overridden
from holdfast.worker.supervision.watching import Terms

LIMIT = 1_000_000


def take(value: Any = None, *more: Any, **named: Any) -> Any: ...


def pick(n: int, text: str = "", *, flags: list[bool] | None = None) -> dict[str, int]: ...


TAKE = Signature(define(take, name="take", options=TaskOptions()))
PICK = Signature(define(pick, name="pick", options=TaskOptions()))


@st.composite
def near_calls(draw: st.DrawFn) -> bytes:
    """Bytes of the form of a call, or nearly so."""
    parts = st.fixed_dictionaries({}, optional={"args": any_value, "kwargs": any_value, "more": any_value})
    return draw(near_json(parts))


calls = near_calls() | raw_bytes


@fuzzed
@given(calls)
@example(b'{"args":' * ABYSS)
@example(b'{"args": [' + b"9" * 5_000 + b'], "kwargs": {}}')
def test_a_stored_call_is_decoded_or_refused(payload: bytes) -> None:
    for decode in (decode_call, TAKE.decode, PICK.decode):
        try:
            args, kwargs = decode(payload)
        except InvalidArguments:
            continue
        assert isinstance(args, tuple)
        assert isinstance(kwargs, dict)


@fuzzed
@given(calls)
@example(b'{"args":' * ABYSS)
def test_a_report_of_a_stored_call_never_fails(payload: bytes) -> None:
    args, kwargs = call_of(payload)
    assert isinstance(args, tuple)
    assert kwargs is None or isinstance(kwargs, dict)
    value_of(payload)


@fuzzed
@given(raw_bytes)
@example(b"[" * ABYSS)
def test_stored_json_is_decoded_or_refused(text: bytes) -> None:
    try:
        decode_json(text)
    except InvalidArguments:
        return


@fuzzed
@given(raw_bytes)
def test_a_stored_result_is_decoded_or_refused(result: bytes) -> None:
    for signature in (TAKE, PICK):
        try:
            signature.decode_result(result)
        except InvalidArguments:
            continue


@fuzzed
@given(raw_bytes, st.integers(0, MAX_DEPTH))
def test_json_that_passes_the_strict_check_can_be_decoded_by_all_who_decode_it(text: bytes, depth: int) -> None:
    try:
        check_json(text, limit=LIMIT, what="it", max_depth=depth, strict=True)
    except InvalidArguments:
        return
    value = decode_json(text)
    assert value_of(text) == value
    json.dumps(value, allow_nan=False).encode("utf-8")


@fuzzed
@given(st.lists(any_value, max_size=3), st.dictionaries(plain_text, any_value, max_size=3))
@example([float("nan")], {})
@example([10**5_000], {})
@example([], {"a": "\ud800"})
@example([["\0"]], {})
def test_a_call_is_refused_or_arrives(args: list[Any], kwargs: dict[str, Any]) -> None:
    for encode in (
        lambda: encode_call("by.name", args, kwargs, limit=LIMIT),
        lambda: TAKE.encode(args, kwargs, limit=LIMIT),
    ):
        try:
            payload = encode()
        except InvalidArguments:
            continue
        got_args, got_kwargs = decode_call(payload)
        assert (list(got_args), got_kwargs) == (_as_json(args), _as_json(kwargs))
        assert call_of(payload) == (got_args, got_kwargs)


@fuzzed
@given(good_value)
def test_a_value_of_plain_json_is_never_refused_and_comes_back_as_it_was(value: Any) -> None:
    text = encode_json("it", value, limit=LIMIT)
    assert decode_json(text) == value
    assert value_of(text) == value
    assert TAKE.decode(encode_call("take", (value,), {}, limit=LIMIT)) == ((value,), {})


@pytest.mark.parametrize("levels", [MAX_DEPTH - 2, MAX_DEPTH - 1])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "object"])
def test_the_depth_that_is_accepted_is_the_depth_that_is_decoded(wrap: Any, levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    try:
        payload = encode_call("take", (value,), {}, limit=LIMIT)
    except InvalidArguments:
        assert levels == MAX_DEPTH - 1, "two levels are those of the call itself"
    else:
        assert TAKE.decode(payload) == ((value,), {})


@fuzzed
@given(
    near_json(st.fixed_dictionaries({}, optional={"timeout": any_value, "soft_timeout": any_value, "retry": any_value}))
    | raw_bytes
)
@example(b'{"timeout": ' + b"9" * 400 + b"}")
@example(b'{"retry": {"max_attempts": ' + b"9" * 4_200 + b"}}")
def test_stored_options_are_understood_or_refused(text: bytes) -> None:
    policy = PICK.task.options.retry
    plan = Plan(PICK.task, PICK, bytes, policy, None, None, Terms(PICK.task.name, Verdicts(policy), None))
    try:
        read = _overridden(plan, text)
    except HoldfastError:
        return
    for limit in (read.hard_s, read.soft_s):
        assert limit is None or 0 < limit < float("inf")


def _as_json(value: Any) -> Any:
    """What a value is once it was JSON: tuples are lists, the last of equal keys counts."""
    return json.loads(json.dumps(value))
