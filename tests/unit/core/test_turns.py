"""Turns of lanes at a gate: shares follow weights, nobody waits for long, and what is forgotten harms nobody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.fairness import Lane
from holdfast.core.turns import CLOCK, NOTHING, InLine, Remembered, Turns, remembered_of

LANES = [Lane(queue, priority) for queue in "ab" for priority in (1, 5, 9)]
positive = st.sampled_from([0.01, 0.5, 1.0, 1.0, 2.0, 3.0, 10.0])
shares = st.dictionaries(st.sampled_from(LANES), positive, min_size=1)


def _in_line(weights: dict[Lane, float | None], first: Sequence[int] = ()) -> dict[Lane, InLine]:
    seqs = first or range(len(weights))
    return {lane: InLine(share, seq) for (lane, share), seq in zip(weights.items(), seqs, strict=True)}


class Gate:
    """As a store keeps it: one is let go at a time, and what is remembered in between is written down."""

    def __init__(self) -> None:
        self.known: dict[Lane, Remembered] = {}

    def let_go(self, weights: dict[Lane, float | None], tag: int = 0) -> Lane:
        known = {lane: known for lane, known in self.known.items() if lane in weights or lane == CLOCK}
        turns = Turns(_in_line(weights), known)
        lane = turns.next()
        assert lane is not None
        turns.took(lane, tag)
        self.known |= turns.changes()
        return lane


def _times(order: Sequence[Lane], lane: Lane) -> int:
    return sum(each == lane for each in order)


@given(shares)
def test_while_two_lanes_wait_they_share_by_their_weights(weights: dict[Lane, float]) -> None:
    gate = Gate()
    order = [gate.let_go(dict(weights)) for _ in range(150)]
    for start, end in ((0, 150), (0, 40), (37, 90), (100, 150)):
        part = order[start:end]
        for one, two in pairwise(sorted(weights)):
            gap = abs(_times(part, one) / weights[one] - _times(part, two) / weights[two])
            assert gap <= 1 / weights[one] + 1 / weights[two] + 1e-6, (one, two, part)


@given(shares, st.lists(st.sets(st.sampled_from(LANES)), max_size=60))
def test_nobody_waits_for_more_than_its_price(weights: dict[Lane, float], others: list[set[Lane]]) -> None:
    """Whoever else comes and goes meanwhile."""
    me = min(weights)
    gate = Gate()
    passed: list[Lane] = []
    for some in [*others, *[set(weights)] * 5]:
        present: dict[Lane, float | None] = {
            lane: share for lane, share in weights.items() if lane in some or lane == me
        }
        lane = gate.let_go(present)
        if lane == me:
            passed = []
            continue
        passed.append(lane)
        for other in weights.keys() - {me}:
            assert _times(passed, other) <= weights[other] / weights[me] + 1 + 1e-6, (other, passed)


@given(shares)
def test_it_makes_no_difference_whether_they_are_let_go_at_once(weights: dict[Lane, float]) -> None:
    gate = Gate()
    one_by_one = [gate.let_go(dict(weights)) for _ in range(30)]
    turns = Turns(_in_line(dict(weights)), {})
    at_once = []
    for _ in range(30):
        lane = turns.next()
        assert lane is not None
        turns.took(lane, 0)
        at_once.append(lane)
    assert at_once == one_by_one


@given(shares, st.sets(st.sampled_from(LANES), min_size=1))
def test_weight_zero_waits_until_nobody_else_does(weights: dict[Lane, float], last: set[Lane]) -> None:
    lanes: dict[Lane, float | None] = {**weights, **dict.fromkeys(last, 0.0)}
    turns = Turns(_in_line(lanes), {})
    for _ in range(len(lanes)):
        lane = turns.next()
        assert lane is not None
        assert lanes[lane] or not any(lanes.values()), "there are others"
        turns.took(lane, 0)
        turns.over(lane)
        del lanes[lane]
    assert turns.next() is None


def test_whom_nobody_comes_for_goes_first_and_pays_nothing() -> None:
    a, b, c = LANES[:3]
    gate = Gate()
    assert gate.let_go({a: 1.0, b: None, c: 1.0}) == b
    dues = {known.due for lane, known in gate.known.items() if lane in (a, c)}
    assert dues == {1.0}, "the others are due as they were"
    assert gate.known[CLOCK].due == 0.0, "and no time has gone by"


def test_of_lanes_that_need_the_same_the_oldest_goes() -> None:
    a, b, c = LANES[:3]
    lanes = _in_line({a: 1.0, b: 1.0, c: 1.0}, (30, 10, 20))
    assert Turns(lanes, {}).next() == b


def test_nothing_is_remembered_of_a_lane_that_waits_alone() -> None:
    gate = Gate()
    gate.let_go({LANES[0]: 1.0})
    assert gate.known == {}
    gate.let_go({LANES[0]: 1.0}, tag=7)
    assert gate.known == {LANES[0]: Remembered(None, 7)}, "but how far its tags have come"


def test_a_lane_that_is_over_is_forgotten() -> None:
    a, b = LANES[:2]
    turns = Turns(_in_line({a: 1.0, b: 1.0}), {a: Remembered(0.5, 7)})
    turns.over(a)
    assert turns.changes()[a] == NOTHING


def test_of_lanes_that_stay_where_they_are_nothing_is_written_anew() -> None:
    lanes: dict[Lane, float | None] = dict.fromkeys(LANES, 1.0)
    gate = Gate()
    gate.let_go(lanes)
    turns = Turns(_in_line(lanes), gate.known)
    lane = turns.next()
    assert lane is not None
    turns.took(lane, 0)
    assert turns.changes().keys() <= {lane, CLOCK}, "however many wait"


def test_a_lane_that_has_to_stay_keeps_what_is_known_of_it() -> None:
    a, b = LANES[:2]
    turns = Turns(_in_line({a: None, b: 1.0}), {a: Remembered(None, 7)})
    turns.leave(a)
    assert turns.next() == b
    assert turns.changes() == {}


@given(st.floats() | st.integers() | st.text() | st.none(), st.floats() | st.integers() | st.text() | st.none())
def test_nonsense_counts_as_not_there(due: object, reached: object) -> None:
    known = remembered_of(due, reached)
    assert known.due is None or 0 <= known.due < math.inf
    assert known.reached >= 0
    gate = Gate()
    gate.known = {LANES[0]: known}
    assert gate.let_go({LANES[0]: 1.0, LANES[1]: 1e-300}, tag=5) in LANES[:2]
