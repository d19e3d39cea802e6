"""What follows a failed run: backoff, per exception, RetryLater, PermanentError, a policy given with the call."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, JobFailed, PermanentError, RetryLater, RetryPolicy, current_job
from holdfast.core.state import State
from holdfast.telemetry.events import JobBuried, JobRetried

QUICK = RetryPolicy(max_attempts=3, base=0.01)


@scene
async def test_a_failing_job_runs_as_often_as_its_policy_allows() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=QUICK)
    async def fail() -> None:
        raise ValueError(f"attempt {current_job().attempt}")

    async with hf, hf.worker():
        job = await fail.enqueue()
        with pytest.raises(JobFailed, match=r"is dead after ValueError: attempt 3$"):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
    assert (info.attempt, info.max_attempts, info.reason) == (3, 3, "exhausted")
    assert [(run.number, run.cause, run.error.message) for run in info.attempts if run.error] == [
        (1, "retry", "attempt 1"),
        (2, "retry", "attempt 2"),
        (3, "dead", "attempt 3"),
    ]


@scene
async def test_a_job_that_succeeds_at_last_keeps_its_history() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=QUICK)
    async def flaky() -> int:
        if current_job().attempt < 3:
            raise ConnectionError("not yet")
        return current_job().attempt

    async with hf, hf.worker():
        job = await flaky.enqueue()
        assert await job.result(timeout=PATIENCE_S) == 3
        info = await job.info()
    assert info.state is State.SUCCEEDED
    assert [run.cause for run in info.attempts] == ["retry", "retry"]
    assert len({run.token for run in info.attempts}) == 2


@scene
async def test_backoff_doubles_and_jitter_draws_below_it() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=RetryPolicy(max_attempts=5, base=0.01, cap=0.03, jitter="none"))
    async def exact() -> None:
        raise ValueError

    @hf.task(retry=RetryPolicy(max_attempts=5, base=0.01, cap=0.03))
    async def drawn() -> None:
        raise ValueError

    async with hf:
        heard = Heard(hf, JobRetried)
        async with hf.worker():
            for task in (exact, drawn):
                job = await task.enqueue()
                delays = [(await heard.next(JobRetried)).delay_s for _ in range(4)]
                if task is exact:
                    assert delays == [0.01, 0.02, 0.03, 0.03]
                else:
                    assert all(0 <= delay < most for delay, most in zip(delays, [0.01, 0.02, 0.03, 0.03], strict=True))
                await until(job, State.DEAD)


@scene
async def test_a_policy_can_tell_exceptions_apart() -> None:
    hf = Holdfast(":memory:")
    kinds = {"retried": ConnectionResetError, "given up": FileNotFoundError, "not listed": KeyError}

    @hf.task(
        retry=RetryPolicy(
            max_attempts=2,
            base=60,
            retry_on=[OSError],
            give_up_on=[FileNotFoundError],
            delays={ConnectionError: 0.01},
        )
    )
    async def fail(kind: str) -> None:
        raise kinds[kind]

    async with hf, hf.worker():
        ends = {}
        for kind in kinds:
            info = await until(await fail.enqueue(kind), State.DEAD)
            ends[kind] = (info.attempt, info.reason)
    assert ends == {"retried": (2, "exhausted"), "given up": (1, "not_retried"), "not listed": (1, "not_retried")}


@scene
async def test_retry_later_is_not_charged() -> None:
    hf = Holdfast(":memory:")
    runs: list[int] = []

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def patient() -> int:
        runs.append(current_job().attempt)
        if len(runs) < 4:
            raise RetryLater("still warming up", after=0.01)
        return len(runs)

    async with hf, hf.worker():
        job = await patient.enqueue()
        assert await job.result(timeout=PATIENCE_S) == 4
        info = await job.info()
    assert runs == [1, 1, 1, 1]
    assert [(run.cause, run.error.message) for run in info.attempts if run.error] == [
        ("snooze", "still warming up")
    ] * 3


@scene
async def test_a_permanent_error_ends_it_at_once() -> None:
    hf = Holdfast(":memory:")

    class NoSuchCustomer(PermanentError):
        pass

    @hf.task(retry=QUICK)
    async def charge() -> None:
        raise NoSuchCustomer("customer 17 is gone")

    async with hf:
        heard = Heard(hf, JobBuried)
        async with hf.worker():
            info = await until(await charge.enqueue(), State.DEAD)
            event = await heard.next(JobBuried)
    assert (info.attempt, info.reason) == (1, "permanent")
    assert event.reason == "permanent"
    assert info.error is not None
    assert info.error.type.endswith("NoSuchCustomer")


@scene
async def test_a_policy_given_with_the_call_goes_before_the_tasks_own() -> None:
    hf = Holdfast(":memory:")

    class Odd(Exception):
        pass

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def fail(kind: str) -> None:
        raise Odd if kind == "odd" else ValueError

    stubborn = RetryPolicy(max_attempts=4, base=0, give_up_on=[Odd])
    async with hf, hf.worker():
        own = await until(await fail.enqueue("even"), State.DEAD)
        given = await until(await fail.options(retry=stubborn).enqueue("even"), State.DEAD)
        odd = await until(await fail.options(retry=stubborn).enqueue("odd"), State.DEAD)
    assert (own.attempt, given.attempt, odd.attempt) == (1, 4, 1)
    assert (own.max_attempts, given.max_attempts) == (1, 4)


@scene
async def test_a_job_waiting_for_its_retry_holds_no_slot() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=RetryPolicy(max_attempts=2, base=3600, cap=3600, jitter="none"))
    async def fail() -> None:
        raise ValueError

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=1):
        waiting = await fail.enqueue()
        await until(waiting, State.SCHEDULED)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        assert (await waiting.info()).state is State.SCHEDULED
        assert (await hf.workers.list())[0].running == 0
        assert "waits for its next attempt, at " in str(await hf.jobs.explain(waiting.id))


@scene
async def test_a_retry_comes_behind_what_is_ready_by_then() -> None:
    hf = Holdfast(":memory:")
    ran: list[str] = []
    go_on = asyncio.Event()

    @hf.task(retry=RetryPolicy(max_attempts=2, base=0))
    async def note(name: str) -> None:
        ran.append(name)
        if ran == ["first"]:
            await go_on.wait()
            raise ValueError

    async with hf, hf.worker(concurrency=1):
        first = await note.enqueue("first")
        await until(first, State.RUNNING)
        second = await note.enqueue("second")
        go_on.set()
        await first.result(timeout=PATIENCE_S)
        await second.result(timeout=PATIENCE_S)
    assert ran == ["first", "second", "first"]
