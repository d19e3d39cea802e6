"""A gate of a private file's store where very many wait: to find whose turn it is costs what it costs with a few."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.integration.scene import scene

from holdfast.core.ids import new_job_id
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite.circumstances import SQL as REPORTS
from holdfast.stores.sqlite.lines import SQL as LINES

_WAITER = """
INSERT INTO parked (job_id, reason, key, tag, seq, attempt, losses, crashes, parked_at, queue, priority, tenant, line)
VALUES (?, 'limit', 'desk', 0, ?, 0, 0, 0, 0, ?, ?, ?, ?)
"""
_LANES = (("a", 5), ("a", 9), ("b", 5))
_FIRST = ("limit", "desk", *_LANES[0])
_HUNDREDS = 100


def _steps(db: sqlite3.Connection, statement: str, *which: object) -> int:
    """Hundreds of steps that the virtual machine takes."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    db.set_progress_handler(count, _HUNDREDS)
    db.execute(statement, which).fetchall()
    db.set_progress_handler(None, 0)
    return steps


@scene
async def test_lanes_are_found_whatever_waits_in_them(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    costs = []
    with sqlite3.connect(tmp_path / "jobs.db") as db:
        for many in (100, 5_000):
            for lane in _LANES:
                db.executemany(_WAITER, [(new_job_id().bytes, seq, *lane, "", 0) for seq in range(many)])
            assert [row[:2] for row in db.execute(LINES["lanes"], ("limit", "desk"))] == list(_LANES)
            costs.append(
                (
                    _steps(db, LINES["lanes"], "limit", "desk"),
                    _steps(db, REPORTS["beside"], *_FIRST, 10),
                )
            )
    db.close()
    await store.close()
    assert all(later <= 2 * few + 2 for few, later in zip(*costs, strict=True)), costs


@scene
async def test_the_first_and_the_last_of_a_tenant_are_found_whatever_waits_of_it(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    costs = []
    with sqlite3.connect(tmp_path / "jobs.db") as db:
        for many in (100, 5_000):
            waiters = [(new_job_id().bytes, seq, *_LANES[0], "t", seq + 1) for seq in range(many)]
            db.executemany(_WAITER, waiters)
            statements = [LINES["first"], LINES["last"]]
            costs.append([_steps(db, each, *_FIRST, "t") for each in statements])
            costs[-1].append(_steps(db, LINES["waiters"], *_FIRST, 2))
            costs[-1].append(_steps(db, REPORTS["older"], *_FIRST, "t", 10, 10))
            db.execute("ANALYZE")
    db.close()
    await store.close()
    assert all(later <= 2 * few + 2 for few, later in zip(*costs, strict=True)), costs
