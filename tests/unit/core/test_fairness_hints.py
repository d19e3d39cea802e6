"""Hints where there are fewer slots than lanes: who is looked at first, and that nobody is forgotten."""

from __future__ import annotations

from holdfast.core.fairness import Lane, Quotas
from holdfast.core.priority import weight_of

LANES = [Lane("default", priority) for priority in range(10)]
CRITICAL, BULK = LANES[9], LANES[0]


def all_believed_empty() -> Quotas:
    """Every lane was asked once and had nothing, the most urgent one last."""
    quotas = Quotas({lane: float(weight_of(lane.priority)) for lane in LANES})
    for moment, lane in enumerate(LANES):
        for other in LANES:
            quotas.record(other, asked=1, got=0)
        quotas.hint(lane)
        assert quotas.plan(1, moment / 100) == {lane: 1}
        quotas.record(lane, asked=1, got=0)
    return quotas


def hint_all(quotas: Quotas) -> None:
    for lane in LANES:
        quotas.hint(lane)


def test_a_heavy_lane_is_looked_at_before_a_light_one_that_waited_longer() -> None:
    quotas = all_believed_empty()
    hint_all(quotas)
    asked = quotas.plan(4, 0.5)
    assert CRITICAL in asked
    assert BULK not in asked


def test_spare_slots_are_not_all_for_the_light_lane_while_hinted_ones_were_not_asked() -> None:
    quotas = all_believed_empty()
    quotas.hint(BULK)
    plan = quotas.plan(1, 0.5)
    assert plan == {BULK: 1}
    hint_all(quotas)
    quotas.record(BULK, asked=6, got=1)
    spare = quotas.leftover({BULK: 6}, {BULK: 1})
    assert spare.get(CRITICAL, 0) > spare.get(BULK, 0)


def test_it_is_worth_asking_again_until_every_hinted_lane_was_asked() -> None:
    quotas = all_believed_empty()
    assert not quotas.expectant
    hint_all(quotas)
    asked: set[Lane] = set()
    while quotas.expectant:
        plan = quotas.plan(3, 0.5)
        for lane, quota in plan.items():
            quotas.record(lane, asked=quota, got=0)
        assert not asked.issuperset(plan), "a round that brings nothing must ask somebody new"
        asked |= plan.keys()
    assert asked == set(LANES)


def test_a_light_lane_is_looked_at_in_the_end_however_often_the_heavy_ones_are_hinted_at() -> None:
    quotas = all_believed_empty()
    for tick in range(1, 200):
        hint_all(quotas)
        plan = quotas.plan(1, 0.1 + tick * 0.02)
        for lane, quota in plan.items():
            quotas.record(lane, asked=quota, got=0)
        if BULK in plan:
            return
    raise AssertionError("the lightest lane was not looked at in four seconds of hints")
