"""What programs of an earlier version leave behind others for no reason: the sweep gives it its place again."""

from __future__ import annotations

import psycopg
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import SlotGate
from holdfast.core.state import State
from holdfast.stores.parking import BEHIND
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import (
    PLENTY,
    a_job,
    claim,
    drain,
    enlist,
    finish,
    insert,
    serve,
    start,
    states,
)

LIMIT = SlotGate("bank", 1)


async def _open(place: PostgresSchema) -> PostgresStore:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    return store


def _put_behind(place: PostgresSchema, table: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {place.schema}")  # type: ignore[call-overload]
        oldest = f"UPDATE {table} SET seq = seq + %s WHERE seq = (SELECT min(seq) FROM {table})"
        assert connection.execute(oldest, [BEHIND]).rowcount == 1  # type: ignore[call-overload]


@scene
async def test_one_that_was_let_go_as_it_stood_at_its_gate(postgres_tables: PostgresSchema) -> None:
    store = await _open(postgres_tables)
    worker = await enlist(store)
    oldest, _ = await insert(store, a_job(), a_job())
    _put_behind(postgres_tables, "ready")
    await store.sweep(limit=PLENTY)
    [job] = await claim(store, worker, 1)
    assert job.id == oldest
    await store.close()


@scene
async def test_one_that_waits_at_its_gate(postgres_tables: PostgresSchema) -> None:
    store = await _open(postgres_tables)
    run = await start(store, gates=(LIMIT,))
    oldest, *others = await insert(
        store, *(a_job(gates=(LIMIT,)) for _ in range(120))
    )  # more than are looked at at once
    assert await drain(store, run.worker) == []
    _put_behind(postgres_tables, "parked")
    await store.sweep(limit=PLENTY)
    await finish(store, run)
    await serve(store)
    assert await states(store, oldest, *others[:1]) == [State.READY, State.PARKED]
    await store.close()


@scene
async def test_one_that_is_let_go_from_behind_has_its_place_in_its_lane(postgres_tables: PostgresSchema) -> None:
    store = await _open(postgres_tables)
    run = await start(store, gates=(LIMIT,))
    ids = await insert(store, a_job(gates=(LIMIT,)), a_job(gates=(LIMIT,)))
    assert await drain(store, run.worker) == []
    _put_behind(postgres_tables, "parked")
    await store.cancel_jobs(ids[1:], reason="out of the way")
    await finish(store, run)
    await serve(store)
    await insert(store, a_job())
    [job] = await claim(store, run.worker, 1)
    assert job.id == ids[0]
    await store.close()
