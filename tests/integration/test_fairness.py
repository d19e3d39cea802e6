"""Shares between lanes (P9): the order of starts follows the weights, and new weights are taken up at once."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast
from holdfast.runtime.clock import ManualClock

SLOTS = 10


def standing_still() -> Holdfast:
    """While no time passes, no empty lane is asked just in case: shares are exact."""
    return Holdfast(":memory:", clock=ManualClock(), lease_s=3600)


class Rounds:
    """Jobs that hold all slots until the test lets them go, so that every claim is one for all slots."""

    def __init__(self, hf: Holdfast) -> None:
        self._started: asyncio.Queue[str] = asyncio.Queue()
        self._gate = asyncio.Event()

        @hf.task
        async def work(lane: str) -> None:
            gate = self._gate
            self._started.put_nowait(lane)
            await gate.wait()

        self.work = work

    async def next(self) -> Counter[str]:
        """Who has the slots; then they are free again."""
        async with asyncio.timeout(PATIENCE_S):
            started = [await self._started.get() for _ in range(SLOTS)]
        gate, self._gate = self._gate, asyncio.Event()
        gate.set()
        return Counter(started)

    def let_all_go(self) -> None:
        self._gate.set()


@scene
async def test_lanes_are_served_by_weight_within_one_job_and_new_weights_are_taken_up() -> None:
    hf = standing_still()
    rounds = Rounds(hf)
    async with hf:
        await hf.queues.pause("default")
        async with hf.worker(concurrency=SLOTS):
            for lane in ("normal", "high", "critical"):  # the least urgent first
                task = rounds.work.options(priority=lane)
                await hf.enqueue_many([task.request(lane) for _ in range(150)])
            await hf.queues.resume("default")
            first = await rounds.next()
            assert all(first[lane] for lane in ("critical", "high", "normal"))
            total: Counter[str] = Counter()
            for count in range(1, 11):
                got = await rounds.next()
                total += got
                assert all(got[lane] for lane in ("critical", "high", "normal")), "every claim serves every lane"
                for lane, share in (("critical", 6), ("high", 3), ("normal", 1)):
                    assert abs(total[lane] - count * share) <= 1, (lane, count, total)
            await hf.queues.set_weights("default", priorities={"critical": 10, "high": 30, "normal": 60})
            await rounds.next()  # this claim may have been under way
            total.clear()
            for count in range(1, 11):
                total += await rounds.next()
                for lane, share in (("critical", 1), ("high", 3), ("normal", 6)):
                    assert abs(total[lane] - count * share) <= 1, (lane, count, total)
            await hf.queues.purge("default")
            rounds.let_all_go()


@scene
async def test_queues_share_by_their_weights_and_weight_nought_comes_last() -> None:
    hf = standing_still()
    rounds = Rounds(hf)
    async with hf:
        for queue, weight in (("light", 1), ("heavy", 4), ("last", 0)):
            task = rounds.work.options(queue=queue)
            await hf.enqueue_many([task.request(queue) for _ in range(50)])
            await hf.queues.set_weights(queue, weight=weight)
        async with hf.worker(concurrency=SLOTS):
            await rounds.next()
            total: Counter[str] = Counter()
            for count in range(1, 5):
                total += await rounds.next()
                assert abs(total["heavy"] - 8 * count) <= 1
                assert abs(total["light"] - 2 * count) <= 1
            assert total["last"] == 0
            await hf.queues.purge("heavy")
            await hf.queues.purge("light")
            await rounds.next()
            assert await rounds.next() == {"last": SLOTS}
            await hf.queues.purge("last")
            rounds.let_all_go()


@scene
async def test_one_lane_alone_gets_all_slots() -> None:
    hf = standing_still()
    rounds = Rounds(hf)
    async with hf:
        await hf.enqueue_many([rounds.work.options(priority="bulk").request("bulk") for _ in range(30)])
        async with hf.worker(concurrency=SLOTS):
            assert [await rounds.next() for _ in range(3)] == [{"bulk": SLOTS}] * 3
