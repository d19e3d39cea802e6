"""Reaping: expired workers are declared dead, their jobs return, and what kills its process again and again is
poison."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId
from holdfast.core.loss import ALONE_FROM, MAX_CRASHES
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Crashed, HandBack, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import Reaped, Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    PRIORITY,
    QUEUE,
    a_job,
    apply,
    claim,
    enlist,
    finish,
    info,
    insert,
    lose,
    resume,
    settle,
    start,
    state,
    states,
)


async def check_nothing_is_reaped_while_leases_last(store: Store) -> None:
    run = await start(store)
    reaped = await store.reap_workers(limit=PLENTY)
    assert reaped == Reaped((), 0, 0), f"got {reaped}"
    assert await state(store, run.id) is State.RUNNING, "a leased job goes on"


async def check_an_expired_workers_jobs_return_uncharged(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, a_job(), a_job())
    await claim(store, worker)
    other = await start(store)
    await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
    reaped = await store.reap_workers(limit=PLENTY)
    assert reaped == Reaped((worker,), 2, 0), f"got {reaped}"
    for job_id in ids:
        found = await info(store, job_id)
        assert (found.state, found.attempt) == (State.READY, 0), f"got {found}"
        assert [attempt.cause for attempt in found.attempts] == [Cause.LEASE_EXPIRED], f"got {found.attempts}"
    assert await state(store, other.id) is State.RUNNING, "others keep their jobs"
    assert [worker.id for worker in await store.list_workers()] == [other.worker], "the dead are not listed"


async def check_only_leases_count_that_had_run_out_by_the_time_that_is_believed(store: Store) -> None:
    believed = await store.now()
    worker = await enlist(store, lease_s=0)
    assert await store.reap_workers(limit=PLENTY, as_of=believed - LONG_S) == Reaped((), 0, 0), "it lived at that time"
    assert await store.reap_workers(limit=PLENTY, as_of=believed + LONG_S) == Reaped((worker,), 0, 0), "it has expired"
    later = await enlist(store)
    assert await store.reap_workers(limit=PLENTY, as_of=believed + 10 * LONG_S) == Reaped((), 0, 0), "the store knows"
    assert [each.id for each in await store.list_workers()] == [later], "its clock has not come so far"


async def check_an_idle_worker_is_reaped_as_well(store: Store) -> None:
    worker = await enlist(store, lease_s=0)
    assert await store.reap_workers(limit=PLENTY) == Reaped((worker,), 0, 0), "it has expired"
    assert await store.reap_workers(limit=PLENTY) == Reaped((), 0, 0), "it dies once"


async def check_reaping_is_bounded(store: Store) -> None:
    workers = {await enlist(store, lease_s=0) for _ in range(5)}
    dead: list[object] = []
    for _ in range(20):
        reaped = await store.reap_workers(limit=2)
        assert len(reaped.workers) <= 2, f"at most two at once: {reaped}"
        dead += reaped.workers
    assert len(dead) == 5, f"each dies once: {dead}"
    assert set(dead) == workers, f"got {dead}"


async def check_every_job_of_a_reaped_worker_returns_however_small_the_limit(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, *(a_job() for _ in range(7)))
    await claim(store, worker)
    await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
    returned = 0
    for _ in range(20):
        returned += (await store.reap_workers(limit=2)).returned
    assert returned == 7, f"got {returned}"
    assert await states(store, *ids) == [State.READY] * 7, "all are ready again"


async def check_a_reaped_job_ends_cancelled_if_that_was_asked(store: Store) -> None:
    run = await start(store)
    await store.cancel_jobs([run.id], reason="not needed")
    await store.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
    reaped = await store.reap_workers(limit=PLENTY)
    assert (reaped.returned, reaped.ended) == (0, 1), f"got {reaped}"
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.CANCELLED, "not needed"), f"got {found}"


async def check_a_job_lost_twice_runs_alone(store: Store) -> None:
    run = await start(store)
    for losses in range(ALONE_FROM):
        assert not run.job.alone, f"after {losses} losses: {run.job}"
        await lose(store, run.worker)
        run = await resume(store, run.id)
    assert run.job.alone, f"after {ALONE_FROM} losses: {run.job}"
    assert run.job.attempt == 1, f"a loss charges nothing: {run.job}"
    await finish(store, run)


async def check_what_must_run_alone_is_claimed_by_itself(store: Store) -> None:
    runs = [await start(store), await start(store)]
    for _ in range(ALONE_FROM):
        for run in runs:
            await lose(store, run.worker)
        runs = [await resume(store, run.id) for run in runs]
    for run in runs:
        await store.hand_back_worker(run.worker, cause=Cause.HANDED_BACK, why="drained")
    [other] = await insert(store, a_job())
    worker = await enlist(store)
    crowd = await store.claim_jobs(worker, {LANE: 10}, deadline_s=60)
    assert [job.id for job in crowd.jobs] == [other], f"those that must run alone are passed over: {crowd}"
    assert crowd.lonely, "but they are told of"
    assert crowd.scanned == {LANE: 1}, f"and not counted as scanned: {crowd}"
    first = await store.claim_jobs(worker, {LANE: 10}, deadline_s=60, alone=True)
    assert [job.id for job in first.jobs] == [runs[0].id], f"one at a time, the oldest: {first}"
    await apply(store, worker, Succeed(first.jobs[0].id, first.jobs[0].token, None))
    second = await store.claim_jobs(worker, {LANE: 10}, deadline_s=60, alone=True)
    assert [job.id for job in second.jobs] == [runs[1].id], f"then the next: {second}"
    nothing = await store.claim_jobs(worker, {LANE: 10}, deadline_s=60, alone=True)
    assert nothing.jobs == [], f"and nothing that need not be alone: {nothing}"


async def _lonely(store: Store) -> JobId:
    """A ready job that must run alone."""
    run = await start(store)
    for _ in range(ALONE_FROM - 1):
        await lose(store, run.worker)
        run = await resume(store, run.id)
    await lose(store, run.worker)
    return run.id


async def check_a_job_that_must_run_alone_is_passed_over_by_others(store: Store) -> None:
    lonely = await _lonely(store)
    others = await insert(store, a_job(), a_job())
    worker = await enlist(store)
    found = await store.claim_jobs(worker, {LANE: PLENTY}, deadline_s=60)
    assert [job.id for job in found.jobs] == others, f"neighbours are claimed without it: {found}"
    assert found.lonely, f"the claim tells that it waits: {found}"
    found = await store.claim_jobs(worker, {Lane("other", PRIORITY): PLENTY}, deadline_s=60)
    assert not found.lonely, f"not in this lane: {found}"
    assert await state(store, lonely) is State.READY, "it waits where it was"


async def check_one_job_at_a_time_is_claimed_to_run_alone(store: Store) -> None:
    lonely = {await _lonely(store), await _lonely(store)}
    await insert(store, a_job())
    for _ in range(2):
        found = await store.claim_jobs(await enlist(store), {LANE: PLENTY}, deadline_s=60, alone=True)
        assert len(found.jobs) == 1, f"one, and no other with it: {found}"
        assert found.jobs[0].alone, f"got {found}"
        lonely.remove(found.jobs[0].id)
    found = await store.claim_jobs(await enlist(store), {LANE: PLENTY}, deadline_s=60, alone=True)
    assert found.jobs == [], f"those that may have neighbours are left to others: {found}"


async def check_a_job_that_must_run_alone_is_paused_with_its_queue(store: Store) -> None:
    await _lonely(store)
    await store.set_queue(QUEUE, QueueSettings(paused=True))
    for alone in (False, True):
        found = await store.claim_jobs(await enlist(store), {LANE: 1}, deadline_s=60, alone=alone)
        assert found.jobs == [], f"a paused queue gives nothing: {found}"
        assert not found.lonely, f"and asks for nothing: {found}"


async def check_a_job_that_keeps_killing_its_worker_ends_as_poison(store: Store) -> None:
    run = await start(store)
    for turn in range(ALONE_FROM + MAX_CRASHES - 1):
        if turn % 2:
            await lose(store, run.worker)
        else:
            await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why="killed by signal 9")
        run = await resume(store, run.id)
    await store.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
    reaped = await store.reap_workers(limit=PLENTY)
    assert (reaped.returned, reaped.ended) == (0, 1), f"got {reaped}"
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.DEAD, "poison"), f"got {found}"
    ending = (await store.endings([run.id]))[run.id]
    assert ending is not None, "it has ended"
    assert ending.state is State.DEAD, f"got {ending}"


async def check_only_suspects_are_marked_by_the_death_of_their_worker(store: Store) -> None:
    runs = [await start(store) for _ in range(2)]
    for _ in range(ALONE_FROM):
        for run, suspects in zip(runs, ([], [runs[1].token]), strict=True):
            why = "killed by signal 9"
            await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why=why, suspects=suspects)
        runs = [await resume(store, run.id) for run in runs]
    innocent, suspect = runs
    assert not innocent.job.alone, f"it had not begun, or another one did it: {innocent.job}"
    assert suspect.job.alone, f"it may have killed its worker {ALONE_FROM} times: {suspect.job}"
    for run in runs:
        causes = [attempt.cause for attempt in (await info(store, run.id)).attempts]
        assert causes == [Cause.WORKER_LOST] * ALONE_FROM, f"all of them have the cause on record: {causes}"


async def check_a_replayed_poison_starts_afresh(store: Store) -> None:
    run = await start(store)
    for _ in range(ALONE_FROM + MAX_CRASHES - 1):
        await lose(store, run.worker)
        run = await resume(store, run.id)
    await lose(store, run.worker)
    assert await store.replay_jobs([run.id]) == 1, "poison is a dead letter as any other"
    run = await resume(store, run.id)
    await lose(store, run.worker)
    assert await state(store, run.id) is State.READY, "a replayed job has a fresh budget"


async def check_an_orderly_return_is_no_loss(store: Store) -> None:
    run = await start(store)
    for cause in (Cause.HANDED_BACK, Cause.CLAIM_LOST) * (ALONE_FROM + MAX_CRASHES):
        await apply(store, run.worker, HandBack(run.id, run.token, "returned", cause))
        run = await resume(store, run.id, worker=run.worker)
    assert not run.job.alone, f"only a death of its worker marks a job: {run.job}"
    await finish(store, run)


async def check_a_crash_returns_its_job_uncharged_and_beside_others(store: Store) -> None:
    run = await start(store)
    for turn in range(MAX_CRASHES - 1):
        await apply(store, run.worker, Crashed(run.id, run.token, f"its process was killed by signal {turn}"))
        found = await info(store, run.id)
        assert (found.state, found.attempt) == (State.READY, 0), f"after crash {turn + 1}: {found}"
        run = await resume(store, run.id, worker=run.worker)
        assert not run.job.alone, f"nobody was hit beside it, so it needs no worker for itself: {run.job}"
    await finish(store, run)
    found = await info(store, run.id)
    assert [run.cause for run in found.attempts] == [Cause.WORKER_LOST] * (MAX_CRASHES - 1), f"got {found.attempts}"


async def check_a_job_that_keeps_killing_its_own_process_ends_as_poison(store: Store) -> None:
    run = await start(store)
    for turn in range(MAX_CRASHES):
        if turn:
            run = await resume(store, run.id, worker=run.worker)
        await apply(store, run.worker, Crashed(run.id, run.token, f"exited with code {turn}"))
    found = await info(store, run.id)
    assert (found.state, found.reason, found.attempt) == (State.DEAD, "poison", 1), f"got {found}"
    assert found.error is not None, f"got {found}"
    assert found.error.message.endswith(f"last: exited with code {MAX_CRASHES - 1}"), f"got {found.error}"
    told = [(run.cause, run.error and run.error.message) for run in found.attempts]
    expected = [(Cause.WORKER_LOST, f"exited with code {turn}") for turn in range(MAX_CRASHES)]
    assert told == expected, f"every cause is kept: {told}"
    verdicts = await settle(store, run.worker, Crashed(run.id, run.token, "exited with code 2"))
    assert verdicts == [Verdict.ALREADY], f"its repetition is told apart: {verdicts}"


async def check_crashes_and_losses_alone_add_up(store: Store) -> None:
    job_id = await _lonely(store)
    for turn in range(MAX_CRASHES):
        run = await resume(store, job_id)
        assert run.job.alone, f"got {run.job}"
        if turn % 2:
            await apply(store, run.worker, Crashed(run.id, run.token, "exited with code 3"))
        else:
            await lose(store, run.worker)
    assert await state(store, job_id) is State.DEAD, "three times it was the cause"


async def check_a_crash_of_a_job_asked_to_be_cancelled_ends_it_so(store: Store) -> None:
    run = await start(store)
    for turn in range(MAX_CRASHES):
        if turn:
            run = await resume(store, run.id, worker=run.worker)
        if turn == MAX_CRASHES - 1:
            await store.cancel_jobs([run.id], reason="not needed")
        await apply(store, run.worker, Crashed(run.id, run.token, "exited with code 3"))
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.CANCELLED, "not needed"), f"got {found}"


async def check_a_crash_of_another_run_counts_for_nothing(store: Store) -> None:
    run = await start(store)
    other = await enlist(store)
    stale = Crashed(run.id, run.token - 1, "exited with code 3")
    verdicts = await settle(store, run.worker, stale) + await settle(
        store, other, Crashed(run.id, run.token, "exited with code 3")
    )
    assert verdicts == [Verdict.LOST] * 2, f"it is fenced as every write of a run: {verdicts}"
    assert await state(store, run.id) is State.RUNNING, "nothing has happened to it"
