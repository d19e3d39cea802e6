"""Several processes' worth of workers on a few hot limits: none is exceeded, and all drains without the sweep."""

from __future__ import annotations

import asyncio
from random import Random

import asyncpg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import Gate, SlotGate
from holdfast.core.settlement import HandBack, Retry, Settlement, Succeed
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import ERROR, LONG_S, PLENTY, Run, a_job, claim, enlist, insert

SIZES = {"one": 1, "three": 3, "fifty": 50}
STORES = 4
EXCEEDED = """
    SELECT s.key, count(*) FROM {schema}.slot s JOIN {schema}.active a USING (job_id) WHERE s.kind = 'limit'
    GROUP BY s.key HAVING count(*) > CASE s.key WHEN 'one' THEN 1 WHEN 'three' THEN 3 ELSE 50 END
    UNION ALL SELECT 'without a slot', count(*) FROM {schema}.active a
    WHERE NOT EXISTS (SELECT 1 FROM {schema}.slot s WHERE s.job_id = a.job_id) HAVING count(*) > 0
"""


def _gates(chance: Random) -> tuple[Gate, ...]:
    keys = chance.sample(list(SIZES), chance.choice((1, 1, 1, 2)))
    return tuple(SlotGate(key, SIZES[key]) for key in keys)


def _outcome(run: Run, chance: Random) -> Settlement:
    dice = chance.random()
    if dice < 0.1:
        return HandBack(run.id, run.token, "no time")
    if dice < 0.2 and run.job.attempt < 3:
        return Retry(run.id, run.token, 0.0, ERROR)
    return Succeed(run.id, run.token, None)


@pytest.mark.parametrize("seed", range(3))
def test_hot_limits_are_never_exceeded_and_drain_by_themselves(seed: int, postgres_tables: PostgresSchema) -> None:
    chance = Random(seed)

    async def scenario() -> None:
        stores = [PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(STORES)]
        for store in stores:
            await store.open()
        side = await asyncpg.connect(postgres_tables.url)
        left = set(await insert(stores[0], *(a_job(gates=_gates(chance)) for _ in range(200))))

        async def work(store: PostgresStore) -> None:
            worker = await enlist(store)
            while left:
                runs = [Run(worker, job) for job in await claim(store, worker, chance.randint(1, 20))]
                if chance.random() < 0.1:
                    await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
                    await store.reap_workers(limit=PLENTY)
                    worker, runs = await enlist(store), []
                while runs:
                    some, runs = runs[:7], runs[7:]
                    ends = [_outcome(run, chance) for run in some]
                    await store.settle_jobs(worker, ends)
                    left.difference_update(end.job_id for end in ends if isinstance(end, Succeed))
                await store.promote_jobs(limit=PLENTY)
                await store.serve_gates(limit=PLENTY)

        async def watch() -> None:
            query = EXCEEDED.format(schema=postgres_tables.schema)
            while left:
                assert await side.fetch(query) == []

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(watch())
            for store in stores:
                group.create_task(work(store))
        assert await stores[0].gates() == []
        assert await side.fetchval(f"SELECT count(*) FROM {postgres_tables.schema}.slot") == 0
        await side.close()
        for store in stores:
            await store.close()

    asyncio.run(scenario())
