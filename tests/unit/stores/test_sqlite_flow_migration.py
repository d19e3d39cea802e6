"""A file from before flow control: limits become gates, slots and waiters stay, depths count who is parked."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

from holdfast.core.gates import Barrier, Place, SlotGate
from holdfast.core.settlement import Succeed
from holdfast.core.state import State
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite.opening import APPLICATION_ID
from holdfast.stores.sqlite.statements import migrations
from holdfast.testing.contracts.arrange import LANE, LONG_S, PLENTY, claim, states

WORKER, RUNNING, PARKED = UUID(int=1), UUID(int=2), UUID(int=3)


def _make_version_4(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        for version, _, script in migrations():
            if version <= 4:
                db.executescript(script)
        db.execute(
            "INSERT INTO worker (id, host, pid, concurrency, queues, started_at, lease_until) "
            "VALUES (?, 'host', 1, 9, '[]', 0, 1e12)",
            (WORKER.bytes,),
        )
        for job_id in (RUNNING, PARKED):
            body = (job_id.bytes, LANE.queue, LANE.priority, b'{"args":[],"kwargs":{}}')
            db.execute(
                "INSERT INTO job (id, task, queue, priority, payload, limit_key, limit_size, created_at) "
                "VALUES (?, 'task', ?, ?, ?, 'it''s \"one\"', 1, 0)",
                body,
            )
        lease = (RUNNING.bytes, WORKER.bytes, *LANE)
        db.execute("INSERT INTO active VALUES (?, 1, ?, 1, ?, ?, 0, 1, 0, 0, 0, NULL)", lease)
        db.execute("INSERT INTO slot (key, job_id) VALUES ('it''s \"one\"', ?)", (RUNNING.bytes,))
        db.execute("INSERT INTO parked VALUES (?, 'limit', 'it''s \"one\"', 0, 2, 0, 0, 0, 0)", (PARKED.bytes,))
        db.execute("UPDATE counter SET value = 2")
        db.execute("INSERT INTO depth (queue, ready) VALUES (?, 0)", (LANE.queue,))
        db.execute("PRAGMA user_version = 4")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA journal_mode = WAL")
        db.commit()


def test_what_had_a_limit_has_a_gate(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    _make_version_4(path)

    async def scenario() -> None:
        store = SqliteStore(str(path))
        await store.open()
        try:
            assert await states(store, RUNNING, PARKED) == [State.RUNNING, State.PARKED]
            found = await store.circumstances(PARKED)
            assert found is not None
            assert found.gates == (SlotGate('it\'s "one"', 1),)
            [gate] = await store.gates()
            assert gate[:3] == (Place(Barrier.LIMIT, 'it\'s "one"'), 1, 1)
            assert not any(await store.sweep(limit=PLENTY)), "depths were counted"
            assert await claim(store, WORKER) == []
            await store.settle_jobs(WORKER, [Succeed(RUNNING, 1, None)])
            assert [run.id for run in await claim(store, WORKER)] == [PARKED]
            await store.renew_worker(WORKER, lease_s=LONG_S, held_for_s=LONG_S)
        finally:
            await store.close()

    asyncio.run(scenario())
