"""Upkeep keeps pace: old keys leave as fast as they come, and pruning costs nothing where nothing is to be pruned."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tests.integration.scene import by_hand, scene

from holdfast.core.backpressure import Watermarks
from holdfast.runtime.clock import ManualClock
from holdfast.stores.health import StoreHealth
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite.ended import prune_jobs
from holdfast.stores.sqlite.transaction import Tx
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import enlist, finish, start
from holdfast.upkeep.leader import Leader
from holdfast.upkeep.pruner import Sweeper


@asynccontextmanager
async def a_store(path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(path), clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@scene
async def test_expired_keys_are_swept_without_a_pause_while_there_are_more(tmp_path: Path) -> None:
    """A sweep took 500 keys and rested for ten seconds: from 50 new keys a second on, they grew without limit."""
    clock, path = ManualClock(), tmp_path / "jobs.db"
    async with a_store(path, clock) as store:
        by_hand(
            path,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1700) "
            "INSERT INTO idempotency_key (tenant, key, fingerprint, job_id, expires_at) "
            "SELECT '', 'k' || i, x'00', x'00', ? FROM n",
            clock.now() - 1,
        )
        telemetry = Telemetry()
        shared = {"telemetry": telemetry, "health": StoreHealth(clock=clock, telemetry=telemetry)}
        sweeper = Sweeper(store, leader=Leader(store, lease_s=10, clock=clock, **shared), **shared)
        rests = [await sweeper.tick() for _ in range(4)]
        assert by_hand(path, "SELECT count(*) FROM idempotency_key") == [(0,)]
    assert max(rests[:3]) < 1 < rests[3]


@scene
async def test_nothing_younger_than_an_hour_is_pruned_whatever_the_retention(tmp_path: Path) -> None:
    """With keep_succeeded_s=0 a repeated enqueue would not find its id, and would make its job again."""
    clock = ManualClock()
    async with a_store(tmp_path / "jobs.db", clock) as store:
        await finish(store, await start(store, worker=await enlist(store)))
        counts = []
        for seconds in (0, 3599, 1):
            clock.advance(seconds)
            counts.append(await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=10))
    assert counts == [0, 0, 1]


@scene
async def test_pruning_does_not_look_at_the_jobs_of_the_last_hour(tmp_path: Path) -> None:
    """Each prune read every job that had ended within the hour and then kept it, in the writer: 400,000 at a time."""
    clock, path = ManualClock(), tmp_path / "jobs.db"
    async with a_store(path, clock) as store:
        worker = await enlist(store)
        costs = []
        for young in (5, 200):
            for _ in range(young):
                await finish(store, await start(store, worker=worker))
            costs.append(_steps_of_a_prune(path, clock.now()))
    assert costs[0] == costs[1]


def _steps_of_a_prune(path: Path, now: float) -> int:
    """How much SQLite's machine has to do for a prune that finds nothing."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.set_progress_handler(step, 1)
        tx = Tx(db, now, Watermarks(high=10, low=1), set())
        assert prune_jobs(tx, keep_succeeded_s=0, keep_cancelled_s=0, limit=500) == 0
        db.set_progress_handler(None, 0)
        db.execute("ROLLBACK")
    return steps
