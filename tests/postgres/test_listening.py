"""Only a process in which somebody wants to hear is woken by what others do."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast import Holdfast, JobCancelled
from holdfast.stores.base import Hint
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import a_job

PATIENCE_S = 30.0


def test_an_open_app_listens_only_once_somebody_waits(postgres_tables: PostgresSchema) -> None:
    async def main(proxy: PostgresProxy) -> None:
        heard, said = (proxy.arm(statement, Fate.HOLD_ANSWER) for statement in ("^LISTEN", "pg_notify"))
        for trap in (heard, said):
            trap.release()
        async with Holdfast(proxy.url, schema=postgres_tables.schema) as hf:
            job = await hf.enqueue("nobody.knows")
            await asyncio.to_thread(said.wait)
            assert heard.sprung == 0, "it speaks, and does not listen"
            waiting = asyncio.create_task(job.result())
            await asyncio.to_thread(heard.wait)
            await job.cancel()
            with pytest.raises(JobCancelled):
                await waiting

    with PostgresProxy(postgres_tables.url) as proxy:
        asyncio.run(main(proxy))


@pytest.mark.parametrize("moment", ["before it is open", "after"])
def test_who_subscribes_hears(postgres_tables: PostgresSchema, moment: str) -> None:
    async def main() -> None:
        store, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        heard = asyncio.Event()
        async with asyncio.timeout(PATIENCE_S):
            if moment == "after":
                await store.open()
            store.subscribe(lambda hint: heard.set() if Hint.TIMER in hint else None)
            if moment != "after":
                await store.open()
            await other.open()
            await heard.wait()
            heard.clear()
            await other.insert_jobs([a_job(delay_s=3600.0)])
            await heard.wait()
        await store.close()
        await other.close()

    asyncio.run(main())
