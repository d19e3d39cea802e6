"""A limit that a queue shares with one that comes last: whoever waits there for ever keeps nothing from the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast, Limit
from holdfast.core.state import State


def _app(request: pytest.FixtureRequest, kind: str, path: Path) -> Holdfast:
    settings: dict[str, Any] = {"concurrency": 2}
    if kind == "sqlite":
        return Holdfast(f"sqlite:///{path / 'jobs.db'}", **settings)
    place: PostgresSchema = request.getfixturevalue("postgres_schema")
    return Holdfast(place.url, schema=place.schema, **settings)


@pytest.mark.parametrize("lane", ["queue", "priority"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@scene
async def test_a_busy_queue_does_not_wait_for_one_that_comes_after_it(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, lane: str
) -> None:
    """One slot: a job of the queue that comes last is the oldest in the line for it, and is not started before all
    others are done, one of which needs the slot."""
    hf = _app(request, kind, tmp_path)
    limit = Limit(1, name="bank")
    holding, free, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @hf.task(queue="live", concurrency=limit)
    async def holds() -> None:
        holding.set()
        await free.wait()

    @hf.task(queue="backfill" if lane == "queue" else "live", priority="bulk", concurrency=limit)
    async def comes_last() -> None: ...

    @hf.task(queue="live", concurrency=limit)
    async def needs_the_slot() -> None:
        done.set()

    @hf.task(queue="live")
    async def work() -> None:
        if not done.is_set():  # so there is always more of it
            await work.enqueue()

    await hf.migrate()
    async with hf, asyncio.timeout(PATIENCE_S), hf.worker():
        first = await holds.enqueue()
        await holding.wait()
        last = await comes_last.enqueue()
        while (await last.info()).state is not State.PARKED:
            await asyncio.sleep(0.01)
        if lane == "queue":
            await hf.queues.set_weights("backfill", weight=0)
        else:
            await hf.queues.set_weights("live", priorities={"bulk": 0})
        for _ in range(4):
            await work.enqueue()
        waiting = await needs_the_slot.enqueue()
        free.set()
        await first.result()
        await waiting.result()
        await last.result()
