"""A worker killed, or stopped past its lease, just before its task begins (C4) and just after it has ended (R2)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import psycopg
import pytest
from tests.campaign.child import Child, tail_of, until
from tests.campaign.where import Where
from tests.faults.trial import PATIENCE_S, Trial
from tests.history.records import RunEvent
from tests.postgres.emptied import empty

from holdfast.core.state import State

LEASE_S = 0.7


@contextmanager
def victim(trial: Trial, failpoints: str = "") -> Iterator[Child]:
    """A worker in another process."""
    log = trial.place.logs / "victim.log"
    child = Child("tests.faults.worker", trial.place.directory, LEASE_S, log=log, failpoints=failpoints)
    try:
        yield child
    finally:
        child.kill()


async def _awake_under_a_new_identity(trial: Trial, child: Child, before: object) -> None:
    def is_somebody_else() -> bool:
        now = trial.glance.identity(child.pid)
        return now is not None and now != before

    await until(is_somebody_else, within_s=PATIENCE_S, what="a new identity", log=child.log)


@pytest.mark.parametrize(("point", "runs"), [("C4", 1), ("R2", 2)])
def test_a_job_whose_worker_is_killed_runs_again_and_ends_once(point: str, runs: int, place: Path) -> None:
    async def run() -> None:
        async with Trial(place, lease_s=LEASE_S) as trial:
            handle = await trial.enqueue(trial.work, 7)
            with victim(trial, f"{point}=kill9") as child:
                assert await child.ended(within_s=PATIENCE_S) == -SIGKILL
            async with trial.hf.worker():
                assert await handle.result(timeout=PATIENCE_S) == 7
            assert await trial.causes(handle.id) == ["lease_expired"]
            report = trial.judged()
            assert report.sound, report
            assert report.runs == runs  # whatever was done before R2 is done again: at least once

    asyncio.run(run())


async def _is_store_free(trial: Trial, child: Child) -> bool:
    """Once it is stopped: whether it did not happen to hold the file's lock, which would stop everybody.

    On a server nobody can: its own row may be locked, and its jobs wait until the server ends its transaction.
    """
    await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop", log=child.log)
    if trial.where.is_postgres:
        return not trial.glance.query(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in trans%%' "
            "AND application_name LIKE 'holdfast%%'"
        )
    with closing(sqlite3.connect(trial.where.path, isolation_level=None, timeout=0.2)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


def _once_the_stop_leaves_the_store_free(directory: Path, run: Callable[[Path], Coroutine[Any, Any, bool]]) -> None:
    """A stop strikes all threads of a process, one of which may be writing; then it proves nothing here."""
    for n in range(10):
        again = directory / str(n)
        again.mkdir()
        where = Where.of(directory)
        if where.is_postgres:
            where.say(again)
            with psycopg.connect(where.url, autocommit=True) as connection:
                empty(connection, where.schema)
        if asyncio.run(run(again)):
            return
    pytest.fail("the worker was stopped with the store locked ten times in a row")


@pytest.mark.parametrize("point", ["C4", "R2"])
def test_a_worker_that_slept_past_its_lease_changes_nothing(point: str, place: Path) -> None:
    async def run(directory: Path) -> bool:
        async with Trial(directory, lease_s=LEASE_S) as trial:
            handle = await trial.enqueue(trial.work, 7)
            with victim(trial, f"{point}=stop") as child:
                if not await _is_store_free(trial, child):
                    return False
                zombie = trial.glance.identity(child.pid)
                async with trial.hf.worker():
                    assert await handle.result(timeout=PATIENCE_S) == 7
                    info = await handle.info()
                    child.signal(SIGCONT)
                    await _awake_under_a_new_identity(trial, child, zombie)
                child.signal(SIGTERM)
                assert await child.ended(within_s=PATIENCE_S) == 0, tail_of(child.log)
            assert await handle.info() == info
            assert info.worker != str(zombie)
            assert await trial.causes(handle.id) == ["lease_expired"]
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 2
            return True

    _once_the_stop_leaves_the_store_free(place, run)


def test_every_write_of_a_zombie_is_refused(place: Path) -> None:
    async def run(directory: Path) -> bool:
        async with Trial(directory, lease_s=LEASE_S) as trial:
            handle = await trial.enqueue(trial.hold, 7)
            with victim(trial) as child:
                await trial.started()
                child.signal(SIGSTOP)
                if not await _is_store_free(trial, child):
                    return False
                zombie = trial.glance.identity(child.pid)
                async with trial.hf.worker():
                    await trial.started(2)
                    trial.release()
                    assert await handle.result(timeout=PATIENCE_S) == 7
                    info = await handle.info()
                    child.signal(SIGCONT)
                    await _awake_under_a_new_identity(trial, child, zombie)
                child.signal(SIGTERM)
                assert await child.ended(within_s=PATIENCE_S) == 0, tail_of(child.log)
            outcomes = {line.worker: line.outcome for line in trial.runs(RunEvent.END)}
            assert outcomes[str(zombie)] in ("CancelledError", "LeaseLost")  # it was told, one way or the other
            assert info.state is State.SUCCEEDED
            assert info.stage == f"by {info.worker}"  # not the zombie's
            assert await handle.info() == info
            report = trial.judged()
            assert report.sound, report
            return True

    _once_the_stop_leaves_the_store_free(place, run)


def test_a_nap_shorter_than_the_lease_costs_nothing(place: Path) -> None:
    async def run() -> None:
        async with Trial(place, lease_s=30.0) as trial:
            handle = await trial.enqueue(trial.hold, 7)
            log = trial.place.logs / "napper.log"
            child = Child("tests.faults.worker", place, 30.0, log=log)
            try:
                await trial.started()
                child.signal(SIGSTOP)
                await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop")
                trial.release()
                child.signal(SIGCONT)
                assert await handle.result(timeout=PATIENCE_S) == 7
            finally:
                child.kill()
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 1

    asyncio.run(run())
