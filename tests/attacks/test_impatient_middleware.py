"""A middleware that gives up on a function in a thread: the function is ended, and its run is not over before it is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import CurrentJob, Holdfast, JobFailed, RetryPolicy


@scene
async def test_a_function_does_not_outlive_its_run(tmp_path: Path) -> None:
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")
    begun, ended = threading.Event(), threading.Event()

    @hf.middleware
    async def impatient(job: CurrentJob, call_next: Callable[[], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(None) as patience:
            calling = asyncio.ensure_future(asyncio.to_thread(begun.wait))
            calling.add_done_callback(lambda _: patience.reschedule(0.0))
            return await call_next()

    @hf.task(retry=RetryPolicy(max_attempts=1), timeout=None)
    def busy() -> None:
        try:
            begun.set()
            until_s = time.monotonic() + PATIENCE_S
            while time.monotonic() < until_s:
                time.sleep(0.001)
        finally:
            ended.set()

    async with hf, hf.worker():
        job = await busy.enqueue()
        with pytest.raises(JobFailed, match="TimeoutError"):
            await job.result(timeout=PATIENCE_S)
        assert ended.is_set(), "the job has ended, and its function goes on"
