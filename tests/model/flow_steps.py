"""The verbs of flow control for the state machine: what operators say, and looking after gates after every call."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from holdfast.core.breaker import CLOSED, NO_FIGURES, Phase
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueSettings, last_priorities
from holdfast.core.state import State
from holdfast.stores.base import Full, InsertResult, Store
from holdfast.stores.flow import BreakerInfo
from model.choices import (
    AFTER,
    BREAKERS,
    COME_LAST,
    COUNTS,
    LIMITED_AT_RUN_TIME,
    MOVED_TO,
    PACED,
    PARKED_MOVED_TO,
    TASKS,
    TENANTS,
    Pick,
)
from model.model import WAITING, Job, Model
from model.serving import follow

T = TypeVar("T")
ME = "the model"
ACTS = (
    *("limit", "limit", "pause task", "pause tenant", "breaker", "breaker", "count"),
    *("move", "move", "drain", "last", "route"),
)
MANY = 1000


class FlowSteps:
    """Mixed into the state machine, which has all this."""

    if TYPE_CHECKING:
        store: Store
        model: Model
        asked: dict[JobId, NewJob]
        workers: list[WorkerId]

        def do(self, call: Awaitable[T]) -> T: ...

    def operate(self, pick: Pick) -> None:
        """Something that an operator does."""
        match pick(ACTS):
            case "limit":
                name = pick(LIMITED_AT_RUN_TIME)
                size, pace = pick((None, None, 0, 1, 3)), pick((None, PACED)) if name in ("queue:b",) else None
                self.do(self.store.set_limit(name, size=size, pace=pace, by=ME))
                self.model.flow.set_limit(name, size, pace)
            case "pause task":
                task, paused = pick(TASKS), pick((True, False, False))
                self.do(self.store.set_paused(task=task, paused=paused, by=ME))
                self.model.flow.set_paused(task=task, tenant=None, paused=paused)
            case "pause tenant":
                tenant, paused = pick(TENANTS[2:]), pick((True, False, False))
                self.do(self.store.set_paused(tenant=tenant, paused=paused, by=ME))
                self.model.flow.set_paused(task=None, tenant=tenant, paused=paused)
            case "breaker":
                name, closed = pick([gate.name for gate in BREAKERS]), pick((True, True, False))
                self.do(self.store.set_breaker(name, closed=closed, by=ME))
                self.model.flow.set_breaker(name, closed=closed)
            case "count":
                name, figures = pick([gate.name for gate in BREAKERS]), pick(COUNTS)
                self.do(self.store.set_breaker_figures(name, figures, by=ME))
                self.model.flow.set_breaker_figures(name, figures)
            case "last":
                self.put_last(pick)
            case "route":
                pattern, queue, priority = pick(("*", "first")), pick((None, "b")), pick((None, 0, 9))
                self.do(self.store.set_route(pattern, queue=queue, priority=priority, by=ME))
                self.model.flow.set_route(pattern, queue, priority)
            case "move":
                self.move(pick)
            case "drain":
                queue, draining = pick(("a", "b")), pick((True, False, False))
                self.do(self.store.set_queue(queue, QueueSettings(draining=draining), only=("draining",), by=ME))
                (self.model.draining.add if draining else self.model.draining.discard)(queue)

    def put_last(self, pick: Pick) -> None:
        """A queue, or one of its priorities, gets weight 0; or is as before."""
        queue, settings = pick(COME_LAST)
        self.do(self.store.set_queue(queue, settings, only=("weight", "weights"), by=ME))
        self.model.weigh(queue, last_priorities(settings))

    def move(self, pick: Pick) -> None:
        """Of those without a tenant: what moving does to the order between tenants is for the contract to say."""
        free = [job for job in self.model.jobs.values() if not job.new.tenant and job.lane != AFTER]
        waiting = [job for job in free if job.state in WAITING]
        parked = pick((False, True))
        lanes = PARKED_MOVED_TO if parked else MOVED_TO
        ids = [job.new.id for job in waiting if (job.state is State.PARKED) == parked and job.lane in lanes]
        chosen = list(dict.fromkeys(pick(ids) for _ in range(pick((1, 2, 3))))) if ids else []
        lane: Lane = pick([lane for lane in lanes if lane.queue not in self.model.paused] or [None])
        if lane is not None:
            count = self.do(self.store.move_jobs(chosen, queue=lane.queue, priority=lane.priority))
            assert count == sum(self.model.move(job_id, lane) for job_id in chosen)

    def serve(self) -> dict[JobId, JobInfo | None]:
        """Let the store look after its gates until none is due, and follow what it did; where all jobs are now."""
        while True:
            found = self.do(self.store.serve_gates(limit=MANY))
            if found.next_due_in_s is None or found.next_due_in_s > 0:
                break
        infos = dict(zip(self.asked, self.do(self.store.job_infos(list(self.asked))), strict=True))
        follow(self.model, infos, self.asked_to_stop, self.ahead, will_look=found.next_due_in_s is not None)
        return infos

    def ahead(self, job_id: JobId) -> int:
        position = self.do(self.store.position(job_id))
        assert position is not None, job_id
        return position.ahead

    def asked_to_stop(self) -> dict[JobId, str]:
        requests = [each for worker in self.workers for each in self.do(self.store.cancel_requests(worker))]
        return {each.job_id: each.reason for each in requests}

    def compare_flow(self) -> None:
        """What is told of gates, rules, breakers and positions."""
        flow, now = self.model.flow, self.model.now
        assert self.do(self.store.rules()) == flow.rules
        assert {rule.pattern: rule.route for rule in self.do(self.store.routes())} == flow.routes
        told: dict[str, BreakerInfo] = {each.name: each for each in self.do(self.store.breakers())}
        for gate in BREAKERS:
            expected = flow.breakers.get(gate.name, CLOSED).phase(now)
            phase = told[gate.name].phase if gate.name in told else Phase.CLOSED
            assert phase is expected, (gate, told, flow.breakers)
            figures = told[gate.name].figures if gate.name in told else NO_FIGURES
            assert figures == flow.figures.get(gate.name, NO_FIGURES), (gate, told)
        used = {place: [len(holders), 0] for place, holders in flow.slots.items() if holders}
        for job in self.model.jobs.values():
            if job.at is not None:
                used.setdefault(job.at, [0, 0])[1] += 1
        found = {each.place: [each.held, each.waiting] for each in self.do(self.store.gates())}
        assert {place: use for place, use in found.items() if any(use)} == used
        for lane in MOVED_TO:
            self.compare_position(lane)

    def compare_position(self, lane: Lane) -> None:
        line: list[Job] = sorted(
            (job for job in self.model.jobs.values() if job.state is State.READY and job.lane == lane),
            key=lambda job: job.place,
        )
        if line:
            position = self.do(self.store.position(line[-1].new.id))
            assert position is not None
            assert position.ahead == len(line) - 1, (position, line)


def comparable(answers: list[InsertResult]) -> list[InsertResult]:
    """How deep a closed queue is does not matter here."""
    return [Full(each.queue, 0, 0, 0, draining=each.draining) if isinstance(each, Full) else each for each in answers]
