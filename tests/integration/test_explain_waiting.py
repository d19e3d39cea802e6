"""Why is it waiting: busy workers, lanes that come last, places in lines, and estimates that pretend nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.scene import PATIENCE_S, gone, scene, until

from holdfast import Breaker, Explanation, Holdfast, JobHandle, Limit, Rate, RetryPolicy
from holdfast.core.state import State


def kinds(explanation: Explanation) -> list[str]:
    return [each.kind for each in explanation.held_by]


def near(found: datetime | None, seconds: float) -> bool:
    """Whether that is so far from now, as far as a test can be slow."""
    return found is not None and abs((found - datetime.now(UTC)).total_seconds() - seconds) < PATIENCE_S


@scene
async def test_a_job_whose_workers_have_no_free_slot_does_not_start_now() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    stay = asyncio.Event()

    @hf.task
    async def work() -> None:
        await stay.wait()

    async with hf, hf.worker(concurrency=2):
        first, second, third, fourth = [await work.enqueue() for _ in range(4)]
        await until(first, State.RUNNING)
        await until(second, State.RUNNING)
        why = await hf.jobs.explain(third.id)
        assert str(why) == (
            f"job {third.id} is ready, but all 2 slots of the 1 worker that serves it are taken; it is the next of its "
            "lane (queue 'default', priority 5, 100% of the starts)"
        )
        assert why.held_by[0].data == {"workers": 1, "slots": 2, "running": 2}
        assert why.starts_at is None, "nothing has ended yet"
        why = await hf.jobs.explain(fourth.id)
        assert kinds(why) == ["workers_busy"]
        assert "; 1 job of its lane comes first (" in str(why)
        assert why.starts_at is None
        await hf.tasks.pause(work.name)
        why = await hf.jobs.explain(third.id)
        assert kinds(why) == ["task_paused", "workers_busy"]
        assert why.starts_at is None
        stay.set()


@scene
async def test_a_queues_own_bound_is_told_where_the_settings_say_it() -> None:
    hf = Holdfast(":memory:", poll_s=0.05, queue={"bank": {"concurrency": 1}})
    stay = asyncio.Event()

    @hf.task(queue="bank")
    async def work() -> None:
        await stay.wait()

    async with hf, hf.worker(concurrency=10):
        first, second = [await work.enqueue() for _ in range(2)]
        await until(first, State.RUNNING)
        why = await hf.jobs.explain(second.id)
        assert str(why).startswith(
            f"job {second.id} is ready, but as many jobs of queue 'bank' run as may at once, 1: at most 1 in the 1 "
            "worker that serves it (concurrency of the queue); it is the next"
        )
        assert why.held_by[0].data["bound"] == 1
        assert why.starts_at is None
        stay.set()


@scene
async def test_a_bound_that_only_the_worker_knows_is_never_now_and_is_told_when_a_free_slot_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    stay = asyncio.Event()

    @hf.task(queue="bank")
    async def work() -> None:
        await stay.wait()

    async with hf, hf.worker(concurrency=10, queue={"bank": {"concurrency": 1}}):
        first, second = [await work.enqueue() for _ in range(2)]
        await until(first, State.RUNNING)
        why = await hf.jobs.explain(second.id)
        assert kinds(why) == []
        assert why.starts_at is None
        monkeypatch.setattr("holdfast.client.capacity.STILL_S", 0.0)  # it has waited for long enough
        why = await hf.jobs.explain(second.id)
        assert str(why).startswith(
            f"job {second.id} is ready, but the 1 worker that serves it has free slots and leaves it, as where only so "
            "many jobs of queue 'bank' may run at once (concurrency of the queue): 1 of them runs; it is the next"
        )
        assert why.starts_at is None
        stay.set()


@scene
async def test_a_lane_of_weight_0_behind_others_says_so_and_pretends_no_share() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    stay = asyncio.Event()

    @hf.task
    async def work() -> None:
        await stay.wait()

    async with hf:
        await hf.queues.set_weights("default", priorities={"bulk": 0})
        last = await work.options(priority="bulk").enqueue()
        why = await hf.jobs.explain(last.id)
        assert kinds(why) == ["no_worker"]
        assert "100% of the starts" in str(why), "there is nobody else"
        async with hf.worker(concurrency=1, queues=["default"]):
            await until(last, State.RUNNING)
            others = [await work.enqueue() for _ in range(2)]
            elsewhere = [await work.options(queue="elsewhere").enqueue() for _ in range(3)]
            waits = await work.options(priority="bulk").enqueue()
            why = await hf.jobs.explain(waits.id)
            assert kinds(why) == ["comes_last", "workers_busy"]
            assert str(why) == (
                f"job {waits.id} is ready, but its lane has weight 0: it starts only when nothing else is ready, and 2 "
                "jobs of other lanes are; the only slot of the 1 worker that serves it is taken; it is the next of its "
                "lane (queue 'default', priority 0)"
            )
            assert why.starts_at is None
            assert why.held_by[0].data == {"ready_elsewhere": 2}, "its worker does not serve the other queue"
            for job in (*others, *elsewhere):
                await job.cancel()
            await hf.queues.pause("elsewhere")
            assert kinds(await hf.jobs.explain(waits.id)) == ["workers_busy"]
            stay.set()


@scene
async def test_what_was_purged_does_not_count_as_worked_off() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    stay = asyncio.Event()

    @hf.task
    async def work() -> None:
        await stay.wait()

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(50)])
        assert await hf.queues.purge("default") == 50
        async with hf.worker(concurrency=1):
            running, _, last = [await work.enqueue() for _ in range(3)]
            await until(running, State.RUNNING)
            why = await hf.jobs.explain(last.id)
            assert kinds(why) == ["workers_busy"]
            assert why.starts_at is None
            assert "as lately" not in str(why)
            stay.set()


@scene
async def test_at_a_rate_each_waiter_has_its_own_place_and_its_own_estimate() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(rate=Rate("1/h", name="hourly"))
    async def work() -> None: ...

    async with hf, hf.worker():
        _, *waiting = jobs = [await work.enqueue() for _ in range(4)]
        await jobs[0].result(timeout=PATIENCE_S)
        for job in waiting:
            await until(job, State.PARKED)
        places = [", and it is the next", ", and 1 comes first", ", and 2 come first"]
        for number, (job, place) in enumerate(zip(waiting, places, strict=True)):
            why = await hf.jobs.explain(job.id)
            assert str(why).startswith(f"job {job.id} is parked: its rate 'hourly' (1/h) is used up: the next run may")
            assert str(why).endswith(place)
            assert why.held_by[0].data["ahead"] == number
            assert near(why.starts_at, (number + 1) * 3600), f"got {why.starts_at} for {number}"
        later = await work.options(delay=60).enqueue()
        why = await hf.jobs.explain(later.id)
        assert str(why).endswith(", and 3 wait")
        assert near(why.starts_at, 4 * 3600), "it comes after all of them"


@scene
async def test_at_a_limit_the_place_in_the_line_and_the_pace_of_the_limit_are_told() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    stay, go_on = asyncio.Event(), asyncio.Event()

    @hf.task(concurrency=Limit(1, name="one"))
    async def work(quick: bool = False) -> None:
        await (go_on if quick else stay).wait()

    async with hf, hf.worker(concurrency=5):
        jobs = [await work.enqueue() for _ in range(4)]
        await until(jobs[0], State.RUNNING)
        for job in jobs[1:]:
            await until(job, State.PARKED)
        why = await hf.jobs.explain(jobs[3].id)
        assert str(why) == f"job {jobs[3].id} is parked: its limit 'one' is full: 1 of 1 run, and 2 come first"
        assert why.held_by[0].data["ahead"] == 2
        assert why.starts_at is None, "none has ended yet"
        assert str(await hf.jobs.explain(jobs[1].id)).endswith("1 of 1 run, and it is the next")
        later = await work.options(delay=3600).enqueue()
        assert str(await hf.jobs.explain(later.id)).endswith("1 of 1 run, and 3 wait")
        stay.set()
        for job in jobs:
            await job.result(timeout=PATIENCE_S)
        running, second, third = [await work.enqueue(quick=True) for _ in range(3)]
        await until(running, State.RUNNING)
        await until(second, State.PARKED)
        await until(third, State.PARKED)
        why = await hf.jobs.explain(third.id)
        assert str(why).endswith("1 of 1 run, and 1 comes first; as lately, it starts in about 30 s"), (
            "the second to come, where four have ended within a minute"
        )
        assert near(why.starts_at, 30)
        go_on.set()


@scene
async def test_who_waits_behind_another_at_a_breaker_is_not_told_when_it_starts() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(breaker=Breaker("bank", failures=1, open_for=3600), retry=RetryPolicy(max_attempts=1))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with hf, hf.worker():
        await until(await charge.enqueue(), State.DEAD)
        first: JobHandle[None] = await charge.enqueue()
        await until(first, State.PARKED)
        second: JobHandle[None] = await charge.enqueue()
        await until(second, State.PARKED)
        assert near((await hf.jobs.explain(first.id)).starts_at, 3600)
        why = await hf.jobs.explain(second.id)
        assert str(why).endswith(", and 1 comes first")
        assert why.starts_at is None, "what comes of the first one is not known"
        later = await charge.options(delay=60).enqueue()
        assert near((await hf.jobs.explain(later.id)).starts_at, 3600), "not before it is open"
        await hf.breakers.open("bank")
        assert (await hf.jobs.explain(later.id)).starts_at is None, "an operator holds it"


@scene
async def test_a_scheduled_job_that_may_not_start_or_that_nobody_serves_has_no_estimate() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(tenant="acme")
    async def work() -> None: ...

    async with hf:
        job = await work.options(delay=3600).enqueue()
        why = await hf.jobs.explain(job.id)
        assert (kinds(why), why.starts_at) == (["scheduled", "no_worker"], None)
        async with hf.worker():
            why = await hf.jobs.explain(job.id)
            assert kinds(why) == ["scheduled"]
            assert near(why.starts_at, 3600)
            await hf.tasks.pause(work.name)
            why = await hf.jobs.explain(job.id)
            assert (kinds(why), why.starts_at) == (["scheduled", "task_paused"], None)
            await hf.tasks.resume(work.name)
            await hf.tenants.pause("acme")
            why = await hf.jobs.explain(job.id)
            assert (kinds(why), why.starts_at) == (["scheduled", "tenant_paused"], None)
            await hf.tenants.resume("acme")
            await hf.queues.pause("default")
            why = await hf.jobs.explain(job.id)
            assert (kinds(why), why.starts_at) == (["scheduled", "queue_paused"], None)


@scene
async def test_a_retry_that_the_budget_has_put_off_says_so() -> None:
    hf = Holdfast(":memory:", queue={"bank": {"retry_budget": 0.01}})

    @hf.task(queue="bank", retry=RetryPolicy(max_attempts=5, base=1, backoff="fixed", jitter="none"))
    async def charge() -> None:
        raise ConnectionRefusedError

    async with hf:
        jobs = await hf.enqueue_many([charge.request() for _ in range(40)])
        async with hf.worker(concurrency=50):
            await gone(hf, State.READY)
            await gone(hf, State.RUNNING)
        infos = [await job.info() for job in jobs]
        put_off = [info for info in infos if info.state is State.SCHEDULED and info.error and info.error.put_off]
        assert len(put_off) > 10, "ten are free"
        latest = max(put_off, key=lambda info: info.run_at or datetime.min.replace(tzinfo=UTC))
        assert latest.error is not None
        assert latest.error.error_class == "downstream", "it is told all the same"
        why = await hf.jobs.explain(latest.id)
        by = latest.error.put_off
        assert f" UTC, which the retry budget of its queue has put off by {by}" in str(why)
        assert why.held_by[0].data["put_off_by"] == by
        assert latest.run_at is not None
        assert latest.run_at - latest.attempts[-1].ended_at > timedelta(seconds=float(by.removesuffix(" s")))


@scene
async def test_whoever_waits_for_what_was_just_lifted_is_about_to_be_looked_at() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="work")
    async def work() -> None: ...

    async with hf:
        await hf.tasks.pause("work")
        async with hf.worker():
            job = await work.enqueue()
            await until(job, State.PARKED)
        await hf.tasks.resume("work")  # without a worker, nobody looks after those who wait
        why = await hf.jobs.explain(job.id)
        assert str(why).startswith(
            f"job {job.id} is parked: the pause of 'task:work' is over, so it is about to be looked at again; "
            "no worker is running"
        )
        assert kinds(why) == ["lifted", "no_worker"]
        assert why.starts_at is None
