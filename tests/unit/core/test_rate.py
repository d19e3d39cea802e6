"""Paces: the text that says one, and the bucket in one number that keeps it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.rate import Pace, next_token_at, no_emptier, parse_pace, spend, tokens

EPOCH = 1.7e9

paces = st.builds(Pace, st.sampled_from([0.5, 1.0, 3.0, 100.0]), st.sampled_from([1.0, 30.0, 60.0]), st.integers(1, 20))


@pytest.mark.parametrize(
    ("text", "pace", "said"),
    [
        ("100/m", Pace(100, 60, 100), "100/m"),
        ("5/s", Pace(5, 1, 5), "5/s"),
        ("10/30s", Pace(10, 30, 10), "10/30s"),
        (" 1 / 2 h ", Pace(1, 7200, 1), "1/7200s"),
        ("0.5/s", Pace(0.5, 1, 1), "0.5/s"),
        ("2.75/d", Pace(2.75, 86_400, 2), "2.75/d"),
        ("1/365d", Pace(1, 31_536_000, 1), "1/365d"),
        ("1000000/s", Pace(1e6, 1, 1_000_000), "1000000/s"),
        ("123456.7/s", Pace(123_456.7, 1, 123_456), "123456.7/s"),
        ("0.000001/5m", Pace(0.000001, 300, 1), "0.000001/300s"),
    ],
)
def test_a_text_says_a_pace(text: str, pace: Pace, said: str) -> None:
    assert parse_pace(text) == pace
    assert str(pace) == said
    assert parse_pace(said, burst=pace.burst) == pace


def test_a_burst_can_be_given() -> None:
    assert parse_pace("100/m", burst=1) == Pace(100, 60, 1)


@pytest.mark.parametrize(
    "text",
    ["", "fast", "1", "/m", "1/y", "-1/s", "1/-3s", "1e3/s", "1/s?", "1/s/s", "\u0661/s", "1/\u0663s", 5, None, b"1/s"],
)
def test_what_is_no_pace_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(InvalidOptions, match=r"^rate=.*needs a text as '100/m'"):
        parse_pace(text)


@pytest.mark.parametrize("text", ["0/s", "0.0/m", "1000001/s", "1/0s"])
def test_a_pace_without_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptions, match="needs more than 0 and at most 1,000,000 runs per unit of time"):
        parse_pace(text)


@pytest.mark.parametrize(
    ("text", "burst"),
    [("1/999999d", None), ("0.000001/d", None), ("1/365d", 11), ("1/d", 1_000_000), ("0.000001/999999d", 1)],
)
def test_a_bucket_that_nobody_sees_full_again_is_refused(text: str, burst: int | None) -> None:
    with pytest.raises(InvalidOptions, match=r"^rate=.* would be earned again after more than ten years; .*pause"):
        parse_pace(text, burst=burst)


@pytest.mark.parametrize("burst", [0, -1, 1.5, "3", True, 1_000_001])
def test_a_burst_without_sense_is_refused(burst: object) -> None:
    with pytest.raises(InvalidOptions, match=r"^burst=.*needs a whole number of runs from 1 to 1,000,000"):
        parse_pace("1/s", burst=burst)  # type: ignore[arg-type]


def test_before_the_first_run_the_bucket_is_full() -> None:
    pace = Pace(1, 1.0, 3)
    assert tokens(None, EPOCH, pace) == 3
    assert next_token_at(None, EPOCH, pace) == EPOCH
    full_at = spend(None, EPOCH, pace, 3)
    assert (full_at, tokens(full_at, EPOCH, pace)) == (EPOCH + 3, 0)
    assert next_token_at(full_at, EPOCH, pace) == EPOCH + 1
    assert [tokens(full_at, EPOCH + later, pace) for later in (0.9, 1, 2, 3, 1000)] == [0, 1, 2, 3, 3]


def test_another_pace_counts_from_the_next_look_on() -> None:
    slow, quick = Pace(1, 3600.0, 1), Pace(100, 1.0, 1)
    full_at = spend(None, EPOCH, slow)
    assert tokens(full_at, EPOCH, quick) == 0
    assert no_emptier(full_at, EPOCH, slow) == full_at, "it is as empty as it gets"
    eased = no_emptier(full_at, EPOCH, quick)
    assert next_token_at(eased, EPOCH, quick) == pytest.approx(EPOCH + quick.gap_s)
    assert tokens(full_at, EPOCH, slow._replace(burst=3)) == 2, "a larger burst is there at once"


def _begin(times: list[float], pace: Pace) -> list[float]:
    """When runs begin that are asked for at these times, each once: those that find a token."""
    full_at: float | None = None
    begun = []
    for at in times:
        if tokens(full_at, at, pace) >= 1:
            full_at = round(spend(full_at, at, pace), 6)  # as it comes back from a store
            begun.append(at)
        else:
            assert full_at is not None
            full_at = no_emptier(full_at, at, pace)
    return begun


@given(paces, st.lists(st.floats(0, 30), max_size=120))
def test_in_no_span_of_time_do_more_begin_than_the_burst_and_what_is_earned(pace: Pace, gaps: list[float]) -> None:
    at, times = EPOCH, []
    for gap in gaps:
        at += gap * pace.gap_s / 4
        times.append(round(at, 6))
    begun = _begin(times, pace)
    for first, start in enumerate(begun):
        for number, later in enumerate(begun[first:], start=1):
            slack = 1e-6 * (number + 1) / pace.gap_s
            assert number <= pace.burst + (later - start) / pace.gap_s + slack + 1e-6


@given(paces, st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_whoever_comes_when_told_finds_a_token(pace: Pace, numbers: list[int]) -> None:
    now, full_at = EPOCH, None
    for number in numbers:
        for _ in range(number):
            now = next_token_at(full_at, now, pace)
            assert 1 <= tokens(full_at, now, pace) <= pace.burst
            full_at = spend(full_at, now, pace)
    assert next_token_at(full_at, now, pace) >= now


@given(paces, st.floats(0, 1000), st.lists(st.floats(0, 10), min_size=2, max_size=10))
def test_tokens_grow_with_time_up_to_the_burst(pace: Pace, missing_s: float, waits: list[float]) -> None:
    now, seen = EPOCH, []
    for wait in waits:
        now += wait
        seen.append(tokens(EPOCH + missing_s, now, pace))
    assert all(before <= after for before, after in pairwise(seen))
    assert all(0 <= each <= pace.burst for each in seen)
