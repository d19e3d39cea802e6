"""Answers of a PostgreSQL server that are lost, held or never come, by way of a proxy that does so to real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.campaign.child import until
from tests.campaign.where import Where
from tests.faults.trial import PATIENCE_S, Trial
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast import OutcomeUnknown, StoreUnavailable
from holdfast.client import enqueuer
from holdfast.core.state import State
from holdfast.runtime import failpoints
from holdfast.runtime.backoff import Backoff
from holdfast.stores.base import Hint, Inserted
from holdfast.stores.postgres import PostgresStore, connections, wakeups
from holdfast.telemetry.events import JobLost, StoreDown, StoreUp, WorkerLeaseLost
from holdfast.testing.contracts.arrange import a_job

INSERT, CLAIM, SETTLE = r"\.insert_(new_)?jobs\(", r"\.claim_jobs\(", r"\.settle_(successes|outcomes)\("


@pytest.fixture
def proxy(postgres_place: Path) -> Iterator[PostgresProxy]:
    """Between the app of a trial and the server; the judge goes past it."""
    with PostgresProxy(Where.of(postgres_place).url) as proxy:
        yield proxy


class Through(Trial):
    """A trial whose app goes through the proxy."""

    def __init__(self, directory: Path, proxy: PostgresProxy, **settings: object) -> None:
        self.proxy_url = proxy.url
        super().__init__(directory, **settings)

    def address(self) -> str:
        return self.proxy_url


def test_two_thousand_enqueues_with_hundreds_of_lost_answers_are_two_thousand_jobs(
    postgres_place: Path, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueuer, "Backoff", lambda base_s, cap_s: Backoff(base_s / 10, cap_s / 100))

    async def run() -> None:
        async with Through(postgres_place, proxy, high_watermark=100_000) as trial:
            handles = {}

            async def caller(mine: range) -> None:
                for n in mine:
                    task = trial.work.options(key=f"key-{n}") if n % 50 == 0 else trial.work
                    handles[n] = await task.enqueue(n)

            lost = proxy.arm(INSERT + "|^COMMIT", Fate.LOSE_ANSWER, probability=0.6, seed=1)
            await asyncio.gather(*(caller(range(n, 2_000, 100)) for n in range(100)))
            while lost.sprung < 200:  # most went by in large batches: some one by one, until it was often enough
                n = len(handles)
                handles[n] = await trial.work.enqueue(n)
            lost.disarm()
            found = trial.glance.query("SELECT id, convert_from(payload, 'UTF8')::json->'args'->>0 FROM job")
            assert {job_id: int(n) for job_id, n in found} == {handle.id: n for n, handle in handles.items()}
            assert len(handles) >= 2_000
            assert trial.glance.counts()["ready"] == len(handles)

    asyncio.run(run())


def test_claims_whose_answers_are_lost_are_handed_back_and_run_once(postgres_place: Path, proxy: PostgresProxy) -> None:
    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=2.0, concurrency=20) as trial:
            handles = [await trial.enqueue(trial.work, n) for n in range(60)]
            lost = proxy.arm(CLAIM, Fate.LOSE_ANSWER, times=4)
            async with trial.hf.worker():
                assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == list(range(60))
            assert lost.sprung == 4
            causes = [cause for handle in handles for cause in await trial.causes(handle.id)]
            assert causes
            assert set(causes) == {"claim_lost"}
            assert trial.of(WorkerLeaseLost) == []
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 60  # what was claimed in vain never came to run, and is not charged
            assert {(await handle.info()).attempt for handle in handles} == {1}

    asyncio.run(run())


def test_outcomes_whose_answers_are_lost_are_written_once(postgres_place: Path, proxy: PostgresProxy) -> None:
    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=5.0) as trial:
            lost = proxy.arm(SETTLE + "|^COMMIT", Fate.LOSE_ANSWER, probability=0.5, seed=3)
            async with trial.hf.worker():
                done = [await trial.enqueue(trial.work, n) for n in range(40)]
                retried = [await trial.enqueue(trial.fail_once, n) for n in range(20)]
                for handles in (done, retried):
                    assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == list(range(len(handles)))
                lost.disarm()
            assert lost.sprung >= 5
            assert trial.of(JobLost) == []  # `already`, not `lost`
            assert {tuple(await trial.causes(handle.id)) for handle in retried} == {("retry",)}
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 40 + 40

    asyncio.run(run())


@pytest.mark.parametrize("statement", [INSERT, CLAIM, SETTLE])
def test_a_statement_that_is_never_answered_costs_a_connection_and_nothing_else(
    statement: str, postgres_place: Path, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PROMPT_S", 0.5)  # the others may take longer: nobody waits for them

    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=4.0) as trial:
            hung = proxy.arm(statement, Fate.HANG, times=2)
            handles = [await trial.enqueue(trial.work, n) for n in range(3)]
            async with trial.hf.worker():
                assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [0, 1, 2]
            assert hung.sprung == 2
            assert trial.of(WorkerLeaseLost) == []
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 3

    asyncio.run(run())


def test_a_heartbeat_that_is_never_answered_does_not_cost_the_lease(postgres_place: Path, proxy: PostgresProxy) -> None:
    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=8.0) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            hung = proxy.arm(r"UPDATE \S+\.worker SET lease_until", Fate.HANG, times=1)
            await until(lambda: hung.sprung, within_s=PATIENCE_S, what="a heartbeat")
            failpoints.arm("renew_worker.committed", lambda: None, times=None)
            await until(lambda: failpoints.hits("renew_worker.committed"), within_s=PATIENCE_S, what="the next one")
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert trial.of(WorkerLeaseLost) == []
            assert await trial.causes(handle.id) == []

    asyncio.run(run())


def _listeners(where: Where) -> set[int]:
    with psycopg.connect(where.url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = 'holdfast wakeups'"
        )
        return {pid for (pid,) in rows}


def test_a_listener_that_hears_nothing_any_more_is_replaced(
    postgres_place: Path, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "PROBE_S", 0.2)
    monkeypatch.setattr(wakeups, "PROBE_ANSWER_S", 0.5)

    async def run() -> None:
        silent = proxy.arm("LISTEN", Fate.FALL_SILENT, times=1)
        # Nobody looks by himself in this test: what is heard was told.
        async with Through(postgres_place, proxy, poll_s=60.0) as trial, trial.hf.worker():
            await until(lambda: silent.sprung, within_s=PATIENCE_S, what="the first listener")
            [dead] = _listeners(trial.where)
            await until(
                lambda: _listeners(trial.where) - {dead}, within_s=PATIENCE_S, what="a listener that takes its place"
            )
            heard = asyncio.Event()
            trial.hf._open_store().subscribe(lambda hint: heard.set() if hint & Hint.READY else None)
            teller = trial.where.store()
            await teller.open()
            try:
                while not heard.is_set():  # it may be between LISTEN and its first look
                    teller._wakeups.tell(Hint.READY)  # type: ignore[attr-defined]
                    await asyncio.sleep(0.05)
            finally:
                await teller.close()

    asyncio.run(run())


def test_a_server_that_cannot_be_reached_is_said_at_once(postgres_place: Path, proxy: PostgresProxy) -> None:
    async def run() -> None:
        trial = Through(postgres_place, proxy, wait_s=0.3, unknown_after_s=1.0)
        proxy.refuse()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await trial.hf.open()
        proxy.admit()
        async with trial:
            await trial.enqueue(trial.work, 1)
            proxy.refuse()
            proxy.cut()
            with pytest.raises((StoreUnavailable, OutcomeUnknown)):  # it may not know yet that it was cut off
                await trial.work.enqueue(2)
            with pytest.raises(StoreUnavailable, match="cannot be reached"):  # certainly not written: not unknown
                await trial.work.enqueue(2)
            proxy.admit()
            assert (await trial.enqueue(trial.work, 3)).id

    asyncio.run(run())


def test_a_worker_outlasts_refused_and_cut_connections(postgres_place: Path, proxy: PostgresProxy) -> None:
    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=30.0) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            proxy.refuse()
            proxy.cut()
            await trial.heard(StoreDown)
            trial.release()
            proxy.admit()
            assert await handle.result(timeout=PATIENCE_S) == 7
            await trial.heard(StoreUp)
            assert trial.of(WorkerLeaseLost) == []
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 1

    asyncio.run(run())


def test_connections_that_are_half_open_cost_the_lease_and_nothing_else(
    postgres_place: Path, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_S", 0.5)
    monkeypatch.setattr(connections, "ANSWER_S", 0.5)
    monkeypatch.setattr(connections, "PROMPT_S", 0.5)

    async def run() -> None:
        async with Through(postgres_place, proxy, lease_s=2.0) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            proxy.freeze()
            await trial.heard(WorkerLeaseLost)
            trial.release()
            proxy.thaw()
            proxy.cut()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert (await handle.info()).state is State.SUCCEEDED
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


def test_locks_of_a_client_that_has_gone_silent_are_let_go_by_the_server(
    postgres_place: Path, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._OURS_ALONE, "idle_in_transaction_session_timeout", "300ms")

    async def run() -> None:
        async with Through(postgres_place, proxy) as trial:
            task = trial.hf.named("nobody.knows")
            handle = await task.options(delay=3600).enqueue(1)
            hung = proxy.arm(r"DELETE FROM \S+\.timer", Fate.HANG, times=1)
            asking = asyncio.create_task(trial.hf.jobs.cancel(handle.id))
            await until(lambda: hung.sprung, within_s=PATIENCE_S, what="the lock")
            other = trial.where.store()
            await other.open()
            try:

                async def cancelled() -> bool:
                    try:
                        await other.cancel_jobs([handle.id], reason="somebody else's")
                    except StoreUnavailable:  # in somebody else's transaction
                        return False
                    return True

                while not await cancelled():
                    await asyncio.sleep(0.05)
            finally:
                await other.close()
            asking.cancel()
            assert (await handle.info()).state is State.CANCELLED

    asyncio.run(run())


def test_what_was_asked_and_not_answered_is_unknown_and_what_was_not_asked_is_not(
    postgres_place: Path, proxy: PostgresProxy
) -> None:
    async def run() -> None:
        store = PostgresStore(proxy.url, schema=Where.of(postgres_place).schema)
        await store.open()
        job = a_job()
        for fate in (Fate.LOSE_ANSWER, Fate.ABANDON):
            proxy.arm(INSERT, fate, times=1)
            with pytest.raises(StoreUnavailable) as asked:
                await store.insert_jobs([job])
            assert asked.value.unknown
        [answer] = await store.insert_jobs([job])
        assert isinstance(answer, Inserted)
        assert answer.repeated
        proxy.refuse()
        proxy.cut()
        with pytest.raises(StoreUnavailable):  # on a connection that it did not yet know to be cut
            await store.insert_jobs([a_job()], admit=False)
        with pytest.raises(StoreUnavailable) as refused:
            await store.insert_jobs([a_job()], admit=False)
        assert not refused.value.unknown
        await store.close()

    asyncio.run(run())
