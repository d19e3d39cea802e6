"""Breakers as values: when they open, half-open and close."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.breaker import (
    CLOSED,
    BreakerFigures,
    BreakerGate,
    BreakerMark,
    BreakerState,
    Phase,
    after_failure,
    after_mark,
    after_success,
)

BANK = BreakerGate("bank", failures=3, window_s=60.0, open_for_s=30.0)


def _after_failures(*times: float, gate: BreakerGate = BANK) -> BreakerState:
    state = CLOSED
    for at in times:
        state = after_failure(state, at, gate)
    return state


def test_so_many_failures_within_the_window_open_it() -> None:
    assert _after_failures(1, 2).phase(2) is Phase.CLOSED
    opened = _after_failures(1, 2, 3)
    assert opened == BreakerState((), 33.0)
    assert [opened.phase(at) for at in (3, 32.9, 33, 1000)] == [
        Phase.OPEN,
        Phase.OPEN,
        Phase.HALF_OPEN,
        Phase.HALF_OPEN,
    ]


def test_the_window_slides() -> None:
    assert _after_failures(0, 30, 60).phase(60) is Phase.CLOSED, "the first is out of it"
    assert _after_failures(0, 30, 60, 61).phase(61) is Phase.OPEN
    assert _after_failures(100, 40, 41).recent == (40, 41), "a clock that was set back is no failure in the future"


def test_no_more_failures_are_kept_than_matter() -> None:
    state = _after_failures(*range(0, 6000, 50))
    assert len(state.recent) <= BANK.failures


def test_one_failure_may_be_enough() -> None:
    assert _after_failures(5, gate=BANK._replace(failures=1)).phase(5) is Phase.OPEN


def test_a_success_closes_only_what_is_half_open() -> None:
    once = _after_failures(1)
    assert after_success(once, 2) == once, "it is closed, and remembers"
    opened = _after_failures(1, 2, 3)
    assert after_success(opened, 10) == opened, "what ends now began before it opened"
    assert after_success(opened, 33) == CLOSED


def test_the_failure_of_a_probe_opens_it_again() -> None:
    opened = _after_failures(1, 2, 3)
    again = after_failure(opened, 40, BANK)
    assert again.phase(69) is Phase.OPEN
    assert again.phase(70) is Phase.HALF_OPEN


def test_what_fails_while_it_is_open_says_nothing() -> None:
    opened = _after_failures(1, 2, 3)
    assert after_failure(opened, 20, BANK) == opened


def test_nothing_but_an_operator_moves_one_that_is_held() -> None:
    held = BreakerState(held=True)
    assert held.phase(1e9) is Phase.OPEN
    assert after_success(held, 5) == after_failure(held, 5, BANK) == held


marks = st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=60)


@given(marks, st.integers(1, 5))
def test_it_is_open_only_after_so_many_failures(told: list[tuple[float, bool]], failures: int) -> None:
    gate = BANK._replace(failures=failures)
    state, now, failed = CLOSED, 0.0, 0
    for gap, failure in told:
        now += gap
        before = state.phase(now)
        state = after_failure(state, now, gate) if failure else after_success(state, now)
        after = state.phase(now)
        failed = 0 if before is not Phase.CLOSED else failed + failure
        if before is Phase.CLOSED and after is not Phase.CLOSED:
            assert failed >= failures, "no sooner"
            assert failure, "a success opens nothing"
        if before is Phase.OPEN:
            assert after is Phase.OPEN, "only time half-opens it"
        if before is Phase.HALF_OPEN:
            assert after is (Phase.OPEN if failure else Phase.CLOSED), "one probe decides"
        assert state.phase(now + gate.open_for_s) is not Phase.OPEN, "never for longer than it says"
        assert len(state.recent) < max(2, failures) or failures == 1


@pytest.mark.parametrize("failed", [True, False])
def test_half_open_only_those_are_heard_that_began_since_then(failed: bool) -> None:
    half_open = BreakerState((), 100.0)
    before, probe = (BreakerMark(1, failed, BANK, ran_s) for ran_s in (10.5, 10.0))
    assert after_mark(half_open, 110.0, before) == half_open
    assert after_mark(half_open, 110.0, probe) == (BreakerState((), 140.0) if failed else CLOSED)


def test_a_failure_counts_for_a_closed_breaker_however_long_the_run_was() -> None:
    assert after_mark(CLOSED, 100.0, BreakerMark(1, True, BANK, 99.0)) == BreakerState((100.0,))


def test_what_operators_say_goes_before_what_the_code_says_each_by_itself() -> None:
    assert BreakerFigures().over(BANK) == BANK
    assert BreakerFigures(open_for_s=7.0).over(BANK) == BANK._replace(open_for_s=7.0)
    assert BreakerFigures(1, 2.0, 3.0).over(BANK) == BreakerGate("bank", 1, 2.0, 3.0)
    failed = BreakerMark(1, failed=True, breaker=BANK)
    twice = after_mark(after_mark(CLOSED, 1.0, failed), 2.0, failed)
    assert after_mark(twice, 3.0, failed, BreakerFigures(open_for_s=7.0)) == BreakerState((), 10.0)
    assert after_mark(twice, 3.0, failed, BreakerFigures(failures=9)) == BreakerState((1.0, 2.0, 3.0))
    assert after_mark(twice, 3.0, failed, BreakerFigures(window_s=1.5)) == BreakerState((2.0, 3.0))
    assert after_mark(twice, 3.0, failed, BreakerFigures(failures=1)).phase(3.0) is Phase.OPEN
