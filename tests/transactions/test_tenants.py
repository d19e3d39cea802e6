"""Tenants in users' transactions: they take turns, and nobody waits for a transaction that stays open."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import Bench, run
from tests.transactions.desks import KINDS, desk

from holdfast.core.fairness import Lane
from holdfast.testing.contracts.arrange import claim, enlist
from transactions.test_others_go_on import IMPATIENT

LANE = Lane("default", 5)


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_enqueued_in_transactions_take_turns(kind: str, bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.at(kind) as at:
            for number in range(6):
                await at.enqueue(bench.work, number, tenant="a")
            await at.enqueue_many([bench.work.options(tenant="b").request(number) for number in range(3)])
            await at.commit()
            store = bench.hf._open_store()
            got = "".join(job.tenant for job in await claim(store, await enlist(store), 9, lane=LANE))
            assert got == "abababaaa"

    run(scenario)


def test_what_a_transaction_gave_counts_for_later_ones_and_for_others(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            for _ in range(3):
                async with desk(bench.hf, "asyncpg", bench.place.url) as at:
                    await at.enqueue(bench.work, 1, tenant="a")
                    await at.commit()
            await bench.work.options(tenant="a").enqueue(2)
            await bench.work.options(tenant="b").enqueue(3)
            store = bench.hf._open_store()
            got = "".join(job.tenant for job in await claim(store, await enlist(store), 5, lane=LANE))
            assert got == "abaaa"

    run(scenario)


def test_an_open_transaction_holds_up_nobody_of_the_same_tenant(postgres_tables: PostgresSchema) -> None:
    bench = Bench(postgres_tables, server_settings=IMPATIENT)

    async def scenario() -> None:
        async with (
            bench.hf,
            desk(bench.hf, "asyncpg", bench.place.url) as at,
            desk(bench.hf, "asyncpg", bench.place.url) as other,
        ):
            await at.enqueue(bench.work, 1, tenant="a")
            async with asyncio.timeout(10):
                await other.enqueue(bench.work, 2, tenant="a")
                await bench.work.options(tenant="a").enqueue(3)
                await bench.hf.enqueue_many([bench.work.options(tenant=name).request(4) for name in "abc"])
                store = bench.hf._open_store()
                await store.sweep(limit=100)
                worker = await enlist(store)
                assert len(await claim(store, worker, 10, lane=LANE)) == 4
            await at.commit()
            await other.commit()
            assert len(await claim(store, worker, 10, lane=LANE)) == 2

    run(scenario)
