"""Why is it waiting: every state, everything that keeps a job, its place and an estimate of its start."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Breaker, Explanation, Holdfast, JobHandle, Limit, Rate, RetryPolicy
from holdfast.core.ids import new_job_id
from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State

CALL = b'{"args": [], "kwargs": {}}'


def kinds(explanation: Explanation) -> list[str]:
    return [each.kind for each in explanation.reasons]


@scene
async def test_every_state_is_explained() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    go_on = asyncio.Event()

    @hf.task(name="work", retry=RetryPolicy(max_attempts=2, base=3600, cap=3600, jitter="none"))
    async def work(fail: bool = False) -> None:
        if fail:
            raise ValueError
        await go_on.wait()

    async def explain(job_id: JobId) -> str:
        return str(await hf.jobs.explain(job_id))

    lane = "it is the next of its lane (queue 'default', priority 5, 100% of the starts)"
    async with hf:
        job = await work.enqueue()
        assert await explain(job.id) == f"job {job.id} is ready, but no worker is running; {lane}"
        await hf.queues.pause("default")
        assert await explain(job.id) == (
            f"job {job.id} is ready, but queue 'default' is paused; no worker is running; it is the next of its lane "
            "(queue 'default', priority 5)"
        ), "it has no share of the starts"
        later = await work.options(run_at=datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)).enqueue()
        assert (await explain(later.id)).startswith(f"job {later.id} waits for its time, at 2099-01-02 03:04:05 UTC; ")
        assert (await hf.jobs.explain(later.id)).starts_at is None, "its queue is paused, and nobody serves it"

        store = hf._open_store()
        joined = new_job_id()
        await store.insert_jobs([NewJob(joined, "work", "other", 5, CALL, waits_for=(job.id,))])
        why = await hf.jobs.explain(joined)
        assert str(why).startswith(f"job {joined} waits for other jobs to end: {job.id}")
        assert why.held_by[0].data == {"waits_for": [str(job.id)]}

        async with hf.worker(queues=["default"]):
            [worker] = await hf.workers.list()
            unserved = await work.options(queue="elsewhere").enqueue()
            assert (await explain(unserved.id)).startswith(
                f"job {unserved.id} is ready, but no running worker serves queue 'elsewhere'; "
            )
            await hf.queues.resume("default")
            await until(job, State.RUNNING)
            assert await explain(job.id) == f"job {job.id} runs on worker {worker.id}, attempt 1"
            assert (await hf.jobs.explain(later.id)).starts_at == datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
            failing = await work.enqueue(fail=True)
            info = await until(failing, State.SCHEDULED)
            assert await explain(failing.id) == (
                f"job {failing.id} waits for its next attempt, at {info.run_at:%Y-%m-%d %H:%M:%S} UTC"
            )
            unknown = await hf.named("nobody.knows").enqueue()
            await until(unknown, State.PARKED)
            assert await explain(unknown.id) == (
                f"job {unknown.id} is parked: no worker that has seen it knows its task 'nobody.knows'; it runs when "
                "one that does appears"
            )
            go_on.set()
            await job.result(timeout=PATIENCE_S)
            assert await explain(job.id) == f"job {job.id} ended succeeded"
            await later.cancel("not needed")
            assert await explain(later.id) == f"job {later.id} ended cancelled: not needed"
            dead = await until(await work.options(retry=RetryPolicy(max_attempts=1)).enqueue(fail=True), State.DEAD)
            assert await explain(dead.id) == f"job {dead.id} ended dead: exhausted"


@scene
async def test_a_ready_job_is_told_its_place_and_its_lanes_share_and_a_running_one_that_it_was_asked_to_stop() -> None:
    hf = Holdfast(":memory:")
    asked, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asked.set()
            await go_on.wait()

    async with hf, hf.worker(concurrency=1):
        running, *_, last = [await work.enqueue() for _ in range(4)]
        await until(running, State.RUNNING)
        high = await work.options(priority="high").enqueue()
        why = await hf.jobs.explain(last.id)
        assert str(why) == (
            f"job {last.id} is ready, but the only slot of the 1 worker that serves it is taken; 2 jobs of its lane "
            "come first (queue 'default', priority 5, 25% of the starts)"
        )
        assert why.held_by[0].kind == "workers_busy"
        assert why.notes[0].data["ahead"] == 2
        assert why.starts_at is None, "nothing of this lane has ended yet"
        assert (await hf.jobs.explain(high.id)).notes[0].data["share"] == 0.75
        await running.cancel()
        await asked.wait()
        assert str(await hf.jobs.explain(running.id)).endswith(", attempt 1; it was asked to stop")
        await hf.queues.purge("default")
        go_on.set()
        await running.result(timeout=PATIENCE_S)


@scene
async def test_the_start_is_estimated_from_how_many_of_the_lane_ended_lately() -> None:
    hf = Holdfast(":memory:")
    stay = asyncio.Event()

    @hf.task
    async def work(quick: bool) -> None:
        if not quick:
            await stay.wait()

    async with hf, hf.worker(concurrency=1):
        for job in [await work.enqueue(True) for _ in range(6)]:
            await job.result(timeout=PATIENCE_S)
        running, _, _, last = [await work.enqueue(False) for _ in range(4)]
        await until(running, State.RUNNING)
        now = datetime.now(UTC)
        why = await hf.jobs.explain(last.id)
        assert str(why).endswith("; as lately, it starts in about 30 s"), "it is the third to start, six a minute"
        assert why.starts_at is not None
        assert abs(why.starts_at - now - timedelta(seconds=30)) < timedelta(seconds=5)
        stay.set()


@scene
async def test_limit_rate_breaker_and_pauses_are_told_with_their_numbers() -> None:
    hf = Holdfast(":memory:")
    go_on = asyncio.Event()

    @hf.task(
        name="work",
        tenant="acme",
        concurrency=Limit(1, name="one"),
        rate=Rate("1/h", burst=1, name="hourly"),
        breaker=Breaker("bank"),
    )
    async def work() -> None:
        await go_on.wait()

    async with hf, hf.worker(concurrency=5):
        running = await work.enqueue()
        await until(running, State.RUNNING)
        job = await work.options(expires=7200).enqueue()
        await until(job, State.PARKED)
        why = await hf.jobs.explain(job.id)
        assert kinds(why) == ["limit", "rate", "expires"]
        assert str(why).startswith(
            f"job {job.id} is parked: its limit 'one' is full: 1 of 1 run, and it is the next; its rate 'hourly'"
        )
        numbers = {"held": 1, "size": 1, "waiting": 1, "ahead": 0, "beside": 0}
        assert why.held_by[0].data == {"key": "one", "name": "one"} | numbers
        assert why.held_by[1].data["next_at"] > datetime.now(UTC) + timedelta(minutes=50)
        assert why.starts_at is None, "two things keep it"
        go_on.set()
        await running.result(timeout=PATIENCE_S)
        await until(job, lambda info: info.reason == "rate")
        why = await hf.jobs.explain(job.id)
        assert kinds(why) == ["rate", "expires"]
        assert why.starts_at == why.held_by[0].data["next_at"]

        await hf.breakers.open("bank")
        await hf.tasks.pause("work")
        await hf.tenants.pause("acme")
        await hf.queues.drain("default")
        await hf.queues.pause("default")
        why = await hf.jobs.explain(job.id)
        assert set(kinds(why)) == {
            "rate",
            "queue_paused",
            "task_paused",
            "tenant_paused",
            "breaker",
            "draining",
            "expires",
        }
        assert "its breaker 'bank' is held open by an operator" in str(why)
        assert "queue 'default' is being drained" in str(why)


@scene
async def test_a_breaker_that_opened_by_itself_tells_until_when() -> None:
    hf = Holdfast(":memory:")

    @hf.task(breaker=Breaker("bank", failures=1, open_for=3600), retry=RetryPolicy(max_attempts=1))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with hf, hf.worker():
        await until(await charge.enqueue(), State.DEAD)
        job: JobHandle[None] = await charge.enqueue()
        await until(job, State.PARKED)
        why = await hf.jobs.explain(job.id)
        assert str(why).startswith(f"job {job.id} is parked: its breaker 'bank' is open until ")
        assert why.starts_at == why.held_by[0].data["open_until"]
