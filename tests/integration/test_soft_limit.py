"""The soft limit: `SoftTimeout` inside the task, at the await where it stands; no child survives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, JobFailed, RetryPolicy, SoftTimeout, current_job
from holdfast.core.state import State

SOFT_S = 0.02
ONCE = RetryPolicy(max_attempts=1)


class Children:
    """Coroutines that never end by themselves, and know how they ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def child(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended.append(f"{name}: {type(error).__name__}")
            raise


@scene
async def test_a_task_can_catch_it_and_tidy_up() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=SOFT_S)
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except SoftTimeout as error:
            await current_job().progress(1, stage="tidying up")
            return str(error)
        return "never"

    async with hf, hf.worker():
        job = await work.enqueue()
        assert await job.result(timeout=PATIENCE_S) == "the soft limit of 0.02 s has passed"
        info = await job.info()
    assert (info.stage, info.attempts) == ("tidying up", ())


@scene
async def test_uncaught_it_fails_the_attempt_as_soft_timeout() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=SOFT_S, retry=RetryPolicy(max_attempts=2, base=60, delays={SoftTimeout: 0}))
    async def work() -> None:
        await asyncio.Event().wait()

    async with hf, hf.worker():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match=r"the soft limit of 0\.02 s has passed$") as caught:
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
        assert len(await hf.dead.list(error_type="holdfast.SoftTimeout")) == 1
    assert caught.value.error_type == "holdfast.SoftTimeout"
    assert [run.cause for run in info.attempts] == ["retry", "dead"]


@scene
async def test_a_task_that_ends_in_time_hears_nothing_of_it() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=60)
    async def work() -> str:
        await asyncio.sleep(0)
        return "in time"

    async with hf, hf.worker():
        assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "in time"


async def _plain(children: Children) -> None:
    await children.child("a")


async def _gathered(children: Children) -> None:
    await asyncio.gather(children.child("a"), children.child("b"))


async def _under_timeout(children: Children) -> None:
    async with asyncio.timeout(3600):
        await children.child("a")


async def _waited_for(children: Children) -> None:
    await asyncio.wait_for(children.child("a"), 3600)


async def _in_a_group(children: Children) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(children.child("a"))
        group.create_task(children.child("b"))


async def _groups_in_groups(children: Children) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_in_a_group(children))
        group.create_task(_gathered(children))


@pytest.mark.parametrize("shape", [_plain, _gathered, _under_timeout, _waited_for, _in_a_group, _groups_in_groups])
@scene
async def test_no_child_survives_it_and_the_task_goes_on(shape: Callable[[Children], Awaitable[None]]) -> None:
    hf = Holdfast(":memory:")
    children = Children()

    @hf.task(soft_timeout=SOFT_S)
    async def work() -> list[str]:
        try:
            await shape(children)
        except SoftTimeout:
            ended = list(children.ended)
        others = asyncio.all_tasks()
        # The task is as good as new: it can wait, and a timeout of its own still works.
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert not [each for each in others if "Children.child" in repr(each)]
        return ended

    async with hf, hf.worker():
        ended = await (await work.enqueue()).result(timeout=PATIENCE_S)
    # The innermost await sees it as what it is; children that are tasks of their own are cancelled.
    assert ended
    assert len(ended) == len(children.ended)
    assert {how.split(": ")[1] for how in ended} <= {"CancelledError", "SoftTimeout"}


@scene
async def test_in_the_body_of_a_group_it_comes_as_the_groups_error_like_any_other() -> None:
    hf = Holdfast(":memory:")
    children = Children()

    @hf.task(soft_timeout=SOFT_S)
    async def work() -> str:
        message = "never"
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(children.child("a"))
                await asyncio.Event().wait()
        except* SoftTimeout as caught:
            message = str(caught.exceptions[0])
        return message

    async with hf, hf.worker():
        assert "soft limit" in await (await work.enqueue()).result(timeout=PATIENCE_S)
    assert children.ended == ["a: CancelledError"]


@scene
async def test_it_strikes_once() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=SOFT_S, timeout=0.1, retry=ONCE)
    async def deaf() -> None:
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            await asyncio.Event().wait()  # until the hard limit

    async with hf, hf.worker():
        info = await until(await deaf.enqueue(), State.DEAD)
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"


@scene
async def test_a_cancellation_while_it_tidies_up_still_ends_it() -> None:
    hf = Holdfast(":memory:")
    tidying = asyncio.Event()

    @hf.task(soft_timeout=SOFT_S)
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            tidying.set()
            await asyncio.Event().wait()

    async with hf, hf.worker():
        job = await work.enqueue()
        await tidying.wait()
        await job.cancel("enough")
        assert (await until(job, State.CANCELLED)).reason == "enough"


@scene
async def test_a_soft_limit_given_with_the_call_goes_before_the_tasks_own() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=100)
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except SoftTimeout as error:
            return str(error)
        return "never"

    async with hf, hf.worker():
        job = await work.options(soft_timeout=SOFT_S).enqueue()
        assert await job.result(timeout=PATIENCE_S) == "the soft limit of 0.02 s has passed"
