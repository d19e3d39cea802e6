"""Classes of errors end to end: what a worker does about them, and where a person sees the class."""

from __future__ import annotations

import httpx
import pytest
from pydantic import TypeAdapter
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import ErrorClass, Holdfast, JobFailed, PermanentError, RetryPolicy
from holdfast.core.state import State
from holdfast.telemetry.events import JobBuried, JobRetried
from holdfast.testing import harness


def answer(status: int, **headers: str) -> None:
    request = httpx.Request("GET", "http://example.org")
    httpx.Response(status, headers=headers, request=request).raise_for_status()


@scene
async def test_the_class_is_in_the_event_in_the_attempt_and_in_the_job() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=RetryPolicy(max_attempts=2, base=0, backoff="fixed"))
    async def call() -> None:
        raise ConnectionResetError("reset\nerror class: forged")

    async with hf, hf.worker():
        heard = Heard(hf, JobRetried, JobBuried)
        job = await call.enqueue()
        assert (await heard.next(JobRetried)).error_class == "transient"
        buried = await heard.next(JobBuried)
        assert (buried.error_class, buried.reason) == ("transient", "exhausted")
        info = await until(job, State.DEAD)
        assert [run.error.error_class for run in info.attempts if run.error] == ["transient"] * len(info.attempts)
        assert info.error is not None
        assert info.error.error_class == "transient"


@scene
async def test_validation_is_dead_at_once_and_other_errors_are_not() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def parse(text: str) -> int:
        return TypeAdapter(int).validate_python(text)

    async with hf, hf.worker():
        job = await parse.enqueue("five")
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
        assert (info.attempt, info.reason) == (1, "not_retried")
        assert info.error is not None
        assert info.error.error_class == "validation"


@scene
async def test_retry_after_is_waited_for_and_charged() -> None:
    hf = Holdfast(":memory:")
    answers = [429, 503, 200]

    @hf.task(retry=RetryPolicy(max_attempts=3))
    async def call() -> int:
        answer(status := answers.pop(0), **{"Retry-After": "40"})
        return status

    async with harness(hf) as t:
        job = await call.enqueue()
        [info] = await t.run_due()
        assert info.state is State.SCHEDULED
        assert info.run_at is not None
        assert 40 <= info.run_at.timestamp() - t.clock.now() <= 44
        [info, *_] = await t.run_until_idle()
        assert (await job.result(), info.attempt) == (200, 3)


@scene
async def test_an_uncharged_wait_leaves_the_attempts_alone() -> None:
    rows = [ErrorClass(name="patient", then="retry_after", statuses=[429], charge=False)]
    hf = Holdfast(":memory:", errors=rows)
    answers = [429] * 9 + [200]

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def call() -> int:
        answer(status := answers.pop(0), **{"Retry-After": "1"})
        return status

    async with harness(hf) as t:
        job = await call.enqueue()
        await t.run_until_idle()
        info = await job.info()
        assert (await job.result(), info.attempt) == (200, 1)
        assert {run.cause for run in info.attempts} == {"snooze"}
        assert {run.error.error_class for run in info.attempts if run.error} == {"patient"}


@scene
async def test_what_a_task_says_itself_has_no_class() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def call() -> None:
        raise PermanentError("no")

    async with harness(hf) as t:
        job = await call.enqueue()
        await t.run_until_idle()
        info = await job.info()
        assert info.error is not None
        assert (info.reason, info.error.error_class) == ("permanent", "")
