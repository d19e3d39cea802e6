"""Operators who change the rules all the time do not keep workers from claiming: they wait for each other."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.errors import StoreUnavailable
from holdfast.core.gates import SlotGate
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import LANE, a_job, enlist, insert

_WAITED_FOR = """
    SELECT true FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
"""


def test_a_claim_is_not_talked_over(postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the statement that picks jobs and the one that holds their gates somebody wants to say something."""
    place = postgres_tables

    async def scenario() -> None:
        one, other = (PostgresStore(place.url, schema=place.schema) for _ in range(2))
        await one.open()
        await other.open()
        said: list[asyncio.Future[object]] = []
        sizes = count(10)

        async def speak() -> None:
            """Until it is said, or has to wait until the claim is through."""
            said.append(asyncio.ensure_future(other.set_limit("bank", size=next(sizes), pace=None, by="eve")))
            with psycopg.connect(place.url, autocommit=True) as side:
                while not said[-1].done() and side.execute(_WAITED_FOR).fetchone() is None:
                    await asyncio.sleep(0.01)

        fetch = Tx.fetch

        async def talked_over(tx: Tx, name: str, *args: object) -> Any:
            rows = await fetch(tx, name, *args)
            if name == "passing.pick":
                await speak()
            return rows

        try:
            await other.set_limit("bank", size=9, pace=None, by="eve")
            worker = await enlist(one)
            [job_id] = await insert(one, a_job(gates=(SlotGate("bank", 1),)))
            with monkeypatch.context() as patch:
                patch.setattr(Tx, "fetch", talked_over)
                claim = await one.claim_jobs(worker, {LANE: 1}, deadline_s=60)
            await asyncio.gather(*said)
            assert [job.id for job in claim.jobs] == [job_id]
            assert len(said) == 1, "it had to wait"
        finally:
            await one.close()
            await other.close()

    asyncio.run(scenario())


def test_an_operator_does_not_wait_for_ever_for_a_claim_that_was_stopped(postgres_tables: PostgresSchema) -> None:
    """As through a pooler, where the server does not end its transaction: others who claim wait behind the operator."""
    place = postgres_tables

    async def scenario() -> None:
        store = PostgresStore(place.url, schema=place.schema)
        await store.open()
        sql = store._engine.sql
        store._engine.sql = {**sql, "rules.alone": sql["rules.alone"].replace("'8s'", "'50ms'")}
        with psycopg.connect(place.url) as side:
            side.execute(sql["rules.still"].encode())
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await store.set_limit("bank", size=1, pace=None, by="eve")
        assert await store.set_limit("bank", size=1, pace=None, by="eve") == (1, None), "the other one has gone"
        await store.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))
