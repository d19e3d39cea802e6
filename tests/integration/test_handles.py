"""What a handle tells: results in their declared types, the three ways to end, events, progress."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import (
    Holdfast,
    JobCancelled,
    JobFailed,
    JobNotFound,
    LeaseLost,
    NotOpen,
    RetryPolicy,
    current_job,
)
from holdfast.core.ids import new_job_id
from holdfast.core.state import State


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int
    at: datetime


class Order(BaseModel):
    number: int
    placed: datetime
    points: list[Point]


NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (None, None),
    (int, 3),
    (str, "grüß dich \U0001f44b"),
    (datetime, NOON),
    (date, NOON.date()),
    (timedelta, timedelta(seconds=90)),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=7)),
    (Colour, Colour.RED),
    (Point, Point(1, NOON)),
    (Order, Order(number=1, placed=NOON, points=[Point(1, NOON)])),
    (dict[int, Point], {4: Point(1, NOON)}),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "a")),
    (bytes, b"text"),
    (int | None, None),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda each: getattr(each, "__name__", None))
@scene
async def test_arguments_and_results_keep_their_declared_types(kind: Any, value: Any) -> None:
    hf = Holdfast(":memory:")
    got: list[Any] = []

    async def echo(value: Any) -> Any:
        got.append(value)
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    task = hf.task(echo)
    async with hf, hf.worker():
        assert await (await task.enqueue(value)).result(timeout=PATIENCE_S) == value
    assert got == [value]
    assert type(got[0]) is type(value)


@scene
async def test_a_result_without_an_annotation_is_plain_json() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def make():  # type: ignore[no-untyped-def]
        return Point(1, NOON)

    async with hf, hf.worker():
        assert await (await make.enqueue()).result(timeout=PATIENCE_S) == {"x": 1, "at": "2024-02-29T12:00:00Z"}


@scene
async def test_a_result_that_no_longer_fits_its_annotation_comes_as_plain_json() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def lie() -> int:
        return "not a number"  # type: ignore[return-value]

    async with hf, hf.worker():
        assert await (await lie.enqueue()).result(timeout=PATIENCE_S) == "not a number"


@scene
async def test_a_dead_job_raises_job_failed_for_every_waiter() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def fail() -> None:
        raise KeyError("nope")

    async with hf, hf.worker():
        job = await fail.enqueue()
        errors = await asyncio.gather(*(job.result(timeout=PATIENCE_S) for _ in range(3)), return_exceptions=True)
        assert [str(error) for error in errors] == [f"job {job.id} is dead after KeyError: 'nope'"] * 3
        error = errors[0]
        assert isinstance(error, JobFailed)
        assert (error.job_id, error.error_type, error.error_message) == (job.id, "KeyError", "'nope'")


@scene
async def test_a_cancelled_job_raises_job_cancelled() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        job = await note.enqueue()
        await job.cancel("no longer wanted")
        with pytest.raises(JobCancelled, match=f"^job {job.id} was cancelled: no longer wanted$") as caught:
            await job.result()
    assert caught.value.reason == "no longer wanted"


@scene
async def test_waiting_too_long_is_a_timeout_and_does_not_touch_the_job() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> str:
        return "done"

    async with hf:
        job = await note.enqueue()
        for timeout in (0, 0.01, timedelta(milliseconds=10)):
            with pytest.raises(TimeoutError, match=rf"^job {job.id} has not ended within 0(\.01)? s$"):
                await job.result(timeout=timeout)
        assert (await job.info()).state is State.READY
        async with hf.worker():
            assert await job.result(timeout=PATIENCE_S) == "done"


@scene
async def test_a_job_that_is_not_there_is_not_waited_for() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        job = await note.enqueue()
        job.id = new_job_id()
        for ask in (job.info(), job.result(timeout=PATIENCE_S), job.cancel()):
            with pytest.raises(JobNotFound, match=f"^there is no job {job.id}; ended jobs are pruned"):
                await ask


@scene
async def test_a_waiter_hears_that_the_app_was_closed() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        job = await note.enqueue()
        waiter = asyncio.create_task(job.result())
        with pytest.raises(TimeoutError):
            await job.result(timeout=0.01)  # by now the other one waits, too
    with pytest.raises(NotOpen, match=f"the app was closed while job {job.id} was awaited"):
        await waiter
    with pytest.raises(NotOpen):
        await job.result()


@scene
async def test_many_waiters_each_get_their_own_result() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def double(n: int) -> int:
        return 2 * n

    async with hf:
        jobs = await hf.enqueue_many([double.request(n) for n in range(300)])
        waiters = [asyncio.create_task(job.result(timeout=PATIENCE_S)) for job in jobs]
        async with hf.worker():
            assert await asyncio.gather(*waiters) == [2 * n for n in range(300)]


@scene
async def test_events_tell_every_visible_change_until_the_end() -> None:
    hf = Holdfast(":memory:", poll_s=0.02)
    go_on = asyncio.Event()

    @hf.task
    async def work() -> str:
        await current_job().progress(1, 3, "loading")
        await go_on.wait()
        return "done"

    async with hf:
        job = await work.enqueue()
        seen = []
        async with aclosing(job.events()) as events, asyncio.timeout(PATIENCE_S):
            assert (await anext(events)).state is State.READY
            async with hf.worker():
                async for info in events:
                    seen.append(info)
                    if info.stage == "loading":
                        go_on.set()
    assert seen[-1].state is State.SUCCEEDED
    assert seen[-1].result == "done"
    assert any(info.state is State.RUNNING and info.stage == "loading" for info in seen)
    assert all(one != other for one, other in itertools.pairwise(seen))


@scene
async def test_events_of_an_ended_job_are_its_ending_alone() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        job = await note.enqueue()
        await job.cancel()
        assert [info.state async for info in job.events()] == [State.CANCELLED]


@scene
async def test_progress_is_kept_with_the_job_through_its_end() -> None:
    hf = Holdfast(":memory:")
    reported, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def work() -> None:
        job = current_job()
        await job.progress(1)
        await job.progress(3, 10, "uploading")
        reported.set()
        await go_on.wait()

    async with hf, hf.worker():
        job = await work.enqueue()
        await reported.wait()
        running = await job.info()
        go_on.set()
        await job.result(timeout=PATIENCE_S)
        ended = await job.info()
    for info in (running, ended):
        assert info.progress is not None
        assert (info.progress.done, info.progress.total, info.stage) == (3, 10, "uploading")
        assert info.progress.fraction == pytest.approx(0.3)


@scene
async def test_progress_of_a_run_that_lost_its_lease_is_refused() -> None:
    hf = Holdfast(":memory:", lease_s=3600)
    seen: list[str] = []

    @hf.task
    async def work() -> int:
        job = current_job()
        if job.attempt == 1 and not seen:
            await hf._open_store().hand_back_worker(UUID(job.worker), cause="worker_lost", why="told so")
            try:
                await job.progress(1)
            except LeaseLost as error:
                seen.append(str(error))
                raise
        return job.attempt

    # With its only slot taken the worker claims nothing, and so does not hear of its loss before the task does.
    async with hf, hf.worker(concurrency=1):
        job = await work.enqueue()
        assert await job.result(timeout=PATIENCE_S) == 1
        info = await until(job, State.SUCCEEDED)
    assert seen == [f"job {job.id}: this run's lease has passed on, nothing that it writes counts"]
    assert [attempt.cause for attempt in info.attempts] == ["worker_lost"]
