"""Limits with very many keys, and with very many waiters that nobody serves: whoever has room runs, soon."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.fairness import Lane
from holdfast.core.gates import RateGate, SlotGate
from holdfast.core.job import JobId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import PLENTY, a_job, apply, claim, enlist, insert, states


class _Place:
    """A store, and a way to its tables past it."""

    def __init__(self, path: Path, tables: PostgresSchema | None) -> None:
        self._path, self._tables = path / "jobs.db", tables

    def store(self) -> Store:
        if self._tables is None:
            return SqliteStore(str(self._path))
        return PostgresStore(self._tables.url, schema=self._tables.schema)

    def date_back(self, key: str) -> None:
        """As if the time of those who wait there had come a minute ago, and nobody for them."""
        if self._tables is None:
            with sqlite3.connect(self._path) as db:
                db.execute(
                    "UPDATE gate SET full_at = unixepoch() - 60, due_at = unixepoch() - 60 WHERE key = ?", (key,)
                )
            return
        past = "now() - interval '1 minute'"
        with psycopg.connect(self._tables.url, autocommit=True) as connection:
            connection.execute(
                f"UPDATE {self._tables.schema}.gate SET full_at = {past}, due_at = {past} WHERE key = %s",  # type: ignore[arg-type]  # a schema's name is in it
                (key,),
            )

    def drop_slot(self, key: str) -> None:
        """As if whoever freed it had died before it could wake the one who waits."""
        if self._tables is None:
            with sqlite3.connect(self._path) as db:
                db.execute("DELETE FROM slot WHERE key = ?", (key,))
            return
        with psycopg.connect(self._tables.url, autocommit=True) as connection:
            connection.execute(f"DELETE FROM {self._tables.schema}.slot WHERE key = %s", (key,))  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> _Place:
    return _Place(tmp_path, None if request.param == "sqlite" else request.getfixturevalue("postgres_tables"))


def test_the_sweep_finds_a_waiter_with_room_behind_many_limits_that_are_full(place: _Place) -> None:
    async def scenario() -> None:
        store = place.store()
        await store.open()
        worker = await enlist(store)
        for number in range(6):
            await insert(store, *(a_job(gates=(SlotGate(f"user {number}", 1),)) for _ in range(2)))
        assert len(await claim(store, worker)) == 6
        place.drop_slot("user 5")
        swept = await store.sweep(limit=5)
        assert swept.unparked == 1, f"five limits are full, the sixth has room: {swept}"
        assert len(await claim(store, worker)) == 1
        await store.close()

    asyncio.run(scenario())


def test_the_sweep_tells_of_a_waiter_whose_time_has_come_long_ago(place: _Place) -> None:
    async def scenario() -> None:
        store = place.store()
        await store.open()
        worker = await enlist(store)
        await insert(store, *(a_job(gates=(RateGate("post", Pace(1, 3600.0, 1)),)) for _ in range(2)))
        assert len(await claim(store, worker)) == 1
        swept = await store.sweep(limit=5)
        assert swept.unparked == 0, f"its time has not come: {swept}"
        place.date_back("post")
        swept = await store.sweep(limit=5)
        assert swept.unparked == 1, f"nobody has come for it: {swept}"
        assert len(await claim(store, worker)) == 1
        await store.close()

    asyncio.run(scenario())


def test_a_crowd_in_a_paused_queue_moves_bit_by_bit_and_holds_up_nobody_behind_it(
    place: _Place,
) -> None:
    elsewhere, one = Lane("elsewhere", 5), SlotGate("api", 1)

    async def scenario() -> None:
        store = place.store()
        await store.open()
        worker = await enlist(store)
        await insert(store, a_job(gates=(one,)))
        [first] = await claim(store, worker)
        crowd: list[JobId] = []
        for _ in range(4):
            crowd += await insert(store, *(a_job(gates=(one,), queue=elsewhere.queue) for _ in range(600)))
            await store.claim_jobs(worker, {elsewhere: PLENTY}, deadline_s=60)
        [served] = await insert(store, a_job(gates=(one,)))
        assert await claim(store, worker) == [], "the limit is reached"
        await store.set_queue(elsewhere.queue, QueueSettings(paused=True))
        await apply(store, worker, Succeed(first.id, first.token, None))
        assert (await states(store, *crowd)).count(State.PARKED) == 1400, "a thousand in one transaction"
        await store.sweep(limit=PLENTY)
        assert [run.id for run in await claim(store, worker)] == [served]
        await store.close()

    asyncio.run(scenario())
