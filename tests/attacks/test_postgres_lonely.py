"""Jobs that must run alone, in several lanes, with gates that others hold in the order which everybody keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import a_job, enlist, insert, start

FIRST, SECOND = Lane("first", 5), Lane("second", 5)
A, Z = SlotGate("a", 1), SlotGate("z", 1)


def test_who_claims_one_of_them_holds_gates_only_once(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has `a` in hand and waits for `z`, as a claim of both would; we have `z`, and must not want `a`."""

    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        await start(store, gates=(Z,))
        await insert(store, a_job(queue="first", gates=(Z,)), a_job(queue="second", gates=(A,)))
        worker = await enlist(store)
        gate = f"SELECT 1 FROM {postgres_tables.schema}.gate WHERE key = %s FOR NO KEY UPDATE"
        with psycopg.connect(postgres_tables.url) as side:
            side.execute(f"UPDATE {postgres_tables.schema}.ready SET losses = 2")  # type: ignore[call-overload]
            gates = "VALUES ('limit', 'a'), ('limit', 'z')"
            side.execute(f"INSERT INTO {postgres_tables.schema}.gate (kind, key) {gates}")  # type: ignore[call-overload]  # a schema's name is in it
            side.commit()
            side.execute(gate, ["a"])  # type: ignore[call-overload]
            fetch, waiting = Tx.fetch, list[asyncio.Future[Any]]()

            def go_on() -> None:
                side.execute(gate, ["z"])  # type: ignore[call-overload]
                side.rollback()

            async def fetched(tx: Tx, name: str, *args: object) -> Any:
                rows = await fetch(tx, name, *args)
                if name == "passing.hold" and not waiting:
                    waiting.append(asyncio.ensure_future(asyncio.to_thread(go_on)))
                return rows

            monkeypatch.setattr(Tx, "fetch", fetched)
            claim = await store.claim_jobs(worker, {FIRST: 1, SECOND: 1}, deadline_s=60, alone=True)
            await waiting[0]  # a deadlock would be told to one of the two
        assert claim.scanned == {FIRST: 1, SECOND: 1}
        assert [job.queue for job in claim.jobs] == ["second"], "the limit of the first one is full"
        await store.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))
