"""A user's open transaction blocks nobody (rule 7), and dies with its process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import Bench, run
from tests.transactions.desks import desk

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.settlement import Succeed
from holdfast.testing.contracts.arrange import a_job, enlist

IMPATIENT = "&lock_timeout=1000&statement_timeout=3000"  # whoever has to wait here says so


def test_an_open_transaction_of_a_user_blocks_nobody(postgres_tables: PostgresSchema) -> None:
    bench = Bench(postgres_tables, server_settings=IMPATIENT)

    async def scenario() -> None:
        async with bench.hf, desk(bench.hf, "asyncpg", bench.place.url) as at:
            store = bench.hf._open_store()  # every verb, also those that only workers use
            await at.enqueue(bench.work, 1)  # a queue that nobody has met before
            await at.enqueue(bench.work, 2, key="k", delay=60, expires=120)
            async with asyncio.timeout(10):
                await bench.work.enqueue(3)
                await bench.work.options(key="other").enqueue(4)
                worker = await enlist(store)
                claim = await store.claim_jobs(worker, {Lane("default", 5): 10}, deadline_s=5)
                assert len(claim.jobs) == 2, "what is not committed is not there"
                [first, second] = claim.jobs
                await store.settle_jobs(worker, [Succeed(first.id, first.token, None)])
                await store.insert_jobs([a_job(queue="default") for _ in range(600)])  # enough to fold
                await store._engine.query("queues.fold", 5000)
                await store.sweep(limit=100)
                await store.promote_jobs(limit=100)
                await store.expire_jobs(limit=100)
                await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=100)
                await store.reap_workers(limit=100)
                await store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="test")
                await store.cancel_jobs([second.id], reason="test")
                await store.purge_queue("default", reason="test", limit=1000)
                await store.list_queues()
            await at.commit()
            assert (await store.sweep(limit=100)).counters_fixed == 0
            depths = {queue.name: (queue.ready, queue.scheduled) for queue in await store.list_queues()}
            assert depths == {"default": (1, 1)}

    run(scenario)


def test_a_key_in_an_open_transaction_holds_up_its_own_callers_only(postgres_tables: PostgresSchema) -> None:
    bench = Bench(postgres_tables)

    async def scenario() -> None:
        async with bench.hf, desk(bench.hf, "asyncpg", bench.place.url) as at:
            mine = await at.enqueue(bench.work, 1, key="k")
            keys = [f"other-{n}" for n in range(20)]
            waiting = asyncio.create_task(bench.work.options(key="k").enqueue(1))
            others = await asyncio.gather(*(bench.work.options(key=key).enqueue(1) for key in keys))
            assert len({job.id for job in others}) == 20
            assert not waiting.done(), "whose key it is decides the open transaction"
            await at.commit()
            assert (await waiting).id == mine.id

    run(scenario)


USER = """
import asyncio, sys
import asyncpg
from holdfast import Holdfast

async def main(url, schema):
    hf = Holdfast(url, schema=schema)
    async with hf:
        connection = await asyncpg.connect(url, server_settings={"application_name": "the user"})
        await connection.execute("BEGIN")
        await hf.named("work").options(connection=connection, key="k").enqueue(1)
        print("enqueued", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_process_that_is_killed_before_its_commit_leaves_no_job(bench: Bench) -> None:
    command = [sys.executable, "-c", USER, bench.place.url, bench.place.schema]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == b"enqueued\n"
        os.kill(user.pid, signal.SIGKILL)
    # Its backend notices that nobody is there, and so does whoever waits for it.
    bench.ask(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'the user'"
    )
    for table in ("job", "ready", "idempotency_key", "depth_change"):
        assert bench.count(table) == 0, table

    async def scenario() -> None:
        async with bench.hf:
            await bench.work.options(key="k").enqueue(2)  # the key is free

    run(scenario)
