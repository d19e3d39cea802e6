"""Whoever gives up on a connection while it is made leaves nothing behind: no connection, and no error for the log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

import psycopg
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres.connections import Doorway

STEP_S = 0.0002


@scene
async def test_giving_up_at_any_moment_of_connecting_leaves_nothing_behind(postgres_tables: PostgresSchema) -> None:
    """asyncpg, cancelled amid it, left a future with an error that asyncio then complained about."""
    url = postgres_tables.url.replace("sslmode=disable", "sslmode=prefer")
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    for steps in range(30):
        opening = asyncio.create_task(Doorway(url, pooled=False).open("impatient"))
        for _ in range(steps):
            await asyncio.sleep(STEP_S)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            (await opening).terminate()
    with psycopg.connect(postgres_tables.url, autocommit=True) as watcher:
        while _connections(watcher):
            await asyncio.sleep(0.01)
    gc.collect()
    assert complaints == []


def _connections(watcher: psycopg.Connection[Any]) -> int:
    counted = watcher.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast impatient'"
    ).fetchone()
    assert counted is not None
    return int(counted[0])
