"""Parts that could die, or be passed over, without anybody being told."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, Heard, by_hand, scene, until, url_of

from holdfast import Holdfast, SoftTimeout
from holdfast.core.job import WorkerId
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm, wait_hit
from holdfast.stores.base import CancelRequest
from holdfast.stores.sqlite import SqliteStore, opening, writer
from holdfast.telemetry.events import JobStarted, ServiceCrashed
from holdfast.worker.run import Interruption
from holdfast.worker.soft_limit import SoftLimited

ORDINARY = 20


@scene
async def test_an_error_in_one_renewal_does_not_end_the_heartbeat() -> None:
    """Anything but an error of the store ended its coroutine: the lease ran out and nobody was told."""
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker() as worker:
        session = worker.session
        arm("renew_worker.begin", MemoryError)
        await asyncio.wait_for(wait_hit("renew_worker.begin"), PATIENCE_S)
        arm("renew_worker.committed", lambda: None)
        await asyncio.wait_for(wait_hit("renew_worker.committed"), PATIENCE_S / 3)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        assert worker.session is session


@scene
async def test_a_cancel_is_honoured_after_the_watch_for_it_has_crashed() -> None:
    """The watch ended with its first strange error, in silence: no job of that worker could be cancelled again."""
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="wait", timeout=None)
    async def wait() -> None:
        await asyncio.Event().wait()

    async with hf:
        store = hf._open_store()
        look = store.cancel_requests

        async def break_once(worker: WorkerId) -> list[CancelRequest]:
            store.cancel_requests = look  # type: ignore[method-assign]
            raise MemoryError("once")

        store.cancel_requests = break_once  # type: ignore[method-assign]
        heard = Heard(hf, ServiceCrashed)
        async with hf.worker():
            job = await wait.enqueue()
            crash = await heard.next(ServiceCrashed)
            assert (crash.service, crash.error) == ("cancel-watch", "MemoryError: once")
            await job.cancel("not wanted")
            await until(job, State.CANCELLED)


class BrokenDisk:
    """A connection whose next COMMIT fails, and then its ROLLBACK, too."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.failing = ["COMMIT", "ROLLBACK"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if self.failing and statement == self.failing[0]:
            del self.failing[0]
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._db.execute(statement, *values)


@scene
async def test_a_rollback_that_fails_leaves_a_writer_that_answers(tmp_path: Path) -> None:
    """The writer's thread ended with it, and every later call waited for ever."""
    hf = Holdfast(url_of(tmp_path / "h.db"), poll_s=0.05)

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf:
        store = hf._open_store()
        assert isinstance(store, SqliteStore)
        assert store._writer._db is not None
        disk = BrokenDisk(store._writer._db)
        store._writer._db = disk  # type: ignore[assignment]
        try:
            jobs = [await asyncio.wait_for(ping.enqueue(), PATIENCE_S / 3) for _ in range(2)]
        except TimeoutError:
            store._writer._thread = None  # else `close` would wait for it, too
            raise
        assert disk.failing == []
        async with hf.worker():
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == ["pong"] * 2
        assert len(await hf.jobs.list()) == 2


@scene
async def test_a_queue_of_next_to_no_weight_is_worked_on() -> None:
    """What was divided by so small a weight was infinite: the fetcher crashed, again and again."""
    hf = Holdfast(":memory:", poll_s=0.05)
    crashes: list[object] = []
    hf.telemetry.attach(crashes.append, only=ServiceCrashed)

    @hf.task(name="ping")
    async def ping() -> str:
        return "pong"

    async with hf:
        jobs = [await ping.enqueue() for _ in range(3)]
        await hf.queues.set_weights("default", weight=1e-320)
        async with hf.worker():
            assert [await job.result(timeout=PATIENCE_S / 3) for job in jobs] == ["pong"] * 3
    assert crashes == []


@scene
async def test_a_cancel_in_the_tick_of_the_soft_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one CancelledError that came of both was exchanged for a SoftTimeout: the cancel was swallowed."""
    hf = Holdfast(":memory:", poll_s=0.05)
    seen: list[str] = []

    @hf.task(name="wait", soft_timeout=0.05, timeout=None)
    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            seen.append("soft limit")
        return "ran to its end"

    async with hf, hf.worker() as worker:
        strike = SoftLimited.strike

        def strike_and_cancel(limited: SoftLimited, limit_s: float) -> None:
            strike(limited, limit_s)
            assert worker.session is not None
            for run in worker.session._runs.values():
                run.cancel_reason = "not wanted"
                run.interrupt(Interruption.CANCEL)

        monkeypatch.setattr(SoftLimited, "strike", strike_and_cancel)
        info = await until(await wait.enqueue(), State.CANCELLED)
    assert (info.reason, seen) == ("not wanted", [])


@scene
async def test_after_a_suspect_ordinary_work_gets_as_much_time(tmp_path: Path) -> None:
    """One suspect after the other ran alone, and ordinary work had a single claim in between."""
    clock, database = ManualClock(), tmp_path / "h.db"
    hf = Holdfast(url_of(database), clock=clock, lease_s=3600, poll_s=0.05)
    ran: list[str] = []
    there_is_other_work = asyncio.Event()  # else one suspect follows the other at once

    @hf.task(name="suspect", timeout=None)
    async def suspect() -> None:
        await there_is_other_work.wait()
        clock.advance(10)  # as long as it takes
        ran.append("suspect")

    @hf.task(name="ordinary")
    async def ordinary() -> None:
        ran.append("ordinary")

    async with hf:
        suspects = await hf.enqueue_many([suspect.request(), suspect.request()])
        by_hand(database, "UPDATE ready SET losses = 2")
        heard = Heard(hf, JobStarted)
        async with hf.worker():
            await heard.next(JobStarted)
            for _ in range(ORDINARY):
                handle = await ordinary.enqueue()
                there_is_other_work.set()
                await handle.result(timeout=PATIENCE_S)
            assert ran == ["suspect"] + ["ordinary"] * ORDINARY
            clock.advance(10)
            for job in suspects:
                await job.result(timeout=PATIENCE_S)
    assert ran == ["suspect"] + ["ordinary"] * ORDINARY + ["suspect"]


@scene
async def test_an_opening_that_is_cancelled_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that opened the file went on alone: the writer lived for ever, and nobody could close it."""
    hf = Holdfast(":memory:")
    before = set(threading.enumerate())
    begun, go_on = threading.Event(), threading.Event()
    open_writer = opening.open_writer

    def open_slowly(path: str) -> sqlite3.Connection:
        begun.set()
        go_on.wait(PATIENCE_S)
        return open_writer(path)

    monkeypatch.setattr(writer, "open_writer", open_slowly)
    being_opened = asyncio.create_task(hf.open())
    await until_true(begun.is_set, within_s=PATIENCE_S, what="the opening")
    being_opened.cancel()
    await asyncio.wait({being_opened}, timeout=0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await being_opened
    await until_true(
        lambda: set(threading.enumerate()) <= before, within_s=PATIENCE_S / 3, what="the end of all its threads"
    )
    async with hf:
        assert await hf.jobs.list() == []
