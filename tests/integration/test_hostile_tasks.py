"""Whatever a task does to its worker, it is the task's own failure: the worker lives and says what happened."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, JobFailed, JobInfo, RetryPolicy
from holdfast.core.state import State

ONCE = RetryPolicy(max_attempts=1)


class Odd(BaseException):
    """Not even an Exception."""


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I will not say")


class Unspeakable(Exception):
    def __str__(self) -> str:
        return "half a pair \ud800 and a nul \x00"


def _exit() -> None:
    sys.exit(3)


def _recurse() -> None:
    _recurse()


def _raiser(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


FAILURES: dict[str, tuple[Callable[[], None], str, str]] = {
    "sys.exit": (_exit, "SystemExit", "3"),
    "KeyboardInterrupt": (_raiser(KeyboardInterrupt()), "KeyboardInterrupt", ""),
    "BaseException": (_raiser(Odd("odd")), f"{__name__}.Odd", "odd"),
    "CancelledError": (_raiser(asyncio.CancelledError()), "asyncio.exceptions.CancelledError", ""),
    "GeneratorExit": (_raiser(GeneratorExit()), "GeneratorExit", ""),
    "StopIteration": (_raiser(StopIteration()), "RuntimeError", "raised StopIteration"),
    "RecursionError": (_recurse, "RecursionError", "maximum recursion depth exceeded"),
    "MemoryError": (_raiser(MemoryError("no room")), "MemoryError", "no room"),
    "an error whose str() raises": (_raiser(Mute()), f"{__name__}.Mute", "<str() of this error raised RuntimeError>"),
    "an error that no store can keep": (
        _raiser(Unspeakable()),
        f"{__name__}.Unspeakable",
        "half a pair \\ud800 and a nul \\x00",
    ),
    "a group of errors": (
        _raiser(ExceptionGroup("two", [ValueError("a"), KeyError("b")])),
        "ExceptionGroup",
        "two (2 sub-exceptions)",
    ),
    "a very long error": (_raiser(ValueError("x" * 10_000)), "ValueError", "x" * 4000 + " …"),
}


@pytest.mark.parametrize("kind", ["async", "def"])
@pytest.mark.parametrize("name", FAILURES)
@scene
async def test_the_attempt_fails_and_the_worker_lives(name: str, kind: str) -> None:
    hf = Holdfast(":memory:")
    act, error_type, message = FAILURES[name]

    @hf.task(retry=ONCE, name="async")
    async def on_the_loop() -> None:
        act()

    @hf.task(retry=ONCE, name="def")
    def in_a_thread() -> None:
        act()

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=1):
        job = await hf.enqueue(kind)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
    assert (info.state, info.reason, info.attempt) == (State.DEAD, "exhausted", 1)
    assert info.error is not None
    assert info.error.type == error_type
    assert message in info.error.message
    assert "Traceback" in info.error.traceback


@scene
async def test_such_failures_are_retried_like_any_other() -> None:
    hf = Holdfast(":memory:")
    runs: list[int] = []

    @hf.task(retry=RetryPolicy(max_attempts=3, base=0))
    async def leave() -> str:
        runs.append(1)
        if len(runs) < 3:
            sys.exit("bye")
        return "stayed"

    async with hf, hf.worker():
        assert await (await leave.enqueue()).result(timeout=PATIENCE_S) == "stayed"


@scene
async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=ONCE)
    async def awaits_a_cancelled_future() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async with hf, hf.worker():
        info = await until(await awaits_a_cancelled_future.enqueue(), State.DEAD)
    assert info.error is not None
    assert info.error.type == "asyncio.exceptions.CancelledError"


@scene
async def test_a_task_that_cancels_itself_fails_and_the_worker_lives() -> None:
    hf = Holdfast(":memory:")

    @hf.task(retry=ONCE)
    async def suicidal() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=1):
        info = await until(await suicidal.enqueue(), State.DEAD)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
    assert info.error is not None
    assert info.error.type == "asyncio.exceptions.CancelledError"


class Sealed(BaseModel):
    secret: int

    @field_serializer("secret")
    def _refuse(self, value: int) -> int:
        raise LookupError("sealed")


def _endless() -> Iterator[int]:
    yield 1
    raise OSError("the line broke")


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (object, "cannot be written as JSON: Unable to serialize unknown type: <class 'object'>"),
    "a thread": (threading.Lock, "cannot be written as JSON: Unable to serialize unknown type: <class '_thread.lock'>"),
    "NaN": (lambda: float("nan"), "NaN is not JSON; use null or a text instead"),
    "too large": (lambda: "x" * 2000, "takes 2,002 bytes as JSON, the limit is 1,024"),
    "too deep": (lambda: _nested(100), "is nested more than 64 levels deep"),
    "circular": (lambda: _circular(), "Circular reference detected (id repeated)"),
    "a NUL": (lambda: "a\0b", "holds a NUL character"),
    "half a surrogate pair": (lambda: "\ud800", "cannot be written as JSON"),
    "a model that refuses": (lambda: Sealed(secret=1), "LookupError: sealed"),
    "a generator that fails": (_endless, "the line broke"),
}


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("name", RESULTS)
@scene
async def test_a_result_that_cannot_be_kept_is_dead_and_its_effect_not_repeated(name: str) -> None:
    hf = Holdfast(":memory:", result_limit=1024)
    make, message = RESULTS[name]
    runs: list[int] = []

    @hf.task(name="make", retry=RetryPolicy(max_attempts=5, base=0))
    async def result():  # type: ignore[no-untyped-def]
        runs.append(1)
        return make()

    async with hf, hf.worker():
        info: JobInfo = await until(await result.enqueue(), State.DEAD)
    assert runs == [1]
    assert (info.reason, info.attempt) == ("bad_result", 1)
    assert info.error is not None
    assert info.error.type == "holdfast.InvalidArguments"
    assert info.error.message.startswith("the result of make")
    assert message in info.error.message


@scene
async def test_a_blocked_event_loop_does_not_cost_the_lease() -> None:
    hf = Holdfast(":memory:", lease_s=1)
    held = threading.Event()

    @hf.task
    async def hog() -> str:
        held.wait(1.5)  # more than a lease
        return "still mine"

    async with hf, hf.worker():
        job = await hog.enqueue()
        assert await job.result(timeout=PATIENCE_S) == "still mine"
        assert (await job.info()).attempts == ()
