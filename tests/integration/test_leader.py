"""One process leads: it is trusted for no longer than its lease, and nothing that matters needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, url_of
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast
from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm, disarm
from holdfast.stores.base import Lead
from holdfast.stores.health import StoreHealth
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.telemetry.events import Event, LeadLost, LeadTaken, StoreDown, WorkersReaped
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import enlist, resume
from holdfast.upkeep.leader import UPKEEP, Leader, Led

LEASE_S = 10.0


class Chore(Led):
    """Does nothing, again and again."""

    done = 0

    async def tick(self) -> float:
        self.done += 1
        return 0.0


class Stage:
    """A leader that is ticked by hand, on a store whose clock stands still."""

    def __init__(self, store: SqliteStore, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.events: list[Event] = []
        telemetry = Telemetry()
        telemetry.attach(self.events.append)
        shared: dict[str, Any] = {"telemetry": telemetry, "health": StoreHealth(clock=clock, telemetry=telemetry)}
        self.leader = Leader(store, lease_s=LEASE_S, clock=clock, **shared)
        self.chore = Chore(store, leader=self.leader, **shared)

    async def chores(self, count: int) -> None:
        """Wait until the chore was done so often."""
        async with asyncio.timeout(PATIENCE_S):
            while self.chore.done < count:
                await asyncio.sleep(0)


@asynccontextmanager
async def a_stage(path: Path) -> AsyncIterator[Stage]:
    clock = ManualClock()
    store = SqliteStore(str(path / "jobs.db"), clock=clock)
    await store.open()
    try:
        yield Stage(store, clock)
    finally:
        await store.close()


@scene
async def test_a_lead_is_trusted_for_one_lease(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        assert not stage.leader.is_leader
        await stage.leader.tick()
        stage.clock.advance(LEASE_S - 0.1)
        assert stage.leader.is_leader
        stage.clock.advance(0.1)
        assert not stage.leader.is_leader


@scene
async def test_trust_counts_from_before_the_request(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        arm("lead.begin", lambda: stage.clock.advance(LEASE_S))  # asked, and then stopped for a lease
        rest_s = await stage.leader.tick()
        assert await stage.store.lead(UPKEEP, uuid4(), lease_s=1) is None, "in the store it leads"
        assert not stage.leader.is_leader, "but it does not know for how long"
        assert rest_s == 0, "so it asks again at once"


@scene
async def test_whoever_is_stopped_past_his_lease_does_no_leaders_work_when_he_wakes(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.leader.tick()
        async with stage.chore:
            await stage.chores(3)
            stage.clock.advance(LEASE_S)  # nothing here runs meanwhile
            before = stage.chore.done
            for _ in range(10):
                stage.chore.wake()
                await asyncio.sleep(0)
            assert stage.chore.done <= before + 1, "at most what it had begun"
            assert isinstance(await stage.store.lead(UPKEEP, uuid4(), lease_s=LEASE_S), Lead)
            await stage.leader.tick()
            stage.chore.wake()
            await asyncio.sleep(0)
            assert stage.chore.done <= before + 1
        assert stage.events == [LeadTaken(UPKEEP, 1), LeadLost(UPKEEP, 1)]


@scene
async def test_work_begins_as_soon_as_the_lead_is_taken(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        other = uuid4()
        await stage.store.lead(UPKEEP, other, lease_s=LEASE_S)
        await stage.leader.tick()
        async with stage.chore:
            await asyncio.sleep(0)
            assert stage.chore.done == 0
            await stage.store.resign(UPKEEP, other)
            await stage.leader.tick()
            await stage.chores(1)  # without waiting for a time
        assert stage.events == [LeadTaken(UPKEEP, 2)]


@scene
async def test_without_the_store_a_lead_is_not_trusted_past_its_lease(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.leader.tick()
        arm("lead.begin", StoreUnavailable("away"), times=2)
        with pytest.raises(StoreUnavailable):
            await stage.leader.tick()
        assert stage.leader.is_leader, "the lease lasts"
        stage.clock.advance(LEASE_S)
        with pytest.raises(StoreUnavailable):
            await stage.leader.tick()
        assert not stage.leader.is_leader
        assert stage.events == [LeadTaken(UPKEEP, 1), LeadLost(UPKEEP, 1)]
        disarm("lead.begin")
        await stage.leader.tick()
        assert stage.leader.is_leader
        assert stage.leader.term == 1, "nobody else has led"


@scene
async def test_a_new_term_of_the_same_leader_is_told(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.leader.tick()
        stage.clock.advance(LEASE_S)
        other = uuid4()
        await stage.store.lead(UPKEEP, other, lease_s=LEASE_S)
        await stage.store.resign(UPKEEP, other)
        await stage.leader.tick()
        assert stage.events == [LeadTaken(UPKEEP, 1), LeadLost(UPKEEP, 1), LeadTaken(UPKEEP, 3)]


@scene
async def test_the_clock_of_the_database_decides(postgres_schema: PostgresSchema) -> None:
    url, schema = postgres_schema.url, postgres_schema.schema
    store = PostgresStore(url, schema=schema)
    await store.open(migrate=True)
    one, other = uuid4(), uuid4()
    try:
        await store.lead(UPKEEP, one, lease_s=3600)
        assert await store.lead(UPKEEP, other, lease_s=3600) is None
        with psycopg.connect(url, autocommit=True) as connection:
            body = "SELECT clock_timestamp() + interval '1 hour'"
            connection.execute(
                f"CREATE OR REPLACE FUNCTION {schema}.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $${body}$$"
            )
        assert await store.lead(UPKEEP, other, lease_s=3600) == Lead(2)
        assert await store.lead(UPKEEP, one, lease_s=3600) is None
    finally:
        await store.close()


def an_app(url: str, **settings: Any) -> Holdfast:
    return Holdfast(url, lease_s=1.0, poll_s=0.05, **settings)


@scene
async def test_of_two_workers_one_leads_and_the_other_follows_when_it_stops(tmp_path: Path) -> None:
    one, other = (an_app(url_of(tmp_path / "jobs.db")) for _ in range(2))
    heard, heard_other = Heard(one, LeadTaken), Heard(other, LeadTaken)
    async with one, other:
        first = one.worker()
        await first.start()
        assert await heard.next(LeadTaken) == LeadTaken(UPKEEP, 1)
        async with other.worker():
            await first.stop()
            assert await heard_other.next(LeadTaken) == LeadTaken(UPKEEP, 2)


@scene
async def test_a_worker_that_does_not_lead_claims_settles_promotes_and_reaps(postgres_tables: PostgresSchema) -> None:
    url, schema = postgres_tables.url, postgres_tables.schema
    hf = an_app(url, schema=schema)

    @hf.task(name="work")
    async def work(n: int) -> int:
        return n

    heard = Heard(hf, WorkersReaped, LeadTaken, StoreDown)
    async with hf:
        store = hf._open_store()
        await store.lead(UPKEEP, uuid4(), lease_s=3600)  # somebody leads who does nothing
        lost = await work.enqueue(1)
        dying = await enlist(store)
        await resume(store, lost.id, worker=dying, lane=Lane("default", 5))
        await store.renew_worker(dying, lease_s=0, held_for_s=0)
        later = await work.options(delay=0.05).enqueue(2)
        async with hf.worker():
            assert [await job.result(timeout=PATIENCE_S) for job in (lost, later)] == [1, 2]
            await heard.next(WorkersReaped)
        assert (await lost.info()).state is State.SUCCEEDED
        unfolded = await store.fold_depths(limit=1000)
    assert unfolded > 0, "what only saves work was left to the leader"
