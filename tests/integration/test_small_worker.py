"""A worker with fewer slots than lanes hears of new work as soon as one with many."""

from __future__ import annotations

import asyncio

from holdfast import Holdfast

FAR_AWAY_S = 60.0
"""Between two polls: whoever relies on polling does not get its results within the deadline below."""
DEADLINE_S = 20.0


def test_one_slot_finds_work_of_every_priority_by_hints_alone() -> None:
    hf = Holdfast(":memory:", poll_s=FAR_AWAY_S)

    @hf.task(name="echo")
    async def echo(number: int) -> int:
        return number

    async def each_in_turn() -> list[int]:
        async with hf, hf.worker(concurrency=1):
            jobs = ((await echo.options(priority=number).enqueue(number)) for number in range(10))
            return [await job.result(timeout=DEADLINE_S) async for job in jobs]

    assert asyncio.run(each_in_turn()) == list(range(10))
