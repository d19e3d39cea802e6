"""One caller's trouble is not that of the others: keys of a cut connection, limits under a sweep."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.client.enqueuer import Enqueuer
from holdfast.config import Config
from holdfast.core.errors import KeyHeld, StoreUnavailable
from holdfast.core.gates import SlotGate
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.settlement import Succeed
from holdfast.runtime.clock import SystemClock
from holdfast.stores.base import InsertResult
from holdfast.stores.postgres import PostgresStore, sweep
from holdfast.stores.postgres.transaction import Tx
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import a_job, apply, claim, enlist, insert


class CutOff(PostgresStore):
    """The connection is cut inside the first insert; the server has not noticed when the second comes."""

    troubles: tuple[Exception, ...] = (KeyHeld("held"), StoreUnavailable("cut", unknown=True))

    async def insert_jobs(
        self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True
    ) -> list[InsertResult]:
        if self.troubles:
            *self.troubles, trouble = self.troubles  # type: ignore[assignment]
            raise trouble
        return await super().insert_jobs(jobs, whole=whole, admit=admit)


def test_a_key_that_is_held_by_our_own_cut_connection_is_waited_for(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = CutOff(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        enqueuer = Enqueuer(store, Config(), clock=SystemClock(), telemetry=Telemetry())
        job = a_job(key=KeyClaim("k", b"print", 60.0))
        assert await enqueuer.enqueue(job, wait_s=5.0) == job.id
        await enqueuer.close()
        await store.close()

    asyncio.run(scenario())


def test_limited_jobs_end_while_a_sweep_looks_at_everything(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        worker = await enlist(store)
        await insert(store, *[a_job(gates=(SlotGate("k", 1),)) for _ in range(3)])
        [run] = await claim(store, worker)  # the others are parked
        looking, seen = asyncio.Event(), asyncio.Event()
        fix_depths = sweep.fix_depths

        async def slowly(tx: Tx) -> int:
            looking.set()
            await seen.wait()
            return await fix_depths(tx)

        monkeypatch.setattr(sweep, "fix_depths", slowly)
        sweeping = asyncio.create_task(store.sweep(limit=100))
        await looking.wait()
        await apply(store, worker, Succeed(run.id, run.token, None))
        assert await claim(store, worker)
        seen.set()
        await sweeping
        await store.close()

    asyncio.run(scenario())
