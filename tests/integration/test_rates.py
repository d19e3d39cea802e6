"""Rates: runs begin at their pace, those that wait use no attempt, and operators change them."""

from __future__ import annotations

import asyncio

from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, Rate
from holdfast.core.state import State


@scene
async def test_after_a_burst_runs_wait_for_their_token_and_others_go_on() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task(name="call", rate=Rate("1/h", burst=2))
    async def call(number: int) -> None:
        ran.append(number)

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=10):
        jobs = [await call.enqueue(number) for number in range(4)]
        for job in jobs[:2]:
            await job.result(timeout=PATIENCE_S)
        for job in jobs[2:]:
            info = await until(job, State.PARKED)
            assert (info.reason, info.waits_at, info.attempt) == ("rate", "task:call", 0)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        [rate] = await hf.limits.list()
        assert (rate.kind, rate.rate, rate.burst, rate.waiting) == ("rate", "1/h", 2, 2)
        assert rate.next_at is not None
        await hf.limits.set("task:call", rate="1000/s")
        for job in jobs[2:]:
            await job.result(timeout=PATIENCE_S)
    assert sorted(ran[:2]) == [0, 1]
    assert sorted(ran[2:]) == [2, 3]


@scene
async def test_every_run_of_a_rate_begins_by_itself_and_none_is_lost() -> None:
    hf = Holdfast(":memory:")

    @hf.task(rate=Rate("50/s", burst=1))
    async def call() -> float:
        return asyncio.get_running_loop().time()

    async with hf, hf.worker(concurrency=10):
        jobs = await hf.enqueue_many([call.request() for _ in range(15)])
        began = sorted([await job.result(timeout=PATIENCE_S) for job in jobs])
    assert began[-1] - began[0] >= 14 / 50 - 0.02, "the claim is before the run: only its own delay can shorten it"


@scene
async def test_each_key_has_tokens_of_its_own() -> None:
    hf = Holdfast(":memory:")

    @hf.task(rate=Rate("1/h", burst=1, key=lambda who: who))
    async def call(who: str) -> str:
        return who

    async with hf, hf.worker():
        first = [await call.enqueue(who) for who in ("ada", "bob")]
        assert [await job.result(timeout=PATIENCE_S) for job in first] == ["ada", "bob"]
        again = await call.enqueue("ada")
        assert (await until(again, State.PARKED)).waits_at == f"task:{call.name}/ada"
