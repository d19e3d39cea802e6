"""Hints say that something may be ready, not where: lanes that are known to have work must not pay for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, url_of

from holdfast import Holdfast
from holdfast.core.fairness import Lane, Quotas
from holdfast.core.priority import DEFAULT_WEIGHTS, HIGHEST, LOWEST, weight_of
from holdfast.runtime.failpoints import arm

ROUNDS = 300


@pytest.mark.parametrize(("queues", "slots", "hint_every"), [(1, 1, 5), (1, 4, 2), (5, 1, 20), (30, 4, 20)])
def test_the_lightest_lane_gets_every_slot_while_all_others_are_rumours(
    queues: int, slots: int, hint_every: int
) -> None:
    """With more hinted lanes than slots, every round was spent on looking at empty lanes, and the next hint came."""
    lanes = {
        Lane(f"q{number}", priority): weight_of(priority, DEFAULT_WEIGHTS)
        for number in range(queues)
        for priority in range(HIGHEST, LOWEST - 1, -1)
    }
    busy = Lane("q0", LOWEST)
    quotas = Quotas(lanes)
    for lane in lanes:
        quotas.record(lane, asked=1, got=int(lane == busy))

    def claim(plan: dict[Lane, int]) -> dict[Lane, int]:
        got = {lane: asked if lane == busy else 0 for lane, asked in plan.items()}
        for lane, asked in plan.items():
            quotas.record(lane, asked=asked, got=got[lane])
        return got

    served = 0
    for turn in range(ROUNDS):
        if turn % hint_every == 0:
            for lane in lanes:
                quotas.hint(lane)
        plan = quotas.plan(slots, turn / 1000)
        got = claim(plan)
        served += sum(got.values()) + sum(claim(quotas.leftover(plan, got)).values())
    assert served == ROUNDS * slots


@scene
async def test_a_busy_neighbour_on_the_same_file_does_not_starve_a_lane(tmp_path: Path) -> None:
    """Every commit of another process was a hint for every lane: the one that had work was hardly asked."""
    url = url_of(tmp_path / "jobs.db")
    hf, noisy = Holdfast(url), Holdfast(url)
    claims: list[int] = []
    over = asyncio.Event()
    count, queues = 200, [f"q{number}" for number in range(10)]
    begun: list[int] = []

    @hf.task(name="job", queue="q0", priority="bulk")
    async def job() -> None:
        begun.append(len(claims))

    async def make_noise() -> None:
        while not over.is_set():
            await noisy.enqueue("elsewhere")

    async with hf, noisy, asyncio.TaskGroup() as group:
        await noisy.queues.pause("default")
        await noisy.queues.set_watermarks("default", high=1_000_000, low=1)
        jobs = await hf.enqueue_many([job.request() for _ in range(count)])
        group.create_task(make_noise())
        arm("claim_jobs.begin", lambda: claims.append(1), times=None)
        async with hf.worker(concurrency=2, queues=queues):
            try:
                for each in jobs:
                    await each.result(timeout=PATIENCE_S)
            finally:
                over.set()
    needed = begun[-1]  # after that there is nothing but rumours
    lanes = len(queues) * (HIGHEST - LOWEST + 1)
    assert needed <= lanes + 3 * count, f"{needed} claims to get {count} jobs"
