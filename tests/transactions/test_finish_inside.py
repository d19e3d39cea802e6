"""Finish inside a transaction: the effect and the job's success commit together, or neither does (P6)."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.campaign.child import until
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import PATIENCE_S, run
from tests.transactions.shop import Shop

from holdfast import (
    HoldfastError,
    JobCancelled,
    JobFailed,
    LeaseLost,
    RetryPolicy,
    SoftTimeout,
    current_job,
)
from holdfast.core.gates import SlotGate
from holdfast.runtime.failpoints import armed, release, wait_hit
from holdfast.stores.moments import FINISH_BEGIN, FINISH_COMMITTED, FINISH_INSIDE
from holdfast.telemetry.events import JobErrorIgnored, JobLost, JobSettled
from holdfast.testing.contracts.arrange import a_job
from holdfast.worker.context import CurrentJob

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def shop(postgres_tables: PostgresSchema) -> Shop:
    shop = Shop(postgres_tables)
    shop.open_shop()
    return shop


def test_effect_and_success_commit_together(shop: Shop) -> None:
    async def scenario() -> None:
        settled: list[JobSettled] = []
        shop.hf.telemetry.attach(settled.append, only=JobSettled)
        async with shop.hf:
            async with shop.hf.worker():
                job = await shop.sell.enqueue(21)
                assert await job.result(PATIENCE_S) == 42, "what finish() said, not what the task returned"
                info = await job.info()
                assert (info.state, info.attempt, info.attempts) == ("succeeded", 1, ())
            assert shop.sales() == 1
            assert shop.count("active") == 0
        assert [(event.job_id, event.outcome) for event in settled] == [(job.id, "succeeded")]

    run(scenario)


def test_nothing_is_committed_before_the_end_of_the_block(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.hf, shop.hf.worker():
            with armed(FINISH_INSIDE, "hang"):
                job = await shop.sell.enqueue(1)
                await wait_hit(FINISH_INSIDE)
                assert shop.sales() == 0
                assert (await job.info()).state == "running"
                release(FINISH_INSIDE)
                await job.result(PATIENCE_S)
            assert shop.sales() == 1

    run(scenario)


def test_a_block_that_raises_leaves_nothing_and_the_job_runs_again(shop: Shop) -> None:
    async def scenario() -> None:
        @shop.hf.task(retry=RetryPolicy(max_attempts=2, base=0.01))
        async def stumble() -> str:
            job = current_job()
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                job.finish("done")
                if job.attempt == 1:
                    raise ValueError("at the last moment")
            return ""

        async with shop.hf, shop.hf.worker():
            job = await stumble.enqueue()
            assert await job.result(PATIENCE_S) == "done"
            assert [(run.cause, run.error.type) for run in (await job.info()).attempts] == [("retry", "ValueError")]  # type: ignore[union-attr]
            assert shop.sales() == 1

    run(scenario)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("nothing", "ended without finish"),
        ("twice", "called twice"),
        ("commit", "has ended its transaction by itself"),
        ("failed", "put what may fail into"),
        ("outside", "outside of `async with"),
    ],
)
def test_a_block_used_wrongly_is_rolled_back_with_a_sentence(shop: Shop, how: str, sentence: str) -> None:
    async def scenario() -> None:
        @shop.hf.task(retry=ONCE)
        async def wrong() -> None:
            job = current_job()
            if how == "outside":
                job.finish(1)
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                if how == "commit":
                    await connection.execute("DELETE FROM " + shop.table)
                    await connection.execute("COMMIT")
                if how == "failed":
                    with pytest.raises(asyncpg.PostgresError):
                        await connection.execute("SELECT 1 / 0")
                for _ in range({"nothing": 0, "twice": 2}.get(how, 1)):
                    job.finish(1)

        async with shop.hf, shop.hf.worker():
            with pytest.raises(JobFailed, match=sentence):
                await (await wrong.enqueue()).result(PATIENCE_S)
            assert shop.sales() == 0
            assert await (await shop.sell.enqueue(1)).result(PATIENCE_S) == 2, "the connection is as good as before"

    run(scenario)


def test_a_run_that_has_lost_its_job_commits_nothing(shop: Shop) -> None:
    async def scenario() -> None:
        lost: asyncio.Queue[JobLost] = asyncio.Queue()
        shop.hf.telemetry.attach(lost.put_nowait, only=JobLost)
        raised: list[BaseException] = []

        @shop.hf.task
        async def late() -> None:
            job = current_job()
            try:
                async with job.transaction() as connection:
                    await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                    shop.do("UPDATE {schema}.active SET token = token + 1")  # another run's by now
                    job.finish(1)
            except LeaseLost as error:
                raised.append(error)
                raise

        async with shop.hf, shop.hf.worker():
            job = await late.enqueue()
            assert (await lost.get()).job_id == job.id
            assert "its effect was rolled back" in str(raised[0])
            assert shop.sales() == 0
            assert shop.count("done") == 0

    run(scenario)


def test_what_a_task_raises_after_its_block_is_told_and_changes_nothing(shop: Shop) -> None:
    async def scenario() -> None:
        ignored: asyncio.Queue[JobErrorIgnored] = asyncio.Queue()
        shop.hf.telemetry.attach(ignored.put_nowait, only=JobErrorIgnored)

        @shop.hf.task
        async def talkative() -> None:
            job = current_job()
            async with job.transaction():
                job.finish("done")
            with pytest.raises(HoldfastError, match="one transaction"):
                job.transaction()
            with pytest.raises(LeaseLost, match="it has finished"):
                await job.progress(1)
            raise ValueError("too late")

        async with shop.hf, shop.hf.worker():
            job = await talkative.enqueue()
            assert (await ignored.get()).error == "ValueError: too late"
            assert await job.result(PATIENCE_S) == "done"
            assert (await job.info()).attempts == ()

    run(scenario)


@pytest.mark.parametrize("how", ["cancel", "soft", "hard", "drain"])
def test_an_interrupted_block_is_rolled_back(shop: Shop, how: str) -> None:
    async def scenario() -> None:
        inside = asyncio.Event()
        limits: dict[str, Any] = {"soft": {"soft_timeout": 0.1}, "hard": {"timeout": 0.1}}.get(how, {})

        @shop.hf.task(retry=ONCE, **limits)
        async def slow() -> None:
            job = current_job()
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                job.finish(1)
                inside.set()
                await connection.execute("SELECT pg_sleep(60)")

        async with shop.hf:
            worker = shop.hf.worker(grace_s=0)
            await worker.start()
            job = await slow.enqueue()
            await inside.wait()
            if how == "cancel":
                await job.cancel("enough")
                with pytest.raises(JobCancelled):
                    await job.result(PATIENCE_S)
            elif how == "drain":
                await worker.stop()
                assert (await job.info()).state == "ready"
            else:
                with pytest.raises(JobFailed, match=SoftTimeout.__name__ if how == "soft" else "HardTimeout"):
                    await job.result(PATIENCE_S)
            await worker.stop()
            assert shop.sales() == 0

    run(scenario)


def test_a_commit_under_way_is_not_interrupted(shop: Shop) -> None:
    async def scenario() -> None:
        runs: list[CurrentJob] = []

        @shop.hf.task
        async def steady() -> None:
            job = current_job()
            runs.append(job)
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                job.finish()

        async with shop.hf:
            worker = shop.hf.worker(grace_s=0)
            await worker.start()
            with armed(FINISH_INSIDE, "hang"):
                job = await steady.enqueue()
                await wait_hit(FINISH_INSIDE)
                stopping = asyncio.create_task(worker.stop())
                await until(lambda: runs[0].cancelled, within_s=PATIENCE_S, what="the interruption")
                await asyncio.sleep(0)  # in which a cancellation would arrive
                release(FINISH_INSIDE)
                await stopping
            assert (await job.info()).state == "succeeded"
            assert shop.sales() == 1

    run(scenario)


def test_what_hangs_on_the_job_is_let_go_after_the_commit(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.hf:
            store = shop.hf._open_store()
            job = await shop.sell.options(expires=600).enqueue(1)
            waiting = a_job(waits_for=(job.id,))
            limited = a_job(
                task="sell", queue="default", payload=b'{"args":[1],"kwargs":{}}', gates=(SlotGate("l", 1),)
            )
            await store.insert_jobs([waiting, limited])
            async with shop.hf.worker(queues=("default",)):
                await job.result(PATIENCE_S)
                async for info in shop.hf.jobs.watch(limited.id):
                    last = info.state
                assert last == "succeeded"
            assert (await shop.hf.jobs.get(waiting.id)).state == "ready"
            for table in ("expiry", "slot", "active", "blocked", "member", "arrival"):
                assert shop.count(table) == 0, table

    run(scenario)


def test_a_deadline_that_outlived_its_job_is_dropped(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.hf:
            async with shop.hf.worker():
                job = await shop.sell.enqueue(1)
                await job.result(PATIENCE_S)
            # As a process leaves it that is killed right after its commit.
            shop.do("INSERT INTO {schema}.expiry (job_id, expires_at) SELECT job_id, ended_at FROM {schema}.done")
            assert await shop.hf._open_store().expire_jobs(limit=10) == 0
            assert shop.count("expiry") == 0
            assert (await job.info()).state == "succeeded"

    run(scenario)


def test_jobs_enqueued_in_the_block_are_there_with_its_effect(shop: Shop) -> None:
    async def scenario() -> None:
        @shop.hf.task(retry=RetryPolicy(max_attempts=2, base=0.01))
        async def order() -> None:
            job = current_job()
            async with job.transaction() as connection:
                await shop.sell.options(connection=connection).enqueue(job.attempt)
                job.finish()
                if job.attempt == 1:
                    raise ValueError("not yet")

        async with shop.hf, shop.hf.worker():
            job = await order.enqueue()
            await job.result(PATIENCE_S)
            [sold] = [info for info in await shop.hf.jobs.list() if info.task == "sell"]
            async for info in shop.hf.jobs.watch(sold.id):
                last = info
            assert last.result == 4
            assert shop.sales() == 1

    run(scenario)


def test_more_runs_than_connections_take_turns_and_none_sees_the_settings_of_another(shop: Shop) -> None:
    async def scenario() -> None:
        @shop.hf.task
        async def careless() -> str:
            job = current_job()
            async with job.transaction() as connection:
                before: str = await connection.fetchval("SHOW search_path")
                await connection.execute("SET search_path = nowhere; SET synchronous_commit = off")
                job.finish(before)
            return ""

        async with shop.hf, shop.hf.worker(concurrency=30):
            jobs = await shop.hf.enqueue_many([careless.request() for _ in range(30)])
            assert {await job.result(PATIENCE_S) for job in jobs} == {'"$user", public'}
            lines = shop.ask(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'holdfast transaction'"
            )
            assert lines <= 10

    run(scenario)


def test_what_is_committed_is_durable_and_a_stopped_process_does_not_keep_its_job_for_ever(shop: Shop) -> None:
    async def scenario() -> None:
        connections: list[asyncpg.Connection[Any]] = []
        seen: list[str] = []

        @shop.hf.task
        async def careless() -> None:
            job = current_job()
            async with job.transaction() as connection:
                await connection.execute("SET synchronous_commit = off")
                connections.append(connection)
                job.finish()

        async def look() -> None:
            names = ("synchronous_commit", "idle_in_transaction_session_timeout", "lock_timeout")
            seen.extend([await connections[0].fetchval(f"SHOW {name}") for name in names])

        async with shop.hf, shop.hf.worker():
            with armed(FINISH_INSIDE, look):
                await (await careless.enqueue()).result(PATIENCE_S)
        assert seen == ["on", "10s", "5s"]

    run(scenario)


def test_a_def_task_is_told_what_it_needs(shop: Shop) -> None:
    async def scenario() -> None:
        @shop.hf.task(retry=ONCE)
        def in_a_thread() -> None:
            current_job().transaction()

        async with shop.hf, shop.hf.worker():
            with pytest.raises(JobFailed, match="needs an `async def` task"):
                await (await in_a_thread.enqueue()).result(PATIENCE_S)

    run(scenario)


@pytest.mark.parametrize("moment", [FINISH_BEGIN, FINISH_INSIDE, FINISH_COMMITTED])
def test_an_error_at_any_moment_leaves_the_effect_exactly_once(shop: Shop, moment: str) -> None:
    async def scenario() -> None:
        async with shop.hf, shop.hf.worker():
            with armed(moment, "fail"):
                job = await shop.sell.enqueue(1)
                assert await job.result(PATIENCE_S) == 2
            assert shop.sales() == 1
            causes = [run.cause for run in (await job.info()).attempts]
            assert causes == ([] if moment == FINISH_COMMITTED else ["retry"])

    run(scenario)


def test_a_connection_that_breaks_before_the_commit_leaves_nothing_and_the_job_runs_again(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.hf, shop.hf.worker():
            with armed(FINISH_INSIDE, "hang"):
                job = await shop.sell.enqueue(1)
                await wait_hit(FINISH_INSIDE)
                shop.ask(
                    "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name = 'holdfast transaction'"
                )
                release(FINISH_INSIDE)
                assert await job.result(PATIENCE_S) == 2
            assert shop.sales() == 1
            [attempt] = (await job.info()).attempts
            assert attempt.error is not None
            assert attempt.error.type == "holdfast.StoreUnavailable"

    run(scenario)
