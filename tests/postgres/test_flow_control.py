"""Routes, bounds of queues, ways past a full one and classes of errors, on PostgreSQL as on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.integration.scene import PATIENCE_S, scene, until
from tests.postgres.fixtures import PostgresSchema

from holdfast import Breaker, Holdfast, QueueFull, Rate, RetryPolicy, Route, RoutedCall
from holdfast.core.breaker import Phase
from holdfast.core.queue_options import QueueOptions
from holdfast.core.state import State
from holdfast.telemetry.events import Event, QueueClosed, QueueOpened


def app(place: PostgresSchema, **settings: Any) -> Holdfast:
    return Holdfast(place.url, schema=place.schema, **settings)


@asynccontextmanager
async def opened(hf: Holdfast) -> AsyncIterator[None]:
    await hf.migrate()
    async with hf, asyncio.timeout(PATIENCE_S):
        yield


@scene
async def test_a_routed_job_is_stored_where_it_goes_and_is_found_there(postgres_schema: PostgresSchema) -> None:
    hf = app(postgres_schema, routes={"pay*": {"queue": "money", "priority": "high"}})

    @hf.router
    def large(call: RoutedCall) -> Route | None:
        return Route(queue="large") if call.arguments["cents"] > 100 else None

    @hf.task(name="pay", tenant=lambda account, **_: account)
    async def pay(account: str, cents: int) -> int:
        return cents

    async with opened(hf), hf.worker():
        jobs = [await pay.enqueue("acme", 5), await pay.enqueue("bolt", 500)]
        assert [await job.result() for job in jobs] == [5, 500]
        infos = [await job.info() for job in jobs]
        assert [(info.queue, info.priority, info.tenant) for info in infos] == [
            ("money", 7, "acme"),
            ("large", 7, "bolt"),
        ]


@scene
async def test_a_bounded_queue_holds_up_nobody(postgres_schema: PostgresSchema) -> None:
    hf = app(postgres_schema, concurrency=10, queue={"slow": {"concurrency": 2}})
    gate, inside, most = asyncio.Event(), 0, 0

    @hf.task(queue="slow", priority="critical")
    async def slow() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await gate.wait()
        inside -= 1

    @hf.task(queue="fast")
    async def fast() -> None: ...

    async with opened(hf):
        backlog = await hf.enqueue_many([slow.request() for _ in range(40)])
        others = await hf.enqueue_many([fast.request() for _ in range(40)])
        async with hf.worker():
            for job in others:
                await job.result()
            gate.set()
            for job in backlog:
                await job.result()
    assert most == 2


@scene
async def test_urgent_jobs_go_past_a_full_queue_and_each_switch_is_told_once(postgres_schema: PostgresSchema) -> None:
    hf = app(postgres_schema, high_watermark=10, low_watermark=4, queue={"default": {"bypass_priority": "critical"}})
    heard: list[Event] = []
    hf.telemetry.attach(heard.append, only=(QueueClosed, QueueOpened))

    @hf.task
    async def work() -> None: ...

    async with opened(hf):
        await hf.enqueue_many([work.request() for _ in range(10)])
        for _ in range(3):
            with pytest.raises(QueueFull):
                await work.options(wait=0).enqueue()
        await work.options(wait=0, priority=9).enqueue()
        await work.options(wait=0, priority=9, key="k").enqueue()
        assert [type(event) for event in heard] == [QueueClosed]
        assert len(await hf.jobs.list()) == 12
        waiting = [asyncio.create_task(work.options(wait=PATIENCE_S).enqueue()) for _ in range(3)]
        async with hf.worker():
            await asyncio.gather(*waiting)
        assert [type(event) for event in heard] == [QueueClosed, QueueOpened]


@scene
async def test_the_class_of_an_error_is_kept_and_its_time_is_waited_for(postgres_schema: PostgresSchema) -> None:
    hf = app(postgres_schema)

    @hf.task(retry=RetryPolicy(max_attempts=2))
    async def call() -> None:
        request = httpx.Request("GET", "http://example.org")
        httpx.Response(429, headers={"Retry-After": "40"}, request=request).raise_for_status()

    async with opened(hf), hf.worker():
        info = await until(await call.enqueue(), State.SCHEDULED)
        assert info.run_at is not None
        [run] = info.attempts
        assert run.error is not None
        assert (run.cause, run.error.error_class) == ("retry", "rate_limited")
        assert 40 <= (info.run_at - run.ended_at).total_seconds() <= 44.1


@scene
async def test_what_operators_do_without_the_app_is_as_with_it(postgres_schema: PostgresSchema) -> None:
    hf, other = app(postgres_schema), app(postgres_schema)

    @hf.task(name="call", queue="calls", rate=Rate("1/h", burst=1, key=lambda who: who, name="account"))
    async def call(who: str) -> None: ...

    async with opened(hf), other:
        async with hf.worker():
            await (await call.enqueue("a/b")).result()
            await until(await call.enqueue("a/b"), State.PARKED)
        await other.limits.set("account", rate="1/d", by="ada")
        [rate] = await other.limits.list()
        assert (rate.name, rate.key, rate.burst) == ("account", "account/a/b", 1), "as those who wait there say"
        await other.queues.set_watermarks("calls", high=1, low=0, high_age_s=60, low_age_s=1, by="ada")
        with pytest.raises(QueueFull):
            await call.options(wait=0).enqueue("b")
        await other.queues.clear_watermarks("calls", by="ada")
        await call.options(wait=0).enqueue("b")
        assert await other.jobs.move({"queue": "calls"}, queue="later", by="ada") == 2
        assert await other.queues.purge("later", by="ada") == 2
        changes = await other.audit.list()
    assert {each.by for each in changes} == {"ada"}
    assert [(each.what, each.after) for each in changes[:2]] == [
        ("purge", {"reason": "purged", "count": 2}),
        ("move", {"filter": {"queue": "calls"}, "queue": "later", "count": 2}),
    ]


@scene
async def test_what_operators_say_of_queues_and_breakers_holds_in_all_processes(
    postgres_schema: PostgresSchema,
) -> None:
    hf, other = app(postgres_schema, high_watermark=3, low_watermark=1, concurrency=10), app(postgres_schema)
    inside, gate = 0, asyncio.Event()
    stirred = asyncio.Condition()

    @hf.task(name="slow", queue="slow")
    async def slow() -> None:
        nonlocal inside
        async with stirred:
            inside += 1
            stirred.notify_all()
        await gate.wait()

    @hf.task(name="charge", queue="bank", breaker=Breaker("bank", failures=50), retry=RetryPolicy(max_attempts=1))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with opened(hf), other:
        await other.queues.set_options("slow", concurrency=1, bypass_priority=9, by="ada")
        await hf.enqueue_many([slow.request() for _ in range(3)])
        urgent = await slow.options(wait=0, priority=9).enqueue()
        with pytest.raises(QueueFull):
            await slow.options(wait=0, priority=8).enqueue()
        assert (await urgent.info()).priority == 9
        await other.breakers.set("bank", failures=2, window=60, by="ada")
        async with hf.worker():
            jobs = [await charge.enqueue() for _ in range(2)]
            for job in jobs:
                await until(job, State.DEAD)
            assert [(each.name, each.phase) for each in await other.breakers.list()] == [("bank", Phase.OPEN)]
            assert inside == 1, "the slots of others have been claimed since"
            await other.queues.set_options("slow", concurrency=2, by="ada")
            async with stirred:
                await stirred.wait_for(lambda: inside == 2)
            gate.set()
        [slow_queue] = [each for each in await other.queues.list() if each.name == "slow"]
        assert slow_queue.settings.options == QueueOptions(concurrency=2, bypass_priority=9)
        assert [each.what for each in await other.audit.list()] == ["queue", "breaker", "queue"]
