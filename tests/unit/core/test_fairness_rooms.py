"""Queues that may have only so many jobs here: they never get more, others get the rest, and inside weights hold."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.fairness import Lane, Quotas
from holdfast.core.priority import weight_of

PRIORITIES = (9, 7, 5, 2, 0)
LANES = {Lane(queue, priority): float(weight_of(priority)) for queue in "abc" for priority in PRIORITIES}
rooms_of = st.dictionaries(st.sampled_from("abc"), st.integers(0, 20), min_size=1)


def by_queue(quotas: dict[Lane, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for lane, quota in quotas.items():
        counts[lane.queue] += quota
    return counts


@given(
    st.lists(
        st.tuples(
            st.integers(1, 60),
            rooms_of,
            st.dictionaries(st.sampled_from(list(LANES)), st.integers(0, 9)),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_no_queue_is_asked_for_more_than_it_has_room_for(
    rounds: list[tuple[int, dict[str, int], dict[Lane, int], bool]],
) -> None:
    quotas = Quotas(LANES)
    for number, (capacity, rooms, there, hinted) in enumerate(rounds):
        if hinted:
            for lane in LANES:
                quotas.hint(lane)
        plan = quotas.plan(capacity, number / 3, rooms)
        assert sum(plan.values()) <= capacity
        got = {lane: min(quota, there.get(lane, 0)) for lane, quota in plan.items()}
        for lane, quota in plan.items():
            quotas.record(lane, asked=quota, got=got[lane])
        left = {queue: room - by_queue(got)[queue] for queue, room in rooms.items()}
        spare = quotas.leftover(plan, got, left)
        assert sum(spare.values()) + sum(got.values()) <= capacity
        for asked, room in ((plan, rooms), (spare, left)):
            assert all(by_queue(asked)[queue] <= most for queue, most in room.items())
            assert all(quota > 0 for quota in asked.values())


@given(st.integers(1, 100), rooms_of)
def test_what_one_queue_cannot_take_goes_to_the_others(capacity: int, rooms: dict[str, int]) -> None:
    plan = Quotas(LANES).plan(capacity, 0.0, rooms)
    able = capacity if len(rooms) < 3 else min(capacity, sum(rooms.values()))
    # Rounding may cost a slot per bounded queue, which the next round gives away.
    assert able - len(rooms) <= sum(plan.values()) <= able


def test_inside_a_bounded_queue_weights_hold_also_where_there_is_room_for_one() -> None:
    quotas, got = Quotas(LANES), Counter[int]()
    for number in range(1040):
        plan = quotas.plan(50, number / 1000, {"a": 1})
        for lane, quota in plan.items():
            quotas.record(lane, asked=quota, got=quota)
            if lane.queue == "a":
                got[lane.priority] += quota
    weights = {priority: weight_of(priority) for priority in PRIORITIES}
    total = sum(weights.values())
    assert got.total() == 1040
    assert all(abs(got[each] - 1040 * weights[each] / total) <= 1.01 for each in PRIORITIES)


def test_a_queue_that_had_no_room_does_not_come_back_with_savings() -> None:
    quotas = Quotas(LANES)
    for number in range(100):
        for lane, quota in quotas.plan(30, number / 1000, {"a": 0}).items():
            assert lane.queue != "a"
            quotas.record(lane, asked=quota, got=quota)
    counts = by_queue(quotas.plan(30, 0.2))
    assert abs(counts["a"] - 10) <= len(PRIORITIES)


def test_a_full_queue_is_not_worth_asking_again() -> None:
    quotas = Quotas({Lane("a", 5): 1.0})
    assert quotas.expectant
    assert quotas.expects({"a": 1})
    assert not quotas.expects({"a": 0})
    assert quotas.plan(10, 0.0, {"a": 0}) == {}
