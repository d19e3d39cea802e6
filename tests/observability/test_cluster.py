"""Looks at the cluster: few, shared, with a deadline; a store that is away is an answer, and comes back by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.scene import scene
from tests.observability.conftest import MakeApp
from tests.observability.scraping import Scraped
from tests.observability.test_metrics import Shop

from holdfast import Holdfast
from holdfast.core.errors import StoreUnavailable
from holdfast.local import LocalPostgres
from holdfast.observability import autoscale, metrics_of, metrics_text, readiness
from holdfast.observability.cluster import Away, Cluster, ClusterView
from holdfast.stores.base import Store
from holdfast.stores.sqlite import SqliteStore


class Asked:
    """A store that counts what it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.verbs: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.verbs.append(name)
        return getattr(self._store, name)


@scene
async def test_however_many_ask_it_is_looked_once_and_asks_four_things() -> None:
    store = SqliteStore(":memory:")
    await store.open()
    asked, now = Asked(store), 100.0

    async def opened() -> Any:
        return asked

    view = ClusterView(opened, monotonic=lambda: now)
    try:
        seen = await asyncio.gather(*(view.look() for _ in range(50)))
        assert all(each is seen[0] for each in seen)
        assert isinstance(seen[0], Cluster)
        assert sorted(asked.verbs) == ["leading", "list_queues", "list_workers", "now"]
        now += 0.9
        assert await view.look() is seen[0]
        assert view.looks == 1
        now += 0.2
        assert await view.look() is not seen[0]
        assert view.looks == 2
    finally:
        await store.close()


@scene
async def test_whoever_gives_up_takes_the_look_from_nobody_else() -> None:
    store = SqliteStore(":memory:")
    await store.open()
    may_go = asyncio.Event()

    async def opened() -> Store:
        await may_go.wait()
        return store

    view = ClusterView(opened)
    impatient, patient = asyncio.create_task(view.look()), asyncio.create_task(view.look())
    await asyncio.sleep(0)
    impatient.cancel()
    may_go.set()
    assert isinstance(await patient, Cluster)
    assert view.looks == 1
    await store.close()


@scene
async def test_a_store_that_does_not_answer_is_away_after_a_while() -> None:
    async def never() -> Store:
        await asyncio.Event().wait()
        raise AssertionError

    seen = await ClusterView(never, patience_s=0.01).look()
    assert seen == Away("the store has not answered for 0.01 s")


@scene
async def test_metrics_health_and_demand_share_one_look() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        await asyncio.gather(metrics_text(hf), readiness(hf), autoscale(hf, "mail"), metrics_text(hf))
        assert metrics_of(hf).view.looks == 1


@scene
async def test_an_app_that_is_not_open_still_answers() -> None:
    hf = Holdfast(":memory:")
    seen = Scraped(await metrics_text(hf))
    assert seen.value("holdfast_store_up") == 0
    assert seen.found("holdfast_workers") == []
    found = await readiness(hf)
    assert not found.ready
    assert "not open" in found.checks["store"].reason
    with pytest.raises(StoreUnavailable, match="not open"):
        await autoscale(hf, "mail")


@scene
async def test_while_the_server_is_away_the_process_tells_its_own_numbers(own_postgres: LocalPostgres) -> None:
    hf = Holdfast(own_postgres.url, poll_s=0.1)
    shop = Shop(hf)
    await hf.migrate()
    view = metrics_of(hf).view
    view._patience_s = 1.0
    async with hf:
        async with hf.worker():
            await (await shop.sell.enqueue("x")).result(timeout=30)
        assert (await readiness(hf)).ready
        own_postgres.stop()
        view._seen = None
        seen = Scraped(await metrics_text(hf))
        assert seen.value("holdfast_store_up") == 0
        assert seen.found("holdfast_queue_jobs") == [], "what was true before is not told as if it still were"
        assert seen.value("holdfast_jobs_settled_total", task="shop.sell", outcome="succeeded") == 1
        found = await readiness(hf)
        assert not found.ready
        assert found.to_data()["checks"]["store"]["status"] == "failed"
        with pytest.raises(StoreUnavailable):
            await autoscale(hf, "sales")
        own_postgres.start()
        async with asyncio.timeout(30):
            while not (await readiness(hf)).ready:
                view._seen = None
        assert Scraped(await metrics_text(hf)).value("holdfast_store_up") == 1


@scene
async def test_demand_is_what_could_run_now(make_app: MakeApp) -> None:
    hf = make_app(concurrency=1)
    shop = Shop(hf)
    await hf.migrate()
    async with hf:
        assert (await autoscale(hf, "slow")).to_data() == {
            "queue": "slow", "value": 0, "ready": 0, "running": 0, "oldest_ready_s": 0.0, "workers": 0, "slots": 0,
            "paused": False, "known": False,
        }  # fmt: skip
        jobs = [await shop.wait.enqueue() for _ in range(3)]
        async with hf.worker(queues=["slow"]):
            view, found = metrics_of(hf).view, await autoscale(hf, "slow")
            async with asyncio.timeout(30):
                while found.running != 1:
                    view._seen = None
                    found = await autoscale(hf, "slow")
            assert (found.value, found.ready, found.workers, found.slots) == (3, 2, 1, 1)
            await hf.queues.pause("slow")
            view._seen = None
            assert (await autoscale(hf, "slow")).value == 1, "what waits in a paused queue needs nobody"
            assert (await autoscale(hf, "sales")).workers == 0, "that worker serves another queue"
            await hf.queues.resume("slow")
            shop.go.set()
            for job in jobs:
                await job.result(timeout=30)


@scene
async def test_readiness_says_what_is_missing_and_goes_on(make_app: MakeApp) -> None:
    hf = make_app()
    shop = Shop(hf)
    await hf.migrate()
    async with hf:
        view = metrics_of(hf).view
        await shop.sell.enqueue("x")
        found = await readiness(hf)
        assert found.ready, "workers are other processes' business"
        statuses = {name: str(check.status) for name, check in found.checks.items()}
        assert statuses == {
            "leader": "degraded", "schema": "ok", "store": "ok", "transport": "ok", "workers": "degraded"
        }  # fmt: skip
        assert found.queues["sales"].reason == "no worker serves it, and 1 job is ready"
        assert found.checks["schema"].reason.startswith("version ")
        async with hf.worker(queues=["slow"]):
            view._seen = None
            assert (await readiness(hf)).checks["workers"].reason == "1 live; no worker serves sales"
        async with hf.worker(), asyncio.timeout(30):
            while any(each.status != "ok" for each in (await readiness(hf)).checks.values()):
                view._seen = None
        await hf.queues.pause("sales")
        view._seen = None
        assert (await readiness(hf)).queues["sales"].reason.startswith("paused")
