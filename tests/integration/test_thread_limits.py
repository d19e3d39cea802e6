"""Limits and cancellations of `def` tasks: raised inside the function, in its thread, at the next bytecode."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, JobCancelled, JobFailed, RetryPolicy, SoftTimeout, TaskDefaults, current_job
from holdfast.core.state import State
from holdfast.telemetry.events import JobOverdue, JobStarted

SOFT_S = 0.02
ONCE = RetryPolicy(max_attempts=1)


def spin() -> None:
    """Never ends by itself, and never leaves Python for long."""
    while True:
        len("")


class Watched:
    """Says on the loop that a function has come somewhere."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.event = asyncio.Event()
        self.seen: list[str] = []

    def say(self, what: str) -> None:
        self.seen.append(what)
        self._loop.call_soon_threadsafe(self.event.set)


@scene
async def test_at_the_soft_limit_a_def_task_can_catch_it_and_return_what_it_has() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=SOFT_S)
    def work() -> list[str]:
        try:
            spin()
        except SoftTimeout as error:
            return [str(error), repr(error), type(error).__qualname__]
        return []

    async with hf, hf.worker():
        job = await work.enqueue()
        message = "the soft limit of 0.02 s has passed"
        assert await job.result(timeout=PATIENCE_S) == [message, f"SoftTimeout({message!r})", "SoftTimeout"]
        assert (await job.info()).attempts == ()


@scene
async def test_uncaught_it_fails_the_attempt_as_soft_timeout_and_every_finally_has_run() -> None:
    hf = Holdfast(":memory:", threads=1)
    seen: list[str] = []

    def nested(depth: int) -> None:
        try:
            if depth:
                nested(depth - 1)
            else:
                spin()
        finally:
            seen.append(f"left {depth}")

    @hf.task(soft_timeout=SOFT_S, retry=RetryPolicy(max_attempts=2, base=60, delays={SoftTimeout: 0}))
    def work() -> None:
        nested(2)

    @hf.task
    def following() -> int:
        return sum(len(str(n)) for n in range(1000))

    async with hf, hf.worker():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match=r"the soft limit of 0\.02 s has passed$") as caught:
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
        assert await (await following.enqueue()).result(timeout=PATIENCE_S) == 2890
    assert caught.value.error_type == "holdfast.SoftTimeout"
    assert [run.cause for run in info.attempts] == ["retry", "dead"]
    assert seen == ["left 0", "left 1", "left 2"] * 2
    assert info.error is not None
    assert "in spin" in info.error.traceback


@pytest.mark.parametrize("said_by", ["call", "app"])
@scene
async def test_a_soft_limit_from_elsewhere_holds_for_a_def_task_as_well(said_by: str) -> None:
    hf = Holdfast(":memory:", defaults=TaskDefaults(soft_timeout=SOFT_S if said_by == "app" else 100))

    @hf.task
    def work() -> str:
        try:
            spin()
        except SoftTimeout as error:
            return str(error)
        return "never"

    async with hf, hf.worker():
        call = work.options(soft_timeout=SOFT_S) if said_by == "call" else work
        assert "0.02 s" in await (await call.enqueue()).result(timeout=PATIENCE_S)


@scene
async def test_the_soft_limit_counts_from_the_functions_beginning_not_while_it_waits_for_a_thread() -> None:
    hf = Holdfast(":memory:", threads=1)
    go_on = threading.Event()

    @hf.task
    def hog() -> None:
        assert go_on.wait(PATIENCE_S)

    @hf.task(soft_timeout=0.2)
    def quick() -> str:
        return "in time"

    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker(concurrency=4):
            await hog.enqueue()
            job = await quick.enqueue()
            for _ in range(2):
                await heard.next(JobStarted)
            passed = asyncio.Event()
            asyncio.get_running_loop().call_later(0.3, passed.set)  # longer than its limit
            await passed.wait()
            go_on.set()
            assert await job.result(timeout=PATIENCE_S) == "in time"


@scene
async def test_a_cancelled_def_task_gets_a_cancelled_error_which_except_exception_lets_pass() -> None:
    hf = Holdfast(":memory:")
    watched = Watched()

    @hf.task
    def work() -> None:
        try:
            watched.say("begun")  # inside: from here on it may be struck
            spin()
        except Exception:
            watched.say("swallowed")
        finally:
            watched.say(f"tidied up, cancelled: {current_job().cancelled}")

    async with hf, hf.worker():
        job = await work.enqueue()
        await watched.event.wait()
        await job.cancel("enough")
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
    assert watched.seen == ["begun", "tidied up, cancelled: True"]


@scene
async def test_one_that_swallows_its_cancellation_and_returns_has_done_its_work() -> None:
    hf = Holdfast(":memory:")
    watched = Watched()

    @hf.task
    def work() -> str:
        try:
            watched.say("begun")  # inside: from here on it may be struck
            spin()
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    async with hf, hf.worker():
        job = await work.enqueue()
        await watched.event.wait()
        await job.cancel("enough")
        assert await job.result(timeout=PATIENCE_S) == "done all the same"


@scene
async def test_at_the_hard_limit_a_loop_in_python_is_ended_and_its_thread_is_free() -> None:
    hf = Holdfast(":memory:", threads=1)
    tidied: list[int] = []

    @hf.task(timeout=SOFT_S, retry=RetryPolicy(max_attempts=2, base=0))
    def work() -> None:
        try:
            spin()
        finally:
            tidied.append(1)

    @hf.task
    def ping() -> str:
        return "pong"

    async with hf, hf.worker():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match=r"HardTimeout: the run was ended at its hard limit of 0\.02 s$"):
            await job.result(timeout=PATIENCE_S)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
    assert tidied == [1, 1]


@scene
async def test_one_that_swallows_it_once_is_reported_and_struck_again_a_second_later() -> None:
    hf = Holdfast(":memory:")
    swallowed: list[int] = []

    @hf.task(timeout=SOFT_S, retry=ONCE)
    def deaf() -> None:
        try:
            spin()
        except asyncio.CancelledError:
            swallowed.append(1)
        spin()

    async with hf:
        heard = Heard(hf, JobOverdue)
        async with hf.worker():
            job = await deaf.enqueue()
            assert (await heard.next(JobOverdue)).job_id == job.id
            info = await until(job, State.DEAD)
    assert swallowed == [1]
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"


@scene
async def test_after_a_soft_limit_that_is_swallowed_comes_the_hard_one() -> None:
    hf = Holdfast(":memory:")

    @hf.task(soft_timeout=SOFT_S, timeout=0.1, retry=ONCE)
    def deaf() -> None:
        try:
            spin()
        except SoftTimeout:
            spin()

    async with hf, hf.worker():
        info = await until(await deaf.enqueue(), State.DEAD)
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"


@scene
async def test_a_cancellation_that_waits_for_c_code_to_return_counts_for_more_than_the_soft_limit() -> None:
    hf = Holdfast(":memory:")
    watched, gate = Watched(), threading.Lock()

    @hf.task(soft_timeout=0.2)
    def work() -> None:
        try:
            watched.say("begun")
            gate.acquire()  # in C code
            spin()
        except BaseException as error:
            watched.say(type(error).__name__)
            raise

    gate.acquire()
    async with hf, hf.worker():
        job = await work.enqueue()
        await watched.event.wait()
        await job.cancel("enough")
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.4, passed.set)  # beyond its soft limit
        await passed.wait()
        gate.release()
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
    assert watched.seen == ["begun", "CancelledError"]


@scene
async def test_a_function_that_may_not_be_hit_now_is_hit_soon_after() -> None:
    hf = Holdfast(":memory:")
    watched, go_on = Watched(), threading.Event()

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            watched.say("logging")
            while not (current_job().cancelled and go_on.is_set()):
                len("")
            watched.say("logged")

    logger = logging.Logger("slow")
    logger.addHandler(Slow())

    @hf.task
    def work() -> None:
        logger.warning("slow")
        spin()

    async with hf, hf.worker():
        job = await work.enqueue()
        await watched.event.wait()
        await job.cancel("enough")
        go_on.set()
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
    assert watched.seen == ["logging", "logged"]


@scene
async def test_a_worker_that_stops_interrupts_what_runs_in_threads_and_gives_it_back() -> None:
    hf = Holdfast(":memory:", grace_s=0)
    watched = Watched()
    runs: list[int] = []

    @hf.task
    def work() -> str:
        runs.append(current_job().token)
        if len(runs) > 1:
            return "done"
        try:
            watched.say("begun")  # inside: from here on it may be struck
            spin()
        finally:
            watched.say("tidied up")
        return "never"

    async with hf:
        async with hf.worker():
            job = await work.enqueue()
            await watched.event.wait()
        info = await job.info()
        assert (info.state, [each.cause for each in info.attempts]) == (State.READY, ["handed_back"])
        assert watched.seen == ["begun", "tidied up"]
        async with hf.worker():
            assert await job.result(timeout=PATIENCE_S) == "done"


@pytest.mark.parametrize("ending", [lambda: "value", lambda: 1 / 0])
@scene
async def test_middleware_sees_what_became_of_an_interrupted_function(ending: Callable[[], object]) -> None:
    hf = Holdfast(":memory:")
    seen: list[str] = []

    @hf.middleware
    def watch(job: object):  # type: ignore[no-untyped-def]
        try:
            seen.append(repr((yield)))
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    @hf.task(soft_timeout=SOFT_S, retry=ONCE)
    def work() -> object:
        try:
            spin()
        except SoftTimeout:
            return ending()
        return None

    async with hf, hf.worker():
        job = await work.enqueue()
        await until(job, lambda info: info.state in (State.SUCCEEDED, State.DEAD))
    assert seen in (["'value'"], ["ZeroDivisionError"])
