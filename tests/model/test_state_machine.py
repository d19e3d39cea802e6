"""The SQLite store in lock-step with the model: any order of any verbs, the same answers and the same jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any, TypeVar
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, NewJob, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Settlement
from holdfast.core.state import State
from holdfast.core.transition import allowed
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import CancelRequest, Inserted, JobFilter, Swept
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import a_worker, an_id
from model.model import Model
from model.strategies import (
    AFTER,
    LANES,
    LEASES,
    ORDERED,
    PARK_KEYS,
    QUEUES,
    SOON,
    WHY,
    Kind,
    Plan,
    build,
    plans,
    settlements,
)

T = TypeVar("T")
MANY = 1000
BATCHES = st.lists(plans, max_size=3)
SELDOM = [
    "replay",
    "replay",
    "unpark",
    "insert again",
    "progress",
    "sweep",
    "report",
    "pause",
    "prune",
    "purge",
    "purge dead",
    "wait",
]


class StoreAgainstModel(RuleBasedStateMachine):
    """One store, one model, one clock for both."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.model = Model(self.clock.now())
        self.runner = asyncio.Runner()
        self.store = SqliteStore(":memory:", clock=self.clock)
        self.do(self.store.open())
        self.asked: dict[JobId, NewJob] = {}
        self.workers: list[WorkerId] = [uuid4()]  # the first was never registered
        self.runs: list[tuple[WorkerId, JobId, int]] = []
        self.last_token = 0
        self.states: dict[JobId, State | None] = {}

    def do(self, call: Awaitable[T]) -> T:
        async def run() -> T:
            return await call

        return self.runner.run(run())

    def teardown(self) -> None:
        self.do(self.store.close())
        self.runner.close()

    # ------------------------------------------------------------ enqueue

    @rule(batch=st.lists(plans, min_size=1, max_size=4), whole=st.booleans())
    def insert(self, batch: list[Plan], whole: bool) -> None:
        jobs: list[NewJob] = []
        for plan in batch:
            jobs.append(build(plan, [*self.asked, *(job.id for job in jobs)]))
        self.asked |= {job.id: job for job in jobs}
        expected = self.model.insert(jobs, whole=whole)
        assert self.do(self.store.insert_jobs(jobs, whole=whole)) == expected
        self.compare()

    # ------------------------------------------------------------ leases

    @initialize(batch=st.lists(plans, min_size=3, max_size=8))
    def begin(self, batch: list[Plan]) -> None:
        self.insert(batch, False)

    def enlist(self, lease_s: float = 60.0) -> WorkerId:
        worker = a_worker()
        self.do(self.store.register_worker(worker, lease_s=lease_s))
        self.workers.append(worker.id)
        self.model.workers[worker.id] = self.model.now + lease_s
        return worker.id

    def a_worker(self, data: st.DataObject) -> WorkerId:
        """Mostly one that lives, at times one that has never lived or lives no more."""
        living = self.living() or [self.enlist()]
        return data.draw(st.sampled_from([*living * 3, *self.workers[-4:]]))

    def living(self) -> list[WorkerId]:
        return [worker for worker in self.workers if self.model.valid(worker)]

    @rule(data=st.data(), quotas=st.dictionaries(st.sampled_from(LANES), st.integers(1, 4), min_size=1))
    def claim(self, data: st.DataObject, quotas: dict[Lane, int]) -> None:
        self.claim_for(self.a_worker(data), quotas)

    @rule(batch=BATCHES, quota=st.integers(1, 4), kinds=st.lists(settlements, max_size=8))
    def work(self, batch: list[Plan], quota: int, kinds: list[Kind]) -> None:
        """Have something to do, claim from everywhere, and settle some of it."""
        self.insert(batch, False)
        worker = self.claim_everywhere(quota)
        held = sorted(self.model.held(worker))
        self.settle_for(worker, [kind(*lease) for kind, lease in zip(kinds, held, strict=False)])

    @rule(batch=BATCHES, quota=st.integers(1, 4), kinds=st.lists(settlements, max_size=8))
    def work_more(self, batch: list[Plan], quota: int, kinds: list[Kind]) -> None:
        """The same once more: every rule is drawn as often as any other, and at times one is left out."""
        self.work(batch, quota, kinds)

    @rule(times=st.sampled_from([1, 1, 2, 5]), reaped=st.booleans())
    def crash(self, times: int, reaped: bool) -> None:
        """Claim and die, again and again: what does not get well by running alone is poison."""
        for _ in range(times):
            worker = self.claim_everywhere(1)
            if reaped:
                self.do(self.store.renew_worker(worker, lease_s=0, held_for_s=0))
                self.model.workers[worker] = self.model.now
                self.reap()
            else:
                self.hand_back(worker, Cause.WORKER_LOST)

    def claim_everywhere(self, quota: int) -> WorkerId:
        worker = (self.living() or [self.enlist()])[-1]
        alone = any(self.model.ready_in(lane, alone=True) for lane in ORDERED)
        self.claim_for(worker, dict.fromkeys(LANES, quota), alone=False)
        if alone:
            self.claim_for(worker, dict.fromkeys(ORDERED, 1), alone=True)
        return worker

    def claim_for(self, worker: WorkerId, quotas: dict[Lane, int], *, alone: bool = False) -> None:
        if AFTER in quotas:
            quotas[AFTER] = MANY  # the order of releases is open: all of them, or none
        call = self.store.claim_jobs(worker, quotas, deadline_s=MANY, alone=alone)
        if not self.model.valid(worker):
            with pytest.raises(LeaseLost):
                self.do(call)
            return
        claim = self.do(call)
        expected, scanned, lonely = self.model.claim(quotas, alone=alone)
        assert {lane: claim.scanned.get(lane, 0) for lane in scanned} == scanned
        assert claim.lonely == lonely
        got = [(job.id, job.attempt, job.alone) for job in claim.jobs]
        assert self.comparable(got) == self.comparable(expected)
        tokens = [job.token for job in claim.jobs]
        assert len(set(tokens)) == len(tokens), "each run has a token of its own"
        assert min(tokens, default=self.last_token + 1) > self.last_token, "tokens grow from claim to claim"
        self.last_token = max([self.last_token, *tokens])
        self.model.lease(worker, {job.id: job.token for job in claim.jobs})
        self.runs += [(worker, job.id, job.token) for job in claim.jobs]
        self.compare()

    def comparable(self, runs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Runs of the ordered lanes as they come, the others by id."""
        ordered = [tuple(run) for run in runs if self.model.jobs[run[0]].lane in ORDERED]
        return ordered, sorted(tuple(run) for run in runs if self.model.jobs[run[0]].lane == AFTER)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), kinds=st.lists(settlements, min_size=1, max_size=4))
    def settle(self, data: st.DataObject, kinds: list[Kind]) -> None:
        """Any word on any run of one worker: current, over, taken away, or somebody else's."""
        current = [run for run in self.runs if self.model.holds(*run)]
        owner = data.draw(st.sampled_from([*current, *self.runs[-4:]]))[0]
        runs = [run for run in [*current, *self.runs[-8:]] if run[0] == owner]
        batch = [kind(*data.draw(st.sampled_from(runs))[1:]) for kind in kinds]
        self.settle_for(data.draw(st.sampled_from([owner] * 7 + self.workers[-3:])), batch)

    def settle_for(self, worker: WorkerId, batch: list[Settlement]) -> None:
        verdicts = self.do(self.store.settle_jobs(worker, batch))
        assert len(verdicts) == len(batch)
        for settlement, verdict in zip(batch, verdicts, strict=True):
            assert verdict in self.model.settle(worker, settlement), settlement
        self.compare()

    @rule(data=st.data(), worker_lost=st.booleans())
    def disturb(self, data: st.DataObject, worker_lost: bool) -> None:
        """What comes in between."""
        match data.draw(st.sampled_from(["register", "renew", "hand back", "cancel", "cancel"])):
            case "register":
                self.enlist(data.draw(LEASES))
            case "renew":
                self.renew(self.a_worker(data), data.draw(LEASES), data.draw(st.sampled_from([0.0, 5.0])))
            case "hand back":
                cause = Cause.WORKER_LOST if worker_lost else Cause.HANDED_BACK
                self.hand_back(self.a_worker(data), cause)
            case "cancel":
                self.cancel(self.some_ids(data), data.draw(st.sampled_from(["why", "because"])))

    def renew(self, worker: WorkerId, lease_s: float, held_for_s: float) -> None:
        call = self.store.renew_worker(worker, lease_s=lease_s, held_for_s=held_for_s)
        if worker not in self.model.workers:
            with pytest.raises(LeaseLost):
                self.do(call)
            return
        renewal = self.do(call)
        self.model.workers[worker] = self.model.now + lease_s
        assert renewal.now == self.model.now
        assert {tuple(lease) for lease in renewal.held} == self.model.held(worker, held_for_s)

    def hand_back(self, worker: WorkerId, cause: Cause) -> None:
        count = self.do(self.store.hand_back_worker(worker, cause=cause, why=WHY))
        assert count == self.model.hand_back(worker, cause)
        self.compare()

    # ------------------------------------------------------------ time and people

    @rule(
        seconds=st.sampled_from([0.0, *SOON]),
        chores=st.lists(st.sampled_from(["promote", "promote some", "expire", "reap"]), max_size=3),
    )
    def wait(self, seconds: float, chores: list[str]) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.now()
        for chore in chores:
            match chore:
                case "promote":
                    self.promote(MANY)
                case "promote some":
                    self.promote(2)
                case "expire":
                    assert self.do(self.store.expire_jobs(limit=MANY)) == self.model.expire()
                    self.compare()
                case "reap":
                    self.reap()

    def promote(self, limit: int) -> None:
        promotion = self.do(self.store.promote_jobs(limit=limit))
        assert promotion.promoted == self.model.promote(limit)
        next_due = self.model.next_due()
        in_s = None if next_due is None else max(0.0, next_due - self.model.now)
        assert promotion.next_due_in_s == in_s
        self.compare()

    def reap(self) -> None:
        reaped = self.do(self.store.reap_workers(limit=MANY))
        assert (set(reaped.workers), reaped.returned, reaped.ended) == self.model.reap()
        self.compare()

    def cancel(self, ids: list[JobId], reason: str) -> None:
        answers = self.do(self.store.cancel_jobs(ids, reason=reason))
        assert answers == [self.model.cancel(job_id, reason) for job_id in ids]
        self.compare()

    def replay(self, data: st.DataObject) -> None:
        ids = self.some_ids(data, State.DEAD)
        assert self.do(self.store.replay_jobs(ids)) == sum(self.model.replay(job_id) for job_id in ids)
        self.compare()

    def unpark(self, keys: list[str]) -> None:
        count = self.do(self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=keys))
        assert count == self.model.unpark(UNKNOWN_TASK, keys)
        self.compare()

    @rule(data=st.data(), paused=st.sampled_from([False, False, True]), keep_s=st.sampled_from([0.0, 4000.0]))
    def now_and_then(self, data: st.DataObject, paused: bool, keep_s: float) -> None:
        """What happens less often."""
        queue = data.draw(QUEUES)
        match data.draw(st.sampled_from(SELDOM)):
            case "replay":
                self.replay(data)
            case "unpark":
                self.unpark(data.draw(st.lists(PARK_KEYS, unique=True)))
            case "insert again":
                self.insert_again(data)
            case "progress":
                self.progress(data)
            case "wait":
                self.wait(5000.0, [])
            case "report":
                self.compare_reports()
            case "sweep":
                swept = self.do(self.store.sweep(limit=MANY))
                assert swept == Swept(0, 0, 0, self.model.drop_keys(), 0), "only old keys are left to put right"
            case "prune":
                count = self.do(self.store.prune_jobs(keep_succeeded_s=keep_s, keep_cancelled_s=0, limit=MANY))
                assert count == self.model.prune(keep_s, 0)
            case "pause":
                self.do(self.store.set_queue(queue, QueueSettings(paused=paused)))
                (self.model.paused.add if paused else self.model.paused.discard)(queue)
            case "purge":
                count = self.do(self.store.purge_queue(queue, reason=WHY, limit=MANY))
                assert count == self.model.purge_queue(queue, WHY)
            case "purge dead":
                ids = self.some_ids(data, State.DEAD)[:1]
                assert self.do(self.store.purge_dead(ids)) == sum(self.model.purge_dead(job_id) for job_id in ids)
        self.compare()

    def insert_again(self, data: st.DataObject) -> None:
        job = self.asked[data.draw(st.sampled_from(list(self.asked)))]
        if job.id in self.model.jobs:
            [answer] = self.do(self.store.insert_jobs([job]))
            # Whether its own key has passed on meanwhile or not: the job is there, and stays as it is.
            assert job.key or (isinstance(answer, Inserted) and answer.repeated), answer
        else:
            expected = self.model.insert([job], whole=False)
            assert self.do(self.store.insert_jobs([job])) == expected
        self.compare()

    def progress(self, data: st.DataObject) -> None:
        worker, job_id, token = data.draw(st.sampled_from(self.runs or [(self.workers[0], an_id(), 1)]))
        written = self.do(self.store.record_progress(worker, job_id, token, done=1, total=None, stage=None))
        assert written == self.model.holds(worker, job_id, token)

    def some_ids(self, data: st.DataObject, state: State | None = None) -> list[JobId]:
        fitting = [job_id for job_id, job in self.model.jobs.items() if state in (None, job.state)]
        pool = st.sampled_from(fitting[::-1] or [*self.asked, an_id()])
        return data.draw(st.lists(pool, min_size=1, max_size=2))

    # ------------------------------------------------------------ after every call

    def compare(self) -> None:
        infos = dict(zip(self.asked, self.do(self.store.job_infos(list(self.asked))), strict=True))
        for job_id, info in infos.items():
            job = self.model.jobs.get(job_id)
            if job is None or info is None:
                assert job is info is None, (job, info)
                continue
            assert (info.state, info.attempt) == (job.state, job.attempt), (info, job)
            assert info.cancel_requested == (job.cancel_reason is not None)
            assert {run.token: run.cause for run in info.attempts} == job.causes, (info.attempts, job)
            if job.state in (State.PARKED, State.DEAD, State.CANCELLED):
                assert info.reason == job.reason
        states = {job_id: info and info.state for job_id, info in infos.items()}
        for job_id, after in states.items():
            assert may_become(self.states.get(job_id), after), (self.states.get(job_id), after)
        self.states = states
        self.compare_cancellations()

    def compare_cancellations(self) -> None:
        for worker in {job.worker for job in self.model.jobs.values() if job.state is State.RUNNING}:
            assert worker is not None
            requests = self.do(self.store.cancel_requests(worker))
            assert sorted(requests) == sorted(
                CancelRequest(job.new.id, job.token or 0, job.cancel_reason)
                for job in self.model.jobs.values()
                if job.state is State.RUNNING and job.worker == worker and job.cancel_reason is not None
            )

    def compare_reports(self) -> None:
        """Endings, and counts per state and queue: with the infos above, every job is in exactly one state."""
        endings = self.do(self.store.endings(list(self.asked)))
        told = {job_id: ended and ended.state for job_id, ended in endings.items()}
        jobs = ((job_id, self.model.jobs.get(job_id)) for job_id in self.asked)
        assert told == {job_id: job and job.state for job_id, job in jobs if job is None or job.state.ended}
        counts = {state: self.do(self.store.count_jobs(JobFilter(state=state))) for state in State}
        expected = Counter(job.state for job in self.model.jobs.values())
        assert counts == {state: expected[state] for state in State}
        depths = Counter((job.new.queue, job.state) for job in self.model.jobs.values())
        for queue in self.do(self.store.list_queues()):
            for state in (State.READY, State.SCHEDULED, State.BLOCKED, State.PARKED, State.RUNNING, State.DEAD):
                assert getattr(queue, state.value) == depths[queue.name, state], (queue, state)


def may_become(before: State | None, after: State | None) -> bool:
    """Whether one call may take a job there; at most two moves are joined (unparked and claimed, say)."""
    middles = [state for state in State if allowed(before, state)]
    return before == after or allowed(before, after) or any(allowed(state, after) for state in middles)


def test_the_store_is_what_the_model_says() -> None:
    run_state_machine_as_test(StoreAgainstModel, settings=settings.get_profile("model"))
