"""Many producers before one full queue: all get in as it drains, and the store is not kept busy with refusing them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast
from holdfast.core.job import NewJob

PRODUCERS = 2_000


@scene
async def test_a_crowd_of_producers_gets_in_and_each_asks_only_a_few_times() -> None:
    """Each producer asked by itself four times a second: claims and renewals stood in line behind refusals."""
    hf = Holdfast(":memory:", high_watermark=200, low_watermark=20, lease_s=10)
    asked = 0

    @hf.task(name="work")
    async def work() -> None: ...

    async with hf:
        store = hf._open_store()
        insert = store.insert_jobs

        async def counted(jobs: Sequence[NewJob], **options: Any) -> Any:
            nonlocal asked
            asked += len(jobs)
            return await insert(jobs, **options)

        store.insert_jobs = counted  # type: ignore[method-assign]
        async with asyncio.timeout(PATIENCE_S), hf.worker(concurrency=50):
            producers = [asyncio.create_task(work.options(wait=3600).enqueue()) for _ in range(PRODUCERS)]
            jobs = await asyncio.gather(*producers)
            await asyncio.gather(*(job.result() for job in jobs))
    assert asked <= 4 * PRODUCERS, f"{PRODUCERS} producers offered their jobs {asked} times"
