"""Exceptions as text that every store can keep, however broken they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.job import ErrorInfo
from holdfast.core.outcome import describe, storable


def raised(error: BaseException) -> BaseException:
    """The same error with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def is_storable(text: str) -> bool:
    return "\x00" not in text and text.encode("utf-8").decode("utf-8") == text


def test_a_plain_error() -> None:
    info = describe(raised(ValueError("it did not work")))
    assert (info.type, info.message) == ("ValueError", "it did not work")
    assert info.traceback.startswith("Traceback (most recent call last)")
    assert "in raised\n" in info.traceback
    assert info.traceback.endswith("ValueError: it did not work\n")


def test_types_outside_the_builtins_are_told_with_their_module() -> None:
    class Local(Exception):
        pass

    name = describe(Local()).type
    assert name == f"{__name__}.test_types_outside_the_builtins_are_told_with_their_module.<locals>.Local"


def test_a_cause_is_part_of_the_traceback() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as outer:
        info = describe(outer)
    assert "KeyError: 'inner'" in info.traceback
    assert "direct cause" in info.traceback


def test_the_members_of_a_group_are_part_of_the_traceback() -> None:
    info = describe(raised(ExceptionGroup("several", [ValueError("one"), KeyError("two")])))
    assert info.type == "ExceptionGroup"
    assert "ValueError: one" in info.traceback
    assert "KeyError: 'two'" in info.traceback


@pytest.mark.parametrize("broken", [RuntimeError("no"), RecursionError(), UnicodeError(), SystemExit(1)])
def test_an_error_whose_text_cannot_be_had_is_told_by_its_type(broken: BaseException) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise broken

    info = describe(raised(Rude()))
    assert info.type.endswith("Rude")
    assert type(broken).__name__ in info.message
    assert "Rude" in info.traceback


def test_a_text_that_is_none_is_told_by_its_type() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return None  # type: ignore[return-value]

    assert "TypeError" in describe(Odd()).message


def test_a_text_that_recurses_for_ever() -> None:
    class Mirror(Exception):
        def __str__(self) -> str:
            return f"I am {self}"

    info = describe(raised(Mirror()))
    assert "RecursionError" in info.message
    assert info.type.endswith("Mirror")


def test_a_run_that_recursed_for_ever() -> None:
    def deeper() -> None:
        deeper()

    with pytest.raises(RecursionError) as caught:
        deeper()
    info = describe(caught.value)
    assert info.type == "RecursionError"
    assert info.traceback


def test_a_chain_of_causes_without_end() -> None:
    error: Exception = ValueError("first")
    for number in range(5_000):
        nxt = ValueError(str(number))
        nxt.__cause__ = error
        error = nxt
    info = describe(error)
    assert info.message == "4999"
    assert info.traceback
    assert len(info.traceback) < 40_000


def test_a_circle_of_causes() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert describe(one).message == "one"


def test_a_huge_message_keeps_its_beginning_and_a_huge_traceback_its_end() -> None:
    info = describe(raised(ValueError("a" * 10_000_000 + "z")))
    assert info.message.startswith("aaa")
    assert len(info.message) < 5_000
    assert info.traceback.endswith("z\n")
    assert len(info.traceback) < 40_000


@pytest.mark.parametrize("text", ["nul \x00", "lone \ud800", "\udcff from a file name", "☃ é", ""])
def test_every_text_can_be_stored(text: str) -> None:
    info = describe(raised(ValueError(text)))
    assert is_storable(info.message)
    assert is_storable(info.traceback)


def test_every_name_of_a_type_can_be_stored() -> None:
    odd = type("Odd", (Exception,), {"__module__": "m\x00\ud800"})
    odd.__qualname__ = "q" * 100_000
    name = describe(odd()).type
    assert is_storable(name)
    assert len(name) < 1_000


def test_what_cannot_be_stored_stays_readable() -> None:
    assert storable("a\x00b\ud800c☃", 100) == "a\\x00b\\ud800c☃"


@given(st.text(st.characters(exclude_categories=()), max_size=60), st.integers(1, 50), st.booleans())
def test_storable_text_is_bounded_and_clean(text: str, limit: int, keep_end: bool) -> None:
    stored = storable(text, limit, keep_end=keep_end)
    assert is_storable(stored)
    assert len(stored) <= limit + 2, "the bound, and a mark that something is missing"
    assert storable(stored, limit + 2, keep_end=keep_end) == stored, "clean text stays as it is"


@pytest.mark.parametrize("error_class", ["", "transient"])
def test_a_retry_that_was_put_off_says_by_how_much_and_keeps_its_class_and_its_fingerprint(error_class: str) -> None:
    info = describe(raised(ValueError("no")), error_class=error_class)
    assert info.put_off == ""
    later = info.put_off_by(41.234)
    assert later.put_off == "41.2 s"
    assert later.error_class == error_class
    assert later.fingerprint == info.fingerprint
    assert later.traceback.replace("retry budget: put off by 41.2 s\n", "") == info.traceback


def test_what_was_put_off_is_told_without_a_traceback_too() -> None:
    later = ErrorInfo("ValueError", "no").put_off_by(5)
    assert (later.put_off, later.traceback) == ("5.0 s", "retry budget: put off by 5.0 s\n")
    assert ErrorInfo("ValueError", "no", "one line").put_off_by(5).put_off == "5.0 s"
