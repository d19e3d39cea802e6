"""Rates so slow that their next tokens, or those of all who wait, are later than any date that can be written down."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast, InvalidOptions, Rate
from holdfast.core.state import State

SLOWEST = "1/3650d"


@scene
async def test_whoever_waits_for_longer_than_there_are_dates_is_explained(tmp_path: Path) -> None:
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")

    @hf.task(rate=SLOWEST)
    async def once_in_ten_years() -> None: ...

    async with hf, asyncio.timeout(PATIENCE_S):
        jobs = await hf.enqueue_many([once_in_ten_years.request() for _ in range(900)])
        async with hf.worker():
            await jobs[0].result()
            while await hf.jobs.list(state=State.READY, limit=1):
                await asyncio.sleep(0.01)
            found = await hf.jobs.explain(jobs[-1].id)
            assert found.starts_at is None
            assert SLOWEST in found.held_by[0].sentence
            [info] = await hf.limits.list()
            assert (info.rate, info.waiting) == (SLOWEST, len(jobs) - 1)


@pytest.mark.parametrize(("pace", "burst"), [("1/999999d", 5), ("0.000001/999999d", None)])
def test_a_bucket_is_refused_whose_end_no_store_could_write_down(pace: str, burst: int | None) -> None:
    """It was cut off at the last date there is, from where on some of its tokens were never spent."""
    with pytest.raises(InvalidOptions, match="more than ten years"):
        Rate(pace, burst=burst)
