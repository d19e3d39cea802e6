"""Tags of those who wait at a gate: tenants take turns there by their weights, each in its own order, and nobody has to
be remembered who does not wait."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from itertools import combinations, count
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.tenancy import COST, FURTHEST_TAG, LIGHTEST, cost_of, line_tag


class Waiting(NamedTuple):
    """A job and the tag that it has brought, or was given for it."""

    line: int
    seq: int
    tenant: str


class Line:
    """One lane at a gate as a store keeps it."""

    def __init__(self, weights: dict[str, float] | None = None) -> None:
        self.weights = weights or {}
        self.waiting: list[Waiting] = []
        self.reached = 0
        self._seqs = count(1)

    def cost(self, tenant: str) -> int:
        return cost_of(self.weights.get(tenant))

    def come(self, tenant: str, seq: int | None = None) -> Waiting:
        """From the tail of its lane, or back to its place."""
        seq = next(self._seqs) if seq is None else seq
        last = max((job.line for job in self.waiting if job.tenant == tenant), default=None)
        head = self.waiting[0].line if self.waiting else None
        job = Waiting(line_tag(reached=self.reached, head=head, last=last, cost=self.cost(tenant)), seq, tenant)
        insort(self.waiting, job)
        return job

    def go(self) -> Waiting | None:
        """Whose tenant has the smallest tag, by the places of its jobs."""
        if not self.waiting:
            self.reached = 0  # nothing is known of a line where nobody waits
            return None
        by = self.waiting.pop(0)
        self.reached = max(self.reached, by.line)
        its_own = [job for job in (by, *self.waiting) if job.tenant == by.tenant]
        first = min(its_own, key=lambda job: job.seq)
        if first is not by:
            self.waiting.remove(first)
            insort(self.waiting, by._replace(line=first.line))
        return first


TENANTS = "abcd"
weights_of_tenants = st.fixed_dictionaries({each: st.sampled_from([0.1, 0.5, 1.0, 1.0, 3.0, 10.0]) for each in TENANTS})
moves = st.lists(st.sampled_from([*TENANTS, "go", "go", "back"]), max_size=60)


def play(line: Line, moves: list[str]) -> None:
    runs: list[Waiting] = []
    for move in moves:
        if move == "go":
            runs += [job] if (job := line.go()) else []
        elif move == "back":
            if runs:
                job = runs.pop(0)
                line.come(job.tenant, job.seq)
        else:
            line.come(move)


@given(moves, weights_of_tenants)
def test_each_tenant_goes_in_its_own_order_whoever_comes_back(moves: list[str], weights: dict[str, float]) -> None:
    line = Line(weights)
    play(line, moves)
    order: list[Waiting] = []
    while (job := line.go()) is not None:
        order.append(job)
    for tenant in TENANTS:
        its_own = [job.seq for job in order if job.tenant == tenant]
        assert its_own == sorted(its_own), order


@given(st.permutations(range(1, 41)))
def test_in_whatever_order_they_come_each_brings_a_tag_of_its_own(seqs: list[int]) -> None:
    """As batches that were picked one after the other may come."""
    line = Line()
    for seq in seqs:
        line.come("a", seq)
    tags = [job.line for job in line.waiting]
    assert tags == [n * COST - 1 for n in range(1, 41)]
    line.come("b", 100)
    line.come("b", 101)
    assert [job.tenant for job in (line.go(), line.go(), line.go(), line.go()) if job] == ["a", "b", "a", "b"]


@given(moves, weights_of_tenants)
def test_a_first_job_waits_for_one_of_each_tenant_with_work(moves: list[str], weights: dict[str, float]) -> None:
    """By its weight: of those that are ten times as heavy it is ten."""
    line = Line(weights)
    play(line, [move for move in moves if move != "back"])
    others = {job.tenant for job in line.waiting}
    mine = line.come("newcomer")
    most = sum(1 + line.cost("newcomer") // line.cost(tenant) for tenant in others)
    assert line.waiting.index(mine) <= most, line.waiting


def test_of_tenants_of_the_same_weight_a_first_job_is_the_next() -> None:
    line = Line()
    for tenant in "a" * 1000 + "b":
        line.come(tenant)
    job = line.go()
    assert job is not None
    assert job.seq == 1
    line.come("c")
    assert [job.tenant for job in line.waiting[:3]] == ["b", "c", "a"], "before the second of anybody"


@given(moves, weights_of_tenants, st.integers(1, 60))
def test_backlogged_tenants_get_shares_by_weight(moves: list[str], weights: dict[str, float], rounds: int) -> None:
    line = Line(weights)
    play(line, [move for move in moves if move != "back"])
    for tenant in TENANTS * 60:
        line.come(tenant)
    got: Counter[str] = Counter()
    for _ in range(rounds):
        job = line.go()
        assert job is not None
        got[job.tenant] += 1
        paid = {tenant: got[tenant] * line.cost(tenant) for tenant in TENANTS}
        for one, other in combinations(TENANTS, 2):
            assert abs(paid[one] - paid[other]) <= 2 * (line.cost(one) + line.cost(other))


@given(weights_of_tenants, st.integers(1, 40))
def test_coming_again_and_again_brings_no_more_than_waiting(weights: dict[str, float], rounds: int) -> None:
    line = Line(weights)
    for _ in range(200):
        line.come("b")
    got: Counter[str] = Counter()
    for _ in range(rounds):
        if not any(job.tenant == "a" for job in line.waiting):
            line.come("a")
        job = line.go()
        assert job is not None
        got[job.tenant] += 1
    assert (got["a"] - 1) * (line.cost("a") - 1) <= (got["b"] + 1) * line.cost("b"), got


def test_where_it_is_forgotten_how_far_they_have_come_nobody_is_overtaken_for_long() -> None:
    line = Line()
    for _ in range(400):
        line.come("a")
    for _ in range(300):
        line.go()
    line.reached = 0
    for _ in range(250):
        line.come("late")
    order = [job.tenant for job in line.waiting]
    assert order.index("a") <= 1 / LIGHTEST + 1
    assert order.index("late") <= 1


def test_tags_end_somewhere() -> None:
    furthest = FURTHEST_TAG - 1
    assert line_tag(reached=furthest, head=None, last=None, cost=COST) == furthest
    assert line_tag(reached=0, head=None, last=furthest, cost=COST) == furthest
