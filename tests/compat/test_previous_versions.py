"""Programs of earlier versions go on working on the newest schema: their SQL, kept as it was, still does."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from tests.compat.frozen import frozen, versions
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.settlement import Bury, Park, Retry, Snooze, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, JobFilter
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.statements import DEFAULT_SCHEMA, migrations
from holdfast.testing.contracts.arrange import ERROR, LONG_S, QUEUE, a_job, claim, enlist, insert, states

VERSIONS = versions()


def test_the_version_of_now_is_kept_as_well() -> None:
    assert VERSIONS[-1] == migrations(DEFAULT_SCHEMA)[-1][0], "`python -m tests.compat.frozen`, when it is released"


def test_programs_of_the_version_before_are_let_in(postgres_tables: PostgresSchema) -> None:
    async def ask() -> int:
        connection = await asyncpg.connect(postgres_tables.url)
        try:
            newest = f"SELECT oldest FROM {postgres_tables.schema}.migration ORDER BY version DESC LIMIT 1"
            return int(await connection.fetchval(newest))
        finally:
            await connection.close()

    assert asyncio.run(ask()) <= VERSIONS[0], "a migration says so in a line `-- oldest: N`"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_statement_of_an_earlier_version_is_still_understood(
    version: int, postgres_tables: PostgresSchema
) -> None:
    asyncio.run(_prepare(version, postgres_tables))


async def _prepare(version: int, place: PostgresSchema) -> None:
    connection = await asyncpg.connect(place.url)
    try:
        whole = {name: text for name, text in frozen(version, place.schema).items() if _is_whole(text)}
        assert len(whole) > 60
        for text in whole.values():
            await connection.prepare(text)
    finally:
        await connection.close()


def _is_whole(text: str) -> bool:
    """A few are completed by the program; lists of jobs use those, below."""
    return "{" not in text and not text.startswith("EXISTS")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_life_by_the_statements_of_an_earlier_version(version: int, postgres_tables: PostgresSchema) -> None:
    asyncio.run(_live(version, postgres_tables))


async def _live(version: int, place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    # Statements that were not there then are those of now.
    store._engine.sql = {**store._engine.sql, **frozen(version, place.schema)}
    await store.open()
    try:
        worker = await enlist(store)
        ids = await insert(store, *(a_job(tags=("x",)) for _ in range(6)), a_job(delay_s=LONG_S))
        runs = await claim(store, worker)
        assert [run.id for run in runs] == ids[:6]
        done, again, later, dead, parked, lost = runs
        verdicts = await store.settle_jobs(
            worker,
            [
                Succeed(done.id, done.token, b"1"),
                Retry(again.id, again.token, 0.0, ERROR),
                Snooze(later.id, later.token, LONG_S, None),
                Bury(dead.id, dead.token, "permanent", ERROR),
                Park(parked.id, parked.token, "unknown_task", "t"),
            ],
        )
        assert verdicts == [Verdict.APPLIED] * 5
        assert (await store.promote_jobs(limit=10)).promoted == 1
        assert await store.cancel_jobs([ids[6]], reason="enough") == [CancelAnswer.CANCELLED]
        await store.renew_worker(worker, lease_s=-1.0, held_for_s=0.0)
        assert (await store.reap_workers(limit=10)).returned == 1
        assert await states(store, *ids) == [
            State.SUCCEEDED,
            State.READY,
            State.SCHEDULED,
            State.DEAD,
            State.PARKED,
            State.READY,
            State.CANCELLED,
        ]
        assert [job.id for job in await store.list_jobs(JobFilter(queue=QUEUE, tag="x"), limit=10)] == ids[5::-1]
        alike = await store.list_jobs(JobFilter(fingerprint=ERROR.fingerprint), limit=10)
        assert [job.id for job in alike] == [dead.id]
        assert await store.replay_jobs([dead.id]) == 1
        assert lost.id in {job.id for job in await claim(store, await enlist(store))}
        await store.sweep(limit=10)
        await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=10)
        [queue] = await store.list_queues()
        assert (queue.ready, queue.scheduled, queue.parked) == (0, 1, 1)
    finally:
        await store.close()
