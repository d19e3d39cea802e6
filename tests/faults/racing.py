"""For tests in which one waits for the other: two stores of one place, and the moment when somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.gates import SlotGate
from holdfast.core.job import WorkerId
from holdfast.testing.contracts.arrange import LANE, Run, a_job, claim, insert

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
#: Larger than every size in these tests: numbers from here on are beyond it.
BEYOND = 100_000


def in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


async def waits_or_is_done(stores: Pair, racing: asyncio.Future[Any]) -> None:
    def is_over() -> object:
        return racing.done() or stores.where.glance().query(_WAITING)

    await until(is_over, within_s=PATIENCE_S, what="one to wait for the other")


async def run_by_a_larger_size(stores: Pair, worker: WorkerId, many: int, *, key: str = "k") -> list[Run]:
    """These run with slots of a limit whose size was larger before, or is larger for others: with numbers beyond it."""
    await insert(stores.one, *(a_job(gates=(SlotGate("elsewhere", many),)) for _ in range(many)))
    runs = [Run(worker, job) for job in await claim(stores.one, worker, many)]
    assert len(runs) == many
    stores.by_hand(f"UPDATE slot SET key = '{key}', number = number + {BEYOND} WHERE key = 'elsewhere'")
    return runs


async def expect_limited_jobs(stores: Pair, worker: WorkerId) -> None:
    """Both stores have claimed such jobs last, so that the next ones are claimed at the head of their lane."""
    for number, store in enumerate((stores.one, stores.other)):
        await insert(store, a_job(gates=(SlotGate(f"before {number}", 1),)))
        assert (await store.claim_jobs(worker, {LANE: 1}, deadline_s=60)).jobs
