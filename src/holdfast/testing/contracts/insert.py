"""Inserting: where a new job goes, and that repeating is safe."""

from __future__ import annotations

import asyncio

from holdfast.core.fairness import Lane
from holdfast.core.settlement import Retry
from holdfast.core.state import State
from holdfast.stores.base import Inserted, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    a_call,
    a_job,
    an_id,
    claim,
    drain,
    enlist,
    finish,
    info,
    insert,
    start,
    state,
    states,
)


async def check_new_jobs_are_ready_and_answered_in_order(store: Store) -> None:
    jobs = [a_job() for _ in range(5)]
    answers = await store.insert_jobs(jobs)
    assert answers == [Inserted(job.id, State.READY) for job in jobs], f"wrong answers: {answers}"
    found = await states(store, *(job.id for job in jobs))
    assert found == [State.READY] * 5, f"accepted jobs must be visible and ready: {found}"


async def check_an_empty_batch_is_answered(store: Store) -> None:
    assert await store.insert_jobs([]) == [], "no jobs, no answers"


async def check_what_was_inserted_is_what_is_claimed(store: Store) -> None:
    job = a_job(
        task="shop.ship",
        queue="ünïcode ☃",
        priority=7,
        payload=a_call("snow ☃", 1.5, deep={"list": [None, True]}),
        tenant="acme",
        options=b'{"timeout": 3}',
        max_attempts=7,
        headers=b'{"trace": "abc"}',
        tags=("a", "b"),
        metadata=b'{"who": "me"}',
    )
    run = await start(store, **job._asdict())
    got = run.job
    assert (got.id, got.attempt, got.alone) == (job.id, 1, False), f"a first run: {got}"
    assert (got.task, got.queue, got.priority, got.payload) == (job.task, job.queue, 7, job.payload), f"{got}"
    assert (got.options, got.max_attempts, got.tenant, got.headers) == (
        job.options,
        7,
        "acme",
        job.headers,
    ), f"{got}"


async def check_payload_bytes_are_kept_as_they_are(store: Store) -> None:
    payload = a_call("x" * 300_000, "é ☃") + b"  "
    run = await start(store, payload=payload)
    assert run.job.payload == payload, "the payload must come back byte by byte"


async def check_a_delay_schedules(store: Store) -> None:
    later = a_job(delay_s=LONG_S)
    at = a_job(run_at=await store.now() + LONG_S)
    answers = await store.insert_jobs([later, at])
    assert answers == [Inserted(job.id, State.SCHEDULED) for job in (later, at)], f"wrong answers: {answers}"
    worker = await enlist(store)
    assert await claim(store, worker) == [], "nothing is claimed before its time"
    run_at = (await info(store, later.id)).run_at
    assert run_at is not None, "a scheduled job says when it will run"


async def check_repeating_an_insert_makes_no_second_job(store: Store) -> None:
    jobs = [a_job(), a_job(delay_s=LONG_S)]
    await insert(store, *jobs)
    new = a_job()
    answers = await store.insert_jobs([*jobs, new])
    assert [a.repeated for a in answers if isinstance(a, Inserted)] == [True, True, False], f"got {answers}"
    assert [a.job_id for a in answers if isinstance(a, Inserted)] == [*(j.id for j in jobs), new.id]
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == [jobs[0].id, new.id], f"each job is there once: {got}"


async def check_an_id_twice_in_one_batch_is_one_job(store: Store) -> None:
    job = a_job()
    first, second = await store.insert_jobs([job, job])
    assert first == Inserted(job.id, State.READY), f"got {first}"
    assert isinstance(second, Inserted), f"got {second}"
    assert second.job_id == job.id, f"got {second}"
    worker = await enlist(store)
    assert len(await drain(store, worker)) == 1, "one id is one job"


async def check_a_repeat_leaves_a_job_that_moved_on_as_it_is(store: Store) -> None:
    worker = await enlist(store)
    ended, running, retrying = a_job(), a_job(), a_job()
    for job in (ended, running, retrying):
        run = await start(store, worker=worker, **job._asdict())
        if job is ended:
            await finish(store, run, b'"done"')
        if job is retrying:
            await store.settle_jobs(worker, [Retry(run.id, run.token, LONG_S, ERROR)])
    before = await store.job_infos([ended.id, running.id, retrying.id])
    answers = await store.insert_jobs([ended, running, retrying])
    assert all(isinstance(answer, Inserted) and answer.repeated for answer in answers), f"got {answers}"
    after = await store.job_infos([ended.id, running.id, retrying.id])
    assert after == before, f"a repeat must change nothing: {before} became {after}"
    assert await claim(store, worker) == [], "a repeat must not make a job run again"


async def check_the_same_insert_sent_by_many_at_once_is_one_job(store: Store) -> None:
    job = a_job()
    answers = await asyncio.gather(*(store.insert_jobs([job]) for _ in range(20)))
    flat = [answer for [answer] in answers]
    fresh = [answer for answer in flat if isinstance(answer, Inserted) and not answer.repeated]
    assert len(fresh) == 1, f"exactly one call inserts: {flat}"
    assert len(await drain(store, await enlist(store))) == 1, "one id is one job"


async def check_whole_batches_pass_when_all_is_well(store: Store) -> None:
    jobs = [a_job() for _ in range(3)]
    answers = await store.insert_jobs(jobs, whole=True)
    assert answers == [Inserted(job.id, State.READY) for job in jobs], f"got {answers}"


async def check_large_batches(store: Store) -> None:
    jobs = [a_job(priority=i % 10) for i in range(1500)]
    await insert(store, *jobs)
    got = await drain(store, await enlist(store), *(Lane(LANE.queue, priority) for priority in range(10)))
    assert {job.id for job in got} == {job.id for job in jobs}, f"{len(got)} of {len(jobs)} jobs came out"


async def check_jobs_keep_their_own_expiry_and_delay(store: Store) -> None:
    plain, expiring = a_job(), a_job(id=an_id(), expires_in_s=LONG_S)
    await insert(store, plain, expiring)
    assert (await info(store, plain.id)).expires_at is None, "a job without deadline has none"
    assert (await info(store, expiring.id)).expires_at is not None, "a deadline is told"
    assert await state(store, expiring.id) is State.READY, "a deadline in the future ends nothing"
