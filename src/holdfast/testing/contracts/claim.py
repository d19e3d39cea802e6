"""Claiming: quotas and lanes, valid leases only, every job to one worker, tokens that grow."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import uuid4

from holdfast.core.errors import HoldfastError, LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import HandBack
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PRIORITY,
    QUEUE,
    a_job,
    apply,
    claim,
    drain,
    enlist,
    insert,
    resume,
    start,
    state,
    states,
)


async def check_a_claimed_job_runs_under_its_worker(store: Store) -> None:
    run = await start(store)
    [info] = await store.job_infos([run.id])
    assert info is not None, "a running job is in the store"
    assert info.state is State.RUNNING, f"got {info}"
    assert info.worker == str(run.worker), f"a running job tells its worker: {info}"
    assert info.started_at is not None, f"got {info}"


async def check_quotas_bound_each_lane(store: Store) -> None:
    low, high, other = Lane(QUEUE, 0), Lane(QUEUE, 9), Lane("other", PRIORITY)
    for lane in (low, high, other):
        await insert(store, *(a_job(queue=lane.queue, priority=lane.priority) for _ in range(4)))
    quotas = {low: 1, high: 3, other: 10}
    got = await store.claim_jobs(await enlist(store), quotas, deadline_s=60)
    counts = {lane: sum((job.queue, job.priority) == lane for job in got.jobs) for lane in quotas}
    assert counts == {low: 1, high: 3, other: 4}, f"got {counts}"
    assert got.scanned == counts, f"the rows taken out are told per lane: {got.scanned}"


async def check_only_the_lanes_asked_for_are_touched(store: Store) -> None:
    [job_id] = await insert(store, a_job(priority=3))
    worker = await enlist(store)
    for lane in (Lane(QUEUE, 4), Lane("other", 3)):
        assert await claim(store, worker, lane=lane) == [], f"{lane} has no jobs"
    assert await state(store, job_id) is State.READY, "a job in another lane stays where it is"


async def check_an_empty_lane_was_scanned_short(store: Store) -> None:
    await insert(store, a_job(), a_job())
    got = await store.claim_jobs(await enlist(store), {LANE: 5}, deadline_s=60)
    assert got.scanned.get(LANE) == 2, f"fewer rows than the quota means that the lane is empty: {got}"


async def check_no_lanes_or_no_quota_is_no_job(store: Store) -> None:
    await insert(store, a_job())
    worker = await enlist(store)
    assert (await store.claim_jobs(worker, {}, deadline_s=60)).jobs == [], "no lanes, no jobs"
    assert await claim(store, worker, 0) == [], "a quota of none is none"


async def check_each_job_goes_to_one_worker(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(100)))
    workers = [await enlist(store) for _ in range(5)]

    got: list[JobId] = []

    async def grab(worker: WorkerId) -> None:
        while jobs := await claim(store, worker, 7):
            got.extend(job.id for job in jobs)

    await asyncio.gather(*(grab(worker) for worker in workers))
    assert len(got) == len(ids), f"{len(got)} claims for {len(ids)} jobs"
    assert set(got) == set(ids), "every job is claimed once"


async def check_tokens_grow_over_all_claims(store: Store) -> None:
    first, second = await enlist(store), await enlist(store)
    await insert(store, *(a_job(queue=queue) for queue in (QUEUE, "other") for _ in range(6)))
    last = 0
    for turn in range(6):
        worker = (first, second)[turn % 2]
        jobs = await claim(store, worker, 2, lane=Lane((QUEUE, "other")[turn % 2], PRIORITY))
        tokens = [job.token for job in jobs]
        assert len(set(tokens)) == 2, f"each run has a token of its own: {tokens}"
        assert min(tokens) > last, f"tokens grow from claim to claim: {tokens} after {last}"
        last = max(tokens)


async def check_a_jobs_token_grows_with_each_run(store: Store) -> None:
    run = await start(store)
    for _ in range(3):
        await apply(store, run.worker, HandBack(run.id, run.token, "again"))
        again = await resume(store, run.id, worker=run.worker)
        assert again.token > run.token, f"{again.token} after {run.token}"
        run = again


async def _refused(store: Store, worker: WorkerId) -> None:
    try:
        got = await claim(store, worker)
    except LeaseLost:
        return
    raise AssertionError(f"a claim without a valid lease must raise LeaseLost, not answer {got}")


async def check_an_unknown_worker_claims_nothing(store: Store) -> None:
    ids = await insert(store, a_job(), a_job())
    await _refused(store, uuid4())
    assert await states(store, *ids) == [State.READY] * 2, "a refused claim moves nothing"


async def check_an_expired_worker_claims_nothing(store: Store) -> None:
    ids = await insert(store, a_job(), a_job())
    await _refused(store, await enlist(store, lease_s=0))
    assert await states(store, *ids) == [State.READY] * 2, "a refused claim moves nothing"


async def check_a_reaped_worker_claims_nothing(store: Store) -> None:
    worker = await enlist(store, lease_s=0)
    await store.reap_workers(limit=10)
    await insert(store, a_job())
    await _refused(store, worker)


async def check_a_paused_queue_gives_nothing(store: Store) -> None:
    [job_id] = await insert(store, a_job())
    await insert(store, a_job(queue="other"))
    worker = await enlist(store)
    await store.set_queue(QUEUE, QueueSettings(paused=True))
    lanes = {LANE: 5, Lane("other", PRIORITY): 5}
    got = await store.claim_jobs(worker, lanes, deadline_s=60)
    assert [job.queue for job in got.jobs] == ["other"], f"got {got}"
    assert await state(store, job_id) is State.READY, "pausing keeps jobs where they are"
    await insert(store, a_job())  # a paused queue accepts
    await store.set_queue(QUEUE, QueueSettings(paused=False))
    assert len(await drain(store, worker)) == 2, "a resumed queue gives its jobs"


async def check_a_claim_past_its_deadline_takes_nothing(store: Store) -> None:
    [job_id] = await insert(store, a_job())
    worker = await enlist(store)
    with contextlib.suppress(HoldfastError):  # nobody waits for the answer any more: it may be an error or nothing
        await store.claim_jobs(worker, {LANE: 1}, deadline_s=-1)
    assert await state(store, job_id) is State.READY, "a request that comes too late is dropped"


async def check_an_abandoned_claim_leaves_nothing_stuck(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(30)))
    worker = await enlist(store)
    held = []
    for turn in range(10):
        task = asyncio.create_task(claim(store, worker, 3))
        for _ in range(turn):
            await asyncio.sleep(0)
        task.cancel()
        try:
            held += await task
        except asyncio.CancelledError:
            continue
    held += await drain(store, worker)
    known = {job.id for job in held}
    renewal = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=-1)
    lost = [lease for lease in renewal.held if lease.job_id not in known]
    await apply(store, worker, *(HandBack(job_id, token, "nobody ran it") for job_id, token in lost))
    held += await drain(store, worker)
    assert {job.id for job in held} == set(ids), "whatever a cancelled claim took can be had again"
