"""A supervised crew on Redis: nobody gives or hears a NOTIFY here, and nobody looks for work by himself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.supervision.crew import Crew, manned

from holdfast import Holdfast

MakeCrew = Callable[..., Crew]


@pytest.fixture
def make_deaf_crew(make_crew: MakeCrew, postgres_schema: PostgresSchema, redis_url: str) -> MakeCrew:
    place = {"url": postgres_schema.url, "schema": postgres_schema.schema, "redis": redis_url, "pooled": True}

    def make(**settings: Any) -> Crew:
        crew = make_crew(**place | {"poll_s": 60.0} | settings)
        crew.hf = Holdfast(**crew.settings | {"poll_s": 0.1})  # the test itself waits for results
        return crew

    return make


@scene
async def test_jobs_come_to_supervised_processes_and_to_isolates_by_redis(make_deaf_crew: MakeCrew) -> None:
    crew = make_deaf_crew(processes=2)
    crew.app = "manned_isolated"
    async with manned(crew):
        await crew.until_logged("is ready", 2)
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3
        pids = {await crew.result(await crew.enqueue("pid_of_isolate")) for _ in range(5)}
        assert pids.isdisjoint(crew.children())


@scene
async def test_what_a_supervisor_hands_back_is_announced_to_processes_that_live(make_deaf_crew: MakeCrew) -> None:
    async with manned(make_deaf_crew(processes=2, concurrency=1)) as crew:
        await crew.until_logged("is ready", 2)
        job = await crew.enqueue("hold", "go")
        [first] = await crew.until_noted("holds go")
        [other] = set(crew.children()) - {first.pid}
        crew.kill(first.pid)
        [_, again] = await crew.until_noted("holds go", 2)
        assert again.pid == other, "and not the new one, which looks when it begins"
        crew.let_go("go")
        assert await crew.result(job) == other
