"""Which JSON may be stored: everything ordinary, nothing that some store or Python cannot give back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidArguments
from holdfast.core.json_text import check_json, decode_json

EITHER = pytest.mark.parametrize("strict", [False, True])


def check(text: bytes, *, strict: bool = False, limit: int = 1 << 20) -> None:
    check_json(text, limit=limit, what="arguments of shop.send", strict=strict)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@EITHER
@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b"0",
        b'""',
        b"[]",
        b'{"a":[1,-2.5e3,true,null,"x"]}',
        b'"NaN"',
        b'{"Infinity":"-Infinity NaN"}',
        rb'"\\u0000"',
        rb'"\\\\ud800"',
        rb'"\ud83d\ude00"',
        rb'"\uD83D\uDE00"',
        rb'"\\\ud83d\ude00"',
        "\N{GRINNING FACE} ü".encode().join([b'"', b'"']),
        nested(64),
        b"[" + b",".join([b"[]"] * 500) + b"]",
        json.dumps("[" * 500 + '"{{' * 500).encode(),
        json.dumps("\\" * 501 + '"' * 501 + "[" * 100).encode(),
        b"9" * 4_000,
        b"-" + b"9" * 4_000,
        json.dumps("9" * 9_000).encode(),
        b"0." + b"9" * 9_000,
        b'{"a":1,"a":2}',
    ],
)
def test_ordinary_texts_pass_and_decode(text: bytes, strict: bool) -> None:
    check(text, strict=strict)
    assert decode_json(text) == json.loads(text)


@EITHER
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"NaN", "NaN is not JSON"),
        (b'{"a":[1,Infinity]}', "Infinity is not JSON"),
        (b'["NaN",-Infinity]', "-Infinity is not JSON"),
        (rb'"a\u0000b"', r"(the text 'a\\x00b'|a text of 3 characters) holds a NUL"),
        (rb'{"a\u0000":1}', "NUL"),
        (rb'{"a":"\u0000","a":1}', "NUL"),
        (rb'"\\\u0000"', "NUL"),
        (b'"a\x00b"', "is not JSON"),
        (rb'"\ud800"', "half a surrogate pair"),
        (rb'"\uDC00\uD800"', "half a surrogate pair"),
        (rb'{"k":{"\udfff":1}}', "half a surrogate pair"),
        (rb'"\ud83d x \ude00"', "half a surrogate pair"),
        (b'"\xed\xa0\x80"', "byte 2 is not UTF-8"),
        (b'"\xff"', "byte 2 is not UTF-8"),
        ('"ü"'.encode("latin-1"), "is not UTF-8"),
        (nested(65), "more than 64 levels deep at byte 65"),
        (nested(200_000), "more than 64 levels deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "more than 64 levels deep"),
        (b'["[[",' * 65 + b"1" + b"]" * 65, "more than 64 levels deep"),
        (b"9" * 4_001, "4,001 digits"),
        (b"[1,-" + b"1" * 20_000 + b"]", "20,000 digits"),
        (b" " * 999 + b"1" * 4_001 + b" ", "4,001 digits"),
    ],
)
def test_forbidden_texts_are_refused_in_a_sentence(text: bytes, sentence: str, strict: bool) -> None:
    with pytest.raises(InvalidArguments, match=sentence) as caught:
        check(text, strict=strict)
    message = str(caught.value)
    assert message.startswith("arguments of shop.send: ")
    assert len(message) < 300
    assert message.encode()


@given(st.integers(0, 3_000), st.integers(4_001, 6_000), st.integers(0, 3_000))
def test_a_long_integer_is_found_wherever_it_lies(before: int, digits: int, after: int) -> None:
    with pytest.raises(InvalidArguments, match=f"{digits:,} digits"):
        check(b" " * before + b"7" * digits + b" " * after)


def test_the_limit_is_in_bytes_and_inclusive() -> None:
    text = '"üüü"'.encode()
    check(text, limit=8)
    with pytest.raises(InvalidArguments, match="takes 8 bytes as JSON, the limit is 7"):
        check(text, limit=7)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1,]", b"{'a':1}", b'"a', b'"a\\', b"1 2", b"nul", b"\xef\xbb\xbf1", b"[1", b"1e999", b"]"]
)
def test_strict_refuses_what_no_encoder_writes(text: bytes) -> None:
    with pytest.raises(InvalidArguments, match=r"^arguments of shop\.send: "):
        check(text, strict=True)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        b'"' + b'\\"' * 500_000,
        b'"' * 999_999,
        b'["' * 500_000,
        b"[]" * 65 + b'"' + b'\\"' * 60_000,
        b"[" * 1_000_000,
        b"1" * 1_000_000,
    ],
)
def test_hostile_text_costs_no_more_than_its_length(text: bytes) -> None:
    with pytest.raises(InvalidArguments):
        check(text, strict=True)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"9" * 5_000])
def test_a_text_that_cannot_be_decoded_is_a_sentence_too(text: bytes) -> None:
    with pytest.raises(InvalidArguments, match="cannot be decoded as JSON"):
        decode_json(text)


# Values of JSON types, with forbidden things and their harmless look-alikes sprinkled in.
strings = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    | st.sampled_from(["NaN", "\\u0000", "\\ud800", "\\", '"[{', "Infinity", "\N{GRINNING FACE}"])
    | st.sampled_from(["\0", "a\0", "\ud800", "\udc00\ud800", "\\\0"])
)
numbers = st.integers() | st.floats() | st.sampled_from([10**3_999, 10**4_000, -(10**4_000)])
values = st.recursive(
    st.none() | st.booleans() | numbers | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=12,
)


def forbidden(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value or any("\ud800" <= character <= "\udfff" for character in value)
        case float():
            return not math.isfinite(value)
        case int():
            return abs(value) >= 10**4_000
        case list():
            return any(map(forbidden, value))
        case dict():
            return any(forbidden(part) for pair in value.items() for part in pair)
    return False


@given(value=values, ensure_ascii=st.booleans(), strict=st.booleans())
def test_a_value_passes_if_and_only_if_it_holds_nothing_forbidden(value: Any, ensure_ascii: bool, strict: bool) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")
    try:
        check(text, strict=strict)
    except InvalidArguments:
        assert forbidden(value)
    else:
        assert not forbidden(value)
        assert decode_json(text) == value


@given(st.integers(0, 130), st.booleans())
def test_depth_is_counted_exactly(depth: int, strict: bool) -> None:
    text = b"[" * depth + b'"[[[["' + b"]" * depth
    if depth <= 64:
        check(text, strict=strict)
    else:
        with pytest.raises(InvalidArguments, match="levels deep"):
            check(text, strict=strict)


def test_only_what_comes_from_outside_is_not_quoted() -> None:
    with pytest.raises(InvalidArguments, match=r"the text 'a\\x00b'"):
        check_json(rb'"a\u0000b"', limit=100, what="it")
    with pytest.raises(InvalidArguments, match="a text of 3 characters"):
        check_json(rb'"a\u0000b"', limit=100, what="it", strict=True)
