"""What is done around a worker's work: hooks and lifespan, in order, in full, and with a sentence when they fail."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast, HoldfastError, InvalidOptions, StartupFailed


def hooked(hf: Holdfast, log: list[str]) -> None:
    @hf.on_startup
    async def first() -> None:
        log.append("start 1")

    @hf.on_startup
    def second() -> None:
        log.append("start 2")

    @hf.on_shutdown
    def undo_first() -> None:
        log.append("stop 1")

    @hf.on_shutdown
    async def undo_second() -> None:
        log.append("stop 2")


@scene
async def test_hooks_run_in_order_around_the_work_and_in_reverse_after_it() -> None:
    hf, log = Holdfast(":memory:"), list[str]()
    hooked(hf, log)

    @hf.task
    async def work() -> None:
        log.append("work")

    async with hf:
        job = await work.enqueue()
        assert log == []
        async with hf.worker():
            await job.result(timeout=PATIENCE_S)
        assert log == ["start 1", "start 2", "work", "stop 2", "stop 1"]


@scene
async def test_a_def_hook_runs_in_a_thread() -> None:
    hf, threads = Holdfast(":memory:"), list[int]()
    hf.on_startup(lambda: threads.append(threading.get_ident()))
    async with hf, hf.worker():
        assert threads != [threading.get_ident()]
        assert len(threads) == 1


@pytest.mark.parametrize("style", ["generator", "context manager"])
@scene
async def test_a_lifespan_is_outside_of_the_hooks(style: str) -> None:
    log, apps = list[str](), list[Any]()

    async def lifespan(app: Holdfast) -> AsyncIterator[None]:
        apps.append(app)
        log.append("enter")
        yield
        log.append("exit")

    hf = Holdfast(":memory:", lifespan=lifespan if style == "generator" else asynccontextmanager(lifespan))
    hooked(hf, log)
    async with hf, hf.worker():
        assert log == ["enter", "start 1", "start 2"]
    assert log == ["enter", "start 1", "start 2", "stop 2", "stop 1", "exit"]
    assert apps == [hf]


@scene
async def test_every_worker_has_a_life_of_its_own() -> None:
    hf, log = Holdfast(":memory:"), list[str]()
    hooked(hf, log)
    async with hf:
        async with hf.worker(), hf.worker():
            assert log.count("start 1") == 2
        assert log.count("stop 1") == 2


@scene
async def test_an_error_at_the_start_stops_the_worker_with_a_sentence_and_everything_is_undone() -> None:
    log: list[str] = []

    async def lifespan(app: Holdfast) -> AsyncIterator[None]:
        yield
        log.append("exit")

    hf = Holdfast(":memory:", lifespan=lifespan)
    hooked(hf, log)

    @hf.on_startup
    async def connect() -> None:
        raise ConnectionError("refused")

    @hf.on_startup
    async def never() -> None:
        log.append("never")

    async with hf:
        worker = hf.worker()
        with pytest.raises(StartupFailed) as failed:
            await worker.start()
        assert str(failed.value).startswith("the worker did not start: on_startup ")
        assert str(failed.value).endswith("connect raised ConnectionError: refused")
        assert isinstance(failed.value.__cause__, ConnectionError)
        await worker.stop()
        assert await hf.workers.list() == []
    assert log == ["start 1", "start 2", "stop 2", "stop 1", "exit"]


def test_run_worker_ends_with_the_sentence() -> None:
    hf = Holdfast(":memory:")

    @hf.on_startup
    def connect() -> None:
        raise ConnectionError("refused")

    with pytest.raises(StartupFailed, match="connect raised ConnectionError: refused"):
        hf.run_worker()


@scene
async def test_an_error_at_the_end_is_reported_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def lifespan(app: Holdfast) -> AsyncIterator[None]:
        yield
        log.append("exit")
        raise ValueError("cannot leave")

    hf, log = Holdfast(":memory:", lifespan=lifespan), list[str]()
    hooked(hf, log)

    @hf.on_shutdown
    async def stumble() -> None:
        raise OSError("cannot tidy up")

    with caplog.at_level(logging.ERROR, "holdfast"):
        async with hf, hf.worker():
            pass
    assert log[2:] == ["stop 2", "stop 1", "exit"]
    told = " ".join(caplog.messages)
    assert "stumble crashed: OSError: cannot tidy up" in told
    assert "the lifespan crashed: ValueError: cannot leave" in told


@scene
async def test_a_worker_that_has_to_stop_now_does_not_wait_for_its_start() -> None:
    hf, log = Holdfast(":memory:"), list[str]()
    hooked(hf, log)
    hanging = asyncio.Event()

    @hf.on_startup
    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    async with hf:
        worker = hf.worker()
        starting = asyncio.create_task(worker.start())
        await hanging.wait()
        worker.stop_now()
        await asyncio.wait_for(asyncio.gather(starting, worker.stop()), PATIENCE_S)
    assert log == ["start 1", "start 2", "stop 2", "stop 1"]


@scene
async def test_a_worker_that_is_stopped_while_it_starts_signs_off() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        worker = hf.worker()
        starting = asyncio.create_task(worker.start())
        while worker.session is None:
            await asyncio.sleep(0)
        await worker.stop()
        await starting
        assert await hf.workers.list() == []
        assert "holdfast-heartbeat" not in {thread.name for thread in threading.enumerate()}


@scene
async def test_a_worker_that_has_to_stop_now_gives_its_end_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.worker.worker._END_WITHIN_S", 0.02)
    hf, hanging = Holdfast(":memory:"), asyncio.Event()

    @hf.on_shutdown
    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    async with hf:
        worker = hf.worker()
        await worker.start()
        stopping = asyncio.create_task(worker.stop())
        await hanging.wait()
        worker.stop_now()
        worker.stop_now()
        await asyncio.wait_for(stopping, PATIENCE_S)
        assert worker.failure is None


@pytest.mark.parametrize(
    ("register", "sentence"),
    [
        (lambda hf: hf.on_startup(5), "@on_startup: 5 is not a function"),
        (
            lambda hf: hf.on_shutdown(with_parameter),
            "@on_shutdown: with_parameter is called without arguments: missing",
        ),
        (lambda hf: hf.on_startup(generator), "@on_startup: generator is not a function (def or async def)"),
        (lambda hf: Holdfast(":memory:", lifespan=coroutine), "lifespan=coroutine: needs an async generator function"),
        (lambda hf: Holdfast(":memory:", lifespan=5), "lifespan=5: needs an async generator function"),
    ],
)
def test_what_is_no_hook_is_refused_in_a_sentence(register: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        register(Holdfast(":memory:"))
    assert str(refused.value).startswith(sentence)


@scene
async def test_a_lifespan_that_gives_no_context_manager_stops_the_worker() -> None:
    async with (hf := Holdfast(":memory:", lifespan=lambda app: 5)):
        with pytest.raises(HoldfastError, match="gives no async context manager"):
            await hf.worker().start()


async def with_parameter(app: object) -> None: ...


async def coroutine(app: object) -> None: ...


async def generator() -> AsyncIterator[None]:
    yield
