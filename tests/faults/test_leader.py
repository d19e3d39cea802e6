"""The leader is killed, or stopped past its lease and woken: another leads under a higher term, and no harm is done."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from tests.campaign.child import Child, until
from tests.faults.trial import PATIENCE_S
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast
from holdfast.stores.base import Swept
from holdfast.upkeep.leader import UPKEEP

LEASE_S = 0.7


@contextmanager
def a_worker(directory: Path, name: str, place: PostgresSchema) -> Iterator[Child]:
    child = Child("tests.faults.leading_worker", place.url, place.schema, LEASE_S, log=directory / f"{name}.log")
    try:
        yield child
    finally:
        child.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> PostgresSchema:
    if request.param == "sqlite":
        return PostgresSchema(f"sqlite:///{tmp_path / 'jobs.db'}", "holdfast")
    tables: PostgresSchema = request.getfixturevalue("postgres_tables")
    return tables


def terms(child: Child) -> list[int]:
    return [int(term) for term in re.findall(r"leads upkeep, term (\d+)", child.log.read_text())]


def sweeps(child: Child) -> list[float]:
    """When it was last sure of its lead, before each."""
    return [float(at) for at in re.findall(r"^swept ([\d.]+)$", child.log.read_text(), re.MULTILINE)]


async def leads(child: Child) -> int:
    await until(lambda: terms(child), within_s=PATIENCE_S, what="a lead", log=child.log)
    await until(lambda: sweeps(child), within_s=PATIENCE_S, what="a leader's work", log=child.log)
    return terms(child)[-1]


def test_when_the_leader_is_killed_another_leads_under_a_higher_term(tmp_path: Path, place: PostgresSchema) -> None:
    async def run() -> None:
        with a_worker(tmp_path, "first", place) as first:
            term = await leads(first)
            with a_worker(tmp_path, "second", place) as second:
                first.kill()
                assert await leads(second) > term
                assert sweeps(second)[0] > sweeps(first)[-1] + LEASE_S / 2, "it waits for the end of the lease"

    asyncio.run(run())


def test_a_leader_that_was_stopped_past_its_lease_does_no_more_of_its_work(
    tmp_path: Path, postgres_tables: PostgresSchema
) -> None:
    async def run() -> None:
        place = postgres_tables
        with a_worker(tmp_path, "first", place) as first, a_worker(tmp_path, "second", place) as second:
            await until(lambda: terms(first) or terms(second), within_s=PATIENCE_S, what="a leader", log=first.log)
            leader, other = (first, second) if terms(first) else (second, first)
            term = await leads(leader)
            leader.signal(SIGSTOP)
            await until(lambda: leader.is_stopped, within_s=PATIENCE_S, what="the stop")
            assert await leads(other) == term + 1
            woken_s = time.monotonic()
            leader.signal(SIGCONT)
            over = f"leads {UPKEEP} no longer, term {term} is over"
            await until(lambda: over in leader.log.read_text(), within_s=PATIENCE_S, what="its end", log=leader.log)
            count = len(sweeps(other))
            await until(lambda: len(sweeps(other)) > count, within_s=PATIENCE_S, what="the other's work", log=other.log)
            assert max(sweeps(leader)) < woken_s, "it knew that its lease was over before it asked anybody"
            assert terms(leader) == [term]
        hf = Holdfast(place.url, schema=place.schema)
        async with hf:
            assert await hf._open_store().sweep(limit=1000) == Swept(0, 0, 0, 0, 0), "all is in order"

    asyncio.run(run())
