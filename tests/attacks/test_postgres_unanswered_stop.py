"""A worker that is told to stop while an answer never comes: it ends all the same, and soon."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast import Holdfast

#: Less than the minute for which an answer is waited for in the end.
SOON_S = 40.0


@pytest.mark.parametrize(
    ("statement", "while_it_works", "times"),
    [
        (r"^COMMIT", True, 1),
        (r"INSERT INTO \S+leader\b", True, 1),
        (r"cancel_reason IS NOT NULL", True, 1),
        (r"DELETE FROM \S+worker\b\S* WHERE id = \$1", False, 1),
        (r"^COMMIT", False, None),
    ],
    ids=[
        "to a commit of its upkeep",
        "to who leads",
        "to what has to be cancelled",
        "to its sign-off",
        "to any commit",
    ],
)
def test_a_stop_does_not_wait_for_an_answer_that_never_comes(
    postgres_tables: PostgresSchema, statement: str, while_it_works: bool, times: int | None
) -> None:
    async def main(proxy: PostgresProxy) -> None:
        settings = {"schema": postgres_tables.schema, "lease_s": 3.0, "poll_s": 0.05, "grace_s": 1.0}
        async with Holdfast(proxy.url, **settings) as hf:  # type: ignore[arg-type]  # of several types

            @hf.task
            async def work() -> None:
                begun.set()
                await asyncio.Event().wait()

            begun = asyncio.Event()
            worker = hf.worker()
            await worker.start()
            await work.enqueue()
            await begun.wait()
            trap = proxy.arm(statement, Fate.HANG, times=times)
            if while_it_works:
                await asyncio.to_thread(trap.wait)
            async with asyncio.timeout(SOON_S):
                await worker.stop()
            assert trap.sprung >= 1

    with PostgresProxy(postgres_tables.url) as proxy:
        asyncio.run(main(proxy))
