"""Through a PgBouncer in transaction mode: the same contract, nothing left behind in connections that others share."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

import asyncpg
import pytest
from tests.integration.scene import PATIENCE_S, scene
from tests.postgres.bouncer import POOL, Bouncer
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast, JobHandle, RetryPolicy, current_job
from holdfast.core.cause import Cause
from holdfast.core.errors import StoreBroken
from holdfast.core.state import State
from holdfast.stores.base import JobFilter
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts import CHECKS, Check

pytestmark = pytest.mark.system


#: Who waits for whom, and whose session it is: what a pooler might change. HOLDFAST_TEST_POOLED=all runs all of them.
TOPICS = ("leader.", "races.", "fencing.a", "hints.")
CHOSEN = (
    CHECKS
    if os.environ.get("HOLDFAST_TEST_POOLED")
    else {name: check for name, check in CHECKS.items() if name.startswith(TOPICS)}
)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHOSEN.items()])
def test_the_contract_holds_through_pgbouncer(check: Check, pooled_tables: PostgresSchema) -> None:
    asyncio.run(_run(check, pooled_tables))


async def _run(check: Check, place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema, pooled=True)
    await store.open()
    try:
        await check(store)
    finally:
        await store.close()


def an_app(place: PostgresSchema) -> Holdfast:
    hf = Holdfast(place.url, schema=place.schema, pooled=True, poll_s=0.05, lease_s=2.0, wait_s=PATIENCE_S)

    @hf.task(name="work")
    async def work(n: int) -> int:
        return n

    @hf.task(name="fail_once", retry=RetryPolicy(max_attempts=2, base=0.01))
    async def fail_once(n: int) -> int:
        if current_job().attempt == 1:
            raise ValueError("the first attempt fails")
        await current_job().progress(1, 1)
        return n

    return hf


async def left_behind(place: PostgresSchema) -> list[list[str]]:
    """What each of the shared connections has kept; all of them are looked at, because each is held meanwhile."""
    found: list[list[str]] = []
    async with AsyncExitStack() as held:
        for _ in range(POOL):
            connection = await asyncpg.connect(place.url, statement_cache_size=0)
            held.push_async_callback(connection.close)
            await held.enter_async_context(connection.transaction())
            rows = await connection.fetch(
                "SELECT 'setting ' || name FROM pg_settings WHERE source = 'session' AND name NOT IN "
                "('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings') "
                "UNION ALL SELECT 'statement ' || name FROM pg_prepared_statements "
                "UNION ALL SELECT 'channel ' || c FROM pg_listening_channels() AS c "
                "UNION ALL SELECT 'lock' FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            found.append([row[0] for row in rows])
    return found


@scene
async def test_jobs_live_through_it_and_leave_nothing_behind(pooled_tables: PostgresSchema) -> None:
    hf, producer = an_app(pooled_tables), an_app(pooled_tables)
    async with hf, producer, hf.worker(concurrency=10):
        names = ["work", "fail_once"] * 20
        jobs = [await producer.named(name).options(key=f"k{n}").enqueue(n) for n, name in enumerate(names)]
        later = await producer.named("work").options(delay=0.05).enqueue(99)
        results = await asyncio.gather(*(job.result(timeout=PATIENCE_S) for job in [*jobs, later]))
        assert results == [*range(40), 99]
        causes = [[run.cause for run in (await job.info()).attempts] for job in jobs]
        assert causes == [[], [Cause.RETRY]] * 20
        dead = await hf.dead.list()
        assert dead == []
    assert await left_behind(pooled_tables) == [[]] * POOL


def test_migrating_through_it_leaves_nothing_behind(bouncer: Bouncer, postgres_schema: PostgresSchema) -> None:
    async def run() -> None:
        place = PostgresSchema(bouncer.url_of(postgres_schema.url), postgres_schema.schema)
        hf = an_app(place)
        await asyncio.gather(hf.migrate(), an_app(place).migrate())
        async with hf:
            await hf.named("work").enqueue(1)
        assert await left_behind(place) == [[]] * POOL

    asyncio.run(run())


@scene
async def test_it_is_killed_and_started_again_under_load(own_bouncer: Bouncer, postgres_tables: PostgresSchema) -> None:
    place = PostgresSchema(own_bouncer.url_of(postgres_tables.url), postgres_tables.schema)
    hf = an_app(place)
    async with hf, hf.worker(concurrency=20):
        jobs: list[JobHandle[int]] = []

        async def produce(number: int) -> None:
            for n in range(50):
                job = await hf.named("work").enqueue(50 * number + n)
                jobs.append(job)

        producers = [asyncio.create_task(produce(number)) for number in range(4)]
        for enough in (30, 100):
            while len(jobs) < enough:
                await asyncio.sleep(0)
            own_bouncer.kill()
            await asyncio.to_thread(own_bouncer.start)
        await asyncio.gather(*producers)
        results = await asyncio.gather(*(job.result(timeout=PATIENCE_S) for job in jobs))
        assert sorted(results) == list(range(200))
        counts = [await hf._open_store().count_jobs(JobFilter(state=state)) for state in State]
        assert sorted(counts)[-2:] == [0, 200], "each enqueue made one job"


@pytest.mark.parametrize(
    ("setting", "value"), [("synchronous_commit", "off"), ("default_transaction_isolation", "serializable")]
)
def test_what_cannot_be_set_through_it_is_asked_for(
    setting: str, value: str, bouncer: Bouncer, postgres_database: str
) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(postgres_database)
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
        await connection.close()
        store = PostgresStore(bouncer.url_of(postgres_database), pooled=True)
        with pytest.raises(StoreBroken, match=setting):
            await store.migrate()
        await store.close()

    asyncio.run(run())
