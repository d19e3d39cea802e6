"""The store is locked, broken for a moment, or its disk is full: what runs goes on, nothing accepted is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.child import until
from tests.faults.trial import PATIENCE_S, Trial
from tests.history.records import RunEvent

from holdfast import JobHandle, StoreBroken, StoreUnavailable
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, hits
from holdfast.stores.sqlite import opening
from holdfast.telemetry.events import ServiceCrashed, StoreDown, StoreUp, WorkerLeaseLost


@contextmanager
def locked(trial: Trial) -> Iterator[None]:
    """Somebody else holds the write lock, as a stopped process or a careless shell would."""
    other = sqlite3.connect(trial.where.path, isolation_level=None, timeout=PATIENCE_S)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers give up on a lock soon."""
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_worker_outlasts_a_lock_and_keeps_what_it_runs(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path, lease_s=20.0) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            with locked(trial):
                await trial.heard(StoreDown)
                trial.release()  # the run goes on, though its progress and its outcome cannot be written
                await until(lambda: trial.runs(RunEvent.EFFECT), within_s=PATIENCE_S, what="the effect")
            assert await handle.result(timeout=PATIENCE_S) == 7
            await trial.heard(StoreUp)
            later = await trial.enqueue(trial.work, 8)
            assert await later.result(timeout=PATIENCE_S) == 8
            assert trial.of(WorkerLeaseLost) == []
            assert (len(trial.of(StoreDown)), len(trial.of(StoreUp))) == (1, 1), trial.events
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 2

    asyncio.run(run())


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_starts_at_a_locked_store_waits_for_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path) as trial:
            handle = await trial.enqueue(trial.work, 7)
            worker, given_up = trial.hf.worker(), trial.hf.worker()
            with locked(trial):
                starting = [asyncio.create_task(each.start()) for each in (worker, given_up)]
                await trial.heard(StoreDown, 2)
                await given_up.stop()  # also one that waits can be stopped
                assert not starting[0].done()
            await asyncio.gather(*starting)
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert given_up.failure is None
            await worker.stop()

    asyncio.run(run())


@pytest.mark.usefixtures("impatient")
def test_a_lock_longer_than_the_lease_costs_the_lease_and_nothing_else(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path, lease_s=0.6) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            with locked(trial):
                await trial.heard(WorkerLeaseLost)
                await until(lambda: trial.runs(RunEvent.END), within_s=PATIENCE_S, what="the run to be stopped")
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert await trial.causes(handle.id) == ["lease_expired"]
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


@pytest.mark.usefixtures("impatient")
def test_an_enqueue_at_a_locked_store_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with Trial(tmp_path, wait_s=0.2) as trial:
            with locked(trial), pytest.raises(StoreUnavailable, match="locked by another process"):
                await trial.work.enqueue(1)
            assert trial.glance.counts()["job"] == 0

    asyncio.run(run())


@pytest.mark.parametrize("verb", ["claim_jobs", "settle_jobs", "renew_worker"])
def test_a_part_of_the_worker_that_breaks_leaves_no_job_behind(verb: str, place: Path) -> None:
    """Not an outage but an error that nobody expects: the jobs must not stay leased to a worker half dead."""

    async def run() -> None:
        async with Trial(place, concurrency=100) as trial:
            arm(f"{verb}.inside", StoreBroken("broken for a moment"))
            handles = [await trial.enqueue(trial.work, n) for n in range(3)]
            async with trial.hf.worker():
                assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [0, 1, 2]
                await until(lambda: hits(f"{verb}.inside"), within_s=PATIENCE_S, what="the strike")
                await until(lambda: hits(f"{verb}.inside") > 1, within_s=PATIENCE_S, what="the next try")
            # Claims and renewals are tried again; an outcome that cannot be written costs the worker its identity.
            assert len(trial.of(ServiceCrashed)) == (verb == "settle_jobs")
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("SYSTEM TEST NOT RUN: mounting a small tmpfs needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"SYSTEM TEST NOT RUN: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.system
def test_a_full_disk_loses_nothing_that_was_accepted(small_disk: Path) -> None:
    async def run() -> None:
        trial = Trial(small_disk / "trial", wait_s=0.1, lease_s=20.0)
        async with trial:
            handle = await trial.enqueue(trial.hold, 7)
            async with trial.hf.worker():
                await trial.started()
                filler = small_disk / "filler"
                _fill(filler, leave=300_000)
                accepted: list[JobHandle[Any]] = []
                with pytest.raises(StoreUnavailable, match="the disk is full; nothing of this write was kept"):
                    await _enqueue_without_end(trial, accepted)
                assert accepted
                assert trial.glance.integrity() == "ok"
                filler.unlink()
                trial.release()
                assert await handle.result(timeout=PATIENCE_S) == 7
            found = [await trial.hf.jobs.get(job.id) for job in accepted]
            assert [info.state for info in found] == [State.READY] * len(accepted)
            assert trial.glance.counts()["job"] == len(accepted) + 1
            assert trial.glance.integrity() == "ok"

    asyncio.run(run())


async def _enqueue_without_end(trial: Trial, accepted: list[JobHandle[Any]]) -> None:
    task = trial.hf.named("nobody.knows").options(queue="big")
    while len(accepted) < 10_000:
        accepted.append(await task.enqueue("x" * 2_000))


def _fill(path: Path, *, leave: int) -> None:
    space = os.statvfs(path.parent)
    path.write_bytes(b"\0" * (space.f_bavail * space.f_frsize - leave))
