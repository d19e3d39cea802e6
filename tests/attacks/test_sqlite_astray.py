"""What programs of an earlier version leave behind others for no reason: the sweep gives it its place again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.integration.scene import scene

from holdfast.core.gates import SlotGate
from holdfast.core.state import State
from holdfast.stores.parking import BEHIND
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import PLENTY, a_job, claim, drain, enlist, finish, insert, start, state

LIMIT = SlotGate("bank", 1)


def _put_behind(path: Path, table: str) -> None:
    with sqlite3.connect(path) as db:
        oldest = f"UPDATE {table} SET seq = seq + ? WHERE seq = (SELECT min(seq) FROM {table})"
        assert db.execute(oldest, (BEHIND,)).rowcount == 1
    db.close()


@scene
async def test_one_that_was_let_go_as_it_stood_at_its_gate(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    worker = await enlist(store)
    oldest, _ = await insert(store, a_job(), a_job())
    _put_behind(tmp_path / "jobs.db", "ready")
    await store.sweep(limit=PLENTY)
    [job] = await claim(store, worker, 1)
    assert job.id == oldest
    await store.close()


@scene
async def test_one_whose_lane_does_not_come_last(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    run = await start(store, gates=(LIMIT,))
    oldest, other = await insert(store, a_job(gates=(LIMIT,)), a_job(gates=(LIMIT,)))
    assert await drain(store, run.worker) == []
    _put_behind(tmp_path / "jobs.db", "parked")
    await store.sweep(limit=PLENTY)
    await finish(store, run)
    assert await state(store, oldest) is State.READY
    assert await state(store, other) is State.PARKED
    await store.close()
