"""Callers at the same time: whoever comes first, each job ends once and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.settlement import HandBack, Retry, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, Reaped, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    a_job,
    claim,
    drain,
    due,
    enlist,
    insert,
    start,
    states,
)

ROUNDS = 10


async def _together(*calls: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*calls))


async def _claim_one_by_one(store: Store, worker: WorkerId, times: int) -> list[ClaimedJob]:
    return [job for _ in range(times) for job in await claim(store, worker, 1)]


async def _cancel_one_by_one(store: Store, ids: list[JobId]) -> list[CancelAnswer]:
    return [(await store.cancel_jobs([job_id], reason="race"))[0] for job_id in ids]


async def check_cancel_against_claim(store: Store) -> None:
    worker = await enlist(store)
    for _ in range(ROUNDS):
        ids = await insert(store, *(a_job() for _ in range(4)))
        jobs, answers = await _together(
            _claim_one_by_one(store, worker, 4), _cancel_one_by_one(store, list(reversed(ids)))
        )
        jobs += await drain(store, worker)
        claimed = {job.id for job in jobs}
        for job_id, answer in zip(reversed(ids), answers, strict=True):
            expected = CancelAnswer.REQUESTED if job_id in claimed else CancelAnswer.CANCELLED
            assert answer is expected, f"{answer} for a job that was {'' if job_id in claimed else 'not '}claimed"
        verdicts = await store.settle_jobs(worker, [Retry(job.id, job.token, 0, ERROR) for job in jobs])
        assert set(verdicts) <= {Verdict.APPLIED}, f"got {verdicts}"
        found = await states(store, *ids)
        assert found == [State.CANCELLED] * 4, f"all were asked to be cancelled: {found}"


async def check_cancel_against_settle(store: Store) -> None:
    for turn in range(ROUNDS):
        run = await start(store)
        success = turn % 2 == 0
        settlement = Succeed(run.id, run.token, None) if success else HandBack(run.id, run.token, "drained")
        calls = [store.settle_jobs(run.worker, [settlement]), store.cancel_jobs([run.id], reason="race")]
        if turn % 4 >= 2:
            calls.reverse()
        answers = [answer for [answer] in await _together(*calls)]
        assert Verdict.APPLIED in answers, f"the lease was held: {answers}"
        [found] = await states(store, run.id)
        if success:
            assert found is State.SUCCEEDED, f"success wins: {found} after {answers}"
        else:
            assert found is State.CANCELLED, f"a job given back and cancelled is cancelled: {found}, {answers}"


async def check_cancel_against_promote(store: Store) -> None:
    for turn in range(ROUNDS):
        [job_id] = await insert(store, a_job())
        worker = await enlist(store)
        [job] = await claim(store, worker)
        await store.settle_jobs(worker, [Retry(job.id, job.token, 0, ERROR)])
        calls: list[Awaitable[Any]] = [
            store.promote_jobs(limit=PLENTY),
            store.cancel_jobs([job_id], reason="race"),
        ]
        if turn % 2:
            calls.reverse()
        answers = await _together(*calls)
        assert [CancelAnswer.CANCELLED] in answers, f"it waited, here or there: {answers}"
        assert await states(store, job_id) == [State.CANCELLED], "and so it has ended"
        assert await drain(store, worker) == [], "a cancelled job never runs"


async def check_settle_against_reap(store: Store) -> None:
    for turn in range(ROUNDS):
        run = await start(store)
        await store.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
        calls: list[Awaitable[Any]] = [
            store.reap_workers(limit=PLENTY),
            store.settle_jobs(run.worker, [Succeed(run.id, run.token, None)]),
        ]
        if turn % 2:
            calls.reverse()
        answers = await _together(*calls)
        [found] = await states(store, run.id)
        counted = [Verdict.APPLIED] in answers
        assert found is (State.SUCCEEDED if counted else State.READY), f"{found} after {answers}"
        rest = await drain(store, await enlist(store))
        assert len(rest) == (0 if counted else 1), f"it ended, or it can be had once more: {rest}"


async def check_renew_against_reap(store: Store) -> None:
    for turn in range(ROUNDS):
        run = await start(store)
        worker = run.worker
        await store.renew_worker(worker, lease_s=0, held_for_s=0)
        calls: list[Awaitable[Any]] = [
            store.reap_workers(limit=PLENTY),
            store.renew_worker(worker, lease_s=LONG_S, held_for_s=0),
        ]
        if turn % 2:
            calls.reverse()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused = any(isinstance(answer, LeaseLost) for answer in answers)
        reaped = any(isinstance(answer, Reaped) and worker in answer.workers for answer in answers)
        assert refused is reaped, f"whoever comes first decides, and both know: {answers}"
        alive = [each.id for each in await store.list_workers()]
        assert alive == ([] if reaped else [worker]), f"nobody rises from the dead: {answers}"
        [found] = await states(store, run.id)
        assert found is (State.READY if reaped else State.RUNNING), f"its job follows: {found} after {answers}"
        await store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="next turn")
        await store.cancel_jobs([run.id], reason="next turn")


async def check_claim_against_hand_back(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(20)))
    for turn in range(ROUNDS):
        worker = await enlist(store)
        calls: list[Awaitable[Any]] = [
            claim(store, worker, 5),
            store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="drained"),
            claim(store, worker, 5),
        ]
        if turn % 2:
            calls.reverse()
        await asyncio.gather(*calls, return_exceptions=True)
        found = await states(store, *ids)
        assert found == [State.READY] * 20, f"a removed worker keeps nothing: {found}"


async def check_a_crowd_ends_every_job_once(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(60)))
    succeeded: list[JobId] = []

    async def work() -> None:
        worker = await enlist(store)
        while jobs := await claim(store, worker, 3):
            settlements = [
                Succeed(job.id, job.token, None)
                if job.attempt > 1 or job.id.int % 3
                else Retry(job.id, job.token, 0, ERROR)
                for job in jobs
            ]
            verdicts = await store.settle_jobs(worker, settlements)
            for settlement, verdict in zip(settlements, verdicts, strict=True):
                assert verdict is Verdict.APPLIED, f"the lease was held: {settlement}: {verdict}"
                if isinstance(settlement, Succeed):
                    succeeded.append(settlement.job_id)
            await due(store)

    await _together(*(work() for _ in range(4)), _cancel_one_by_one(store, ids[::5]))
    await due(store)
    await work()
    assert len(succeeded) == len(set(succeeded)), "no job may succeed twice"
    found = dict(zip(ids, await states(store, *ids), strict=True))
    assert {job_id for job_id in ids if found[job_id] is State.SUCCEEDED} == set(succeeded), f"got {found}"
    others = {job_id for job_id in ids if found[job_id] is State.CANCELLED}
    assert others == set(ids) - set(succeeded), f"every job has one ending: {found}"
    assert others <= set(ids[::5]), "only those that were asked to be cancelled are"
