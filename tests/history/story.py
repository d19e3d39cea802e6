"""Builds sound histories, verb by verb, the way an unfailing store would leave them. For the checker's own tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.history.checker import check
from tests.history.records import (
    Answer,
    AttemptRow,
    AuditOp,
    AuditRow,
    ClientCall,
    History,
    JobRecord,
    KeyRow,
    Op,
    Place,
    RunEvent,
    RunLine,
    StoreRecord,
)
from tests.history.report import Report
from tests.history.transactions import FINISHING, ORDERED

from holdfast.core.cause import Cause
from holdfast.core.gates import Gate, RateGate, SlotGate
from holdfast.core.rate import Pace
from holdfast.core.state import State


@dataclass(frozen=True, slots=True)
class Histories:
    """All three, as they are handed to the judge."""

    calls: tuple[ClientCall, ...]
    lines: tuple[RunLine, ...]
    store: StoreRecord

    def judged(self, *, quiescent: bool = True) -> Report:
        return check(History(self.calls), History(self.lines), self.store, quiescent=quiescent)

    def with_job(self, record: JobRecord) -> Histories:
        return replace(self, store=replace(self.store, jobs={**self.store.jobs, record.job_id: record}))

    def without_audit(self) -> Histories:
        return replace(self, store=replace(self.store, audit=None))


@dataclass(slots=True)
class Story:
    """What happened so far; a job moves by the verbs below, one tick of the clock each."""

    calls: list[ClientCall] = field(default_factory=list)
    lines: list[RunLine] = field(default_factory=list)
    audit: list[AuditRow] = field(default_factory=list)
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    keys: list[KeyRow] = field(default_factory=list)
    removed_workers: dict[str, float] = field(default_factory=dict)
    effects: dict[str, tuple[int, ...]] = field(default_factory=dict)
    orders: set[str] = field(default_factory=set)
    now: float = 1000.0
    last_token: int = 0

    def ask(self, op: Op, job: str, answer: Answer = Answer.OK, **more: str | None) -> None:
        """A producer's call and its answer, whatever came of it."""
        self.now += 1
        self.calls.append(ClientCall(op, job, answer, self.now, **more))  # type: ignore[arg-type]

    def insert(
        self,
        job: str,
        to: State = State.READY,
        *,
        queue: str = "default",
        due_at: float | None = None,
        waits_for: tuple[str, ...] = (),
        gates: tuple[Gate, ...] = (),
        task: str = "",
    ) -> None:
        """The store takes a job in."""
        self.now += 1
        self._note(job, AuditOp.INSERT, None)
        self.jobs[job] = JobRecord(job, queue, (), waits_for=waits_for, gates=gates, task=task)
        self._move(job, Place(to, due_at=due_at))

    def enqueue(self, job: str, to: State = State.READY, *, due_at: float | None = None) -> None:
        self.ask(Op.ENQUEUE, job)
        self.insert(job, to, due_at=due_at)

    def enqueue_keyed(self, job: str, *repeats: str, key: str) -> None:
        """One job for a key, and more callers who are told of it."""
        self.ask(Op.ENQUEUE, job, key=key, fingerprint="f")
        for repeat in repeats:
            self.ask(Op.ENQUEUE, repeat, told=job, key=key, fingerprint="f")
        self.insert(job)
        self.keys.append(KeyRow("", key, job))

    def claim(self, job: str, worker: str = "w1") -> None:
        self.now += 1
        self.last_token += 1
        attempt = self._place(job).attempt + 1
        self._move(job, Place(State.RUNNING, self.last_token, worker, attempt, started_at=self.now))

    def run(self, job: str, *events: RunEvent, outcome: str = "ok") -> None:
        """The task of the lease that is held does these; all of them unless told."""
        lease = self._place(job)
        assert lease.token is not None
        assert lease.worker is not None
        for event in events or tuple(RunEvent):
            self.now += 1
            end = outcome if event is RunEvent.END else None
            self.lines.append(RunLine(event, job, lease.token, lease.attempt, lease.worker, 1, self.now, end))

    def give_up(self, job: str, cause: Cause) -> None:
        """The lease ends without ending the job."""
        lease = self._record_attempt(job, cause)
        charged = lease.attempt if cause is Cause.RETRY else lease.attempt - 1
        if cause is Cause.LEASE_EXPIRED and lease.worker is not None:
            self.removed_workers[lease.worker] = self.now - 0.5
        match cause:
            case Cause.RETRY | Cause.SNOOZE:
                self._move(job, Place(State.SCHEDULED, attempt=charged, due_at=self.now))
            case _:
                self._move(job, Place(State.READY, attempt=charged))

    def park(self, job: str, reason: str) -> None:
        lease = self._record_attempt(job, Cause.HANDED_BACK)
        self._move(job, Place(State.PARKED, attempt=lease.attempt - 1, reason=reason))

    def make_ready(self, job: str) -> None:
        """Promote, unpark or release."""
        self.now += 1
        self._move(job, Place(State.READY, attempt=self._place(job).attempt))

    def end(self, job: str, state: State) -> None:
        """Settle the lease that is held, or cancel what waits."""
        self.now += 1
        place = self._place(job)
        if state is not State.SUCCEEDED and place.state is State.RUNNING:
            self._record_attempt(job, Cause.DEAD if state is State.DEAD else Cause.CANCELLED)
        self._move(job, replace(place, state=state, due_at=None, reason="because"))

    def replay(self, job: str) -> None:
        self.ask(Op.REPLAY, job)
        record = self.jobs[job]
        token = self._place(job).token
        rows = tuple(replace(r, cause=Cause.REPLAY) if r.token == token else r for r in record.attempts)
        self.jobs[job] = replace(record, attempts=rows)
        self._move(job, Place(State.READY))

    def prune(self, job: str) -> None:
        self._note(job, AuditOp.DELETE, self._place(job))
        self._note(job, AuditOp.DELETE, None)
        del self.jobs[job]

    def told(self) -> Histories:
        depth = Counter(record.queue for record in self.jobs.values() if record.places[0].state is State.READY)
        store = StoreRecord(
            jobs=dict(self.jobs),
            depth={"default": 0, **depth},
            keys=tuple(self.keys),
            audit=tuple(self.audit),
            removed_workers=self.removed_workers,
            as_of=self.now,
            effects=dict(self.effects),
            orders=frozenset(self.orders),
        )
        return Histories(tuple(self.calls), tuple(self.lines), store)

    def _place(self, job: str) -> Place:
        return self.jobs[job].places[0]

    def _record_attempt(self, job: str, cause: Cause) -> Place:
        self.now += 1
        lease = self._place(job)
        assert lease.token is not None
        row = AttemptRow(lease.token, lease.attempt, cause, lease.worker, lease.started_at, self.now)
        self.jobs[job] = replace(self.jobs[job], attempts=(*self.jobs[job].attempts, row))
        return lease

    def _move(self, job: str, to: Place) -> None:
        left = self.jobs[job].places
        if to.state is State.SUCCEEDED:  # one verb that inserts before it deletes: the order must not matter
            self._note(job, AuditOp.INSERT, to)
        for place in left:
            self._note(job, AuditOp.DELETE, place)
        if to.state is not State.SUCCEEDED:
            self._note(job, AuditOp.INSERT, to)
        self.jobs[job] = replace(self.jobs[job], places=(to,))

    def _note(self, job: str, op: AuditOp, place: Place | None) -> None:
        n = len(self.audit) + 1
        if place is None:
            self.audit.append(AuditRow(n, job, op, None, at=self.now))
            return
        row = AuditRow(n, job, op, place.state, place.token, place.worker, place.attempt, place.crashes, self.now)
        self.audit.append(row)


def sound() -> Histories:
    """A history with something of everything, in which every promise was kept."""
    story = Story()
    story.enqueue("plain")
    story.enqueue("retried")
    story.enqueue("lost-worker")
    story.enqueue_keyed("keyed", "keyed-again", key="k")
    for job in ("plain", "retried", "lost-worker", "keyed"):
        story.claim(job)
    for job in ("plain", "keyed"):
        story.run(job)
        story.end(job, State.SUCCEEDED)
    story.run("retried", RunEvent.START, RunEvent.END, outcome="failed")
    story.give_up("retried", Cause.RETRY)
    story.run("lost-worker", RunEvent.START, RunEvent.EFFECT)
    story.give_up("lost-worker", Cause.LEASE_EXPIRED)
    story.make_ready("retried")
    for job in ("retried", "lost-worker"):
        story.claim(job, "w2")
        story.run(job)
        story.end(job, State.SUCCEEDED)
    story.enqueue("replayed")
    story.claim("replayed")
    story.run("replayed", RunEvent.START, RunEvent.END, outcome="failed")
    story.end("replayed", State.DEAD)
    story.replay("replayed")
    story.claim("replayed")
    story.run("replayed")
    story.end("replayed", State.SUCCEEDED)
    story.enqueue("dead")
    story.claim("dead")
    story.run("dead", RunEvent.START, RunEvent.END, outcome="failed")
    story.end("dead", State.DEAD)
    story.enqueue("cancelled", State.SCHEDULED, due_at=5e9)
    story.ask(Op.CANCEL, "cancelled", told="cancelled")
    story.end("cancelled", State.CANCELLED)
    story.enqueue("pruned")
    story.claim("pruned")
    story.run("pruned")
    story.end("pruned", State.SUCCEEDED)
    story.prune("pruned")
    story.enqueue("later", State.SCHEDULED, due_at=5e9)
    story.ask(Op.ENQUEUE, "after-later")
    story.insert("after-later", State.BLOCKED, waits_for=("later",))
    story.enqueue("parked")
    story.claim("parked")
    story.park("parked", "unknown_task")
    for job in ("limited-1", "limited-2"):
        story.ask(Op.ENQUEUE, job)
        story.insert(job, gates=(SlotGate("one at a time", 1),))
        story.claim(job)
        story.run(job)
        story.end(job, State.SUCCEEDED)
    for job in ("rated-1", "rated-2", "rated-3"):
        story.ask(Op.ENQUEUE, job)
        story.insert(job, gates=(RateGate("two at once", Pace(1, 20.0, 2)), SlotGate("three at once", 3)))
    for job, waited_s in (("rated-1", 0), ("rated-2", 0), ("rated-3", 10)):
        story.now += waited_s
        story.claim(job)
        story.run(job)
        story.end(job, State.SUCCEEDED)
    for job, task in (("finishes-inside", FINISHING), ("ordered", ORDERED)):
        story.ask(Op.ENQUEUE, job)
        story.insert(job, task=task)
        story.claim(job)
        story.run(job)
        if task == FINISHING:
            story.effects[job] = (story.last_token,)
        else:
            story.orders.add(job)
        story.end(job, State.SUCCEEDED)
    story.ask(Op.ENQUEUE, "refused", Answer.FAIL)
    story.ask(Op.ENQUEUE, "unknown-absent", Answer.UNKNOWN)
    story.ask(Op.ENQUEUE, "cut-off", Answer.ASKED)
    story.insert("cut-off")
    story.claim("cut-off")
    story.run("cut-off")
    story.end("cut-off", State.SUCCEEDED)
    return story.told()
