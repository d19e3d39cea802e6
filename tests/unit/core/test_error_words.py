"""The fingerprint of errors that are alike, and the words they are found by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.error_words import fingerprint_of, words_of

TRACE = 'Traceback (most recent call last):\n  File "/srv/a/shop/mail.py", line 12, in send\n    x()\nOSError: no\n'


def test_what_varies_from_run_to_run_does_not_count() -> None:
    one = fingerprint_of("OSError", "order 17 at 0xdeadbeef1: host 'a.example' gave 503", TRACE)
    assert one == fingerprint_of("OSError", "order 9999 at 0x12: host 'b.example' gave 502", TRACE)
    assert len(one) == 16


def test_the_same_code_on_another_machine_and_another_line_is_the_same_place() -> None:
    elsewhere = TRACE.replace("/srv/a/", "/home/b/").replace("line 12", "line 31")
    assert fingerprint_of("OSError", "no", TRACE) == fingerprint_of("OSError", "no", elsewhere)


def test_type_message_and_place_tell_errors_apart() -> None:
    prints = {
        fingerprint_of("OSError", "no", TRACE),
        fingerprint_of("ValueError", "no", TRACE),
        fingerprint_of("OSError", "yes", TRACE),
        fingerprint_of("OSError", "no", TRACE.replace("in send", "in receive")),
        fingerprint_of("OSError", "no", TRACE.replace("mail.py", "post.py")),
    }
    assert len(prints) == 5


def test_nothing_that_failed_has_no_fingerprint() -> None:
    assert fingerprint_of("", "", "") == ""


def test_words_are_small_and_each_once() -> None:
    assert words_of("Order order-17: REFUSED, by the Bank.") == ["order", "17", "refused", "by", "the", "bank"]


@given(st.text())
def test_a_word_of_a_text_is_found_by_itself(text: str) -> None:
    words = words_of(text)
    assert len(words) <= 100
    assert all(words_of(word) == [word] for word in words)
