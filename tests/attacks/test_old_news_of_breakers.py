"""A run that began before its breaker opened, and ends while a probe is out, is not what the breaker waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, until
from tests.postgres.fixtures import PostgresSchema

from holdfast import Breaker, Holdfast, RetryPolicy
from holdfast.core.breaker import Phase
from holdfast.core.state import State

BANK = Breaker("bank", failures=1, open_for=0.2)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@scene
async def test_the_success_of_an_old_run_does_not_close_a_breaker_that_is_being_tried(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    if kind == "sqlite":
        hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")
    else:
        place: PostgresSchema = request.getfixturevalue("postgres_schema")
        hf = Holdfast(place.url, schema=place.schema)
    began = {who: asyncio.Event() for who in ("old", "probe", "waiting")}
    may_end = {who: asyncio.Event() for who in began}

    @hf.task(breaker=BANK)
    async def ask(who: str) -> None:
        began[who].set()
        await may_end[who].wait()

    @hf.task(breaker=BANK, retry=RetryPolicy(max_attempts=1))
    async def fail() -> None:
        raise ConnectionRefusedError

    await hf.migrate()
    async with hf, asyncio.timeout(PATIENCE_S), hf.worker():
        old = await ask.enqueue("old")
        await began["old"].wait()
        await until(await fail.enqueue(), State.DEAD)
        probe = await ask.enqueue("probe")
        await began["probe"].wait()
        waiting = await ask.enqueue("waiting")
        await until(waiting, State.PARKED)
        may_end["old"].set()
        await old.result()
        [breaker] = await hf.breakers.list()
        assert (breaker.phase, breaker.waiting) == (Phase.HALF_OPEN, 1), "its probe has not come back"
        may_end["probe"].set()
        may_end["waiting"].set()
        await probe.result()
        await waiting.result()
        [breaker] = await hf.breakers.list()
        assert breaker.phase is Phase.CLOSED
