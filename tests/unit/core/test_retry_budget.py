"""A budget of retries: the first ones are free, then a share of the runs; what is above waits, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.retry_budget import FREE, LONGEST_S, WINDOW_S, RetryBudget


def storm(share: float, *, per_s: int, seconds: int, delay_s: float = 1.0) -> list[float]:
    """The moments at which retries come, where every run fails; runs come at a steady rate."""
    budget, due = RetryBudget(share), []
    for number in range(per_s * seconds):
        now_s = number / per_s
        budget.ran(now_s)
        due.append(now_s + budget.delay_s(delay_s))
    return due


def test_the_first_retries_of_a_quiet_queue_are_free() -> None:
    budget = RetryBudget(0.1)
    for now_s in range(FREE):
        budget.ran(now_s)
        assert budget.delay_s(1.0) == 1.0
    assert not budget.stretched


def test_a_storm_is_stretched_to_its_share_of_the_runs() -> None:
    due = storm(0.2, per_s=100, seconds=120)
    # After a window's warming up: 100 runs a second, of which 20 may be retries.
    within = sum(120 <= moment < 150 for moment in due)
    assert within / 30 == pytest.approx(20, rel=0.15)


def test_without_failures_nothing_waits() -> None:
    budget = RetryBudget(0.2)
    for number in range(10_000):
        now_s = number / 100
        assert not budget.ran(now_s)
        if number % 10 == 0:  # a tenth fails
            assert budget.delay_s(0.0) == 0.0


def test_the_end_is_told_once_with_how_many_had_to_wait() -> None:
    budget = RetryBudget(0.2)
    for _ in range(100):
        budget.ran(0.0)
        budget.delay_s(0.0)
    stretched = budget.stretched
    assert stretched > 0
    assert budget.ran(1.0) == 0
    assert budget.ran(2 * LONGEST_S) == stretched
    assert budget.ran(2 * LONGEST_S) == 0


@settings(max_examples=50)
@given(
    st.floats(0.01, 0.99),
    st.lists(st.tuples(st.floats(0.0, 5.0), st.booleans(), st.floats(0.0, 100.0)), max_size=200),
)
def test_a_retry_never_comes_sooner_and_waits_a_bounded_time(
    share: float, runs: list[tuple[float, bool, float]]
) -> None:
    budget, now_s = RetryBudget(share), 0.0
    for gap_s, failed, delay_s in runs:
        now_s += gap_s
        budget.ran(now_s)
        if failed:
            assert delay_s <= budget.delay_s(delay_s) <= max(delay_s, LONGEST_S)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 0.9), st.integers(1, 200))
def test_at_no_time_have_more_retries_come_than_their_share_of_the_runs_and_those_that_are_free(
    share: float, per_s: int
) -> None:
    due = sorted(storm(share, per_s=per_s, seconds=20, delay_s=0.0))
    for second in range(1, 100):
        come = sum(moment < second for moment in due)
        assert come <= 1.1 * share * per_s * second + FREE * (1 + second / WINDOW_S) + 1
