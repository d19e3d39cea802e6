"""One port on the supervisor: what all of its processes have counted, also those that have died."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from tests.integration.scene import scene
from tests.observability.scraping import Scraped, get
from tests.supervision.crew import PATIENCE_S, Crew, manned

MakeCrew = Callable[..., Crew]
SERVED = "metrics are served at http://"


async def address_of(crew: Crew) -> str:
    line = await crew.until_logged(SERVED)
    return line.partition(SERVED)[2].partition("/")[0]


async def scraped_until(address: str, condition: Callable[[Scraped], bool]) -> Scraped:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            seen = Scraped((await get(address, "/metrics")).body)
            if condition(seen):
                return seen
            await asyncio.sleep(0.05)


@scene
async def test_the_counters_of_a_process_outlive_it(make_crew_on_both: MakeCrew) -> None:
    async with manned(make_crew_on_both(concurrency=5), "--metrics-port", "0", "--processes", "2") as crew:
        address = await address_of(crew)
        for number in range(4):
            await crew.result(await crew.enqueue("add", number, 1))
        await crew.result(await crew.enqueue("die", "SIGKILL"))
        task = {"task": "tests.supervision.manned.add"}
        seen = await scraped_until(address, lambda seen: seen.value("holdfast_processes", role="worker") == 2)
        assert seen.value("holdfast_jobs_settled_total", outcome="succeeded", **task) == 4
        assert seen.value("holdfast_job_run_seconds_count", **task) == 4
        assert seen.value("holdfast_jobs_started_total", task="tests.supervision.manned.die") == 2
        assert seen.value("holdfast_processes_died_total") == 1
        assert seen.value("holdfast_jobs_handed_back_total") == 1
        assert seen.value("holdfast_process_slots") == 10
        assert seen.value("holdfast_store_up") == 1
        ready = await get(address, "/health/ready")
        assert ready.status == 200
        assert json.loads(ready.body)["checks"]["processes"] == {"status": "ok", "reason": "2 at work"}
        assert (await get(address, "/health/live")).status == 200


@scene
async def test_a_loop_that_is_blocked_now_is_seen_now(make_crew: MakeCrew) -> None:
    async with manned(make_crew(lease_s=30.0), "--metrics-port", "0") as crew:
        address = await address_of(crew)
        job = await crew.enqueue("blocks_until", "go")
        seen = await scraped_until(address, lambda seen: seen.value("holdfast_process_lag_seconds") > 1)
        assert seen.value("holdfast_loop_blocked_total") == 1
        assert seen.value("holdfast_process_slots_taken") == 1
        crew.let_go("go")
        await crew.result(job)
        late = await scraped_until(address, lambda seen: seen.value("holdfast_process_lag_seconds") < 1)
        slow = late.value("holdfast_loop_lag_seconds_count") - late.value("holdfast_loop_lag_seconds_bucket", le="0.5")
        assert slow >= 1


@scene
async def test_without_the_setting_nothing_is_served(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        await crew.result(await crew.enqueue("add", 1, 2))
        assert "served at" not in crew.log


@scene
async def test_the_log_of_all_processes_is_json_where_that_is_wanted(make_crew: MakeCrew) -> None:
    async with manned(make_crew(), "--log-format", "json", "--verbose") as crew:
        job = await crew.enqueue("add", 3, 4)
        assert await crew.result(job) == 7
        await crew.until_logged("job.settled")
        lines = [json.loads(line) for line in crew.log.splitlines()]
        assert {"process.ready", "worker.started", "job.settled"} <= {line.get("event") for line in lines}
        [settled] = [line for line in lines if line.get("event") == "job.settled"]
        assert settled["job_id"] == str(job.id)
        assert settled["task"] == "tests.supervision.manned.add"
        assert settled["outcome"] == "succeeded"
