"""What a PostgreSQL server may do to its clients: end their connections, restart, refuse, roll back, lack space."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.campaign.child import until
from tests.campaign.where import Where
from tests.faults.test_worker_moments import victim
from tests.faults.trial import PATIENCE_S, Trial
from tests.history.postgres_audit import looking_into
from tests.postgres.fixtures import StartPostgres
from tests.postgres.shared import DURABLE, QUICK, chosen_binaries, own_directory

from holdfast import JobHandle, OutcomeUnknown, StoreUnavailable
from holdfast.core.state import State
from holdfast.local import LocalPostgres
from holdfast.stores.postgres import PostgresStore
from holdfast.telemetry.events import StoreDown, StoreUp
from holdfast.testing.contracts.arrange import a_job, insert, start, state

PURPOSES = ("insert", "insert keyed", "gates", "claim", "settle", "verbs", "reports", "lease", "wakeups")


async def _at(directory: Path, server: LocalPostgres, **settings: Any) -> Trial:
    """A trial on a server of its own."""
    where = Where(url=server.url, schema="holdfast")
    where.say(directory)
    store = PostgresStore(where.url)
    await store.migrate()
    await store.close()
    return Trial(directory, **settings)


@asynccontextmanager
async def _producing(trial: Trial) -> AsyncIterator[list[JobHandle[int]]]:
    """Jobs of every way in, all the time; whoever enters may look at what was accepted."""
    accepted: list[JobHandle[int]] = []
    over = asyncio.Event()

    async def produce(mine: int) -> None:
        n = mine
        while not over.is_set():
            task = trial.work.options(key=f"key-{n}") if n % 3 == 0 else trial.work
            accepted.append(await trial.enqueue(task, n))
            with suppress(StoreUnavailable):  # who reads is told, and may ask again
                await accepted[-1].info()
            n += 10
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as producers:
        for mine in range(3):
            producers.create_task(produce(mine))
        try:
            yield accepted
        finally:
            over.set()


async def _all_end(trial: Trial, accepted: list[JobHandle[int]]) -> None:
    for handle in accepted:
        await handle.result(timeout=PATIENCE_S)
    report = trial.judged()
    assert report.sound, report
    assert report.jobs == len(accepted)


def test_every_connection_may_be_ended_under_load(postgres_place: Path) -> None:
    async def run() -> None:
        # The lease outlasts a busy machine: what is lost here is connections.
        async with Trial(postgres_place, lease_s=10.0, wait_s=30.0) as trial, trial.hf.worker():
            async with _producing(trial) as accepted:
                for purpose in PURPOSES:
                    ended: set[int] = set()

                    def end(purpose: str = purpose, ended: set[int] = ended) -> bool:
                        rows = trial.glance.query(
                            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity "
                            "WHERE datname = current_database() AND application_name = ?",
                            f"holdfast {purpose}",
                        )
                        ended |= {pid for pid, _ in rows}
                        return len(ended) >= 2  # it was ended, made anew, and ended again

                    await until(end, within_s=PATIENCE_S, what=f"a new connection for {purpose}")
                    done = len(accepted)
                    await until(lambda done=done: len(accepted) > done + 3, within_s=PATIENCE_S, what="more jobs")
            await _all_end(trial, accepted)

    asyncio.run(run())


def test_an_immediate_restart_under_load_loses_nothing(start_postgres: StartPostgres, tmp_path: Path) -> None:
    async def run() -> None:
        server = start_postgres(settings=DURABLE)
        trial = await _at(tmp_path, server, lease_s=5.0, wait_s=30.0)
        async with trial:
            with victim(trial):
                async with trial.hf.worker(), _producing(trial) as accepted:
                    for _ in range(2):
                        before = len(accepted)
                        await until(lambda n=before: len(accepted) > n + 20, within_s=PATIENCE_S, what="jobs")
                        await asyncio.to_thread(server.restart, "immediate")
                    before = len(accepted)
                    await until(lambda: len(accepted) > before + 20, within_s=PATIENCE_S, what="jobs after it")
                async with trial.hf.worker():
                    await _all_end(trial, accepted)

    asyncio.run(run())


def test_a_worker_that_starts_before_its_server_waits_for_it(start_postgres: StartPostgres, tmp_path: Path) -> None:
    async def run() -> None:
        server = start_postgres()
        trial = await _at(tmp_path, server)
        async with trial:
            handle = await trial.enqueue(trial.work, 7)
        server.stop()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):  # whoever is not a worker is told
            await trial.hf.open()
        with victim(trial) as child:
            waits = lambda: "does not answer" in child.log.read_text()  # noqa: E731
            await until(waits, within_s=PATIENCE_S, what="the worker to find no server")
            assert child.alive
            await asyncio.to_thread(server.start)
            is_done = lambda: trial.glance.counts()["done"] == 1  # noqa: E731
            await until(is_done, within_s=PATIENCE_S, what="the job to be done", log=child.log)
        async with trial.hf:
            assert (await trial.hf.jobs.get(handle.id)).result == 7

    asyncio.run(run())


def test_a_server_without_a_free_connection_says_so_and_is_used_when_it_has_one(
    start_postgres: StartPostgres, tmp_path: Path
) -> None:
    async def run() -> None:
        reserved = {"superuser_reserved_connections": "0", "max_wal_senders": "0", "max_connections": "12"}
        server = start_postgres(settings=reserved)
        trial = await _at(tmp_path, server, wait_s=0.2)
        async with trial:
            taken: list[psycopg.Connection[Any]] = []
            while True:
                try:
                    taken.append(psycopg.connect(server.url))
                except psycopg.OperationalError:
                    break
            with pytest.raises(StoreUnavailable, match="too many clients"):
                await trial.work.enqueue(1)
            for connection in taken:
                connection.close()
            handle = await _accepted(trial)
            async with trial.hf.worker():
                assert await handle.result(timeout=PATIENCE_S) == 7

    asyncio.run(run())


async def _accepted(trial: Trial) -> JobHandle[int]:
    """As soon as the server has noticed."""
    while True:
        try:
            return await trial.enqueue(trial.work, 7)
        except (StoreUnavailable, OutcomeUnknown):
            await asyncio.sleep(0.02)


def test_a_server_that_is_read_only_for_a_while_is_waited_for(start_postgres: StartPostgres, tmp_path: Path) -> None:
    async def run() -> None:
        server = start_postgres()
        trial = await _at(tmp_path, server, wait_s=0.2, lease_s=30.0)
        async with trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            _set(server, "default_transaction_read_only", "on")
            with pytest.raises(StoreUnavailable, match="read-only"):
                await _enqueue_without_end(trial)  # the sessions hear of it when they are asked next
            trial.release()
            await trial.heard(StoreDown)
            _set(server, "default_transaction_read_only", "off")
            assert await handle.result(timeout=PATIENCE_S) == 7
            await trial.heard(StoreUp)
            report = trial.judged(quiescent=False)
            assert report.sound, report

    asyncio.run(run())


def _set(server: LocalPostgres, setting: str, value: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET {setting} = {value}")  # type: ignore[call-overload]
        connection.execute("SELECT pg_reload_conf()")


def test_a_stricter_isolation_of_the_database_is_not_ours(postgres_database: str, tmp_path: Path) -> None:
    async def run() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_isolation = serializable')  # type: ignore[call-overload]
        where = Where(url=postgres_database, schema="holdfast")
        where.say(tmp_path)
        store = PostgresStore(where.url)
        await store.migrate()
        await store.close()
        async with Trial(tmp_path, concurrency=50) as trial, trial.hf.worker(), trial.hf.worker():
            accepted = [await trial.enqueue(trial.fail_once, n) for n in range(50)]
            await _all_end(trial, accepted)
            assert trial.of(StoreDown) == []

    asyncio.run(run())


def test_a_deadlock_is_somebody_elses_and_the_verb_is_repeated(postgres_place: Path) -> None:
    async def run() -> None:
        where = Where.of(postgres_place)
        store = where.store()
        await store.open()
        first, second = [await start(store) for _ in range(2)]
        with closing(psycopg.connect(where.url)) as side, looking_into(where.url, where.schema) as look:
            side.execute("SELECT set_config('search_path', %s, false)", [where.schema])
            side.execute("SET deadlock_timeout = '1min'")  # so that it is we who find it
            lock = "SELECT 1 FROM active WHERE job_id = %s FOR UPDATE"
            side.execute(lock, [second.id])
            asking = asyncio.create_task(insert(store, a_job(waits_for=(first.id, second.id), queue="after")))
            waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            await until(lambda: look.execute(waiting).fetchall(), within_s=PATIENCE_S, what="the insert to wait")
            await asyncio.to_thread(side.execute, lock, [first.id])  # which it holds: one of the two must give way
            assert not asking.done()
            side.rollback()
            [follower] = await asyncio.wait_for(asking, PATIENCE_S)
        assert await state(store, follower) is State.BLOCKED
        await store.close()

    asyncio.run(run())


async def _enqueue_without_end(trial: Trial) -> None:
    while True:
        await trial.enqueue(trial.work, 8)


async def _fill(trial: Trial, accepted: list[JobHandle[Any]]) -> None:
    task = trial.hf.named("nobody.knows").options(queue="big")
    while len(accepted) < 20_000:
        accepted += await trial.hf.enqueue_many([task.request("x" * 8_000) for _ in range(50)])


@pytest.fixture
def small_disk() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("SYSTEM TEST NOT RUN: mounting a small tmpfs needs root")
    disk = own_directory()  # the server runs as somebody else where root starts it, and has to reach it
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"SYSTEM TEST NOT RUN: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        disk.chmod(0o755)
        yield disk
    finally:
        # Lazily: the server was told to end, and may still be writing its last files there.
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        disk.rmdir()


@pytest.mark.system
def test_a_full_disk_loses_nothing_that_was_accepted(small_disk: Path, tmp_path: Path) -> None:
    async def run(server: LocalPostgres) -> None:
        trial = await _at(tmp_path, server, wait_s=0.2, unknown_after_s=2.0)
        async with trial:
            space = os.statvfs(small_disk)
            filler = small_disk / "filler"
            filler.write_bytes(b"\0" * (space.f_bavail * space.f_frsize - 8_000_000))
            accepted: list[JobHandle[Any]] = []
            # It refuses, or it panics, which leaves the last call without an answer, and comes back, or does not.
            with pytest.raises((StoreUnavailable, OutcomeUnknown)):
                await _fill(trial, accepted)
            assert accepted
            filler.unlink()
            if not server.running:
                await asyncio.to_thread(server.start)
            await _accepted(trial)
            found = trial.glance.query("SELECT id FROM job WHERE queue = 'big'")
            assert {handle.id for handle in accepted} <= {job_id for (job_id,) in found}

    settings = QUICK | {"max_wal_size": "32MB", "min_wal_size": "32MB", "wal_recycle": "off"}
    with LocalPostgres(small_disk / "server", settings=settings, binaries=chosen_binaries()) as server:
        asyncio.run(run(server))
