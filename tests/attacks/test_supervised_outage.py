"""A store that is out of reach for longer than a lease is no reason to end the processes that wait for it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

MakeCrew = Callable[..., Crew]
LEASE_S = 1.0


@scene
async def test_a_process_that_waits_for_the_store_is_not_taken_for_dead(make_crew: MakeCrew) -> None:
    async with manned(make_crew(lease_s=LEASE_S)) as crew:
        job = await crew.enqueue("hold", "go")
        [first] = await crew.until_noted("holds go")
        with closing(sqlite3.connect(crew.place / "jobs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody else can write: no lease can be renewed or taken
            await crew.until_logged("has lost its lease")
            passed_s = time.monotonic() + 3 * LEASE_S  # that nothing is done cannot be heard
            await crew.until(lambda: time.monotonic() > passed_s)
            other.execute("ROLLBACK")
        crew.let_go("go")
        assert await crew.result(job) == first.pid, crew.log
        assert "no sign of life" not in crew.log
