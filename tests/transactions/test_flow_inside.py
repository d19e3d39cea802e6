"""Flow control and users' transactions: gates, unique keys, draining, and what a run that finishes inside one says."""

from __future__ import annotations

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import PATIENCE_S, Bench, run
from tests.transactions.desks import KINDS
from tests.transactions.shop import Shop

from holdfast import Breaker, InvalidOptions, NotUnique, QueueFull, RetryPolicy, Unique, current_job
from holdfast.core.breaker import Phase

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_unique_jobs_are_rejected_or_found_and_never_replaced(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            first = await at.enqueue(bench.work, 1, unique=Unique())
            with pytest.raises(NotUnique) as caught:
                await at.enqueue(bench.work, 1, unique=Unique())
            assert caught.value.job_id == first.id
            assert (await at.enqueue(bench.work, 1, unique=Unique(when_taken="existing"))).id == first.id
            with pytest.raises(InvalidOptions, match="transaction"):
                await at.enqueue(bench.work, 1, debounce=5)
            await at.commit()
            assert [info.id for info in await bench.hf.jobs.list()] == [first.id]
            with pytest.raises(NotUnique):
                await bench.work.options(unique=Unique()).enqueue(1)

    run(scenario)


@every_kind
def test_a_queue_that_is_drained_refuses_at_once(bench: Bench, kind: str) -> None:
    async def scenario() -> None:
        async with bench.hf:
            await bench.hf.queues.drain("default")
        async with bench.at(kind) as at:
            with pytest.raises(QueueFull, match="is being drained") as caught:
                await at.enqueue(bench.work, 1)
            assert caught.value.draining
            await at.commit()
            assert bench.count("job") == 0

    run(scenario)


def test_a_probe_that_finishes_in_its_own_transaction_closes_its_breaker(postgres_tables: PostgresSchema) -> None:
    shop = Shop(postgres_tables)
    shop.open_shop()

    async def scenario() -> None:
        @shop.hf.task(breaker=Breaker("bank", failures=1, open_for=0.05), retry=RetryPolicy(max_attempts=1))
        async def charge(down: bool) -> None:
            if down:
                raise ConnectionRefusedError
            job = current_job()
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {shop.table} (number) VALUES (1)")
                job.finish(None)

        async with shop.hf:
            async with shop.hf.worker():
                failed = await charge.enqueue(True)
                async for _ in failed.events():
                    pass
                assert [each.phase for each in await shop.hf.breakers.list()] != [Phase.CLOSED]
                await (await charge.enqueue(False)).result(PATIENCE_S)
            # The worker has ended, and with it what it had to tell.
            assert [each.phase for each in await shop.hf.breakers.list()] == [Phase.CLOSED]
            assert shop.sales() == 1

    run(scenario)
