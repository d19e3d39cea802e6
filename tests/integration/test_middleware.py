"""Functions around every run: their order, what they see and change, and that limits and cancellation still hold."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import (
    CallNext,
    CurrentJob,
    Holdfast,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    PermanentError,
    RetryLater,
    RetryPolicy,
    SoftTimeout,
    State,
    current_job,
)

ONCE = RetryPolicy(max_attempts=1)


@pytest.mark.parametrize("kind", ["async", "def"])
@scene
async def test_the_first_registered_is_outermost_and_each_sees_job_and_result(kind: str) -> None:
    hf, log = Holdfast(":memory:"), list[Any]()

    @hf.middleware
    async def outer(job: CurrentJob, call_next: CallNext) -> Any:
        log.append(("outer", job.task, job.attempt))
        result = await call_next()
        log.append(("outer", result))
        return result

    @hf.middleware
    def inner(job: CurrentJob) -> Generator[None, Any, None]:
        assert job.id == current_job().id
        log.append("inner")
        result = yield
        log.append(("inner", result))

    async def double(number: int) -> int:
        log.append("task")
        return 2 * number

    def double_in_thread(number: int) -> int:
        log.append("task")
        return 2 * number

    task: Any = hf.task(name="double")(double if kind == "async" else double_in_thread)
    async with hf, hf.worker():
        assert await (await task.enqueue(4)).result(timeout=PATIENCE_S) == 8
    assert log == [("outer", "double", 1), "inner", "task", ("inner", 8), ("outer", 8)]


@scene
async def test_a_middleware_may_change_the_result_or_do_without_the_task() -> None:
    hf = Holdfast(":memory:")

    @hf.middleware
    async def cached(job: CurrentJob, call_next: CallNext) -> Any:
        return "cached" if job.queue == "cached" else f"{await call_next()}!"

    @hf.middleware
    def polite(job: CurrentJob) -> Generator[None, str, str]:
        return (yield) + ", please"

    @hf.task
    async def say(word: str) -> str:
        return word

    async with hf, hf.worker():
        assert await (await say.enqueue("go")).result(timeout=PATIENCE_S) == "go, please!"
        assert await (await say.options(queue="cached").enqueue("go")).result(timeout=PATIENCE_S) == "cached"


@pytest.mark.parametrize("kind", ["async", "generator"])
@scene
async def test_a_middleware_sees_errors_and_may_turn_them_into_results_or_others(kind: str) -> None:
    hf = Holdfast(":memory:")

    if kind == "async":

        @hf.middleware
        async def mend(job: CurrentJob, call_next: CallNext) -> Any:
            try:
                return await call_next()
            except KeyError as error:
                return f"mended {error}"
            except ValueError as error:
                raise PermanentError("hopeless") from error
    else:

        @hf.middleware
        def mend_generator(job: CurrentJob) -> Generator[None, Any, Any]:
            try:
                yield
            except KeyError as error:
                return f"mended {error}"
            except ValueError as error:
                raise PermanentError("hopeless") from error

    @hf.task
    async def fail(how: str) -> None:
        raise {"key": KeyError, "value": ValueError}[how](1)

    async with hf, hf.worker():
        assert await (await fail.enqueue("key")).result(timeout=PATIENCE_S) == "mended 1"
        with pytest.raises(JobFailed, match="hopeless"):
            await (await fail.enqueue("value")).result(timeout=PATIENCE_S)


@scene
async def test_what_a_middleware_raises_fails_the_attempt_by_the_rules_for_tasks() -> None:
    hf, runs = Holdfast(":memory:"), list[int]()

    @hf.middleware
    async def stumble(job: CurrentJob, call_next: CallNext) -> Any:
        runs.append(job.attempt)
        match len(runs):
            case 1:
                raise RetryLater(after=0)
            case 2:
                raise ConnectionError("once")
        return await call_next()

    @hf.task(retry=RetryPolicy(max_attempts=2, base=0))
    async def work() -> str:
        return "done"

    async with hf, hf.worker():
        assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "done"
    assert runs == [1, 1, 2]


@scene
async def test_context_variables_of_either_kind_reach_the_task() -> None:
    hf = Holdfast(":memory:")
    seen: ContextVar[str] = ContextVar("seen", default="")

    @hf.middleware
    async def one(job: CurrentJob, call_next: CallNext) -> Any:
        seen.set(seen.get() + "1")
        return await call_next()

    @hf.middleware
    def two(job: CurrentJob) -> Generator[None, Any, None]:
        seen.set(seen.get() + "2")
        yield

    @hf.task
    def look() -> str:
        return seen.get()

    async with hf, hf.worker():
        assert await (await look.enqueue()).result(timeout=PATIENCE_S) == "12"


@scene
async def test_the_soft_limit_strikes_in_the_task_and_not_in_a_middleware() -> None:
    hf = Holdfast(":memory:")
    late = asyncio.Event()

    @hf.middleware
    async def slow(job: CurrentJob, call_next: CallNext) -> Any:
        asyncio.get_running_loop().call_later(0.06, late.set)
        await late.wait()
        result = await call_next()
        late.clear()
        asyncio.get_running_loop().call_later(0.06, late.set)
        await late.wait()
        return result

    @hf.task(soft_timeout=0.02)
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            return "tidied up"
        raise AssertionError

    async with hf, hf.worker():
        assert await (await work.enqueue()).result(timeout=PATIENCE_S) == "tidied up"


@pytest.mark.parametrize("where", ["before", "inside", "after"])
@scene
async def test_the_hard_limit_and_cancellation_hold_for_all_of_the_run(where: str) -> None:
    hf, log = Holdfast(":memory:"), list[str]()

    async def hang_in(place: str) -> None:
        if place == where:
            log.append("hanging")
            await asyncio.Event().wait()

    @hf.middleware
    def watch(job: CurrentJob) -> Generator[None, Any, None]:
        try:
            yield
        except asyncio.CancelledError:
            log.append("seen")
            raise

    @hf.middleware
    async def around(job: CurrentJob, call_next: CallNext) -> Any:
        await hang_in("before")
        result = await call_next()
        await hang_in("after")
        return result

    @hf.task(retry=ONCE)
    async def work() -> None:
        await hang_in("inside")

    async with hf, hf.worker():
        with pytest.raises(JobFailed, match="hard limit"):
            await (await work.options(timeout=0.05).enqueue()).result(timeout=PATIENCE_S)
        job = await work.enqueue()
        await until(job, State.RUNNING)
        await job.cancel("enough")
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
    assert log.count("seen") >= 1


@scene
async def test_what_follows_a_def_task_can_be_cancelled() -> None:
    hf, hanging = Holdfast(":memory:"), asyncio.Event()

    @hf.middleware
    async def after(job: CurrentJob, call_next: CallNext) -> Any:
        await call_next()
        hanging.set()
        await asyncio.Event().wait()

    @hf.task
    def work() -> None: ...

    async with hf, hf.worker():
        job = await work.enqueue()
        await hanging.wait()
        await job.cancel("enough")
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)


@pytest.mark.parametrize(("yields", "sentence"), [(0, "has no `yield` for the run"), (2, "has a second `yield`")])
@scene
async def test_a_generator_yields_once(yields: int, sentence: str) -> None:
    hf = Holdfast(":memory:")

    @hf.middleware
    def strange(job: CurrentJob) -> Generator[None, Any, None]:
        for _ in range(yields):
            yield

    @hf.task(retry=ONCE)
    async def work() -> None: ...

    async with hf, hf.worker():
        with pytest.raises(JobFailed, match=sentence):
            await (await work.enqueue()).result(timeout=PATIENCE_S)


async def takes_nothing() -> None: ...


def plain(job: object, call_next: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (plain, "@middleware: plain is neither `async def plain(job, call_next)` nor a generator"),
        (takes_nothing, "@middleware: takes_nothing is called with (job, call_next), which it does not take"),
        (5, "@middleware: 5 is neither"),
    ],
)
def test_what_is_no_middleware_is_refused_in_a_sentence(function: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        Holdfast(":memory:").middleware(function)
    assert str(refused.value).startswith(sentence)
