"""Builders and short-cuts for the checks: jobs, workers, runs. Not a check itself."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from uuid import uuid4

from holdfast.core.fairness import Lane
from holdfast.core.ids import new_job_id
from holdfast.core.job import ClaimedJob, ErrorInfo, JobId, JobInfo, NewJob, WorkerId
from holdfast.core.settlement import Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.core.worker import NewWorker
from holdfast.stores.base import Inserted, Store

QUEUE = "contract"
PRIORITY = 5
LANE = Lane(QUEUE, PRIORITY)
TASK = "contract.task"
ERROR = ErrorInfo("ValueError", "it did not work", "Traceback: it did not work")
LONG_S = 3600.0
PLENTY = 1000

an_id = new_job_id


def a_call(*args: Any, **kwargs: Any) -> bytes:
    """The payload of a call, as clients encode it."""
    return json.dumps({"args": args, "kwargs": kwargs}, ensure_ascii=False).encode()


def a_job(**overrides: Any) -> NewJob:
    """A job that is ready at once, unless something else is asked for."""
    job = NewJob(id=an_id(), task=TASK, queue=QUEUE, priority=PRIORITY, payload=a_call())
    return job._replace(**overrides)


def a_worker(**overrides: Any) -> NewWorker:
    """A worker with an identity of its own."""
    fields: dict[str, Any] = {"id": uuid4(), "host": "contract.example", "pid": 4711, "concurrency": 10}
    return NewWorker(**(fields | overrides))


async def enlist(store: Store, *, lease_s: float = LONG_S) -> WorkerId:
    """Register a new worker."""
    worker = a_worker()
    await store.register_worker(worker, lease_s=lease_s)
    return worker.id


async def insert(store: Store, *jobs: NewJob) -> list[JobId]:
    """Insert jobs that must all be accepted."""
    answers = await store.insert_jobs(jobs)
    assert len(answers) == len(jobs), f"one answer per job, not {answers}"
    for job, answer in zip(jobs, answers, strict=True):
        assert isinstance(answer, Inserted), f"expected Inserted, got {answer}"
        assert answer.job_id == job.id, f"answers must be in order: {answer} for {job.id}"
        assert not answer.repeated, f"a new job is not a repeat: {answer}"
    return [job.id for job in jobs]


async def claim(store: Store, worker: WorkerId, quota: int = PLENTY, *, lane: Lane = LANE) -> list[ClaimedJob]:
    """One claim on one lane; when it brings nothing, one for a job that must run alone."""
    jobs = (await store.claim_jobs(worker, {lane: quota}, deadline_s=60)).jobs
    return jobs or (await store.claim_jobs(worker, {lane: quota}, deadline_s=60, alone=True)).jobs


async def drain(store: Store, worker: WorkerId, *lanes: Lane) -> list[ClaimedJob]:
    """Claim until the lanes are empty."""
    quotas = dict.fromkeys(lanes or (LANE,), PLENTY)
    found: list[ClaimedJob] = []
    while True:
        got = await store.claim_jobs(worker, quotas, deadline_s=60)
        lonely = await store.claim_jobs(worker, quotas, deadline_s=60, alone=True)
        found += got.jobs + lonely.jobs
        if not any(got.scanned.values()) and not any(lonely.scanned.values()):
            return found


async def settle(store: Store, worker: WorkerId, *settlements: Settlement) -> list[Verdict]:
    return await store.settle_jobs(worker, settlements)


async def apply(store: Store, worker: WorkerId, *settlements: Settlement) -> None:
    """Settle, and insist that each settlement counts."""
    verdicts = await store.settle_jobs(worker, settlements)
    expected = [Verdict.APPLIED] * len(settlements)
    assert verdicts == expected, f"expected every settlement to be applied: {verdicts} for {settlements}"


class Run(NamedTuple):
    """A job on a worker."""

    worker: WorkerId
    job: ClaimedJob

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def token(self) -> int:
        return self.job.token


async def start(store: Store, *, worker: WorkerId | None = None, **overrides: Any) -> Run:
    """Insert a job and have it claimed, by a worker of its own unless one is given."""
    job = a_job(**overrides)
    await insert(store, job)
    return await resume(store, job.id, worker=worker, lane=Lane(job.queue, job.priority))


async def resume(store: Store, job_id: JobId, *, worker: WorkerId | None = None, lane: Lane = LANE) -> Run:
    """Have a job claimed that must be the next one of its lane."""
    worker = worker or await enlist(store)
    jobs = await claim(store, worker, 1, lane=lane)
    assert [job.id for job in jobs] == [job_id], f"expected {job_id} to be claimed, got {jobs}"
    return Run(worker, jobs[0])


async def finish(store: Store, run: Run, result: bytes | None = None) -> None:
    await apply(store, run.worker, Succeed(run.id, run.token, result))


async def lose(store: Store, worker: WorkerId) -> None:
    """Let a worker's lease run out, and reap it."""
    await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
    reaped = await store.reap_workers(limit=PLENTY)
    assert worker in reaped.workers, f"{worker} has expired and must be reaped: {reaped}"


async def due(store: Store) -> int:
    """Make ready what is due."""
    return (await store.promote_jobs(limit=PLENTY)).promoted


async def serve(store: Store, *, limit: int = PLENTY) -> int:
    """Look after the gates until none is due; how many jobs were let go."""
    total = 0
    while True:
        found = await store.serve_gates(limit=limit)
        total += found.unparked
        if found.next_due_in_s is None or found.next_due_in_s > 0:
            return total


async def info(store: Store, job_id: JobId) -> JobInfo:
    [found] = await store.job_infos([job_id])
    assert found is not None, f"job {job_id} has vanished"
    return found


async def state(store: Store, job_id: JobId) -> State:
    return (await info(store, job_id)).state


async def states(store: Store, *job_ids: JobId) -> list[State | None]:
    return [None if found is None else found.state for found in await store.job_infos(job_ids)]
