"""Lists of jobs go by indexes: a page touches a bounded number of buffers, however many jobs there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest
from tests.postgres.crowd import Look, all_filters, fill, look
from tests.postgres.fixtures import Admin

from holdfast.core.state import State
from holdfast.stores.base import JobFilter, JobPage
from holdfast.stores.postgres import PostgresStore

JOBS = 60_000
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
