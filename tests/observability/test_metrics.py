"""What a scrape of an app at work says: right numbers, on every store, and nothing that is not in the catalogue."""

from __future__ import annotations

import asyncio
import threading

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.integration.scene import Heard, scene
from tests.observability.conftest import MakeApp
from tests.observability.scraping import Scraped

from holdfast import Holdfast, JobFailed, PermanentError, QueueFull, RetryPolicy
from holdfast.observability import metrics_of, metrics_text
from holdfast.observability.catalogue import CATALOGUE, Kind
from holdfast.telemetry.events import JobStarted, WorkerBlocked

SECRET = "a-secret-argument"
TENANT = "a-tenant"


async def scrape(hf: Holdfast) -> Scraped:
    """As it is now, not as it was a moment ago."""
    metrics_of(hf).view._seen = None
    return Scraped(await metrics_text(hf))


class Shop:
    """An app with tasks that end in every way."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        self.failures = 0
        self.go = asyncio.Event()

        @hf.task(name="shop.sell", queue="sales")
        async def sell(what: str) -> str:
            return what

        @hf.task(name="shop.flaky", retry=RetryPolicy(base=0.0, cap=0.0))
        async def flaky() -> None:
            self.failures += 1
            if self.failures < 3:
                raise ConnectionError(SECRET)

        @hf.task(name="shop.refuse")
        async def refuse(what: str) -> None:
            raise PermanentError(what)

        @hf.task(name="shop.wait", queue="slow")
        async def wait() -> None:
            await self.go.wait()

        self.sell, self.flaky, self.refuse, self.wait = sell, flaky, refuse, wait


@scene
async def test_a_scrape_counts_what_has_happened(make_app: MakeApp) -> None:
    hf = make_app()
    shop = Shop(hf)
    await hf.migrate()
    metrics_of(hf)
    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker():
            jobs = [await shop.sell.options(tenant=TENANT, priority=n % 2).enqueue(SECRET) for n in range(6)]
            jobs += [await shop.flaky.enqueue()]
            for job in jobs:
                await job.result(timeout=30)
            dead = await shop.refuse.enqueue(SECRET)
            with pytest.raises(JobFailed):
                await dead.result(timeout=30)
            running = await shop.wait.enqueue()
            while (await heard.next(JobStarted)).task != "shop.wait":
                pass
            seen = await scrape(hf)
            shop.go.set()
            await running.result(timeout=30)
        sales = {"queue": "sales", "task": "shop.sell"}
        assert seen.value("holdfast_jobs_enqueued_total", **sales) == 6
        assert seen.value("holdfast_jobs_started_total", **sales) == 6
        assert seen.value("holdfast_jobs_settled_total", **sales, outcome="succeeded") == 6
        assert seen.value("holdfast_job_run_seconds_count", **sales) == 6
        assert seen.value("holdfast_job_run_seconds_bucket", **sales, le="+Inf") == 6
        assert seen.value("holdfast_job_wait_seconds_count", **sales) == 6
        assert 0 < seen.value("holdfast_job_wait_seconds_sum", **sales) < 6 * 30
        assert seen.value("holdfast_jobs_settled_total", task="shop.flaky", outcome="retry") == 2
        assert seen.value("holdfast_jobs_retried_total", task="shop.flaky", error_class="transient") == 2
        assert seen.value("holdfast_job_wait_seconds_count", task="shop.flaky") == 1, "only the first start is a wait"
        assert seen.value("holdfast_jobs_dead_total", task="shop.refuse", reason="permanent") == 1
        assert seen.value("holdfast_queue_jobs", queue="default", state="dead") == 1
        assert seen.value("holdfast_queue_jobs", queue="slow", state="running") == 1
        assert seen.value("holdfast_workers") == 1
        assert seen.value("holdfast_queue_workers", queue="sales") == 1
        assert seen.value("holdfast_worker_slots") == 100
        assert seen.value("holdfast_store_up") == 1
        assert (await scrape(hf)).value("holdfast_workers") == 0, "it has signed off"
    told = str(seen.samples)
    assert SECRET not in told
    assert TENANT not in told
    assert str(jobs[0].id) not in told


@scene
async def test_a_backlog_is_seen_by_priority_and_age_and_closes_its_queue(make_app: MakeApp) -> None:
    hf = make_app(high_watermark=3, low_watermark=1)
    shop = Shop(hf)
    await hf.migrate()
    metrics_of(hf)
    async with hf:
        await hf.queues.pause("sales")
        for priority in (9, 9, 5):
            await shop.sell.options(priority=priority).enqueue("x")
        with pytest.raises(QueueFull):
            await shop.sell.options(wait=0).enqueue("x")
        await hf.queues.drain("slow")
        with pytest.raises(QueueFull):
            await shop.wait.enqueue()
        seen = await scrape(hf)
        assert seen.value("holdfast_queue_ready", queue="sales", priority="9") == 2
        assert seen.value("holdfast_queue_ready", queue="sales", priority="5") == 1
        assert seen.value("holdfast_queue_jobs", queue="sales", state="ready") == 3
        assert seen.value("holdfast_queue_oldest_ready_seconds", queue="sales") > 0
        assert seen.value("holdfast_queue_accepting", queue="sales") == 0
        assert seen.value("holdfast_queue_paused", queue="sales") == 1
        assert seen.value("holdfast_queue_closed_total", queue="sales") == 1
        assert seen.value("holdfast_enqueues_refused_total", queue="sales", why="full") == 1
        assert seen.value("holdfast_enqueues_refused_total", queue="slow", why="draining") == 1
        assert seen.value("holdfast_jobs_enqueued_total", queue="sales") == 3


@scene
async def test_everything_scraped_is_in_the_catalogue_as_it_says_there() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        seen = await scrape(hf)
    known = {metric.name.removesuffix("_total"): metric for metric in CATALOGUE}
    for name, family in seen.families.items():
        metric = known[name]
        assert family.type == metric.kind
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


@scene
async def test_a_blocked_loop_shows_in_its_lag() -> None:
    hf = Holdfast(":memory:", lease_s=5)
    blocked = threading.Event()

    @hf.task(name="block", timeout=None)
    async def block() -> None:
        while not blocked.is_set():
            pass

    hf.telemetry.attach(lambda event: blocked.set(), only=WorkerBlocked)
    metrics = metrics_of(hf)
    async with hf, hf.worker():
        metrics.watch_loop()
        await (await block.enqueue()).result(timeout=30)
        while not (await scrape(hf)).value("holdfast_loop_lag_seconds_count"):
            await asyncio.sleep(0.01)
        seen = await scrape(hf)
        late = seen.value("holdfast_loop_lag_seconds_count") - seen.value("holdfast_loop_lag_seconds_bucket", le="0.25")
        assert late >= 1
        assert seen.value("holdfast_loop_blocked_total") == 1


@scene
async def test_it_can_be_part_of_a_registry_of_ones_own() -> None:
    hf = Holdfast(":memory:")
    registry = CollectorRegistry()
    registry.register(metrics_of(hf))
    async with hf:
        await scrape(hf)
        seen = Scraped(generate_latest(registry).decode())
    assert seen.value("holdfast_store_up") == 1
    assert seen.value("holdfast_build_info") == 1


@scene
async def test_nothing_is_counted_before_it_is_asked_for_nor_after() -> None:
    hf = Holdfast(":memory:")
    assert not hf.telemetry.wants(JobStarted)
    metrics = metrics_of(hf)
    assert metrics_of(hf) is metrics
    assert hf.telemetry.wants(JobStarted)
    metrics.stop()
    assert not hf.telemetry.wants(JobStarted)


def test_names_are_as_prometheus_wants_them() -> None:
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)
    for metric in CATALOGUE:
        assert metric.name.startswith("holdfast_")
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
        assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM)
        assert metric.help.endswith(".")
        assert not {"tenant", "job_id", "id", "worker"} & set(metric.labels)
