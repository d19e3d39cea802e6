"""Very many parked jobs become ready bit by bit, not all at the end of one long transaction."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.errors import StoreUnavailable
from holdfast.core.settlement import Park
from holdfast.stores.postgres import PostgresStore, workers
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import a_job, apply, claim, enlist, insert


def test_what_was_unparked_before_the_store_went_away_stays_so(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        worker = await enlist(store)
        await insert(store, *[a_job() for _ in range(5)])
        await apply(
            store, worker, *[Park(run.id, run.token, "unknown_task", "t") for run in await claim(store, worker)]
        )
        monkeypatch.setattr(workers, "UNPARKED_AT_ONCE", 2)
        unpark_jobs, calls = workers.unpark_jobs, []

        async def breaking(tx: Tx, *, reason: str, keys: list[str]) -> int:
            calls.append(reason)
            if len(calls) == 2:
                raise StoreUnavailable("gone")
            return await unpark_jobs(tx, reason=reason, keys=keys)

        monkeypatch.setattr(workers, "unpark_jobs", breaking)
        with pytest.raises(StoreUnavailable):
            await store.unpark_jobs(reason="unknown_task", keys=["t"])
        assert len(await claim(store, worker)) == 2
        assert await store.unpark_jobs(reason="unknown_task", keys=["t"]) == 3
        await store.close()

    asyncio.run(scenario())
