"""What tasks raise, and what is kept of it: always text that every store takes, found by words in bounded time."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from tests.fuzz.examples import fuzzed
from tests.fuzz.outside import any_text, any_value

from holdfast.core.error_words import fingerprint_of, words_of
from holdfast.core.job import ErrorInfo
from holdfast.core.outcome import describe, storable
from holdfast.core.shown import shown

#: As it was before it took only as long as its text: what it finds must stay the same, fingerprints are stored.
_VARIABLE_BEFORE = re.compile(r"\b(?:0[xX])?[0-9a-fA-F-]*\d[\w.:-]*")

RAISED = (ValueError, SystemExit, KeyboardInterrupt, RecursionError, GeneratorExit, MemoryError)


def _evil(name: str, module: Any, raises: type[BaseException] | None, says: Any) -> BaseException:
    def speak(self: object) -> Any:
        if raises is not None:
            raise raises(says)
        return says

    kind = type("Evil", (Exception,), {"__str__": speak, "__repr__": speak})
    kind.__qualname__ = name
    kind.__module__ = module
    return kind("x")


@fuzzed
@given(
    any_text.filter(lambda text: "\0" not in text),
    any_text | st.none() | st.integers(),
    st.none() | st.sampled_from(RAISED),
    any_value,
    st.lists(any_value, max_size=3),
)
@example("Evil", None, None, "said", [])
@example("Evil", "m", SystemExit, "said", ["\ud800"])
def test_any_exception_is_described_in_text_that_can_be_stored(
    name: str, module: Any, raises: type[BaseException] | None, says: Any, notes: list[Any]
) -> None:
    error = _evil(name, module, raises, says)
    error.__notes__ = notes
    error.__cause__ = error.__context__ = _evil(name, module, raises, says)
    try:
        raise error
    except BaseException as caught:
        info = describe(caught)
    for text in (info.type, info.message, info.traceback):
        assert "\0" not in text
        assert len(text.encode("utf-8")) < 200_000
    assert re.fullmatch(r"[0-9a-f]{16}|", info.fingerprint)


@fuzzed
@given(any_text, any_text, any_text)
@example("E", "\ud800", "")
def test_every_stored_error_has_a_fingerprint(kind: str, message: str, traceback: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{16}|", ErrorInfo(kind, message, traceback).fingerprint)
    assert len(words_of(message)) <= 100


@fuzzed
@given(st.text("aefgxX0189-.: _é٣\n", max_size=60))
@example("0x1f and deadbeef-1, 0xzz a-b-c x1")
def test_what_varies_in_a_message_is_what_it_always_was(message: str) -> None:
    before = _VARIABLE_BEFORE.sub("#", message)
    assert fingerprint_of("E", message, "") == fingerprint_of("E", before, "")
    assert (fingerprint_of("E", message, "") == fingerprint_of("E", "", "")) == (not before.strip())


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a-", "'", '"', "`'", "0x", "a", "-", "é", " ", "1.", '  File "', "deadbeef"])
def test_a_fingerprint_takes_no_longer_than_its_text(piece: str) -> None:
    assert fingerprint_of("E", piece * 200_000, piece * 200_000)
    assert len(words_of(piece * 200_000)) <= 100


@fuzzed
@given(any_text, st.integers(1, 50), st.booleans())
def test_storable_text_is_bounded_and_stays_as_it_is_once_it_is_so(text: str, limit: int, keep_end: bool) -> None:
    kept = storable(text, limit, keep_end=keep_end)
    assert "\0" not in kept
    assert len(kept) <= limit + 2
    kept.encode("utf-8")
    assert storable(kept, len(kept)) == kept


@fuzzed
@given(any_value, st.integers(0, 200))
def test_any_value_can_be_shown(value: Any, limit: int) -> None:
    assert len(shown(value, limit)) <= max(limit, 100)
