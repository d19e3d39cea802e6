"""Those who read: slow reports hold nobody up, and a file that cannot be opened once is opened the next time."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, by_hand, scene, until, url_of

from holdfast import Holdfast
from holdfast.core.state import State
from holdfast.stores.sqlite import SqliteStore, reader
from holdfast.telemetry.events import WorkerStarted


def store_of(hf: Holdfast) -> SqliteStore:
    store = hf._open_store()
    assert isinstance(store, SqliteStore)
    return store


@scene
async def test_slow_reports_do_not_hold_up_the_engine() -> None:
    """Reports had both reader threads; the fetcher's own question stood behind them, and nothing was claimed."""
    hf = Holdfast(":memory:", poll_s=0.05)
    release = threading.Event()

    @hf.task(name="quick")
    async def quick() -> str:
        return "done"

    async with hf:
        reports = store_of(hf)._reports
        entered = threading.Semaphore(0)

        def slow(_: sqlite3.Connection) -> None:
            entered.release()
            release.wait(2 * PATIENCE_S)

        slow_ones = [asyncio.ensure_future(reports.query(slow)) for _ in range(8)]
        try:
            for _ in range(2):
                await asyncio.to_thread(entered.acquire, timeout=PATIENCE_S)
            async with hf.worker():
                assert await (await quick.enqueue()).result(timeout=PATIENCE_S) == "done"
        finally:
            release.set()
            await asyncio.gather(*slow_ones)


@contextmanager
def no_reader_can_open(hf: Holdfast, tries: list[str]) -> Iterator[None]:
    """As when the process has no file descriptor left; every try is noted."""

    def fail(path: str) -> sqlite3.Connection:
        tries.append(path)
        return sqlite3.connect(str(Path(path) / "not" / "a" / "directory"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "open_reader", fail)
        store_of(hf)._reader._local = threading.local()  # each thread opens a new connection with its next query
        yield


@scene
async def test_a_result_comes_although_the_reader_could_not_open_at_first() -> None:
    """Without descriptors for a moment, the one who looks for endings died: no result() of the process ever came."""
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="quick")
    async def quick() -> str:
        return "done"

    async with hf:
        job = await quick.enqueue()
        waiting = asyncio.create_task(job.result(timeout=PATIENCE_S))
        tries: list[str] = []
        with no_reader_can_open(hf, tries):
            await until_true(lambda: len(tries) >= 2 or waiting.done(), within_s=PATIENCE_S, what="two tries")
        async with hf.worker():
            assert await waiting == "done"


@scene
async def test_a_running_job_can_be_cancelled_although_the_reader_could_not_open_at_first() -> None:
    """Without descriptors for a moment, the one who looks for cancellations died: jobs of this worker ran on."""
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="endless")
    async def endless() -> None:
        await asyncio.Event().wait()

    sessions: list[object] = []
    hf.telemetry.attach(sessions.append, only=WorkerStarted)
    async with hf, hf.worker() as worker:
        job = await endless.enqueue()
        await until(job, State.RUNNING)
        tries: list[str] = []
        with no_reader_can_open(hf, tries):
            await until_true(lambda: len(tries) >= 5, within_s=PATIENCE_S, what="five tries")
        await job.cancel("enough")
        try:
            assert (await until(job, State.CANCELLED)).reason == "enough"
        finally:
            worker.stop_now()
    assert len(sessions) == 1, "a new identity would have hidden it"


@pytest.mark.parametrize("weights", ["{oops", "[1]", '"text"'])
@scene
async def test_weights_that_make_no_sense_count_as_not_set(weights: str, tmp_path: Path) -> None:
    """A row that somebody wrote by hand made the fetcher crash at each start, session after session."""
    database = tmp_path / "jobs.db"
    hf = Holdfast(url_of(database))

    @hf.task(name="quick")
    async def quick() -> str:
        return "done"

    async with hf:
        by_hand(database, "INSERT INTO queue_setting (queue, weights) VALUES ('default', ?)", weights)
        async with hf.worker():
            assert await (await quick.enqueue()).result(timeout=PATIENCE_S) == "done"
        assert [queue.settings.weight for queue in await hf.queues.list()] == [1.0]


@scene
async def test_pausing_beside_setting_weights_keeps_both() -> None:
    """Both read the whole row and wrote it back: whoever was second undid the first."""
    hf = Holdfast(":memory:")
    async with hf:
        for turn in range(10):
            await hf.queues.resume("q")
            await asyncio.gather(hf.queues.pause("q"), hf.queues.set_weights("q", weight=2.0 + turn))
            [queue] = await hf.queues.list()
            assert (queue.settings.paused, queue.settings.weight) == (True, 2.0 + turn)
