"""Many producers before one full queue: all get in as it drains, and the store is not kept busy with refusing them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast
from holdfast.core.job import JobId, NewJob

PRODUCERS, LOOKS = 2_000, 4


@scene
async def test_a_crowd_of_producers_gets_in_and_each_asks_only_a_few_times() -> None:
    """Each producer asked by itself four times a second: claims and renewals stood in line behind refusals."""
    hf = Holdfast(":memory:", high_watermark=200, low_watermark=20, lease_s=10)
    asked: Counter[JobId] = Counter()

    @hf.task(name="work")
    async def work() -> None: ...

    async with hf:
        store = hf._open_store()
        insert = store.insert_jobs

        async def counted(jobs: Sequence[NewJob], **options: Any) -> Any:
            asked.update(job.id for job in jobs)
            return await insert(jobs, **options)

        store.insert_jobs = counted  # type: ignore[method-assign]
        producers = [asyncio.create_task(work.options(wait=3600).enqueue()) for _ in range(PRODUCERS)]
        await until_true(lambda: max(asked.values(), default=0) >= LOOKS, within_s=PATIENCE_S, what="a few looks")
        async with asyncio.timeout(PATIENCE_S), hf.worker(concurrency=50):
            jobs = await asyncio.gather(*producers)
            await asyncio.gather(*(job.result() for job in jobs))
    assert asked.total() <= 2 * PRODUCERS, f"{PRODUCERS} producers offered their jobs {asked.total()} times"
