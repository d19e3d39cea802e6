"""Whatever users' code raises, and wherever: the job ends, every run has a cause, the worker goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import ErrorClass, Holdfast, RetryLater, RetryPolicy
from holdfast.core.state import State
from holdfast.telemetry.events import JobStarted, WorkerStarted

TWICE = RetryPolicy(max_attempts=2, base=0.0)


class LaterWithoutAfter(RetryLater):
    def __init__(self) -> None:
        Exception.__init__(self, "later")


class LaterWithTimedelta(RetryLater):
    def __init__(self) -> None:
        Exception.__init__(self, "later")
        self.after = timedelta(seconds=1)  # type: ignore[assignment]


class CancelledByStr(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


class CancelsInResponse(Exception):
    @property
    def response(self) -> object:
        raise asyncio.CancelledError


class _LeavingHeaders:
    def get(self, name: str) -> str:
        raise SystemExit(name)


class _Odd(int):
    def __eq__(self, other: object) -> bool:
        raise ValueError(other)

    __hash__ = int.__hash__


class LeavingHeaders(Exception):
    response = SimpleNamespace(status_code=429, headers=_LeavingHeaders())


class OddStatus(Exception):
    response = SimpleNamespace(status_code=_Odd(503), headers={})


PRICES = {"tea": 1}


class Order(BaseModel):
    item: str

    @field_validator("item")
    @classmethod
    def _has_a_price(cls, item: str) -> str:
        return item if PRICES[item] else ""


def _raise(error: type[BaseException]) -> None:
    raise error


async def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def _leave_a_swallowed_cancel_behind() -> None:
    try:
        await _cancel_itself()
    except asyncio.CancelledError:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future


#: What the run does; and the reason for which the job is dead, with the type of its error.
CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "RetryLater without after": (lambda: _raise(LaterWithoutAfter), "exhausted", "AttributeError"),
    "RetryLater with a timedelta": (lambda: _raise(LaterWithTimedelta), "exhausted", "TypeError"),
    "cancels itself": (_cancel_itself, "exhausted", "asyncio.exceptions.CancelledError"),
    "swallowed a cancel": (_leave_a_swallowed_cancel_behind, "exhausted", "asyncio.exceptions.CancelledError"),
    "GeneratorExit": (lambda: _raise(GeneratorExit), "exhausted", "GeneratorExit"),
    "str() is a cancellation": (lambda: _raise(CancelledByStr), "exhausted", f"{__name__}.CancelledByStr"),
    "its response cancels": (
        lambda: _raise(CancelsInResponse),
        "exhausted",
        f"{__name__}.CancelsInResponse",
    ),
    "its headers leave": (lambda: _raise(LeavingHeaders), "exhausted", f"{__name__}.LeavingHeaders"),
    "its status cannot be compared": (lambda: _raise(OddStatus), "exhausted", f"{__name__}.OddStatus"),
    "a lazy result breaks": (lambda: (1 // 0 for _ in "1"), "bad_result", "holdfast.InvalidArguments"),
}


@pytest.mark.parametrize("name", CASES)
@scene
async def test_every_job_ends_with_a_cause_for_each_of_its_runs(name: str) -> None:
    """What the executor raised out of `execute` was forgotten, so the job was lost and claimed again for ever."""
    act, reason, error = CASES[name]
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)
    runs: list[int] = []
    sessions: list[object] = []
    hf.telemetry.attach(sessions.append, only=WorkerStarted)

    @hf.task(name="raise", retry=TWICE)
    async def raises():  # type: ignore[no-untyped-def]
        runs.append(1)
        value = act()
        return await value if inspect.iscoroutine(value) else value

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=1):
        info = await until(await raises.enqueue(), State.DEAD)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
    assert info.error is not None
    assert (info.reason, info.error.type) == (reason, error)
    assert [attempt.cause for attempt in info.attempts] == ["retry"] * (len(runs) - 1) + ["dead"]
    assert len(sessions) == 1, "it is the job's failure, not the worker's"


@scene
async def test_a_row_of_the_table_of_errors_that_cancels_does_not_match() -> None:
    def cancels(error: BaseException) -> bool:
        raise asyncio.CancelledError

    own = ErrorClass(name="odd", then="dead", exceptions=ValueError, when=cancels)
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05, errors=[own])

    @hf.task(name="raise", retry=RetryPolicy(max_attempts=1))
    async def raises() -> None:
        raise ValueError

    async with hf, hf.worker():
        info = await until(await raises.enqueue(), State.DEAD)
    assert [attempt.cause for attempt in info.attempts] == ["dead"]


@scene
async def test_a_validator_that_breaks_only_at_the_worker_buries_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A validator raised a KeyError on the worker's host, which nobody caught: the job was lost again and again."""
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)
    ran: list[Order] = []

    @hf.task(name="sell", retry=TWICE)
    async def sell(order: Order) -> None:
        ran.append(order)

    async with hf:
        job = await sell.enqueue(Order(item="tea"))
        monkeypatch.delitem(PRICES, "tea")
        async with hf.worker():
            info = await until(job, State.DEAD)
    assert (info.reason, info.attempt, ran) == ("bad_payload", 1, [])


@scene
async def test_a_retry_that_cannot_be_written_is_not_its_neighbours_trouble() -> None:
    """RetryLater.after was a timedelta: settling it raised, the session was given up, its neighbours ran again."""
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)
    runs: list[int] = []
    over = asyncio.Event()

    @hf.task(name="later", retry=TWICE)
    async def later() -> None:
        raise LaterWithTimedelta

    @hf.task(name="neighbour")
    async def neighbour() -> str:
        runs.append(1)
        await over.wait()
        return "undisturbed"

    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker():
            beside = await neighbour.enqueue()
            await heard.next(JobStarted)
            guilty = await later.enqueue()
            await until(guilty, State.DEAD)
            over.set()
            assert await beside.result(timeout=PATIENCE_S) == "undisturbed"
            assert (await beside.info()).attempts == ()
    assert runs == [1]
