"""Enqueue inside the caller's transaction: the job is there if and only if that commits (P6)."""

from __future__ import annotations

import asyncio

import pytest
from tests.transactions.bench import PATIENCE_S, Bench, run
from tests.transactions.desks import BLOCKING_KINDS, KINDS, desk

from holdfast import IdempotencyConflict, JobNotFound, QueueFull, StoreUnavailable
from holdfast.stores.base import Hint
from holdfast.stores.postgres import PostgresStore
from holdfast.telemetry.events import JobEnqueued

every_kind = pytest.mark.parametrize("kind", KINDS)
every_driver = pytest.mark.parametrize("kind", ["asyncpg", "psycopg async", "psycopg"])


@every_kind
def test_the_job_is_there_once_the_transaction_has_committed(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            job = await at.enqueue(bench.work, 17)
            assert bench.count("job") == 0
            await at.commit()
            assert (await bench.hf.jobs.get(job.id)).state == "ready"
            async with bench.hf.worker():
                assert await bench.hf.jobs.get(job.id)
                result = job.result if kind not in BLOCKING_KINDS else lambda t: asyncio.to_thread(job.result, t)
                assert await result(PATIENCE_S) == 17

    run(scenario)


@every_kind
def test_nothing_is_left_of_a_transaction_that_rolls_back(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            await at.enqueue(bench.work, 1, key="k", delay=60, expires=600)
            await at.enqueue(bench.work, 2)
            await at.rollback()
            for table in ("job", "ready", "timer", "expiry", "idempotency_key", "depth_change"):
                assert bench.count(table) == 0, table
            await bench.work.options(key="k").enqueue(3)  # and the key is free

    run(scenario)


@every_kind
def test_a_savepoint_takes_its_jobs_with_it(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            kept = await at.enqueue(bench.work, 1)
            await at.execute("SAVEPOINT mine")
            await at.enqueue(bench.work, 2, key="k")
            await at.execute("ROLLBACK TO SAVEPOINT mine")
            after = await at.enqueue(bench.work, 3, key="k")
            await at.commit()
            assert {info.id for info in await bench.hf.jobs.list()} == {kept.id, after.id}

    run(scenario)


@every_kind
def test_several_jobs_of_all_sorts_go_in_together(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            many = [
                bench.work.request(1),
                bench.work.options(delay=60, tags=["a", "b"], metadata={"n": 1}, priority=9).request(2),
                bench.work.options(expires=60, tenant="acme", key="k", queue="other").request(3),
            ]
            handles = await at.enqueue_many(many)
            plain = await at.enqueue_many([bench.work.options(tags=["c"]).request(n) for n in range(50)])
            assert bench.count("job") == 0
            await at.commit()
            infos = [await bench.hf.jobs.get(handle.id) for handle in handles]
            assert [info.state for info in infos] == ["ready", "scheduled", "ready"]
            assert infos[1].tags == ("a", "b")
            assert infos[1].metadata == {"n": 1}
            assert infos[2].tenant == "acme"
            assert bench.count("job") == 3 + len(plain)
            ready = {queue.name: queue.ready for queue in await bench.hf.queues.list()}
            assert ready == {"default": 51, "other": 1}
            assert bench.count("depth") == 2

    run(scenario)


@every_kind
def test_what_operators_say_about_where_jobs_go_holds_inside_too(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            store = PostgresStore(bench.place.url, schema=bench.place.schema)  # an operator's, somewhere else
            await store.open()
            await store.set_route(bench.work.name, queue="slow", priority=None, by="ada")
            one = await at.enqueue(bench.work, 1)
            [other] = await at.enqueue_many([bench.work.request(2)])
            await at.commit()
            await store.close()
            assert [(await bench.hf.jobs.get(each.id)).queue for each in (one, other)] == ["slow", "slow"]

    run(scenario)


@every_kind
def test_one_key_is_one_job_inside_and_outside(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            outside = await bench.work.options(key="taken").enqueue(1)
            assert (await at.enqueue(bench.work, 1, key="taken")).id == outside.id
            first = await at.enqueue(bench.work, 2, key="mine")
            assert (await at.enqueue(bench.work, 2, key="mine")).id == first.id
            with pytest.raises(IdempotencyConflict, match="taken"):
                await at.enqueue(bench.work, 9, key="taken")
            with pytest.raises(IdempotencyConflict, match="item 1"):
                await at.enqueue_many(
                    [bench.work.options(key="new").request(3), bench.work.options(key="mine").request(9)]
                )
            await at.commit()  # still good after both refusals
            assert bench.count("job") == 2
            assert bench.count("idempotency_key") == 2, "the batch that was refused took no key"

    run(scenario)


@every_driver
def test_a_key_that_another_open_transaction_holds_is_an_answer_and_harms_nobody(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at, desk(bench.hf, "asyncpg", bench.place.url) as other:
            first = await other.enqueue(bench.work, 1, key="k")
            await at.execute("CREATE TEMPORARY TABLE effect (n int)")
            with pytest.raises(StoreUnavailable, match="your transaction can go on"):
                await at.enqueue(bench.work, 1, key="k")
            await at.execute("INSERT INTO effect VALUES (1)")
            assert await at.value("SELECT count(*) FROM effect") == 1
            await other.commit()
            assert (await at.enqueue(bench.work, 1, key="k")).id == first.id, "committed meanwhile: the same job"
            await at.commit()
            assert bench.count("job") == 1

    run(scenario)


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@every_driver
def test_stricter_transactions_work_as_well(bench: Bench, kind: str, isolation: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind, isolation=isolation) as at:
            assert await at.value("SELECT current_setting('transaction_isolation')") == isolation.lower()
            await at.enqueue(bench.work, 1)
            await at.enqueue(bench.work, 2, key="k", delay=60)
            await bench.work.enqueue(3)
            await at.commit()
            assert bench.count("job") == 3

    run(scenario)


@every_driver
def test_the_settings_of_the_users_session_stay_as_they_were(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        names = ("lock_timeout", "enable_seqscan", "synchronous_commit", "plan_cache_mode", "application_name")
        read = "SELECT " + " || ' ' || ".join(f"current_setting('{name}')" for name in names)
        async with bench.at(kind) as at:
            await at.execute("SET LOCAL lock_timeout = '123ms'")
            before = await at.value(read)
            await at.enqueue(bench.work, 1)
            await at.enqueue(bench.work, 1, key="k", delay=5)
            with pytest.raises(IdempotencyConflict):
                await at.enqueue(bench.work, 2, key="k")
            assert await at.value(read) == before
            await at.commit()

    run(scenario)


@every_driver
def test_a_full_queue_refuses_at_once_and_the_transaction_goes_on(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            await bench.hf.queues.set_watermarks("default", high=1, low=0)
            known = await bench.work.options(key="k").enqueue(1)
            with pytest.raises(QueueFull):
                await at.enqueue(bench.work, 2, wait=3600)
            assert (await at.enqueue(bench.work, 1, key="k")).id == known.id, "that one is in"
            await at.enqueue(bench.work, 3, queue="other")
            await at.commit()
            assert bench.count("job") == 2

    run(scenario)


@every_driver
def test_before_the_commit_there_is_no_job_to_ask(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            job = await at.enqueue(bench.work, 1)
            for ask in (job.info, job.result, job.cancel):
                with pytest.raises(JobNotFound, match="inside a transaction, and exists once that has committed"):
                    await (asyncio.to_thread(ask) if kind in BLOCKING_KINDS else ask())

    run(scenario)


@every_driver
def test_workers_everywhere_hear_of_the_job_once_it_is_committed(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        enqueued: asyncio.Queue[JobEnqueued] = asyncio.Queue()
        hints: asyncio.Queue[Hint] = asyncio.Queue()
        bench.hf.telemetry.attach(enqueued.put_nowait, only=JobEnqueued)
        elsewhere = PostgresStore(bench.place.url, schema=bench.place.schema)
        await elsewhere.open()
        elsewhere.subscribe(hints.put_nowait)
        while await hints.get() is not Hint.ANYTHING:  # by now it listens
            pass
        async with bench.at(kind) as at:
            await at.enqueue_many([bench.work.request(1), bench.work.options(delay=60).request(2)])
            await at.enqueue(bench.work, 3)
            assert (enqueued.empty(), hints.empty()) == (True, True)
            await at.commit()
            heard = Hint.NOTHING
            while heard & (Hint.READY | Hint.TIMER) != Hint.READY | Hint.TIMER:
                heard |= await hints.get()
            assert sorted([(await enqueued.get()).state for _ in range(3)]) == ["ready", "ready", "scheduled"]
        await elsewhere.close()

    run(scenario)
