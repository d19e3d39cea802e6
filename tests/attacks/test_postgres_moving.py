"""Jobs that somebody else moves, or has in hand, in the middle of a move, or while those who wait are looked after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId
from holdfast.core.queue import QueueInfo, QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Park, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    a_job,
    enlist,
    finish,
    insert,
    start,
    state,
    states,
)

ALONE = (SlotGate("k", 1),)


def _with_two(place: PostgresSchema, play: Callable[[PostgresStore, PostgresStore], Awaitable[None]]) -> None:
    async def scenario() -> None:
        one, other = (PostgresStore(place.url, schema=place.schema) for _ in range(2))
        await one.open()
        await other.open()
        try:
            await play(one, other)
        finally:
            await one.close()
            await other.close()

    asyncio.run(scenario())


def _after(monkeypatch: pytest.MonkeyPatch, statement: str, act: Callable[[], Awaitable[object]]) -> list[object]:
    """Once, when the next transaction has had the answer to this statement; what was answered meanwhile."""
    fetch, answers = Tx.fetch, list[object]()

    async def fetched(tx: Tx, name: str, *args: object) -> Any:
        rows = await fetch(tx, name, *args)
        if name == statement:
            monkeypatch.setattr(Tx, "fetch", fetch)
            answers.append(await act())
        return rows

    monkeypatch.setattr(Tx, "fetch", fetched)
    return answers


async def _queues(store: Store) -> dict[str, QueueInfo]:
    return {info.name: info for info in await store.list_queues()}


async def _stands(place: PostgresSchema, job_id: JobId) -> tuple[Any, ...] | None:
    """Queue and priority as a claim sees them."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = f"SELECT queue, priority FROM {place.schema}.ready WHERE job_id = %s"
        return connection.execute(query, [job_id]).fetchone()  # type: ignore[call-overload, no-any-return]


def test_a_job_that_is_moved_twice_at_once_is_in_one_queue(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One changes its priority, the other its queue: what they answer holds, and a claim finds what reports say."""

    async def play(one: PostgresStore, other: PostgresStore) -> None:
        [job_id] = await insert(one, a_job())
        told = _after(monkeypatch, "moving.lanes", lambda: other.move_jobs([job_id], queue="elsewhere", priority=None))
        assert await one.move_jobs([job_id], queue=None, priority=9) == 1
        [info] = await one.job_infos([job_id])
        assert info is not None
        assert (info.queue, info.priority) == ("elsewhere" if told == [1] else QUEUE, 9)
        assert await _stands(postgres_tables, job_id) == (info.queue, info.priority)
        assert (await one.sweep(limit=PLENTY)).counters_fixed == 0

    _with_two(postgres_tables, play)


def test_a_job_that_two_move_is_counted_once(postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(one: PostgresStore, other: PostgresStore) -> None:
        [job_id] = await insert(one, a_job())
        told = _after(monkeypatch, "moving.lanes", lambda: other.move_jobs([job_id], queue="elsewhere", priority=None))
        assert await one.move_jobs([job_id], queue="here", priority=None) == 1
        assert len(told) == 1
        depths = {name: info.ready for name, info in (await _queues(one)).items()}
        assert depths == {QUEUE: 0, "here": 1} | ({"elsewhere": 0} if "elsewhere" in depths else {})
        assert (await one.sweep(limit=PLENTY)).counters_fixed == 0

    _with_two(postgres_tables, play)


def test_a_job_that_was_moved_away_from_a_queue_that_is_being_purged_is_left_alone(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(one: PostgresStore, other: PostgresStore) -> None:
        job_ids = await insert(one, a_job(), a_job(delay_s=LONG_S), a_job())
        moving = lambda: other.move_jobs(job_ids[:2], queue="elsewhere", priority=None)  # noqa: E731
        told = _after(monkeypatch, "waiting.waiting_in_queue", moving)
        assert await one.purge_queue(QUEUE, reason="purged", limit=PLENTY) == 1
        assert told == [2]
        assert await states(one, *job_ids) == [State.READY, State.SCHEDULED, State.CANCELLED]
        assert (await one.sweep(limit=PLENTY)).counters_fixed == 0

    _with_two(postgres_tables, play)


def test_whoever_is_in_somebodys_hand_when_his_gate_is_served_is_looked_at_again(
    postgres_tables: PostgresSchema,
) -> None:
    """As by a move, or a cancellation that is taken back."""

    async def play(one: PostgresStore, other: PostgresStore) -> None:
        run = await start(one, gates=ALONE)
        [waiting] = await insert(one, a_job(gates=ALONE))
        await one.claim_jobs(run.worker, {LANE: 1}, deadline_s=60)
        assert await state(one, waiting) is State.PARKED
        with psycopg.connect(postgres_tables.url) as side:
            side.execute(
                f"SELECT 1 FROM {postgres_tables.schema}.parked WHERE job_id = %s FOR UPDATE",  # type: ignore[call-overload]
                [waiting],
            )
            await finish(one, run)
            assert await state(one, waiting) is State.PARKED
            side.rollback()
        served = await other.serve_gates(limit=PLENTY)
        while served.next_due_in_s:
            await asyncio.sleep(served.next_due_in_s)
            served = await other.serve_gates(limit=PLENTY)
        assert await state(one, waiting) is State.READY, "nobody would look here before the sweep"

    _with_two(postgres_tables, play)


def test_whoever_is_moved_while_his_gate_is_served_is_let_go_to_where_he_was_moved(
    postgres_tables: PostgresSchema,
) -> None:
    """The move commits after the statement that holds those who wait has begun, and before it comes to this one."""
    lock = 4_711

    async def play(one: PostgresStore, other: PostgresStore) -> None:
        run = await start(one, gates=ALONE)
        [waiting] = await insert(one, a_job(gates=ALONE))
        await one.claim_jobs(run.worker, {LANE: 1}, deadline_s=60)
        await enlist(one)
        held_up = other._engine.sql["serving.line"].replace(
            "WITH head", f"WITH wait AS MATERIALIZED (SELECT pg_advisory_xact_lock({lock})), head", 1
        )
        held_up = held_up.replace("$4) l\n", "$4) l CROSS JOIN wait\n", 1)
        assert "l CROSS JOIN wait" in held_up
        other._engine.sql = {**other._engine.sql, "serving.line": held_up}
        with psycopg.connect(postgres_tables.url) as side:
            side.execute("SELECT pg_advisory_lock(%s)", [lock])
            settling = asyncio.ensure_future(other.settle_jobs(run.worker, [Succeed(run.id, run.token, None)]))
            await _until_waited_for(postgres_tables, lock)
            assert await one.move_jobs([waiting], queue="elsewhere", priority=2) == 1
            side.execute("SELECT pg_advisory_unlock(%s)", [lock])
            await settling
        while await _stands(postgres_tables, waiting) is None:  # in a moment: he was in somebody's hand
            await one.serve_gates(limit=PLENTY)
            await asyncio.sleep(0.01)
        assert await _stands(postgres_tables, waiting) == ("elsewhere", 2)
        assert (await one.sweep(limit=PLENTY)).counters_fixed == 0

    _with_two(postgres_tables, play)


def test_whoever_is_moved_while_a_worker_takes_him_from_the_unknown_stands_where_he_was_moved(
    postgres_tables: PostgresSchema,
) -> None:
    """The same where a worker that knows the task takes its parked job: a queue that was paused stays so."""
    lock = 4_712

    async def play(one: PostgresStore, other: PostgresStore) -> None:
        run = await start(one)
        await one.settle_jobs(run.worker, [Park(run.id, run.token, UNKNOWN_TASK, TASK)])
        await one.set_queue("elsewhere", QueueSettings(paused=True))
        held_up = other._engine.sql["claim_jobs.leave_unknown"].replace(
            "WITH heads AS (", f"WITH wait AS MATERIALIZED (SELECT pg_advisory_xact_lock({lock})), heads AS (", 1
        )
        held_up = held_up.replace(".parked p JOIN", ".parked p CROSS JOIN wait JOIN", 1)
        other._engine.sql = {**other._engine.sql, "claim_jobs.leave_unknown": held_up}
        with psycopg.connect(postgres_tables.url) as side:
            side.execute("SELECT pg_advisory_lock(%s)", [lock])
            taking = asyncio.ensure_future(other.claim_parked(run.worker, [LANE], tasks=[TASK], deadline_s=60))
            await _until_waited_for(postgres_tables, lock)
            assert await one.move_jobs([run.id], queue="elsewhere", priority=2) == 1
            side.execute("SELECT pg_advisory_unlock(%s)", [lock])
            assert (await taking).jobs == [], "it is not in that lane any more"
        assert await _stands(postgres_tables, run.id) == ("elsewhere", 2)
        assert (await one.sweep(limit=PLENTY)).counters_fixed == 0

    _with_two(postgres_tables, play)


async def _until_waited_for(place: PostgresSchema, lock: int) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = "SELECT true FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
        while connection.execute(query, [lock]).fetchone() is None:
            await asyncio.sleep(0.01)
