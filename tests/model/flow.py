"""Gates in the model: who holds what of them, and what operators have said. Who may pass is for `core.gates` to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.core.breaker import CLOSED, NO_FIGURES, BreakerFigures, BreakerMark, BreakerState, Phase, after_mark
from holdfast.core.gates import (
    Admission,
    Barrier,
    BreakerGate,
    Candidate,
    Gate,
    Passed,
    Place,
    RateGate,
    Rules,
    SlotGate,
    Usage,
    WhenFull,
    admit,
    fresh_turns,
    gates_of,
)
from holdfast.core.job import JobId, NewJob
from holdfast.core.rate import Pace, tokens
from holdfast.core.routing import Route
from holdfast.core.unset import UNSET

#: The reasons under which a job is parked by its claim.
BARRIERS = frozenset(Barrier)


@dataclass
class Flow:
    """What is known of all gates."""

    slots: dict[Place, set[JobId]] = field(default_factory=dict)
    full_at: dict[str, float] = field(default_factory=dict)
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    figures: dict[str, BreakerFigures] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    routes: dict[str, Route] = field(default_factory=dict)
    kept_at: dict[tuple[Place, JobId], float] = field(default_factory=dict)
    """Of turns at rates, when they were given."""

    # ------------------------------------------------------------ who may pass

    def candidate(self, job: NewJob) -> Candidate:
        has = frozenset(place for place, holders in self.slots.items() if job.id in holders)
        return Candidate(job.task, job.queue, job.tenant, job.gates, has)

    def usage(self, now: float) -> Usage:
        held = {place: len(holders) for place, holders in self.slots.items()}
        overdue = {place: sum(self.is_overdue(place, each, now) for each in held) for place, held in self.slots.items()}
        held = {place: count - overdue[place] for place, count in held.items()}
        return Usage(now, held, dict(self.full_at), dict(self.breakers), self.rules, overdue=overdue)

    def judge(self, jobs: Sequence[NewJob], now: float, *, lined: set[str]) -> list[Admission]:
        """Those of a claim, in order; whoever passes has taken its slots and spent its tokens, and used its turns at
        rates. `lined`: rates at which somebody waits who does not come last."""
        usage = replace(self.usage(now), lined=lined)
        admissions = admit([self.candidate(job) for job in jobs], usage)
        for job, admission in zip(jobs, admissions, strict=True):
            if isinstance(admission, Passed):
                for place in admission.takes:
                    self.slots.setdefault(place, set()).add(job.id)
                for key in admission.spends:
                    self.full_at[key] = usage.full_at[key]
                    self.slots.get(Place(Barrier.RATE, key), set()).discard(job.id)
        return admissions

    def gates_of(self, job: NewJob) -> tuple[Gate, ...]:
        return gates_of(self.candidate(job), self.rules)

    def held_at(self, job: NewJob, place: Place, now: float) -> bool:
        """Whether this gate alone holds it back, whatever its others say."""
        if place.barrier is Barrier.PAUSED:
            return job.task in self.rules.paused_tasks or job.tenant in self.rules.paused_tenants
        usage = self.usage(now)
        usage.rules = Rules()  # they are in the gate already
        here = tuple(gate for gate in self.gates_of(job) if _place(gate) == place)
        return not isinstance(admit([self.candidate(job)._replace(gates=here)], usage, letting_go=True)[0], Passed)

    def may_go(self, job: NewJob, now: float) -> bool:
        """Whether nothing but slots could hold this one back."""
        for gate in self.gates_of(job):
            if isinstance(gate, RateGate) and tokens(self.full_at.get(gate.key), now, gate.pace) < 1:
                return False
            if isinstance(gate, BreakerGate):
                phase = self.breakers.get(gate.name, CLOSED).phase(now)
                probed = self.slots.get(Place(Barrier.BREAKER, gate.name))
                if phase is Phase.OPEN or (phase is Phase.HALF_OPEN and probed):
                    return False
        return job.task not in self.rules.paused_tasks and job.tenant not in self.rules.paused_tenants

    def is_closed(self, gate: BreakerGate, now: float) -> bool:
        return self.breakers.get(gate.name, CLOSED).phase(now) is Phase.CLOSED

    # ------------------------------------------------------------ slots

    def is_overdue(self, place: Place, job_id: JobId, now: float) -> bool:
        """Whether it has had a turn at a rate for too long."""
        first, last = fresh_turns(now)
        return place.barrier is Barrier.RATE and not first <= self.kept_at[place, job_id] <= last

    def keep(self, job: NewJob, now: float, *, comes_last: bool) -> list[tuple[Place, int]]:
        """Slots of all its limits go with a waiter that is let go, but where it comes last and does not replace; and
        turns at its rates. The places that are fuller now, with their sizes."""
        taken = []
        for gate in self.gates_of(job):
            if isinstance(gate, SlotGate) and not (comes_last and gate.when_full is not WhenFull.REPLACE):
                place = Place(Barrier.LIMIT, gate.key)
                self.slots.setdefault(place, set()).add(job.id)
                taken.append((place, gate.size))
            elif isinstance(gate, RateGate) and not comes_last:
                place = Place(Barrier.RATE, gate.key)
                self.slots.setdefault(place, set()).add(job.id)
                self.kept_at[place, job.id] = now
                taken.append((place, gate.pace.burst))
        return taken

    def free(self, job_id: JobId) -> None:
        for holders in self.slots.values():
            holders.discard(job_id)

    def put_last(self, job: NewJob) -> None:
        """It gives back what would not be kept for it."""
        limits = [gate for gate in self.gates_of(job) if isinstance(gate, SlotGate)]
        replacing = {_place(gate) for gate in limits if gate.when_full is WhenFull.REPLACE}
        for place in self.slots.keys() - replacing:
            self.slots[place].discard(job.id)

    # ------------------------------------------------------------ breakers and operators

    def mark(self, mark: BreakerMark, now: float) -> None:
        name = mark.breaker.name
        said = self.figures.get(name, NO_FIGURES)
        self.breakers[name] = after_mark(self.breakers.get(name, CLOSED), now, mark, said)

    def set_breaker(self, name: str, *, closed: bool) -> None:
        self.breakers[name] = CLOSED if closed else BreakerState(held=True)

    def set_breaker_figures(self, name: str, figures: BreakerFigures) -> None:
        self.figures[name] = figures

    def set_limit(self, name: str, size: int | None, pace: Pace | None) -> None:
        sizes = {each: said for each, said in self.rules.sizes.items() if each != name}
        paces = {each: said for each, said in self.rules.paces.items() if each != name}
        sizes |= {} if size is None else {name: size}
        paces |= {} if pace is None else {name: pace}
        self.rules = replace(self.rules, sizes=sizes, paces=paces)

    def set_route(self, pattern: str, queue: str | None, priority: int | None) -> None:
        self.routes.pop(pattern, None)
        if queue is not None or priority is not None:
            said = Route(queue=UNSET if queue is None else queue, priority=UNSET if priority is None else priority)
            self.routes[pattern] = said

    def set_paused(self, *, task: str | None, tenant: str | None, paused: bool) -> None:
        tasks, tenants = set(self.rules.paused_tasks), set(self.rules.paused_tenants)
        if task is not None:
            (tasks.add if paused else tasks.discard)(task)
        if tenant is not None:
            (tenants.add if paused else tenants.discard)(tenant)
        self.rules = replace(self.rules, paused_tasks=frozenset(tasks), paused_tenants=frozenset(tenants))


def _place(gate: Gate) -> Place:
    match gate:
        case SlotGate():
            return Place(Barrier.LIMIT, gate.key)
        case RateGate():
            return Place(Barrier.RATE, gate.key)
        case BreakerGate():
            return Place(Barrier.BREAKER, gate.name)
