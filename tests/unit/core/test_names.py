"""Which names are accepted, kind by kind, and how refusals read."""

from __future__ import annotations

from enum import Enum
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import NameKind, check_name

KINDS: tuple[NameKind, ...] = get_args(NameKind)
LONGEST = {"queue": 64, "task": 200, "tenant": 200, "tag": 200, "key": 255, "worker": 200, "limit": 220, "breaker": 200}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("queue", "default"),
        ("queue", "mail.eu-west_1"),
        ("task", "shop.tasks.send_email"),
        ("task", "shop.tasks.make.<locals>.send"),
        ("task", "shop:send-email"),
        ("tenant", "Ärztekammer Wien / Süd"),
        ("tenant", "شرکت می‌خواهم"),
        ("tag", "👩‍👩‍👧"),
        ("key", "order 17; retry=1"),
        ("key", "\N{NO-BREAK SPACE}"),
        ("worker", "host-1.example.org:4711@a0b1"),
    ],
)
def test_ordinary_names_pass_unchanged(kind: NameKind, value: str) -> None:
    assert check_name(kind, value) == value


@pytest.mark.parametrize("kind", KINDS)
def test_length_is_bounded(kind: NameKind) -> None:
    longest = "x" * LONGEST[kind]
    assert check_name(kind, longest) == longest
    with pytest.raises(InvalidOptions, match=rf"at most {LONGEST[kind]} are allowed"):
        check_name(kind, longest + "x")
    with pytest.raises(InvalidOptions, match="must not be empty"):
        check_name(kind, "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", ["\x00", "\n", "\x7f", "\x85", "\u2028", "\u202e", chr(0xD800), chr(0xDFFF)])
def test_what_cannot_be_printed_is_refused_everywhere(kind: NameKind, bad: str) -> None:
    for value in (bad, f"a{bad}", f"{bad}a"):
        with pytest.raises(InvalidOptions, match="at position") as caught:
            check_name(kind, value)
        assert str(caught.value).isprintable(), "the sentence itself must be fit for a log"


@pytest.mark.parametrize(
    ("kind", "value", "position"),
    [
        ("limit", "task:a/b", 7),
        ("queue", "a b", 2),
        ("queue", "a/b", 2),
        ("queue", "größe", 3),
        ("task", "a b", 2),
        ("worker", "ab/", 3),
    ],
)
def test_a_refusal_names_the_character_and_its_place(kind: NameKind, value: str, position: int) -> None:
    with pytest.raises(InvalidOptions) as caught:
        check_name(kind, value)
    assert f"{value[position - 1]!r} at position {position}" in str(caught.value)
    assert "allowed are" in str(caught.value)


@pytest.mark.parametrize("value", [None, 17, b"default", ["default"], True])
def test_only_text_is_a_name(value: object) -> None:
    with pytest.raises(InvalidOptions, match=f"must be text, not {type(value).__name__}"):
        check_name("queue", value)


def test_a_text_enum_becomes_its_plain_value() -> None:
    class Queue(str, Enum):  # noqa: UP042 - the older spelling, whose str() is not its value
        MAIL = "mail"

    name = check_name("queue", Queue.MAIL)
    assert type(name) is str
    assert name == "mail"


@given(st.sampled_from(KINDS), st.text(max_size=300))
def test_what_passes_can_be_encoded_and_holds_no_control_character(kind: NameKind, value: str) -> None:
    try:
        name = check_name(kind, value)
    except InvalidOptions:
        return
    assert 1 <= len(name) <= LONGEST[kind]
    assert name.encode()
    assert not any(ord(character) < 32 for character in name)
