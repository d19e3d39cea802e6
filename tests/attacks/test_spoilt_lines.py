"""What is known of lanes at a gate was spoilt by hand: whoever waits there has his turn all the same."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.turns import LANES_AT_ONCE
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import LANE, Run, a_job, drain, finish, insert, serve, start

ONE = SlotGate("desk", 1)
LANES = [Lane(f"q{number}", LANE.priority) for number in range(LANES_AT_ONCE + 10)]


async def _next(store: Store, run: Run) -> Run:
    await finish(store, run)
    await serve(store)
    [job] = await drain(store, run.worker, LANE, *LANES)
    return Run(run.worker, job)


async def _each_has_its_turn(store: Store, spoil: Callable[[], None]) -> None:
    await store.open()
    run = await start(store, gates=(ONE,))
    await insert(store, *(a_job(gates=(ONE,), queue=lane.queue) for lane in LANES for _ in range(4)))
    assert await drain(store, run.worker, *LANES) == []
    for _ in range(3):
        run = await _next(store, run)
    spoil()
    seen = set()
    for _ in range(2 * len(LANES)):
        run = await _next(store, run)
        seen.add(run.job.queue)
    assert "q7" in seen
    await store.close()


@pytest.mark.parametrize("due", ["'x'", "x'00'", "9e999", "1e300", "-1"])
def test_a_turn_that_makes_no_sense_on_sqlite(tmp_path: Path, due: str) -> None:
    def spoil() -> None:
        with sqlite3.connect(tmp_path / "jobs.db") as db:
            assert db.execute(f"UPDATE turn SET due = {due} WHERE queue = 'q7'").rowcount == 1
        db.close()

    asyncio.run(_each_has_its_turn(SqliteStore(str(tmp_path / "jobs.db")), spoil))


@pytest.mark.parametrize("seq", ["'x'", "x'00'", "1.5"])
def test_a_place_that_makes_no_sense_on_sqlite(tmp_path: Path, seq: str) -> None:
    def spoil() -> None:
        with sqlite3.connect(tmp_path / "jobs.db") as db:
            assert db.execute(f"UPDATE parked SET seq = {seq} WHERE queue = 'q7'").rowcount
        db.close()

    asyncio.run(_each_has_its_turn(SqliteStore(str(tmp_path / "jobs.db")), spoil))


@pytest.mark.parametrize("due", ["NaN", "Infinity", "1e300", "-1"])
def test_a_turn_that_makes_no_sense_on_postgresql(postgres_tables: PostgresSchema, due: str) -> None:
    def spoil() -> None:
        with psycopg.connect(postgres_tables.url, autocommit=True) as db:
            change = f"UPDATE {postgres_tables.schema}.turn SET due = %s WHERE queue = 'q7'"
            assert db.execute(change, [due]).rowcount == 1  # type: ignore[call-overload]

    store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
    asyncio.run(_each_has_its_turn(store, spoil))
