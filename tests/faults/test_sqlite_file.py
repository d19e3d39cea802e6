"""What can happen to the file of a SQLite store under the processes that have it open."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.campaign.child import until
from tests.faults.trial import PATIENCE_S, Trial

from holdfast import StoreBroken

#: After so many a commit brings the log into the file, unless somebody reads an older state.
CHECKPOINT_BYTES = 1000 * 4096


def _delete(file: Path, aside: Path) -> None:
    os.link(file, aside)
    file.unlink()


def _replace(file: Path, aside: Path) -> None:
    file.rename(aside)
    shutil.copy(aside, file)


@pytest.mark.parametrize("harm", [_delete, _replace, Path.rename])
def test_a_file_that_loses_its_name_takes_nothing_more_and_loses_nothing(
    harm: Callable[[Path, Path], object], tmp_path: Path
) -> None:
    async def run() -> None:
        async with Trial(tmp_path) as trial:
            file, aside = Path(trial.where.path), tmp_path / "aside"
            accepted = await trial.enqueue(trial.work, 1)
            harm(file, aside)
            with pytest.raises(StoreBroken, match="was deleted, moved or replaced while it was open"):
                await trial.work.enqueue(2)
            aside.replace(file)
            later = await trial.enqueue(trial.work, 3)
            async with trial.hf.worker():
                assert [await each.result(timeout=PATIENCE_S) for each in (accepted, later)] == [1, 3]
            report = trial.judged()
            assert report.sound, report
            assert report.jobs == 2

    asyncio.run(run())


def test_a_worker_whose_file_is_gone_ends_and_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path) as trial:
            worker = trial.hf.worker()
            await worker.start()
            handle = await trial.enqueue(trial.hold, 1)
            await trial.started()
            Path(trial.where.path).rename(tmp_path / "aside")
            await until(lambda: worker.failure, within_s=PATIENCE_S, what="the end of the worker")
            assert isinstance(worker.failure, StoreBroken)
            await worker.stop()
            (tmp_path / "aside").rename(trial.where.path)
            trial.release()
            async with trial.hf.worker():
                assert await handle.result(timeout=PATIENCE_S) == 1
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


def test_who_reads_while_the_file_is_gone_puts_no_empty_one_in_its_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path) as trial:
            file, aside = Path(trial.where.path), tmp_path / "aside"
            file.rename(aside)
            with pytest.raises(StoreBroken, match="cannot be opened"):
                await trial.hf.queues.list()  # the first that is read: the connection is not there yet
            assert not file.exists()
            aside.rename(file)
            assert await trial.hf.queues.list() == []

    asyncio.run(run())


def test_a_reader_that_never_ends_holds_nobody_up_and_the_log_is_used_again_after_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path, high_watermark=100_000) as trial:
            log = Path(f"{trial.where.path}-wal")
            with closing(sqlite3.connect(trial.where.path, isolation_level=None)) as stuck:
                stuck.execute("BEGIN")
                stuck.execute("SELECT count(*) FROM job").fetchall()
                while log.stat().st_size < 3 * CHECKPOINT_BYTES:
                    await _write_much(trial)
                grown = log.stat().st_size
                handle = await trial.enqueue(trial.work, 7)
                async with trial.hf.worker(queues=("default",)):
                    assert await handle.result(timeout=PATIENCE_S) == 7
            for _ in range(20):
                await _write_much(trial)
            assert log.stat().st_size < 1.3 * grown
            assert trial.glance.integrity() == "ok"

    asyncio.run(run())


async def _write_much(trial: Trial) -> None:
    task = trial.hf.named("nobody.knows").options(queue="big")
    await trial.hf.enqueue_many([task.request("x" * 8_000) for _ in range(50)])
