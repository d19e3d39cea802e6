"""Watermarks, hysteresis and the suggested time to try again."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.backpressure import AgeMarks, DrainWatch, Watermarks, gate, retry_after
from holdfast.core.errors import InvalidOptions

marks_and_depths = st.integers(0, 50).flatmap(
    lambda low: st.tuples(
        st.builds(Watermarks, high=st.integers(low + 1, 80), low=st.just(low)),
        st.lists(st.integers(0, 100), max_size=60),
    )
)


def test_the_documented_defaults() -> None:
    assert Watermarks() == Watermarks(high=10_000, low=2_000)


@pytest.mark.parametrize(
    ("depth", "was_open", "was_closed"),
    [(0, False, False), (20, False, False), (21, False, True), (99, False, True), (100, True, True), (500, True, True)],
)
def test_closes_at_high_opens_at_low_and_else_stays(depth: int, was_open: bool, was_closed: bool) -> None:
    marks = Watermarks(high=100, low=20)
    assert gate(False, depth, marks) is was_open
    assert gate(True, depth, marks) is was_closed


@given(marks_and_depths)
def test_the_gate_moves_only_when_the_whole_band_was_crossed(case: tuple[Watermarks, list[int]]) -> None:
    marks, depths = case
    closed = False
    switches = 0
    # An independent count: of the depths outside the band, how often the side changes, starting below it.
    sides = [False, *(depth >= marks.high for depth in depths if not marks.low < depth < marks.high)]
    crossings = sum(before is not after for before, after in pairwise(sides))
    for depth in depths:
        after = gate(closed, depth, marks)
        switches += after is not closed
        closed = after
    assert switches == crossings


@pytest.mark.parametrize(
    "options",
    [
        {"high": 5, "low": 5},
        {"high": 5, "low": 6},
        {"high": 5, "low": -1},
        {"high": 0, "low": 0},
        {"high": 5.0, "low": 1},
        {"high": True, "low": 0},
        {"high": math.nan, "low": 0},
        {"high": 5, "low": None},
    ],
)
def test_senseless_watermarks_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptions, match="watermarks: "):
        Watermarks(**options)


def test_the_suggestion_is_the_time_to_drain() -> None:
    assert retry_after(10_000, 2_000, 400.0) == 20.0


@pytest.mark.parametrize("drain", [0.0, -1.0, math.nan])
def test_a_queue_that_does_not_drain_suggests_the_longest_wait(drain: float) -> None:
    assert retry_after(10_000, 2_000, drain) == 60.0


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.none() | st.floats())
def test_the_suggestion_is_bounded(depth: int, low: int, drain: float | None) -> None:
    assert 1 <= retry_after(depth, low, drain) <= 60


def watched(*seen: tuple[float, int]) -> DrainWatch:
    watch = DrainWatch()
    for at_s, depth in seen:
        watch.saw(depth, at_s)
    return watch


@pytest.mark.parametrize("seen", [(), ((0.0, 10),), ((0.0, 10), (0.9, 5))])
def test_over_less_than_a_second_nothing_is_said_of_the_drain(seen: tuple[tuple[float, int], ...]) -> None:
    assert watched(*seen).per_s is None


def test_the_drain_is_measured_over_the_last_half_minute() -> None:
    assert watched((0.0, 100), (2.0, 80)).per_s == 10.0
    assert watched((0.0, 100), (2.0, 110)).per_s == -5.0
    # At 40 s the first, quick seconds are forgotten.
    assert watched((0.0, 1000), (10.0, 100), (20.0, 90), (40.0, 70)).per_s == 1.0


@given(st.integers(1, 1000), st.lists(st.floats(0.001, 3.0), min_size=2, max_size=300))
def test_a_steady_drain_is_measured_as_such_and_few_points_are_kept(per_s: int, gaps: list[float]) -> None:
    watch, at_s = DrainWatch(), 0.0
    for gap_s in gaps:
        at_s += gap_s
        watch.saw(round(1_000_000 - per_s * at_s), at_s)
    assert len(watch._points) <= 62
    assert watch.per_s is None or watch.per_s == pytest.approx(per_s, abs=1.1)


# ---------------------------------------------------------------- age

DEPTHS, AGES = Watermarks(high=40, low=10), AgeMarks(high_s=60.0, low_s=5.0)
depths_and_ages = st.lists(st.tuples(st.integers(0, 60), st.none() | st.floats(0, 90)), max_size=80)


@pytest.mark.parametrize(
    ("depth", "age_s", "was_open", "was_closed"),
    [
        (0, None, False, False),
        (5, 5.0, False, False),
        (5, 6.0, False, True),
        (5, 60.0, True, True),
        (11, 1.0, False, True),
        (40, 1.0, True, True),
        (39, 59.9, False, True),
        (40, 60.0, True, True),
    ],
)
def test_either_closes_and_both_open(depth: int, age_s: float | None, was_open: bool, was_closed: bool) -> None:
    assert gate(False, depth, DEPTHS, age_s=age_s, ages=AGES) is was_open
    assert gate(True, depth, DEPTHS, age_s=age_s, ages=AGES) is was_closed


@given(depths_and_ages)
def test_it_switches_at_most_once_per_crossing_of_the_bands(seen: list[tuple[int, float | None]]) -> None:
    """To close, a high mark must be reached; to open, all must be at their low ones: in between it cannot flutter."""
    closed, switches, crossings, above = False, 0, 0, False
    for depth, age_s in seen:
        after = gate(closed, depth, DEPTHS, age_s=age_s, ages=AGES)
        switches += after != closed
        closed = after
        high = depth >= DEPTHS.high or (age_s or 0.0) >= AGES.high_s
        low = depth <= DEPTHS.low and (age_s or 0.0) <= AGES.low_s
        if high != above and (high or low):
            above, crossings = high, crossings + 1
        assert switches == crossings
        assert closed == above


@given(depths_and_ages)
def test_without_marks_age_changes_nothing(seen: list[tuple[int, float | None]]) -> None:
    closed = False
    for depth, age_s in seen:
        assert gate(closed, depth, DEPTHS, age_s=age_s) == gate(closed, depth, DEPTHS)
        closed = gate(closed, depth, DEPTHS)


@pytest.mark.parametrize(
    ("high_s", "low_s", "sentence"),
    [
        (1.0, 1.0, "need 0 <= low < high"),
        (1.0, 2.0, "need 0 <= low < high"),
        (1.0, -1.0, "need 0 <= low < high"),
        (math.inf, 1.0, "must be a number of seconds"),
        (math.nan, 1.0, "must be a number of seconds"),
        (10**400, 1.0, "must be a number of seconds"),
        (True, 0.0, "must be a number of seconds"),
        ("60", 1.0, "must be a number of seconds"),
    ],
)
def test_marks_of_age_without_sense_are_refused(high_s: Any, low_s: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions, match=sentence):
        AgeMarks(high_s, low_s)
