"""Who gets the slots that rounding leaves over: the rule for which largest remainders are not good enough."""

from __future__ import annotations

import random

import pytest

from holdfast.core.fairness import Lane, Quotas

PATTERN = (60.0, 30.0, 10.0, 3.0, 1.0)


def lanes(*weights: float) -> dict[Lane, float]:
    return {Lane(f"queue-{number}", 5): weight for number, weight in enumerate(weights)}


@pytest.mark.parametrize("capacities", [[1], [10], list(range(1, 40))], ids=["one", "ten", "any"])
def test_with_many_lanes_each_stays_within_one_job_of_its_share(capacities: list[int]) -> None:
    weights = lanes(*PATTERN * 4)
    quotas = Quotas(weights)
    choose = random.Random(1)
    got = dict.fromkeys(weights, 0)
    served = 0
    for _ in range(3_000):
        capacity = choose.choice(capacities)
        served += capacity
        for lane, quota in quotas.plan(capacity, 0.0).items():
            quotas.record(lane, asked=quota, got=quota)
            got[lane] += quota
        for lane, weight in weights.items():
            assert abs(got[lane] - served * weight / sum(weights.values())) < 1


@pytest.mark.parametrize("seed", range(5))
def test_a_lane_of_ten_percent_is_in_every_fetch_of_ten_or_more(seed: int) -> None:
    weights = lanes(60.0, 30.0, 10.0)
    quotas = Quotas(weights)
    choose = random.Random(seed)
    for _ in range(3_000):
        plan = quotas.plan(choose.choice([10, 11, 12, 13]), 0.0)
        assert plan.keys() == weights.keys()
        for lane, quota in plan.items():
            quotas.record(lane, asked=quota, got=quota)
