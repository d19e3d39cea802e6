"""Rates: runs begin at their pace, those that wait use no attempt, and operators change them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.integration.scene import PATIENCE_S, scene, until, url_of

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


@scene
async def test_a_pace_that_is_made_slower_lets_no_more_begin_at_once() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="call", rate=Rate("100/m", burst=2, name="api"))
    async def call() -> None: ...

    async def burst() -> int | None:
        [rate] = await hf.limits.list()
        return rate.burst

    async with hf:
        await hf.limits.set("api", rate="50/m")
        assert await burst() == 2, "as the code says"
        await hf.limits.set("api", rate="40/m", burst=3)
        await hf.limits.set("api", rate="30/m")
        assert await burst() == 3, "as it was set before"
        await hf.limits.clear("api")
        await hf.limits.set("api", rate="20/m")
        assert await burst() == 2, "what was cleared holds no more"
        await hf.limits.clear("api")
        await hf.limits.set("queue:default", rate="10/m")
        assert {each.name: each.burst for each in await hf.limits.list()} == {"api": 2, "queue:default": 10}


@scene
async def test_the_keys_of_a_limit_have_its_name_where_no_code_of_it_is_known(tmp_path: Path) -> None:
    url = url_of(tmp_path / "jobs.db")
    hf = Holdfast(url)

    @hf.task(rate=Rate("1/h", burst=1, key=lambda who: who, name="account"))
    async def call(who: str) -> None: ...

    async with hf, hf.worker(), Holdfast(url) as other:
        await (await call.enqueue("a/b")).result(timeout=PATIENCE_S)
        [rate] = await other.limits.list()
        assert (rate.name, rate.key) == ("account", "account/a/b")
        assert await other.limits.burst_of("account") is None
        await until(await call.enqueue("a/b"), State.PARKED)
        await other.limits.set("account", rate="30/m")
        assert [each.burst for each in await other.limits.list()] == [1], "as those who wait there say"
