"""A budget of retries: the first ones are free, then a share of the runs; what is above waits, and nothing is lost."""

from __future__ import annotations

import heapq
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.retry_budget import FREE, LONGEST_S, WINDOW_S, RetryBudget


class Played(NamedTuple):
    """What came of some jobs, all in one process."""

    runs: list[tuple[float, bool]]
    """When each run began, and whether it was a retry."""
    looks: int
    """How often a retry was looked at and put off."""
    left: int
    """Retries that were still waiting at the end."""

    def retries(self, after_s: float, until_s: float) -> int:
        return sum(again and after_s < at_s <= until_s for at_s, again in self.runs)

    def all(self, after_s: float, until_s: float) -> int:
        return sum(after_s < at_s <= until_s for at_s, _ in self.runs)


def play(share: float, arrivals: list[tuple[float, int]], *, delay_s: float = 1.0, until_s: float = 3600.0) -> Played:
    """Jobs that arrive then, and fail so often; every run ends when it begins."""
    budget, order, looks = RetryBudget(share), count(), 0
    runs: list[tuple[float, bool]] = []
    events = [(at_s, next(order), fails, False) for at_s, fails in arrivals]
    heapq.heapify(events)
    while events and events[0][0] <= until_s:
        now_s, _, fails, again = heapq.heappop(events)
        if wait_s := budget.begin(now_s, again=again):
            assert 0 < wait_s <= LONGEST_S
            looks += 1
            heapq.heappush(events, (now_s + wait_s, next(order), fails, True))
            continue
        runs.append((now_s, again))
        if fails:
            later_s = budget.delay_s(now_s, delay_s)
            assert delay_s <= later_s <= max(delay_s, LONGEST_S)
            heapq.heappush(events, (now_s + later_s, next(order), fails - 1, True))
    return Played(runs, looks, sum(again for *_, again in events))


def steady(per_s: int, seconds: int, fails: int) -> list[tuple[float, int]]:
    return [(number / per_s, fails) for number in range(per_s * seconds)]


def test_the_first_retries_of_a_quiet_queue_are_free() -> None:
    budget = RetryBudget(0.1)
    for now_s in range(FREE):
        assert budget.begin(now_s, again=False) == 0.0
        assert budget.delay_s(now_s, 1.0) == 1.0
        assert budget.begin(now_s, again=True) == 0.0
    assert not budget.stretched


def test_a_storm_is_stretched_to_its_share_of_the_runs() -> None:
    played = play(0.2, steady(100, 180, fails=5), until_s=180.0)
    # A fifth of all runs, the 100 new ones a second and the retries themselves: no more, and no less.
    assert played.retries(120, 180) / 60 == pytest.approx(25, rel=0.15)


def test_a_burst_of_failures_after_which_nothing_runs_has_the_free_retries_and_no_more() -> None:
    played = play(0.2, [(0.0, 1000)] * 100, delay_s=0.05, until_s=600.0)
    for end_s in (4, 24, 60, 600):
        assert played.retries(0, end_s) <= (FREE + FREE * end_s / WINDOW_S) / 0.8 + 1
    assert played.retries(0, 600) > 0.8 * (FREE + FREE * 600 / WINDOW_S)


def test_those_that_wait_are_looked_at_seldom_and_all_of_them_come() -> None:
    played = play(0.2, [(0.0, 1)] * 2000, delay_s=0.0, until_s=36_000.0)
    assert played.left == 0
    assert played.retries(-1, 36_000) == 2000
    last_s = played.runs[-1][0]
    # Each at most once in the second half of the longest wait, and the few wrong forecasts of the first minutes.
    assert played.looks < 2000 * (2 * last_s / LONGEST_S + 3)


def test_a_retry_comes_after_those_that_wait_already() -> None:
    budget = RetryBudget(0.1)
    while not (waits_s := budget.begin(0.0, again=True)):
        pass
    assert 0 < waits_s < budget.delay_s(0.0, 0.0)
    assert budget.delay_s(0.0, 100.0) == 100.0


def test_who_will_not_be_covered_has_its_moment_when_its_run_has_failed() -> None:
    budget, delays = RetryBudget(0.1), []
    for _ in range(4 * FREE):
        budget.begin(0.0, again=False)
        delays.append(budget.delay_s(0.0, 1.0))
    assert delays[:FREE] == [1.0] * FREE, "the free ones"
    later = [delay_s for delay_s in delays if delay_s > 1.0]
    assert len(later) > 2 * FREE, "by the forecast, which saves a look"
    assert later == sorted(set(later)), "one after the other"


def test_without_failures_nothing_waits() -> None:
    played = play(0.2, [(number / 100, int(number % 10 == 0)) for number in range(10_000)], delay_s=0.0)
    assert played.looks == 0
    assert all(played.retries(at_s, at_s + 1) == 10 for at_s in range(10, 90, 10))


def test_the_end_is_told_once_with_how_often_a_retry_had_to_wait() -> None:
    budget = RetryBudget(0.2)
    for _ in range(100):
        budget.begin(0.0, again=True)
    stretched = budget.stretched
    assert stretched > 100 - 2 * FREE
    assert budget.eased(0.0) == 0
    budget.begin(2 * LONGEST_S, again=False)
    assert budget.eased(2 * LONGEST_S) == stretched
    assert budget.eased(2 * LONGEST_S) == 0


ARRIVALS = st.lists(st.tuples(st.floats(0.0, 300.0), st.integers(1, 60), st.integers(0, 4)), min_size=1, max_size=15)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 0.99), ARRIVALS, st.sampled_from([0.0, 0.05, 1.0, 30.0]))
def test_in_no_window_are_more_retries_than_the_free_ones_and_their_share_of_its_runs(
    share: float, bursts: list[tuple[float, int, int]], delay_s: float
) -> None:
    arrivals = [(at_s, fails) for at_s, many, fails in bursts for _ in range(many)]
    played = play(share, arrivals, delay_s=delay_s)
    # For each run the window that ends with it and is most above its share, found from that of the run before.
    most, before_s = 0.0, 0.0
    for at_s, again in played.runs:
        most = max(0.0, most - (at_s - before_s) * FREE / WINDOW_S) + again - share
        before_s = at_s
        assert most <= FREE + 1e-6
    assert sum(not again for _, again in played.runs) == len(arrivals)
