"""A slot that is kept for a job goes on at once when that job may not run after all."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import Place, SlotGate
from holdfast.core.state import State
from holdfast.stores.postgres import PostgresStore, claim_verbs
from holdfast.stores.postgres.engine import Engine
from holdfast.testing.contracts.arrange import LANE, PLENTY, a_job, claim, enlist, finish, insert, start, states

ONE = (SlotGate("k", 1),)


def test_whoever_waits_for_the_slot_of_one_who_is_paused_is_let_go_by_that_claim(
    postgres_tables: PostgresSchema,
) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        worker = await enlist(store)
        run = await start(store, gates=ONE, worker=worker)
        older, younger = await insert(store, a_job(gates=ONE, task="a.task"), a_job(gates=ONE))
        assert await claim(store, worker) == []
        await finish(store, run)
        assert await states(store, older, younger) == [State.READY, State.PARKED], "the slot is kept for the oldest"
        await store.set_paused(task="a.task", paused=True, by="me")
        await store.serve_gates(limit=PLENTY)
        assert await claim(store, worker) == []
        assert await states(store, older, younger) == [State.PARKED, State.READY], "nobody else would do it at once"
        await store.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_newcomer_does_not_get_the_slot_before_whoever_waits_is_let_go(
    postgres_tables: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        await store.open()
        await other.open()
        worker, another = await enlist(store), await enlist(other)
        run = await start(store, gates=ONE, worker=worker)
        _, waiting = await insert(store, a_job(gates=ONE, task="a.task"), a_job(gates=ONE))
        assert await claim(store, worker) == []
        await finish(store, run)
        await store.set_paused(task="a.task", paused=True, by="me")
        await store.serve_gates(limit=PLENTY)
        [newcomer] = await insert(other, a_job(gates=ONE))
        look_after = claim_verbs.look_after

        async def later(engine: Engine, places: Collection[Place]) -> None:
            """The slot is free, and that is committed."""
            monkeypatch.setattr(claim_verbs, "look_after", look_after)
            assert (await other.claim_jobs(another, {LANE: 1}, deadline_s=60)).jobs == []
            await look_after(engine, places)

        monkeypatch.setattr(claim_verbs, "look_after", later)
        assert (await store.claim_jobs(worker, {LANE: 1}, deadline_s=60)).jobs == []
        assert await states(store, waiting, newcomer) == [State.READY, State.PARKED]
        await store.close()
        await other.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))
