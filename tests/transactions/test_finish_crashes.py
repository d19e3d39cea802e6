"""The effect of a run that finishes inside its transaction happens exactly once, whatever breaks and whenever."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.campaign.child import Child, end_all, until
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate
from tests.transactions.bench import PATIENCE_S, run
from tests.transactions.shop import Shop

from holdfast import JobCancelled
from holdfast.stores.postgres import finish
from holdfast.telemetry.events import JobLost
from holdfast.testing.contracts.arrange import a_job

LEASE_S = 1.0


@pytest.fixture
def shop(postgres_tables: PostgresSchema) -> Shop:
    shop = Shop(postgres_tables, lease_s=LEASE_S)
    shop.open_shop()
    return shop


def worker_of(shop: Shop, tmp_path: Path, failpoints: str) -> Child:
    arguments = (shop.place.url, shop.place.schema, LEASE_S)
    return Child("tests.transactions.shop", *arguments, log=tmp_path / "worker.log", failpoints=failpoints)


@pytest.mark.parametrize("moment", ["finish.begin", "finish.inside", "finish.committed"])
def test_a_process_killed_at_any_moment_leaves_the_effect_exactly_once(shop: Shop, tmp_path: Path, moment: str) -> None:
    async def scenario() -> None:
        async with shop.hf:
            store = shop.hf._open_store()
            job = await shop.sell.options(expires=600).enqueue(1)
            waiting = a_job(waits_for=(job.id,))
            await store.insert_jobs([waiting])
            killed = worker_of(shop, tmp_path, f"{moment}=kill9")
            try:
                assert await killed.ended(within_s=PATIENCE_S) == -signal.SIGKILL
                assert shop.sales() == (moment == "finish.committed")
                async with shop.hf.worker(queues=("default",)):
                    assert await job.result(PATIENCE_S) == 2
            finally:
                end_all([killed])
            assert shop.sales() == 1
            causes = [attempt.cause for attempt in (await job.info()).attempts]
            assert causes == ([] if moment == "finish.committed" else ["lease_expired"])
            await store.sweep(limit=100)  # what the dead process did not come to do
            assert (await shop.hf.jobs.get(waiting.id)).state == "ready"
            assert shop.count("blocked") == 0

    run(scenario)


def test_a_process_stopped_past_its_lease_commits_nothing_when_it_wakes(shop: Shop, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop.hf:
            job = await shop.sell.enqueue(1)
            stopped = worker_of(shop, tmp_path, "finish.begin=stop")
            try:
                await until(lambda: stopped.is_stopped, within_s=PATIENCE_S, what="the stop", log=stopped.log)
                async with shop.hf.worker():
                    assert await job.result(PATIENCE_S) == 2
                assert shop.sales() == 1
                stopped.signal(signal.SIGCONT)
                await until(
                    lambda: "came too late" in stopped.log.read_text(), within_s=PATIENCE_S, what="a late write"
                )
                stopped.signal(signal.SIGTERM)
                assert await stopped.ended(within_s=PATIENCE_S) == 0
            finally:
                end_all([stopped])
            assert shop.sales() == 1
            assert [attempt.cause for attempt in (await job.info()).attempts] == ["lease_expired"]

    run(scenario)


@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.LOSE_REQUEST, Fate.ABANDON])
def test_commits_without_an_answer_leave_every_effect_exactly_once(postgres_tables: PostgresSchema, fate: Fate) -> None:
    jobs = 40

    async def scenario() -> None:
        with PostgresProxy(postgres_tables.url) as proxy:
            shop = Shop(postgres_tables, url=proxy.url)
            shop.open_shop()
            lost: list[JobLost] = []
            shop.hf.telemetry.attach(lost.append, only=JobLost)
            async with shop.hf:
                handles = await shop.hf.enqueue_many([shop.sell.request(n) for n in range(jobs)])
                trap = proxy.arm("^COMMIT", fate, probability=0.5, seed=17)
                async with shop.hf.worker(concurrency=8):
                    results = await asyncio.gather(*[handle.result(PATIENCE_S) for handle in handles])
                    trap.disarm()
                assert results == [2 * n for n in range(jobs)]
                assert trap.sprung > jobs / 4
                attempts = sum([len((await handle.info()).attempts) for handle in handles])
            assert (shop.sales(), shop.sold_jobs()) == (jobs, jobs)
            assert lost == [], "every run knows what became of its commit"
            if fate is Fate.LOSE_ANSWER:
                assert attempts == 0, "they were all found to have been committed"
            if fate is Fate.LOSE_REQUEST:
                assert attempts > 0

    run(scenario)


def test_a_run_whose_connection_has_fallen_silent_ends_when_it_is_cancelled(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "_TIDY_S", 0.2)

    async def scenario() -> None:
        with PostgresProxy(shop.place.url) as proxy:
            through = Shop(shop.place, url=proxy.url, lease_s=30.0)
            silent = proxy.arm(f"INSERT INTO {shop.table}", Fate.HANG, times=1)
            async with through.hf, through.hf.worker():
                job = await through.sell.enqueue(1)
                await asyncio.to_thread(silent.wait)
                await job.cancel()
                with pytest.raises(JobCancelled):
                    await job.result(PATIENCE_S)
                assert await (await through.sell.enqueue(1)).result(PATIENCE_S) == 2
        assert shop.sales() == 1

    run(scenario)


def test_a_commit_that_is_never_answered_is_asked_about_elsewhere(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "_TIDY_S", 0.2)
    monkeypatch.setattr(finish, "_COMMIT_S", 0.2)

    async def scenario() -> None:
        with PostgresProxy(shop.place.url) as proxy:
            through = Shop(shop.place, url=proxy.url, lease_s=30.0)
            async with through.hf:
                silent = proxy.arm("Fenced by job, token and worker; no row", Fate.FALL_SILENT, times=1)
                job = await through.sell.enqueue(1)
                async with through.hf.worker(concurrency=1):
                    assert await job.result(PATIENCE_S) == 2
                    await asyncio.to_thread(silent.wait)
                    assert await (await through.sell.enqueue(2)).result(PATIENCE_S) == 4, "the run knows, and ends"
                assert not (await job.info()).attempts
        assert shop.sales() == 2

    run(scenario)
