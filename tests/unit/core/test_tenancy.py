"""Shares between tenants: how long a job can be kept waiting, and by whom, whatever the others do."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from itertools import combinations, count
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.tenancy import COST, HEAVIEST, LIGHTEST, check_tenant_weight, cost_of, next_tag


class Waiting(NamedTuple):
    tag: int
    seq: int
    tenant: str


class Lane:
    """A lane as a store keeps it: tags at enqueue, and nothing but their order when jobs are claimed."""

    def __init__(self, **weights: float) -> None:
        self.weights = weights
        self.waiting: list[Waiting] = []
        self.reached: int | None = None
        self.last: dict[str, int] = {}
        self._seqs = count()

    def cost(self, tenant: str) -> int:
        return cost_of(self.weights.get(tenant))

    def enqueue(self, tenant: str, jobs: int = 1) -> Waiting:
        for _ in range(jobs):
            last = self.last.get(tenant)
            waits = any((job.tag, job.tenant) == (last, tenant) for job in self.waiting)
            tag = next_tag(self.reached, last, self.cost(tenant), waiting=waits)
            self.last[tenant] = tag
            job = Waiting(tag, next(self._seqs), tenant)
            insort(self.waiting, job)
        return job

    def claim(self, slots: int = 1) -> list[Waiting]:
        taken, self.waiting = self.waiting[:slots], self.waiting[slots:]
        self.reached = max([self.reached or 0, *(job.tag for job in taken)])
        return taken


TENANTS = "abcd"
weights_of_tenants = st.fixed_dictionaries(
    {tenant: st.sampled_from([0.1, 0.5, 1.0, 1.0, 3.0, 10.0]) for tenant in TENANTS}
)
moves = st.lists(
    st.tuples(st.sampled_from(TENANTS), st.integers(1, 30)) | st.tuples(st.none(), st.integers(1, 8)), max_size=40
)


def play(lane: Lane, moves: list[tuple[str | None, int]]) -> None:
    for tenant, number in moves:
        if tenant is None:
            lane.claim(number)
        else:
            lane.enqueue(tenant, number)


def test_a_hundred_thousand_jobs_of_one_tenant_are_one_job_to_another() -> None:
    lane = Lane()
    lane.waiting = [Waiting(1 + n * COST, -200_000 + n, "big") for n in range(100_000)]
    lane.last["big"] = lane.waiting[-1].tag
    lane.claim(1000)
    lane.enqueue("small")
    assert "small" in [job.tenant for job in lane.claim(2)]


@given(moves, weights_of_tenants)
def test_a_first_job_waits_for_at_most_one_job_of_each_tenant_with_work(
    moves: list[tuple[str | None, int]], weights: dict[str, float]
) -> None:
    lane = Lane(**weights)
    play(lane, moves)
    others = {job.tenant for job in lane.waiting}
    mine = lane.enqueue("newcomer")
    assert lane.waiting.index(mine) <= len(others)


@given(moves, weights_of_tenants)
def test_so_does_the_next_job_of_whoever_has_nothing_waiting(
    moves: list[tuple[str | None, int]], weights: dict[str, float]
) -> None:
    """By its weight: it may have had the last one just before."""
    lane = Lane(**weights)
    play(lane, moves)
    lane.waiting = [job for job in lane.waiting if job.tenant != "a"]
    mine = lane.enqueue("a")
    assert lane.reached is None or mine.tag <= max(lane.reached, 1) + lane.cost("a")
    window = mine.tag - max(lane.reached or 1, 1)
    others = {job.tenant for job in lane.waiting} - {"a"}
    assert lane.waiting.index(mine) <= sum(1 + window // lane.cost(tenant) for tenant in others)


@given(moves, weights_of_tenants, st.integers(1, 60), st.integers(1, 7))
def test_backlogged_tenants_get_shares_by_weight_to_within_a_job_each(
    moves: list[tuple[str | None, int]], weights: dict[str, float], rounds: int, slots: int
) -> None:
    lane = Lane(**weights)
    play(lane, moves)
    for tenant in TENANTS:  # from here on each of them always has work
        lane.enqueue(tenant, 60)
    got: Counter[str] = Counter()
    for _ in range(rounds):
        got += Counter(job.tenant for job in lane.claim(slots))
        if {job.tenant for job in lane.waiting} != set(TENANTS):
            return
        paid = {tenant: got[tenant] * lane.cost(tenant) for tenant in TENANTS}
        for one, other in combinations(TENANTS, 2):
            assert abs(paid[one] - paid[other]) <= lane.cost(one) + lane.cost(other)


@given(moves, moves, weights_of_tenants)
def test_no_job_is_overtaken_without_end_whoever_comes_and_goes(
    before: list[tuple[str | None, int]], after: list[tuple[str | None, int]], weights: dict[str, float]
) -> None:
    lane = Lane(**weights)
    play(lane, before)
    mine = lane.enqueue("a")
    window = mine.tag - max(lane.reached or 1, 1)
    most = sum(1 + window // lane.cost(tenant) for tenant in TENANTS)
    play_on = [move for move in after for _ in range(3)]
    claimed = 0
    for tenant, number in play_on:
        if tenant is not None:
            lane.enqueue(tenant, number)
            continue
        for job in lane.claim(number):
            if job == mine:
                return
            claimed += 1
        assert claimed <= most, "later jobs came before it, more than its tag allows"


def test_nobody_pays_for_a_job_that_was_cancelled() -> None:
    assert next_tag(500, 500 + 70 * COST, COST, waiting=False) == 500
    assert next_tag(500, 500 + 70 * COST, COST, waiting=True) == 500 + 71 * COST


def test_nobody_is_owed_anything_for_having_been_away() -> None:
    assert next_tag(1_000_000, 1, COST, waiting=False) == 1_000_000


def test_the_first_tag_of_all_is_not_that_of_jobs_without() -> None:
    assert next_tag(None, None, COST, waiting=False) == next_tag(0, None, COST, waiting=False) == 1


@pytest.mark.parametrize(("weight", "cost"), [(None, 10_000), (1, 10_000), (2, 5_000), (3, 3_333), (0.01, 1_000_000)])
def test_a_job_costs_the_heavier_tenant_less(weight: float | None, cost: int) -> None:
    assert cost_of(weight) == cost


@given(st.floats(LIGHTEST, HEAVIEST))
def test_rounding_costs_nobody_more_than_a_hundredth(weight: float) -> None:
    assert math.isclose(cost_of(weight) * weight, COST, rel_tol=0.01)


@pytest.mark.parametrize("weight", [math.nan, math.inf, -1.0, 0.0, 1e9])
def test_a_stored_weight_without_sense_counts_as_none(weight: float) -> None:
    assert cost_of(weight) == COST


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (0, "must lie between 0.01 and 100"),
        (-1, "must lie between"),
        (101, "must lie between"),
        (10**400, "must lie between"),
        (math.nan, "must lie between"),
        (True, "must be a number"),
        ("3", "must be a number"),
        (None, "must be a number"),
    ],
)
def test_a_weight_without_sense_is_refused(weight: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions, match=sentence):
        check_tenant_weight(weight)


def test_a_weight_is_a_number() -> None:
    assert check_tenant_weight(3) == 3.0
