"""What a job has to pass before each of its runs: limits, rates, breakers and pauses; and who may pass now.

`admit` is the whole rule, asked by every store in its claim's transaction and when it looks after those who wait: it
knows no store and no clock. Whoever may not pass waits under the first thing that holds it back, where whatever lifts
that finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from holdfast.core.breaker import CLOSED, BreakerGate, BreakerState, Phase
from holdfast.core.rate import Pace, next_token_at, no_emptier, spend, tokens, tokens_at

MOST_AT_ONCE: Final = 1_000_000
"""The largest size of a limit."""
TURN_KEPT_S: Final = 0.1
"""So soon one who was let go from a rate is claimed, where somebody has room for it. If not, its turn is overdue."""
_SOON_S: Final = 0.01
"""So long after that it is surely over."""
_AHEAD_S: Final = 1.0
"""So far a clock may have been ahead of ours."""


class Barrier(StrEnum):
    """The kinds of things that hold a job back; also the reason that a parked job is shown with."""

    LIMIT = "limit"
    RATE = "rate"
    BREAKER = "breaker"
    PAUSED = "paused"


class WhenFull(StrEnum):
    """What becomes of a job that finds its limit full."""

    WAIT = "wait"
    """It waits for its turn."""
    SKIP = "skip"
    """It is cancelled."""
    REPLACE = "replace"
    """It waits; those of its limit that run are asked to stop, and those that wait are cancelled."""


class SlotGate(NamedTuple):
    """At most `size` jobs with this `key` run at once; a slot row is taken in the claim's transaction."""

    key: str
    size: int
    name: str = ""
    """What operators call it; all keys of one limit share it. Empty: as the key."""
    when_full: WhenFull = WhenFull.WAIT


class RateGate(NamedTuple):
    """Runs of jobs with this `key` begin at this pace at most; a token is spent in the claim's transaction."""

    key: str
    pace: Pace
    name: str = ""


Gate: TypeAlias = SlotGate | RateGate | BreakerGate


class Place(NamedTuple):
    """Where a job waits, or what it holds a slot of."""

    barrier: Barrier
    key: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What operators have said, over what is written in tasks. Names of limits are as in `SlotGate.name`; those of a
    whole queue or task are `queue:mail` and `task:shop.send`, also where no code says anything about them."""

    paused_tasks: frozenset[str] = frozenset()
    paused_tenants: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    paces: Mapping[str, Pace] = field(default_factory=dict)

    @property
    def concern_everybody(self) -> bool:
        """Whether jobs without gates of their own have to be looked at, in any queue."""
        return bool(
            self.paused_tasks
            or self.paused_tenants
            or any(name.startswith("task:") for name in (*self.sizes, *self.paces))
        )

    def concern_queue(self, queue: str) -> bool:
        """The same for the jobs of one queue."""
        return f"queue:{queue}" in self.sizes or f"queue:{queue}" in self.paces


NO_RULES: Final = Rules()


class Candidate(NamedTuple):
    """A job that wants to run, or waits to."""

    task: str
    queue: str
    tenant: str
    gates: tuple[Gate, ...] = ()
    has: frozenset[Place] = frozenset()
    """Slots that it holds already, and its turns at rates: they go with whoever was unparked."""


@dataclass(slots=True)
class Usage:
    """What is taken of the gates of some candidates, as the store has it; `admit` keeps it up to date."""

    now: float
    held: dict[Place, int] = field(default_factory=dict)
    """Slots taken: of limits, and the probes of breakers; and turns that are kept at rates, but for those overdue."""
    full_at: dict[str, float] = field(default_factory=dict)
    """By key of the rate: when its bucket will be full again."""
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    rules: Rules = NO_RULES
    lined: set[str] = field(default_factory=set)
    """Rates at which somebody waits: whoever comes now, without a turn that is kept for it, waits behind them."""
    overdue: dict[Place, int] = field(default_factory=dict)
    """Turns at rates that were kept for long, or nobody can tell since when."""


class Passed(NamedTuple):
    """It may run."""

    takes: tuple[Place, ...] = ()
    """Slots to be written for it."""
    spends: tuple[str, ...] = ()
    """Rates of which it has spent a token; their new `full_at` is in the usage."""


class Waits(NamedTuple):
    """It may not run now."""

    at: Place
    until: float | None = None
    """When to look again, where that is known; None: whatever frees it says so. At a rate whose pace has been made
    quicker the usage may have another `full_at` now: whoever looks after waiters keeps that."""
    replaces: bool = False
    """Those who hold the slots there are to stop, and those who wait there are not to run at all."""


class Skipped(NamedTuple):
    """It is not to run at all."""

    at: Place


Admission: TypeAlias = Passed | Waits | Skipped


def gates_of(candidate: Candidate, rules: Rules) -> tuple[Gate, ...]:
    """What a job has to pass: its own gates as operators have set them, and what they have put on its queue or task."""
    if not rules.sizes and not rules.paces:
        return candidate.gates
    wholes = (f"task:{candidate.task}", f"queue:{candidate.queue}")
    gates = tuple([_as_ruled(gate, rules, wholes) for gate in candidate.gates])
    slots = {gate.key for gate in gates if isinstance(gate, SlotGate)}
    rates = {gate.key for gate in gates if isinstance(gate, RateGate)}
    return (
        *gates,
        *(SlotGate(name, rules.sizes[name], name) for name in wholes if name in rules.sizes and name not in slots),
        *(RateGate(name, rules.paces[name], name) for name in wholes if name in rules.paces and name not in rates),
    )


def _as_ruled(gate: Gate, rules: Rules, wholes: tuple[str, ...]) -> Gate:
    if isinstance(gate, BreakerGate):
        return gate
    name = gate.name or gate.key
    if name in wholes and gate.key != name:
        return gate  # for each of its keys, without a name of its own: what is said is about the whole
    if isinstance(gate, SlotGate):
        return gate._replace(size=rules.sizes.get(name, gate.size))
    return gate._replace(pace=rules.paces.get(name, gate.pace))


def places_of(candidates: Iterable[Candidate], rules: Rules) -> set[Place]:
    """All that a store has to hold still, and to read, before it asks `admit` about these."""
    return {_place(gate) for candidate in candidates for gate in gates_of(candidate, rules)}


def _place(gate: Gate) -> Place:
    if isinstance(gate, SlotGate):
        return Place(Barrier.LIMIT, gate.key)
    if isinstance(gate, RateGate):
        return Place(Barrier.RATE, gate.key)
    return Place(Barrier.BREAKER, gate.name)


def size_of(place: Place, candidate: Candidate, rules: Rules) -> int | None:
    """Of how many slots there this job takes one; None: their number is not what bounds them."""
    sizes = (gate.size for gate in gates_of(candidate, rules) if isinstance(gate, SlotGate) and _place(gate) == place)
    return next(sizes, None)


def kept_slots(candidate: Candidate, slots: Iterable[Place], *, comes_last: bool) -> tuple[Place, ...]:
    """Those of these that go with a waiter that is let go, until it is claimed, and its turns at rates. For a job that
    comes last nothing is kept (decision 0140), but where it would replace others: whoever came meanwhile is newer."""
    if not comes_last:
        return tuple(place for place in slots if place.barrier in (Barrier.LIMIT, Barrier.RATE))
    gates = [gate for gate in candidate.gates if isinstance(gate, SlotGate)]
    replacing = {gate.key for gate in gates if gate.when_full is WhenFull.REPLACE}
    return tuple(place for place in slots if place.barrier is Barrier.LIMIT and place.key in replacing)


def give_back(usage: Usage, place: Place) -> None:
    """One slot less is taken there; of turns at a rate, one that is overdue where there are such."""
    taken = usage.overdue if usage.overdue.get(place) else usage.held
    taken[place] = max(0, taken.get(place, 0) - 1)


def turns_used(candidate: Candidate, usage: Usage) -> list[tuple[Place, float]]:
    """The turns at rates that were kept for one who runs now, and when the next token is there for those who wait."""
    kept = {place: usage.now for place in candidate.has if place.barrier is Barrier.RATE}
    for gate in gates_of(candidate, usage.rules) if kept else ():
        if isinstance(gate, RateGate) and _place(gate) in kept:
            kept[_place(gate)] = next_token_at(usage.full_at.get(gate.key), usage.now, gate.pace)
    return list(kept.items())


def comes_anew(candidate: Candidate, place: Place, takes: Collection[Place], rules: Rules) -> bool:
    """Whether a job with a tag that is let go from there gets a new one, as if it came now.

    Whoever waited because of a pause or an open breaker is let go with all others of it: at their old places they would
    go before everybody who came since. Not so the one that is to try the breaker, for whom others wait; nor jobs with
    limits or rates, of which no more are let go at once than these allow.
    """
    if place.barrier not in (Barrier.PAUSED, Barrier.BREAKER) or any(each.barrier is Barrier.BREAKER for each in takes):
        return False
    return all(isinstance(gate, BreakerGate) for gate in gates_of(candidate, rules))


def admit(candidates: Sequence[Candidate], usage: Usage, *, letting_go: bool = False) -> list[Admission]:
    """Who of these may run, one after the other; whoever may has taken what it needs out of the usage.

    `letting_go`: they wait, and run later. Whoever may pass is given a turn at its rates, and spends nothing yet: else
    starts would exceed the rate whenever claims are held up.
    """
    return [_admit(candidate, usage, letting_go=letting_go) for candidate in candidates]


def _admit(candidate: Candidate, usage: Usage, *, letting_go: bool) -> Admission:
    rules = usage.rules
    if candidate.task in rules.paused_tasks:
        return Waits(Place(Barrier.PAUSED, f"task:{candidate.task}"))
    if candidate.tenant and candidate.tenant in rules.paused_tenants:
        return Waits(Place(Barrier.PAUSED, f"tenant:{candidate.tenant}"))
    takes: list[Place] = []
    spends: list[RateGate] = []
    seen: set[Place] = set()
    for gate in gates_of(candidate, rules):
        place = _place(gate)
        if place in seen:
            continue  # the same gate twice is one run through it
        seen.add(place)
        if isinstance(gate, RateGate):
            waits = _at_rate(gate, candidate, usage, letting_go=letting_go)
            if waits is not None:
                return waits
            if letting_go:
                takes.append(place)
            else:
                spends.append(gate)
        elif isinstance(gate, BreakerGate):
            state = usage.breakers.get(gate.name, CLOSED)
            phase = state.phase(usage.now)
            if phase is Phase.CLOSED or place in candidate.has:
                continue
            if phase is Phase.OPEN:
                return Waits(place, None if state.held else state.open_until)
            if usage.held.get(place, 0):
                return Waits(place)
            takes.append(place)
        elif place not in candidate.has:
            if usage.held.get(place, 0) >= gate.size:
                if gate.when_full is WhenFull.SKIP:
                    return Skipped(place)
                return Waits(place, replaces=gate.when_full is WhenFull.REPLACE)
            takes.append(place)
    for place in takes:
        usage.held[place] = usage.held.get(place, 0) + 1
    for gate in spends:
        usage.full_at[gate.key] = spend(usage.full_at.get(gate.key), usage.now, gate.pace)
        if (place := _place(gate)) in candidate.has:
            give_back(usage, place)  # its turn is used
    return Passed(tuple(takes), tuple([gate.key for gate in spends]) if spends else ())


def _at_rate(gate: RateGate, candidate: Candidate, usage: Usage, *, letting_go: bool) -> Waits | None:
    """Whoever has a turn needs a token; others one more than are meant for turns, and nobody before them."""
    place, full_at = _place(gate), usage.full_at.get(gate.key)
    has_turn = place in candidate.has
    meant = 0 if has_turn else _meant_for_turns(usage, place, gate.pace)
    left = tokens(full_at, usage.now, gate.pace)
    if left > meant and (has_turn or letting_go or gate.key not in usage.lined):
        return None
    if full_at is not None and left < 1:
        usage.full_at[gate.key] = full_at = no_emptier(full_at, usage.now, gate.pace)
    until = tokens_at(full_at, usage.now, gate.pace, min(meant + 1, gate.pace.burst))
    if left and usage.held.get(place) and not has_turn:
        overdue_at = usage.now + TURN_KEPT_S + _SOON_S
        until = min(until, overdue_at) if meant < gate.pace.burst else overdue_at
    return Waits(place, until)


def fresh_turns(now: float) -> tuple[float, float]:
    """Between these moments those turns were given that are not overdue. Later ones were not given by our clock."""
    return now - TURN_KEPT_S, now + _AHEAD_S


def _meant_for_turns(usage: Usage, place: Place, pace: Pace) -> int:
    """For each turn a token. Those overdue leave half of what may begin at once to the others, who have room: else a
    single busy queue would take the rate away from everybody. So where only one may, nothing is kept for them."""
    return usage.held.get(place, 0) + min(usage.overdue.get(place, 0), pace.burst // 2)
