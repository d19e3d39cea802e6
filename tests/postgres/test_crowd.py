"""Lists, reports and upkeep go by indexes: each touches a bounded number of buffers, however many jobs there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from tests.postgres.crowd import UPKEEP, Look, Touched, all_filters, fill, look, touched
from tests.postgres.fixtures import Admin, PostgresSchema

from holdfast.core.settlement import Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import JobFilter, JobPage
from holdfast.stores.postgres import PostgresStore, ended, sweep
from holdfast.stores.postgres.statements import statements
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import QUEUE, a_job, claim, enlist, finish, insert, start

JOBS = 120_000
#: At 5,000,000 jobs the worst of them is at 2,900 (docs/postgres.md).
MOST_BUFFERS = 3_000


@pytest.fixture(scope="module")
def crowded(postgres_admin: Admin) -> Iterator[str]:
    """The url of a database with many jobs."""
    name = postgres_admin.create_database()
    url = postgres_admin.url_of(name)
    asyncio.run(fill(url, "holdfast", JOBS))
    yield url
    postgres_admin.drop_database(name)


def test_every_list_has_bounded_work_and_reads_no_big_table_from_end_to_end(crowded: str) -> None:
    looks = asyncio.run(_look_at_all(crowded))
    dear = [each for each in looks if each.buffers > MOST_BUFFERS or each.scanned]
    assert not dear
    assert {each.jobs for each in looks if each.where == JobFilter()} == {50}


async def _look_at_all(url: str) -> list[Look]:
    connection = await asyncpg.connect(url)
    try:
        return [await look(connection, "holdfast", where) for where in all_filters(JOBS)]
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "where",
    [
        JobFilter(queue="cold", state=State.CANCELLED),
        JobFilter(task="old.task", tag="red", state=State.DEAD),
        JobFilter(task="old.task", state=State.READY),
        JobFilter(tag="n30", state=State.SCHEDULED),
        JobFilter(reason="expired", tenant="tenant-9"),
        JobFilter(text="w77 bank"),
        JobFilter(text="refused", queue="cold"),
        JobFilter(tenant="solo"),
    ],
    ids=str,
)
def test_pages_of_a_list_are_all_that_match_each_once_newest_first(crowded: str, where: JobFilter) -> None:
    asyncio.run(_page_through(crowded, where))


async def _page_through(url: str, where: JobFilter) -> None:
    store = PostgresStore(url)
    await store.open()
    try:
        page = await store.list_jobs(where, limit=40)
        ids = [job.id for job in page]
        while page.next is not None:
            page = await store.list_jobs(where, limit=40, before=page.next)
            ids += [job.id for job in page]
        assert ids == sorted(set(ids), reverse=True)
        assert len(ids) == await store.count_jobs(where)
        most = await store.count_jobs(where, most=3)
        assert most == min(3, len(ids))
    finally:
        await store.close()


def test_a_page_that_gave_up_looking_says_where_to_go_on(crowded: str) -> None:
    page = asyncio.run(_first(crowded, JobFilter(task="old.task", state=State.READY)))
    assert not page
    assert page.next is not None


async def _first(url: str, where: JobFilter) -> JobPage:
    store = PostgresStore(url)
    await store.open()
    try:
        return await store.list_jobs(where, limit=10)
    finally:
        await store.close()


#: A report on a queue counts up to 10,000 of each kind, the sweep compares as many, and pruning takes 500 jobs at once.
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("list_queues", 8_000),
        ("queue_rates", 30_000),
        ("circumstances", 20_000),
        ("sweep's recount", 2_000),
        ("prune_jobs", 20_000),
    ],
)
def test_reports_and_upkeep_have_bounded_work(crowded: str, name: str, most: int) -> None:
    cost = asyncio.run(_touched(crowded, name))
    assert cost.buffers <= most
    small = {"active", "blocked"} if name == "circumstances" else {"active"}
    assert cost.scanned <= small, "which holds no more than runs now; the other one fits into a page here"


async def _touched(url: str, name: str) -> Touched:
    connection = await asyncpg.connect(url)
    try:
        return await touched(connection, "holdfast", UPKEEP[name])
    finally:
        await connection.close()


def test_a_wrong_count_of_a_deep_queue_is_put_right(postgres_tables: PostgresSchema, monkeypatch: Any) -> None:
    monkeypatch.setattr(sweep, "_COMPARED", 5)
    asyncio.run(_recount(postgres_tables))


async def _recount(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    connection = await asyncpg.connect(place.url)
    try:
        await store.insert_jobs([a_job() for _ in range(20)])
        for wrong, fixed in ((-18, True), (-20, True), (100, False), (-13, False)):
            await connection.execute(f"INSERT INTO {place.schema}.depth_change VALUES ($1, $2)", QUEUE, wrong)
            assert (await store.sweep(limit=10)).counters_fixed == fixed, "a count beyond the bound is left, for now"
            [queue] = await store.list_queues()
            if fixed:
                assert queue.ready == 20
            else:
                await connection.execute(f"INSERT INTO {place.schema}.depth_change VALUES ($1, $2)", QUEUE, -wrong)
    finally:
        await connection.close()
        await store.close()


def test_claims_go_on_while_a_batch_is_pruned(postgres_tables: PostgresSchema) -> None:
    asyncio.run(_claim_beside_pruning(postgres_tables))


async def _claim_beside_pruning(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    connection = await asyncpg.connect(place.url)
    try:
        worker = await enlist(store)
        old = [await start(store, worker=worker) for _ in range(3)]
        for run in old:
            await finish(store, run)
        await connection.execute(f"UPDATE {place.schema}.done SET ended_at = ended_at - interval '2 days'")
        await insert(store, a_job(), a_job())
        async with connection.transaction():
            tx = Tx(connection, statements(place.schema), await connection.fetchval("SELECT clock_timestamp()"))
            assert await ended.prune_jobs(tx, keep_succeeded_s=86400.0, keep_cancelled_s=86400.0, limit=100) == 3
            claimed = await claim(store, worker)  # with a server-side lock_timeout, and nothing to wait for
            assert len(claimed) == 2
            for job in claimed:
                assert await store.settle_jobs(worker, [Succeed(job.id, job.token, b"1")]) == [Verdict.APPLIED]
        assert await store.job_infos([run.id for run in old]) == [None] * 3
    finally:
        await connection.close()
        await store.close()
