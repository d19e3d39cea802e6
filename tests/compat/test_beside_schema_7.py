"""A worker of schema 7, by its own statements, beside one of now: what both know is kept, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import asyncpg
from tests.compat.frozen import frozen
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import RateGate, SlotGate
from holdfast.core.job import JobId
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import LANE, LONG_S, PLENTY, Run, a_job, claim, enlist, finish, insert, state

ONE = SlotGate("printer", 1)


class Older:
    """As a program of that version went on: each verb in a transaction, or in one statement."""

    def __init__(self, connection: asyncpg.Connection[Any], schema: str) -> None:
        self.connection = connection
        self.sql = frozen(7, schema)
        self.worker = uuid4()

    async def fetch(self, statement: str, *args: object) -> list[Any]:
        return await self.connection.fetch(self.sql[statement], *args)

    async def enlist(self) -> None:
        await self.fetch("workers.register", self.worker, "here", 1, 10, [], LONG_S)

    async def claim(self) -> list[Any]:
        """Ordinary jobs; then those with something attached, by themselves."""
        lane = ([LANE.queue], [LANE.priority], [0], [0], [PLENTY])
        rows = await self.fetch("claim_jobs.ordinary", self.worker, *lane)
        runs = [(row["id"], row["token"]) for row in rows if row["kind"] == "job"]
        attached = [row["id"] for row in rows if row["kind"] == "attached"]
        async with self.connection.transaction():
            assert await self.fetch("claim_jobs.hold_lease", self.worker)
            for row in await self.fetch("claim_jobs.pick_attached", attached):
                if row["limit_key"] is not None:
                    await self.fetch("end_jobs.lock_limit", row["limit_key"])
                    taken = await self.fetch(
                        "end_jobs.take_slots", row["limit_key"], [row["job_id"]], [row["limit_size"]]
                    )
                    assert taken, "there is room in these scenes"
                await self.fetch("claim_jobs.leave_ready", [row["job_id"]])
                await self.fetch("transaction.change_depth", [row["queue"]], [-1])
                place = ([each] for each in list(row.values())[:9])
                now = await self.connection.fetchval(self.sql["transaction.now"])
                [lease] = await self.fetch("claim_jobs.lease", *place, self.worker, now)
                runs.append(tuple(lease))
        return runs

    async def succeed(self, runs: Sequence[Any]) -> None:
        ids, tokens = map(list, zip(*runs, strict=True))
        settled = {
            row[0] for row in await self.fetch("settle_jobs.ordinary", self.worker, ids, tokens, [None] * len(ids))
        }
        async with self.connection.transaction():
            now = await self.connection.fetchval(self.sql["transaction.now"])
            for job_id, token in runs:
                if token in settled:
                    continue
                [lease] = await self.fetch("settle_jobs.leases", self.worker, [job_id], [token])
                await self.fetch(
                    "end_jobs.done", [job_id], [False], [token], [lease["attempt"]], [self.worker],
                    [lease["started_at"]], [None], [None], now,
                )  # fmt: skip
                for (key,) in await self.fetch("end_jobs.free_slots", [job_id]):
                    await self._unpark(key, now)

    async def _unpark(self, key: str, now: object) -> None:
        await self.fetch("end_jobs.lock_limit", key)
        for row in await self.fetch("end_jobs.oldest_waiters", key, 1):
            await self.fetch("end_jobs.take_slots", key, [row["job_id"]], [row["limit_size"]])
            await self.fetch("end_jobs.unpark", [row["job_id"]])
            await self.fetch("transaction.enter_ready", *([each] for each in list(row.values())[:9]), now)
            await self.fetch("transaction.change_depth", [row["queue"]], [1])


def test_a_limit_goes_from_one_version_to_the_other_and_back(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        connection = await asyncpg.connect(postgres_tables.url)
        older = Older(connection, postgres_tables.schema)
        try:
            await older.enlist()
            worker = await enlist(store)
            first, plain = await insert(store, a_job(gates=(ONE,)), a_job())
            runs = await older.claim()
            assert {job_id for job_id, _ in runs} == {first, plain}
            [second] = await insert(store, a_job(gates=(ONE,)))
            assert await claim(store, worker) == [], "the slot that the older one has taken counts"
            assert await state(store, second) is State.PARKED
            await older.succeed(runs)
            assert [await state(store, job_id) for job_id in (first, plain)] == [State.SUCCEEDED] * 2
            [job] = await claim(store, worker)
            assert job.id == second, "the older one has woken who waited"
            await finish(store, Run(worker, job))
            [third] = await insert(store, a_job(gates=(ONE,)))
            runs = await older.claim()
            assert [job_id for job_id, _ in runs] == [third], "and finds the slot free again"
            await older.succeed(runs)
            await store.sweep(limit=PLENTY)
            assert not any(await store.sweep(limit=PLENTY))
            assert await store.gates() == []
        finally:
            await connection.close()
            await store.close()

    asyncio.run(scenario())


def test_what_it_does_not_know_it_runs_all_the_same(postgres_tables: PostgresSchema) -> None:
    slow = RateGate("post", Pace(1, LONG_S, 1))

    async def scenario() -> list[JobId]:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        connection = await asyncpg.connect(postgres_tables.url)
        older = Older(connection, postgres_tables.schema)
        try:
            await older.enlist()
            ids = await insert(store, a_job(gates=(slow,)), a_job(gates=(slow, ONE)), a_job(delay_s=0))
            await store.set_paused(task="another", paused=True, by="me")
            runs = await older.claim()
            assert sorted(job_id for job_id, _ in runs) == sorted(ids), "also where a rule concerns everybody"
            await older.succeed(runs)
            return [job_id for job_id in ids if await state(store, job_id) is not State.SUCCEEDED]
        finally:
            await connection.close()
            await store.close()

    assert asyncio.run(scenario()) == []
