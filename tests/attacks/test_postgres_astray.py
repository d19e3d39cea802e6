"""Jobs that stand behind all others although their lane does not come last: the sweep gives them their places again."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.fairness import Lane
from holdfast.core.gates import Place, Rules, SlotGate
from holdfast.core.job import JobId
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.stores.parking import BEHIND
from holdfast.stores.postgres import PostgresStore, serving
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import (
    LANE,
    PLENTY,
    Run,
    a_job,
    claim,
    drain,
    finish,
    insert,
    serve,
    start,
    state,
)

LIMIT = SlotGate("bank", 1)
LAST = Lane("backfill", 5)


async def _open(place: PostgresSchema) -> PostgresStore:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    return store


async def _weigh(store: PostgresStore, weight: float) -> None:
    await store.set_queue(LAST.queue, QueueSettings(weight=weight), only=("weight",))


async def _wait_in_line(store: PostgresStore, run: Run, *lanes: Lane) -> list[JobId]:
    ids = []
    for lane in lanes:
        ids += await insert(store, a_job(gates=(LIMIT,), queue=lane.queue))
        assert await drain(store, run.worker, lane) == [], "the limit is full"
    return ids


def _seqs(place: PostgresSchema, table: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = f"SELECT job_id, seq FROM {place.schema}.{table} ORDER BY seq"
        return connection.execute(query).fetchall()


@scene
async def test_a_weight_is_given_back_while_an_earlier_version_serves_the_gate(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's transaction does not wait for that, nor see that the job was put behind."""
    store, other = await _open(postgres_tables), await _open(postgres_tables)
    store._engine.sql = {**store._engine.sql, "rules.still": "SELECT 1"}
    await _weigh(store, 0)
    run = await start(store, gates=(LIMIT,))
    oldest, second, third = await _wait_in_line(store, run, LAST, LANE, LANE)
    write = serving._write

    async def write_slowly(tx: Tx, line: serving._Line, again: set[Place], rules: Rules) -> None:
        await write(tx, line, again, rules)
        if line.stepped_behind:
            monkeypatch.setattr(serving, "_write", write)
            await _weigh(other, 1)

    monkeypatch.setattr(serving, "_write", write_slowly)
    await finish(store, run)
    await serve(store)
    assert serving._write is write, "that is how it went"
    assert await state(store, second) is State.READY, "the oldest is behind"
    await store.sweep(limit=PLENTY)
    [job] = await claim(store, run.worker)
    await finish(store, Run(run.worker, job))
    await serve(store)
    assert await state(store, oldest) is State.READY, "it has waited longest"
    assert await state(store, third) is State.PARKED
    await other.close()
    await store.close()


@scene
async def test_who_comes_last_stays_behind(postgres_tables: PostgresSchema) -> None:
    store = await _open(postgres_tables)
    await _weigh(store, 0)
    run = await start(store, gates=(LIMIT,))
    oldest, *others = await _wait_in_line(store, run, LAST, LANE, LANE)
    await finish(store, run)
    await serve(store)
    before = _seqs(postgres_tables, "parked")
    assert [job_id for job_id, _ in before] == [others[1], oldest]
    await store.sweep(limit=PLENTY)
    assert _seqs(postgres_tables, "parked") == before
    await store.close()


@scene
async def test_an_earlier_version_lets_one_go_that_stands_behind(postgres_tables: PostgresSchema) -> None:
    """It knows nothing of that, and so the job would stand behind all others of its own lane."""
    store, earlier = await _open(postgres_tables), await _open(postgres_tables)
    line = earlier._engine.sql["serving.line"].replace(f"p.seq % {BEHIND} AS seq", "p.seq")
    assert line != earlier._engine.sql["serving.line"]
    earlier._engine.sql = {**earlier._engine.sql, "serving.line": line}
    await _weigh(store, 0)
    run = await start(store, gates=(LIMIT,))
    oldest, _ = await _wait_in_line(store, run, LAST, LANE)
    await finish(store, run)
    await serve(store)
    [job] = await claim(store, run.worker)
    await finish(earlier, Run(run.worker, job))
    await serve(earlier)
    assert _seqs(postgres_tables, "ready")[0][1] > BEHIND, "that is how it went"
    await insert(store, a_job(queue=LAST.queue))
    await store.sweep(limit=PLENTY)
    [job] = await claim(store, run.worker, 1, lane=LAST)
    assert job.id == oldest, "it is the first of its lane"
    await earlier.close()
    await store.close()
