"""Shares between lanes: close to the ideal, work-conserving, nobody forgotten, never over the capacity."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.fairness import Lane, Quotas

HIGH, MIDDLE, LOW = Lane("default", 9), Lane("default", 7), Lane("default", 5)
IDLE = Lane("default", 0)
SIXTY_THIRTY_TEN = {HIGH: 60.0, MIDDLE: 30.0, LOW: 10.0}
ENDLESS = 10**9


class Backlog:
    """Lanes with a number of ready jobs, claimed from in rounds as a worker would."""

    def __init__(self, quotas: Quotas, jobs: Mapping[Lane, int]) -> None:
        self.quotas = quotas
        self.jobs = Counter(jobs)

    def claim(self, asked: Mapping[Lane, int]) -> Counter[Lane]:
        got = Counter({lane: min(quota, self.jobs[lane]) for lane, quota in asked.items()})
        self.jobs -= got
        for lane, quota in asked.items():
            self.quotas.record(lane, asked=quota, got=got[lane])
        return got

    def round(self, capacity: int, now_s: float = 0.0, *, claims: int = 2) -> Counter[Lane]:
        plan = self.quotas.plan(capacity, now_s)
        served: Counter[Lane] = Counter()
        for _ in range(claims):
            assert sum(plan.values()) <= capacity - served.total()
            assert all(quota > 0 for quota in plan.values())
            got = self.claim(plan)
            served += got
            plan = self.quotas.leftover(plan, got)
        return served


weights_of_lanes = st.lists(st.sampled_from([1, 3, 10, 30, 60]) | st.floats(0.1, 100), min_size=1, max_size=8).map(
    lambda weights: {Lane("default", number): float(weight) for number, weight in enumerate(weights)}
)


@settings(max_examples=150)
@given(weights_of_lanes, st.lists(st.integers(1, 60) | st.just(1), min_size=1, max_size=80))
def test_always_full_lanes_stay_within_one_job_of_their_ideal_share(
    weights: dict[Lane, float], capacities: list[int]
) -> None:
    backlog = Backlog(Quotas(weights), dict.fromkeys(weights, ENDLESS))
    whole = sum(weights.values())
    served: Counter[Lane] = Counter()
    for fetch, capacity in enumerate(capacities):
        got = backlog.round(capacity, now_s=fetch * 0.4)
        assert got.total() == capacity
        served += got
        for lane, weight in weights.items():
            assert abs(served[lane] - served.total() * weight / whole) < 1 + 1e-6


@settings(max_examples=150)
@given(weights_of_lanes, st.lists(st.integers(1, 60) | st.just(1), min_size=1, max_size=80))
def test_every_lane_with_a_weight_is_served_within_the_time_of_two_of_its_jobs(
    weights: dict[Lane, float], capacities: list[int]
) -> None:
    """However light it is: among as many jobs as are worth two of its own, one is its own."""
    backlog = Backlog(Quotas(weights), dict.fromkeys(weights, ENDLESS))
    whole = sum(weights.values())
    gaps = dict.fromkeys(weights, 0)
    for fetch, capacity in enumerate(capacities):
        got = backlog.round(capacity, now_s=fetch * 0.4)
        for lane, weight in weights.items():
            gaps[lane] = 0 if got[lane] else gaps[lane] + capacity
            assert gaps[lane] <= 2 * whole / weight + 1e-6


def test_a_heavy_lane_does_not_take_the_spare_slots_of_many_light_ones() -> None:
    weights = {Lane("default", number): weight for number, weight in enumerate((1.0, 60.0, 3.0, 3.0, 3.0, 1.0, 1.0))}
    backlog = Backlog(Quotas(weights), dict.fromkeys(weights, ENDLESS))
    draw = random.Random(7)
    served: Counter[Lane] = Counter()
    for _ in range(500):
        served += backlog.round(draw.randint(1, 50))
        for lane, weight in weights.items():
            assert abs(served[lane] - served.total() * weight / 72) < 1 + 1e-6


@given(st.lists(st.integers(10, 40), min_size=1, max_size=60))
def test_with_60_30_10_every_fetch_of_ten_or_more_serves_every_lane(capacities: list[int]) -> None:
    backlog = Backlog(Quotas(SIXTY_THIRTY_TEN), dict.fromkeys(SIXTY_THIRTY_TEN, ENDLESS))
    for capacity in capacities:
        assert min(backlog.round(capacity)[lane] for lane in SIXTY_THIRTY_TEN) >= 1


@pytest.mark.parametrize("capacity", [1, 2, 7, 10, 50, 200])
def test_the_ten_percent_lane_never_waits_for_more_than_a_batch_or_twenty_jobs(capacity: int) -> None:
    backlog = Backlog(Quotas(SIXTY_THIRTY_TEN), dict.fromkeys(SIXTY_THIRTY_TEN, ENDLESS))
    gap = longest = 0
    for _ in range(2_000 // capacity + 10):
        got = backlog.round(capacity)
        gap = 0 if got[LOW] else gap + capacity
        longest = max(longest, gap)
    assert longest <= max(20, capacity)


def test_one_slot_at_a_time_keeps_the_shares() -> None:
    backlog = Backlog(Quotas(SIXTY_THIRTY_TEN), dict.fromkeys(SIXTY_THIRTY_TEN, ENDLESS))
    served = sum((backlog.round(1) for _ in range(1_000)), Counter[Lane]())
    assert served == {HIGH: 600, MIDDLE: 300, LOW: 100}


def test_a_first_plan_asks_every_lane_for_its_share() -> None:
    assert Quotas(SIXTY_THIRTY_TEN).plan(100, 0.0) == {HIGH: 60, MIDDLE: 30, LOW: 10}


@pytest.mark.parametrize("capacity", [0, -1])
def test_without_capacity_or_lanes_nothing_is_asked(capacity: int) -> None:
    assert Quotas(SIXTY_THIRTY_TEN).plan(capacity, 0.0) == {}
    assert Quotas({}).plan(10, 0.0) == {}


jobs_of_lanes = st.lists(st.integers(0, 60), min_size=3, max_size=3)
rounds = st.lists(
    st.tuples(st.integers(1, 30), st.floats(0, 0.7), jobs_of_lanes, st.sets(st.sampled_from([0, 1, 2]))), max_size=30
)


@given(rounds)
def test_no_slot_stays_free_while_a_lane_known_to_have_work_has_some(
    steps: list[tuple[int, float, list[int], set[int]]],
) -> None:
    lanes = list(SIXTY_THIRTY_TEN)
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {})
    now_s = 0.0
    for capacity, pause_s, arrivals, hinted in steps:
        now_s += pause_s
        backlog.jobs.update(dict(zip(lanes, arrivals, strict=True)))
        for number in hinted:
            quotas.hint(lanes[number])
        if backlog.round(capacity, now_s, claims=1 + len(lanes)).total() < capacity:
            assert all(quotas._accounts[lane].empty for lane in lanes)
            # Nothing that arrived unannounced is lost: a second later every lane is asked.
            now_s += 1
            left = backlog.jobs.total()
            assert backlog.round(10_000, now_s).total() == left


def test_unused_slots_go_to_the_others_at_once_and_in_proportion() -> None:
    backlog = Backlog(Quotas(SIXTY_THIRTY_TEN), {HIGH: 20, MIDDLE: ENDLESS, LOW: ENDLESS})
    got = backlog.round(100)
    assert got == {HIGH: 20, MIDDLE: 60, LOW: 20}


def test_a_lane_without_a_slot_in_this_fetch_gets_the_one_that_came_back() -> None:
    backlog = Backlog(Quotas(SIXTY_THIRTY_TEN), {LOW: 5})
    assert [backlog.round(1, claims=3) for _ in range(6)] == [{LOW: 1}] * 5 + [{}]


def test_a_lane_believed_empty_leaves_its_share_to_the_others() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    backlog.round(100)
    assert quotas.plan(100, 0.5) == {MIDDLE: 75, LOW: 25}


@pytest.mark.parametrize("capacity", [1, 2, 100])
def test_a_lane_believed_empty_is_probed_once_a_second(capacity: int) -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    probes = []
    for tick in range(40):
        now_s = tick / 8
        plan = quotas.plan(capacity, now_s)
        assert sum(plan.values()) == capacity
        if HIGH in plan and tick:
            assert plan[HIGH] == 1
            probes.append(now_s)
        got = backlog.claim(plan)
        assert got.total() + backlog.claim(quotas.leftover(plan, got)).total() == capacity
    assert probes == [1.0, 2.0, 3.0, 4.0]


def test_a_probe_that_finds_work_brings_the_lane_back() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    backlog.round(100)
    backlog.jobs[HIGH] = ENDLESS
    assert backlog.round(100, 0.9)[HIGH] == 0
    assert backlog.round(100, 1.0)[HIGH] == 1
    assert backlog.round(100, 1.1)[HIGH] >= 60


def test_a_lane_that_comes_back_has_saved_at_most_one_batch() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    for tick in range(100):
        backlog.round(100, tick * 2.0)
    backlog.jobs[HIGH] = ENDLESS
    served = sum((backlog.round(100, 300.0) for _ in range(10)), Counter[Lane]())
    assert served[HIGH] <= 600 + 100
    assert served[LOW] >= 50


def test_a_trickling_lane_cannot_save_up_more_than_one_batch() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    for _ in range(50):  # asked for its share again and again, it gives a single job each time
        backlog.jobs[HIGH] = 1
        quotas.hint(HIGH)
        backlog.round(100)
        backlog.round(100)
    backlog.jobs[HIGH] = ENDLESS
    quotas.hint(HIGH)
    served = sum((backlog.round(1) for _ in range(40)), Counter[Lane]())
    # The batch that counts is the one of today: what was saved in batches of a hundred is not paid out singly.
    assert served[HIGH] <= 24 + 3
    assert served[LOW] >= 4 - 1


def test_more_probes_than_slots_wait_their_turn() -> None:
    lanes = {Lane(f"queue-{number}", 5): 1.0 for number in range(6)}
    quotas = Quotas({**lanes, HIGH: 1.0})
    backlog = Backlog(quotas, {HIGH: ENDLESS})
    backlog.round(70)
    probed: Counter[Lane] = Counter()
    for _ in range(6):
        plan = quotas.plan(2, 5.0)
        assert plan[HIGH] == 1, "rumours get half of the slots at most while there is known work"
        probed.update(plan)
        got = backlog.claim(plan)
        assert backlog.claim(quotas.leftover(plan, got)) == {HIGH: 1}
    assert probed == {**dict.fromkeys(lanes, 1), HIGH: 6}
    assert quotas.plan(2, 5.0) == {HIGH: 2}


def test_a_hint_is_followed_in_the_next_plan_and_once() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, {MIDDLE: ENDLESS, LOW: ENDLESS})
    backlog.round(100)
    quotas.hint(HIGH)
    assert quotas.plan(100, 0.1)[HIGH] == 1
    quotas.record(HIGH, asked=1, got=0)
    assert HIGH not in quotas.plan(100, 0.2)


def test_a_hint_during_a_claim_is_not_forgotten_when_that_claim_comes_back_short() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    plan = quotas.plan(100, 0.0)
    quotas.hint(HIGH)
    for lane, quota in plan.items():
        quotas.record(lane, asked=quota, got=0 if lane == HIGH else quota)
    assert quotas.plan(100, 0.1)[HIGH] == 1


def test_hints_do_not_bend_the_shares_of_lanes_that_have_work_anyway() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, dict.fromkeys(SIXTY_THIRTY_TEN, ENDLESS))
    served: Counter[Lane] = Counter()
    for _ in range(100):
        quotas.hint(LOW)
        served += backlog.round(1)
    assert served == {HIGH: 60, MIDDLE: 30, LOW: 10}


def test_a_hint_for_a_lane_that_is_not_served_here_is_ignored() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    quotas.hint(Lane("other", 5))
    quotas.record(Lane("other", 5), asked=1, got=1)
    assert quotas.plan(100, 0.0) == {HIGH: 60, MIDDLE: 30, LOW: 10}


def test_when_all_is_believed_empty_a_hinted_lane_gets_the_whole_capacity() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    Backlog(quotas, {}).round(100)
    quotas.hint(LOW)
    assert quotas.plan(100, 0.1) == {LOW: 100}


def test_when_all_is_believed_empty_all_are_asked() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    Backlog(quotas, {}).round(100)
    plan = quotas.plan(100, 0.1)
    assert set(plan) == set(SIXTY_THIRTY_TEN)
    assert sum(plan.values()) == 100


def test_what_is_not_charged_is_owed() -> None:
    quotas = Quotas({HIGH: 1.0, LOW: 1.0})
    plan = quotas.plan(10, 0.0)
    quotas.record(HIGH, asked=plan[HIGH], got=5, charged=2)
    quotas.record(LOW, asked=plan[LOW], got=5)
    after = quotas.plan(10, 0.1)
    assert sum(after.values()) == 10
    assert after[HIGH] - after[LOW] in (2, 3, 4)


def test_a_claim_that_failed_is_not_counted_twice() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    assert [quotas.plan(7, 0.0) for _ in range(5)] == [quotas.plan(7, 0.0)] * 5


def test_a_lane_of_weight_zero_is_served_only_when_nothing_else_is_ready() -> None:
    quotas = Quotas({**SIXTY_THIRTY_TEN, IDLE: 0.0})
    backlog = Backlog(quotas, {HIGH: 1_000, IDLE: 1_000})
    now_s = 0.0
    while backlog.jobs[HIGH] >= 30:
        now_s += 0.3
        quotas.hint(IDLE)
        assert backlog.round(30, now_s) == {HIGH: 30}
    assert backlog.round(30, now_s + 0.1) == {HIGH: 10, IDLE: 20}
    assert backlog.round(30, now_s + 0.2) == {IDLE: 30}
    backlog.jobs[MIDDLE] = 1_000
    got = backlog.round(30, now_s + 1.5)
    assert got[MIDDLE] >= 1
    assert got.total() == 30
    assert backlog.round(30, now_s + 1.6) == {MIDDLE: 30}


@pytest.mark.parametrize("pause_s", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("capacity", [1, 30])
def test_a_lane_of_weight_zero_is_not_forgotten_by_an_idle_worker(capacity: int, pause_s: float) -> None:
    quotas = Quotas({**SIXTY_THIRTY_TEN, IDLE: 0.0})
    backlog = Backlog(quotas, {})
    for tick in range(10):
        backlog.round(capacity, tick * pause_s)
    backlog.jobs[IDLE] = 5
    got = sum((backlog.round(capacity, (10 + tick) * pause_s) for tick in range(30)), Counter[Lane]())
    assert got == {IDLE: 5}


def test_lanes_of_weight_zero_alone_share_equally() -> None:
    other = Lane("other", 0)
    backlog = Backlog(Quotas({IDLE: 0.0, other: 0.0}), {IDLE: ENDLESS, other: ENDLESS})
    assert sum((backlog.round(3) for _ in range(10)), Counter[Lane]()) == {IDLE: 15, other: 15}


def test_weights_change_at_run_time() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    backlog = Backlog(quotas, dict.fromkeys([*SIXTY_THIRTY_TEN, IDLE], ENDLESS))
    for _ in range(7):
        backlog.round(3)
    quotas.set_weights({HIGH: 10.0, MIDDLE: 30.0, LOW: 60.0})
    served = sum((backlog.round(7) for _ in range(100)), Counter[Lane]())
    for lane, ideal in ((HIGH, 70), (MIDDLE, 210), (LOW, 420)):
        assert abs(served[lane] - ideal) < 2  # one job from before, one from after
    quotas.set_weights({LOW: 1.0, IDLE: 1.0})
    assert backlog.round(10) in ({LOW: 5, IDLE: 5}, {LOW: 4, IDLE: 6}, {LOW: 6, IDLE: 4})


@given(st.lists(st.tuples(weights_of_lanes, st.integers(1, 20)), min_size=1, max_size=20))
def test_changing_weights_all_the_time_never_breaks_a_plan(steps: list[tuple[dict[Lane, float], int]]) -> None:
    quotas = Quotas({})
    backlog = Backlog(quotas, {Lane("default", number): ENDLESS for number in range(8)})
    for weights, capacity in steps:
        quotas.set_weights(weights)
        assert backlog.round(capacity).total() == capacity


def test_unchanged_weights_keep_the_credit() -> None:
    changed, unchanged = Quotas(SIXTY_THIRTY_TEN), Quotas(SIXTY_THIRTY_TEN)
    jobs = dict.fromkeys(SIXTY_THIRTY_TEN, ENDLESS)
    one, other = Backlog(changed, jobs), Backlog(unchanged, jobs)
    for _ in range(20):
        changed.set_weights(SIXTY_THIRTY_TEN)
        assert one.round(3) == other.round(3)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_senseless_weights_are_refused_and_change_nothing(weight: float) -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    with pytest.raises(InvalidOptions, match="queue 'default', priority 9"):
        quotas.set_weights({HIGH: weight})
    assert quotas.plan(100, 0.0) == {HIGH: 60, MIDDLE: 30, LOW: 10}


def test_nothing_is_left_over_from_a_full_claim() -> None:
    quotas = Quotas(SIXTY_THIRTY_TEN)
    plan = quotas.plan(100, 0.0)
    assert quotas.leftover(plan, plan) == {}
    assert quotas.leftover({HIGH: 5}, {HIGH: 0}).keys() <= {MIDDLE, LOW}
