"""A job whose gates nobody can read, as after a slip by hand, waits; and nobody else stumbles over it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import Barrier, SlotGate
from holdfast.core.gates_text import UNREADABLE
from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import PLENTY, a_job, claim, enlist, finish, insert, start, state, states

ONE = (SlotGate("k", 1),)
SPOILT = (
    "garbage", "{}", "[[]]", "[1]", '[["newer","k",1]]', '[["limit","k"]]', '[["limit","k","1","","wait"]]',
    '[["rate","r",1,0,1,""]]', '[["rate","r",1e999,1,1,""]]', '[["rate","r",1,1e999,3,""]]',
    '[["rate","r",1,NaN,3,""]]',
    '[["rate","r",1,1,0,""]]', '[["rate","r",1e300,1e-300,1,""]]', f'[["rate","r",1,1,{"9" * 30},""]]',
    '[["limit","\\ud800",1,"","wait"]]', '[["limit","a\\u0000b",1,"","wait"]]', f'[["limit","k",{"9" * 30},"","wait"]]',
    '[["breaker","b",1,1e999,1]]', '[["breaker","b",1,1,NaN]]', '[["breaker","b",0,1,1]]',
    '[["breaker","\\ud800",1,1,1]]',
)  # fmt: skip


class _Place:
    def __init__(self, make: Callable[[], Store], write: Callable[[JobId, str], None]) -> None:
        self.make, self.write = make, write


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> _Place:
    if request.param == "sqlite":
        path = tmp_path / "jobs.db"

        def in_file(job_id: JobId, text: str) -> None:
            with sqlite3.connect(path) as db:
                db.execute("UPDATE job SET gates = ? WHERE id = ?", (text, job_id.bytes))

        return _Place(lambda: SqliteStore(str(path)), in_file)
    tables: PostgresSchema = request.getfixturevalue("postgres_tables")

    def in_table(job_id: JobId, text: str) -> None:
        with psycopg.connect(tables.url, autocommit=True) as connection:
            change = f"UPDATE {tables.schema}.job SET gates = %s, limit_key = NULL WHERE id = %s"
            connection.execute(change, [text, job_id])  # type: ignore[call-overload]

    return _Place(lambda: PostgresStore(tables.url, schema=tables.schema), in_table)


@pytest.mark.parametrize("text", SPOILT)
def test_others_are_claimed_and_settled(place: _Place, text: str) -> None:
    async def scenario() -> None:
        store = place.make()
        await store.open()
        worker = await enlist(store)
        run = await start(store, gates=ONE, worker=worker)
        [parked] = await insert(store, a_job(gates=ONE))
        assert await claim(store, worker) == []
        [ready] = await insert(store, a_job(gates=ONE))
        for job_id in (parked, ready):
            place.write(job_id, text)
        others = await insert(store, a_job(), a_job(gates=ONE))
        await finish(store, run)
        await store.serve_gates(limit=PLENTY)
        assert [job.id for job in await claim(store, worker)] == others
        await store.sweep(limit=PLENTY)
        assert await states(store, parked, ready) == [State.PARKED, State.PARKED]
        [info] = [each for each in await store.gates() if each.place == (Barrier.LIMIT, UNREADABLE.key)]
        assert info.waiting == 2
        found = await store.circumstances(ready)
        assert found is not None
        assert found.gates == (UNREADABLE,)
        await store.set_limit(UNREADABLE.name, size=1, pace=None, by="me")
        await store.serve_gates(limit=PLENTY)
        assert [job.id for job in await claim(store, worker)] == [parked], "an operator may let them run"
        await store.cancel_jobs([ready], reason="never mind")
        assert await state(store, ready) is State.CANCELLED
        await store.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))
