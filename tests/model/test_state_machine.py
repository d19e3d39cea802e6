"""Each store in lock-step with the model: any order of any verbs, the same answers and the same jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar
from uuid import uuid4

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.postgres.clock import ServerClock, stopped_clock
from tests.postgres.emptied import empty
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, NewJob, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Settlement, Succeed
from holdfast.core.state import State
from holdfast.core.transition import allowed
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import CancelRequest, Inserted, JobFilter, Store, Swept
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import a_worker, an_id
from model.choices import (
    AFTER,
    LANES,
    LEASES,
    ORDERED,
    PARK_KEYS,
    QUEUES,
    ROLES,
    SELDOM,
    SOON,
    TENANTS,
    THEMES,
    VERBS,
    WEIGHTS,
    WHY,
    Choice,
    Pick,
    mark,
    new_jobs,
    settlement,
)
from model.flow_steps import FlowSteps, comparable
from model.keys import Keys, step_of_keys
from model.leading import Leading
from model.model import Model

T = TypeVar("T")
MANY = 1000


class StoreAgainstModel(FlowSteps, RuleBasedStateMachine):
    """One store, one model, one clock for both; each verb compares answers, and then all jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.store = self.make()
        self.model = Model(self.clock.now(), lanes_at_once=isinstance(self.store, PostgresStore))
        self.leading = Leading()
        self.keys = Keys()
        self.runner = asyncio.Runner()
        self.do(self.store.open())
        self.asked: dict[JobId, NewJob] = {}
        self.workers: list[WorkerId] = [uuid4()]  # the first was never registered
        self.runs: list[tuple[WorkerId, JobId, int]] = []
        self.last_token = 0
        self.theme: Choice = ()
        self.states: dict[JobId, State | None] = {}

    def make(self) -> tuple[ManualClock, Store]:
        """A clock, and an empty store that goes by it."""
        clock = ManualClock()
        return clock, SqliteStore(":memory:", clock=clock)

    def do(self, call: Awaitable[T]) -> T:
        async def run() -> T:
            return await call

        return self.runner.run(run())

    def teardown(self) -> None:
        self.do(self.store.close())
        self.runner.close()

    # ------------------------------------------------------------ what happens

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One verb in which every choice can be shrunk."""
        self.anything(lambda options: data.draw(st.sampled_from(list(options))))

    @rule(random=st.randoms(use_true_random=True), steps=st.sampled_from([4, 8, 16]))
    def storm(self, random: Random, steps: int) -> None:
        """Many verbs at once: goes deeper than single steps do in the same time."""
        for _ in range(steps):
            self.anything(random.choice)

    def anything(self, pick: Pick) -> None:
        match pick(VERBS):
            case "insert":
                self.insert(self.some_jobs(pick, (1, 2, 4)), whole=pick((False, True)))
            case "rush":
                self.insert(self.some_jobs(pick, (3, 5)), whole=False)
                self.claim_everywhere(4)
            case "work":
                self.insert(self.some_jobs(pick, (0, 1, 2)), whole=False)
                worker = self.claim_everywhere(pick((1, 2, 4)))
                held = sorted(self.model.held(worker))
                self.settle(worker, [settlement(pick, *lease) for lease in held if pick((True, True, False))], pick)
            case "claim":
                self.claim(self.a_worker(pick), {pick(LANES): pick((1, 2, 4)) for _ in range(pick((1, 2, 3)))})
            case "settle":
                self.settle_anything(pick)
            case "wait":
                self.wait(pick(SOON), [pick(("promote", "promote 2", "expire", "reap")) for _ in range(2)])
            case "crash":
                self.crash(pick((1, 1, 2, 5)), reaped=pick((False, True)))
            case "cancel":
                self.cancel(self.some_ids(pick), "why")
            case "cancel running":
                self.cancel(self.some_ids(pick, State.RUNNING), "because")
            case "replay":
                self.replay(self.some_ids(pick, State.DEAD))
            case "renew":
                self.renew(self.a_worker(pick), pick(LEASES), held_for_s=pick((0.0, 5.0)))
            case "hand back":
                suspects = pick((None, {run[2] for run in self.runs if pick((True, False))}))
                self.hand_back(self.a_worker(pick), pick((Cause.HANDED_BACK, Cause.WORKER_LOST)), suspects)
            case "register":
                self.enlist(pick(LEASES))
            case "seldom":
                self.seldom(pick)
                self.compare()

    def seldom(self, pick: Pick) -> None:
        queue = pick(QUEUES)
        match pick(SELDOM):
            case "unpark":
                keys = pick((PARK_KEYS[:1], PARK_KEYS, ()))
                count = self.do(self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=keys))
                assert count == self.model.unpark(UNKNOWN_TASK, keys)
            case "claim parked":
                # Of a lane whose order is open, not even the store's first is known.
                self.claim(self.a_worker(pick), dict.fromkeys(ORDERED, 1), parked=pick((PARK_KEYS[:1], PARK_KEYS)))
            case "insert again":
                if self.asked:
                    self.insert_again(self.asked[pick(list(self.asked))])
            case "progress":
                run = pick(self.runs or [(self.workers[0], an_id(), 1)])
                written = self.do(self.store.record_progress(*run, done=1, total=None, stage=None))
                assert written == self.model.holds(*run)
            case "sweep":
                swept = self.do(self.store.sweep(limit=MANY))
                assert swept == Swept(0, 0, 0, swept.keys_dropped, 0), f"only old keys are left to put right: {swept}"
                assert swept.keys_dropped in self.model.drop_keys()
                self.model.tags.sweep()
            case "report":
                self.compare_reports()
            case "pause":
                paused = pick((False, False, True))
                self.do(self.store.set_queue(queue, QueueSettings(paused=paused), only=("paused",)))
                self.model.pause(queue, paused=paused)
            case "prune":
                keep_s = pick((0.0, 4000.0))
                count = self.do(self.store.prune_jobs(keep_succeeded_s=keep_s, keep_cancelled_s=0, limit=MANY))
                assert count == self.model.prune(keep_s, 0)
            case "purge":
                count = self.do(self.store.purge_queue(queue, reason=WHY, limit=MANY))
                assert count == self.model.purge_queue(queue, WHY)
            case "purge dead":
                ids = self.some_ids(pick, State.DEAD)[:1]
                assert self.do(self.store.purge_dead(ids)) == sum(self.model.purge_dead(job_id) for job_id in ids)
            case "lead":
                asked = (pick(ROLES), pick(self.workers[-3:]))
                lease_s = pick(LEASES)
                expected = self.leading.lead(*asked, lease_s=lease_s, now=self.model.now)
                assert self.do(self.store.lead(*asked, lease_s=lease_s)) == expected
            case "resign":
                asked = (pick(ROLES), pick(self.workers[-3:]))
                self.leading.resign(*asked, now=self.model.now)
                self.do(self.store.resign(*asked))
            case "weigh":
                tenant, weight = pick(TENANTS), pick(WEIGHTS)
                self.do(self.store.set_tenant_weight(tenant, weight))
                self.model.tags.weights[tenant] = weight or 1.0
            case "keys":
                step_of_keys(self.keys, self.store, self.do, pick, self.model.now)
            case "operate":
                self.operate(pick)
            case "wait long":
                self.wait(5000.0, [])

    def some_jobs(self, pick: Pick, counts: tuple[int, ...]) -> list[NewJob]:
        self.theme = self.theme or pick(THEMES)
        return new_jobs(pick, pick(counts), list(self.asked), self.theme)

    def some_ids(self, pick: Pick, state: State | None = None) -> list[JobId]:
        fitting = [job_id for job_id, job in self.model.jobs.items() if state in (None, job.state)]
        pool = fitting[::-1] or [*self.asked, an_id()]
        return [pick(pool) for _ in range(pick((1, 1, 2)))]

    def a_worker(self, pick: Pick) -> WorkerId:
        """Mostly one that lives, at times one that has never lived or lives no more."""
        return pick([*(self.living() or [self.enlist(60.0)]) * 3, *self.workers[-4:]])

    def living(self) -> list[WorkerId]:
        return [worker for worker in self.workers if self.model.valid(worker)]

    # ------------------------------------------------------------ enqueue

    def insert(self, jobs: list[NewJob], *, whole: bool) -> None:
        self.asked |= {job.id: job for job in jobs}
        expected = self.model.insert(jobs, whole=whole)
        answers = comparable(self.do(self.store.insert_jobs(jobs, whole=whole)))
        assert answers == expected, (answers, expected)
        self.compare()

    def insert_again(self, job: NewJob) -> None:
        if job.id not in self.model.jobs:
            self.insert([job], whole=False)
            return
        [answer] = self.do(self.store.insert_jobs([job]))
        assert isinstance(answer, Inserted), "the job is there, whoever has its key by now"
        assert answer.repeated, answer

    # ------------------------------------------------------------ leases

    def enlist(self, lease_s: float) -> WorkerId:
        worker = a_worker()
        self.do(self.store.register_worker(worker, lease_s=lease_s))
        self.workers.append(worker.id)
        self.model.workers[worker.id] = self.model.now + lease_s
        return worker.id

    def claim_everywhere(self, quota: int) -> WorkerId:
        worker = (self.living() or [self.enlist(60.0)])[-1]
        self.claim(worker, dict.fromkeys(LANES, quota))
        if any(self.model.ready_in(lane, alone=True) for lane in ORDERED):
            self.claim(worker, dict.fromkeys(ORDERED, quota), alone=True)
        return worker

    def claim(
        self, worker: WorkerId, quotas: dict[Lane, int], *, alone: bool = False, parked: Sequence[str] = ()
    ) -> None:
        if AFTER in quotas:
            quotas[AFTER] = MANY  # the order of releases is open: all of them, or none
        if parked:
            call = self.store.claim_parked(worker, quotas, tasks=parked, deadline_s=MANY)
        else:
            call = self.store.claim_jobs(worker, quotas, deadline_s=MANY, alone=alone)
        if not self.model.valid(worker) and (not parked or self.model.parked(UNKNOWN_TASK, parked)):
            with pytest.raises(LeaseLost):
                self.do(call)
            return
        claim = self.do(call)
        if parked:
            (expected, scanned), lonely = self.model.claim_parked(quotas, parked), False
            assert claim.scanned == scanned
        else:
            expected, scanned, lonely = self.model.claim(quotas, alone=alone)
            assert {lane: claim.scanned.get(lane, 0) for lane in scanned} == scanned
        assert claim.lonely == lonely
        got = [(job.id, job.attempt, job.alone) for job in claim.jobs]
        assert self.comparable(got) == self.comparable(expected), (got, expected)
        for job in claim.jobs:
            new = self.model.jobs[job.id].new
            body = (new.task, new.queue, new.priority, new.payload, new.options, new.max_attempts, new.tenant)
            assert (job.task, *job[4:10]) == body, "a run is told what was enqueued"
        tokens = [job.token for job in claim.jobs]
        assert len(set(tokens)) == len(tokens), "each run has a token of its own"
        assert min(tokens, default=self.last_token + 1) > self.last_token, "tokens grow from claim to claim"
        self.last_token = max([self.last_token, *tokens])
        self.model.lease(worker, {job.id: job.token for job in claim.jobs})
        self.runs += [(worker, job.id, job.token) for job in claim.jobs]
        self.compare()

    def comparable(self, runs: list[Any]) -> dict[Lane, list[Any]]:
        """The runs of each ordered lane as they come, the others by id."""
        by_lane: dict[Lane, list[Any]] = {lane: [] for lane in LANES}
        for run in runs:
            by_lane[self.model.jobs[run[0]].lane].append(tuple(run))
        return by_lane | {AFTER: sorted(by_lane[AFTER])}

    def settle_anything(self, pick: Pick) -> None:
        """Any word on any run of one worker: current, over, taken away, or somebody else's."""
        if not self.runs:
            return
        current = [run for run in self.runs if self.model.holds(*run)]
        owner = pick([*current, *self.runs[-4:]])[0]
        held = {job_id for worker, job_id, _ in current if worker == owner}
        runs = [run for run in self.runs if run[0] == owner and (run[1] in held or not held)]
        batch = [settlement(pick, *pick(runs)[1:]) for _ in range(pick((1, 2, 3)))]
        self.settle(pick([owner] * 5 + self.workers[-2:]), batch, pick)

    def settle(self, worker: WorkerId, batch: list[Settlement], pick: Pick) -> None:
        runs = {each.token: each.job_id for each in batch}
        succeeded = {each.token for each in batch if isinstance(each, Succeed)}
        marks = [
            each
            for token, job_id in runs.items()
            for each in mark(pick, self.asked[job_id], token, may_fail=token not in succeeded)
        ]
        verdicts = self.do(self.store.settle_jobs(worker, batch, marks=marks))
        assert len(verdicts) == len(batch)
        for each, verdict in zip(batch, verdicts, strict=True):
            assert verdict in self.model.settle(worker, each), each
        self.model.mark(marks, zip(batch, verdicts, strict=True))
        self.compare()

    def renew(self, worker: WorkerId, lease_s: float, *, held_for_s: float) -> None:
        call = self.store.renew_worker(worker, lease_s=lease_s, held_for_s=held_for_s)
        if worker not in self.model.workers:
            with pytest.raises(LeaseLost):
                self.do(call)
            return
        renewal = self.do(call)
        self.model.workers[worker] = self.model.now + lease_s
        assert renewal.now == self.model.now
        assert {tuple(lease) for lease in renewal.held} == self.model.held(worker, held_for_s)

    def hand_back(self, worker: WorkerId, cause: Cause, suspects: set[int] | None = None) -> None:
        count = self.do(self.store.hand_back_worker(worker, cause=cause, why=WHY, suspects=suspects))
        assert count == self.model.hand_back(worker, cause, suspects)
        self.compare()

    def reap(self) -> None:
        reaped = self.do(self.store.reap_workers(limit=MANY))
        assert (set(reaped.workers), reaped.returned, reaped.ended) == self.model.reap()
        self.compare()

    def crash(self, times: int, *, reaped: bool) -> None:
        """Claim and die, again and again: what does not get well by running alone is poison."""
        for _ in range(times):
            worker = self.claim_everywhere(1)
            if reaped:
                self.renew(worker, 0.0, held_for_s=0.0)
                self.reap()
            else:
                self.hand_back(worker, Cause.WORKER_LOST)

    # ------------------------------------------------------------ time and people

    def wait(self, seconds: float, chores: list[str]) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.now()
        for chore in chores:
            match chore:
                case "promote":
                    self.promote(MANY)
                case "promote 2":
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
        assert promotion.next_due_in_s == (None if next_due is None else max(0.0, next_due - self.model.now))
        self.compare()

    def cancel(self, ids: list[JobId], reason: str) -> None:
        answers = self.do(self.store.cancel_jobs(ids, reason=reason))
        assert answers == [self.model.cancel(job_id, reason) for job_id in ids]
        self.compare()

    def replay(self, ids: list[JobId]) -> None:
        replayed, expected = self.do(self.store.replay_jobs(ids)), self.model.replay_jobs(ids)
        assert (replayed, replayed.in_the_way) == (expected, expected.in_the_way)
        self.compare()

    # ------------------------------------------------------------ after every call

    def compare(self) -> None:
        """Every job is where the model has it, and came there by a move that is allowed."""
        infos = self.serve()
        for job_id, info in infos.items():
            job = self.model.jobs.get(job_id)
            if job is None or info is None:
                assert job is info is None, (job, info)
                continue
            assert (info.state, info.attempt) == (job.state, job.attempt), (info, job)
            assert info.cancel_requested == (job.cancel_reason is not None), (info, job)
            assert {run.token: run.cause for run in info.attempts} == job.causes, (info.attempts, job)
            if job.state in (State.PARKED, State.DEAD, State.CANCELLED):
                assert info.reason == job.reason, (info, job)
            if job.state is State.PARKED:
                assert info.waits_at == job.park_key, (info, job)
        states = {job_id: info and info.state for job_id, info in infos.items()}
        for job_id, after in states.items():
            assert may_become(self.states.get(job_id), after), (self.states.get(job_id), after)
        self.states = states

    def compare_reports(self) -> None:
        """Endings, requests, and counts: with the infos above, every job is in exactly one state."""
        self.compare_flow()
        jobs = self.model.jobs
        endings = self.do(self.store.endings(list(self.asked)))
        told = {job_id: ended and ended.state for job_id, ended in endings.items()}
        gone = dict.fromkeys(self.asked.keys() - jobs.keys())
        assert told == gone | {job_id: job.state for job_id, job in jobs.items() if job.state.ended}
        for ended in endings.values():
            if ended is not None and ended.state is State.SUCCEEDED:
                assert ended.result == b"1", "as it was settled"
        assert self.do(self.store.queue_settings()).keys() >= {job.new.queue for job in jobs.values()}
        for worker in self.workers:
            requests = self.do(self.store.cancel_requests(worker))
            assert sorted(requests) == sorted(
                CancelRequest(job_id, token, jobs[job_id].cancel_reason or "")
                for job_id, token in self.model.held(worker)
                if jobs[job_id].cancel_reason is not None
            )
        counts = {state: self.do(self.store.count_jobs(JobFilter(state=state))) for state in State}
        expected = Counter(job.state for job in jobs.values())
        assert counts == {state: expected[state] for state in State}
        depths = Counter((job.new.queue, job.state) for job in jobs.values())
        for queue in self.do(self.store.list_queues()):
            for state in (State.READY, State.SCHEDULED, State.BLOCKED, State.PARKED, State.RUNNING, State.DEAD):
                assert getattr(queue, state.value) == depths[queue.name, state], (queue, state)


def may_become(before: State | None, after: State | None) -> bool:
    """Whether one call may take a job there; at most two moves are joined (unparked and claimed, say)."""
    middles = [state for state in State if allowed(before, state)]
    return before == after or allowed(before, after) or any(allowed(state, after) for state in middles)


def test_the_sqlite_store_is_what_the_model_says() -> None:
    run_state_machine_as_test(StoreAgainstModel, settings=settings.get_profile("model"))


@pytest.fixture
def server_clock(postgres_tables: PostgresSchema) -> Iterator[ServerClock]:
    with stopped_clock(postgres_tables) as clock:
        yield clock


def test_the_postgres_store_is_what_the_model_says(postgres_tables: PostgresSchema, server_clock: ServerClock) -> None:
    place = postgres_tables

    class PostgresAgainstModel(StoreAgainstModel):
        def make(self) -> tuple[ManualClock, Store]:
            with psycopg.connect(place.url, autocommit=True) as connection:
                empty(connection, place.schema)
            # The clock goes on from example to example: it is dear to set, and nothing depends on where it stands.
            return server_clock, PostgresStore(place.url, schema=place.schema, clock=server_clock)

    run_state_machine_as_test(PostgresAgainstModel, settings=settings.get_profile("model on postgres"))
