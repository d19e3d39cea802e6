"""All that keeps one waiting job from running now: pauses, missing workers, and gates that would not let it pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from holdfast.client.capacity import counted, living, serving
from holdfast.core.breaker import CLOSED, BreakerGate, Phase
from holdfast.core.explanation import Reason
from holdfast.core.gates import Barrier, Candidate, Gate, Place, RateGate, Rules, SlotGate, gates_of, places_of
from holdfast.core.job import JobInfo
from holdfast.core.queue import MOST_COUNTED, QueueInfo, share_of
from holdfast.core.rate import next_token_at, no_emptier, tokens
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Store
from holdfast.stores.flow import BreakerInfo, Circumstances, GateInfo

_FAR_S: Final = 1e9  # a guess about what is later than this helps nobody, and may be no date at all
_BY_HAND: Final = frozenset(("queue_paused", "task_paused", "tenant_paused", "no_worker"))
"""What somebody has to lift: nothing tells when."""


def moment(at: datetime | float) -> str:
    """As people read it."""
    return f"{at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def date_of(at_s: float, now: float) -> datetime | None:
    """None where it is too far away to mean anything."""
    return None if at_s > now + _FAR_S else datetime.fromtimestamp(at_s, UTC)


class Hindrances:
    """What was found for one job."""

    def __init__(
        self,
        info: JobInfo,
        found: Circumstances,
        *,
        now: float,
        queue: QueueInfo | None,
        workers: list[WorkerInfo],
        rules: Rules,
        used: Mapping[Place, GateInfo],
        breakers: Mapping[str, BreakerInfo],
    ) -> None:
        self.now = now
        self._info = info
        self._found = found
        self._queue = queue
        self._living = living(workers, now=now)
        self.workers = serving(self._living, info.queue)
        self._rules = rules
        self._used = used
        self._breakers = breakers
        self._until: dict[tuple[str, str], float | None] = {}
        """By barrier and key, of what is in the way: when it lets this job pass; None: nothing tells."""
        self._pauses = list(self._paused())
        self._gates = list(self._barred())

    @classmethod
    async def look(cls, store: Store, info: JobInfo, found: Circumstances, queue: QueueInfo | None) -> Hindrances:
        """Ask the store for all that could keep it."""
        rules, now, workers = await store.rules(), await store.now(), await store.list_workers()
        places = places_of([Candidate(info.task, info.queue, info.tenant, found.gates)], rules)
        used = {each.place: each for each in await store.gates(sorted(places))} if places else {}
        breakers = {each.name: each for each in await store.breakers()} if found.gates else {}
        return cls(info, found, now=now, queue=queue, workers=workers, rules=rules, used=used, breakers=breakers)

    def reasons(self) -> Iterator[Reason]:
        """What would keep it even if it were next, the widest first."""
        queue = self._info.queue
        if self._queue is not None and self._queue.settings.paused:
            yield Reason("queue_paused", f"queue {queue!r} is paused", {"queue": queue})
        if not self._living:
            yield Reason("no_worker", "no worker is running", {"workers": 0})
        elif not self.workers:
            data = {"workers": len(self._living), "queue": queue}
            yield Reason("no_worker", f"no running worker serves queue {queue!r}", data)
        yield from self._pauses
        yield from self._gates

    def parked_first(self) -> tuple[Reason, ...]:
        """Of a parked job: first what it is parked for, then the rest."""
        reason, key = self._info.reason or "", self._info.waits_at or ""
        rest = list(self.reasons())
        if reason == UNKNOWN_TASK:
            task = self._info.task
            sentence = (
                f"is parked: no worker that has seen it knows its task {task!r}; it runs when one that does appears"
            )
            return (Reason("unknown_task", sentence, {"task": task}), *rest)
        own = next((each for each in rest if _is_at(each, reason, key)), None)
        if own is None:
            over = f"the pause of {key!r} is over"
            what = over if reason == Barrier.PAUSED else f"its {reason} {key!r} would let it pass by now"
            sentence = f"is parked: {what}, so it is about to be looked at again"
            return (Reason("lifted", sentence, {"reason": reason, "key": key}), *rest)
        rest.remove(own)
        sentence = f"is parked: {own.sentence}"
        until = self._until.get((reason, key))
        if own.kind == "limit" and until is not None and not rest:
            sentence += f"; as lately, it starts in about {until - self.now:.0f} s"
        return (Reason(own.kind, sentence, own.data), *rest)

    def ends_at(self) -> datetime | None:
        """When what it is parked for ends by itself, where that is known and nothing else keeps it."""
        if len(list(self.reasons())) != 1:
            return None
        until = self._until.get((self._info.reason or "", self._info.waits_at or ""))
        return None if until is None else date_of(until, self.now)

    def not_before(self, at: datetime) -> datetime | None:
        """When a job may start whose time comes then, as far as that is known; a full limit may have room by then."""
        latest = max(at.timestamp(), self.now)
        for each in self.reasons():
            if each.kind in _BY_HAND or (each.kind == "breaker" and each.data["held"]):
                return None
            if each.kind == "rate":
                turn = self._until[Barrier.RATE, each.data["key"]]
                if turn is None:
                    return None
                latest = max(latest, turn)
            elif each.kind == "breaker" and each.data["open_until"] is not None:
                latest = max(latest, each.data["open_until"].timestamp())
        return at if latest == at.timestamp() else date_of(latest, self.now)

    # ------------------------------------------------------------ each of them

    def _paused(self) -> Iterator[Reason]:
        task, tenant = self._info.task, self._info.tenant
        if task in self._rules.paused_tasks:
            yield Reason("task_paused", f"task {task} is paused", {"task": task})
        if tenant and tenant in self._rules.paused_tenants:
            yield Reason("tenant_paused", f"tenant {tenant!r} is paused", {"tenant": tenant})

    def _barred(self) -> Iterator[Reason]:
        candidate = Candidate(self._info.task, self._info.queue, self._info.tenant, self._found.gates)
        for gate in gates_of(candidate, self._rules):
            reason = self._at(gate)
            if reason is not None:
                yield reason

    def _at(self, gate: Gate) -> Reason | None:
        match gate:
            case SlotGate():
                return self._limit(gate)
            case RateGate():
                return self._rate(gate)
            case _:
                return self._breaker(gate)

    def _limit(self, gate: SlotGate) -> Reason | None:
        place = Place(Barrier.LIMIT, gate.key)
        used = self._used.get(place)
        if used is None or used.held < gate.size or place in self._found.holds:
            return None
        line, ahead = self._line(Barrier.LIMIT, gate.key, used.waiting)
        lately = self._found.lately
        until = None
        if lately.of_limit and ahead is not None and self._is_known(ahead):
            in_s = (used.held - gate.size + 1 + ahead) * lately.over_s / lately.of_limit
            until = self.now + in_s
        self._until[Barrier.LIMIT, gate.key] = until
        return Reason(
            "limit",
            f"its limit {gate.key!r} is full: {used.held:,} of {gate.size:,} run{line}",
            {
                "key": gate.key,
                "name": gate.name or gate.key,
                "held": used.held,
                "size": gate.size,
                "waiting": used.waiting,
                "ahead": ahead,
                "beside": self._beside(ahead),
            },
        )

    def _rate(self, gate: RateGate) -> Reason | None:
        used = self._used.get(Place(Barrier.RATE, gate.key))
        full_at = None if used is None else used.full_at
        if full_at is None or tokens(full_at, self.now, gate.pace) >= 1:
            return None
        next_s = next_token_at(no_emptier(full_at, self.now, gate.pace), self.now, gate.pace)
        waiting = 0 if used is None else used.waiting
        line, ahead = self._line(Barrier.RATE, gate.key, waiting)
        before = waiting if ahead is None else ahead
        until = next_s + before * gate.pace.gap_s if self._is_known(before) else None
        self._until[Barrier.RATE, gate.key] = until
        return Reason(
            "rate",
            f"its rate {gate.key!r} ({gate.pace}) is used up: the next run may begin in {next_s - self.now:.1f} s"
            + line,
            {
                "key": gate.key,
                "name": gate.name or gate.key,
                "rate": str(gate.pace),
                "next_at": datetime.fromtimestamp(next_s, UTC),
                "waiting": waiting,
                "ahead": ahead,
                "beside": self._beside(ahead),
            },
        )

    def _breaker(self, gate: BreakerGate) -> Reason | None:
        info = self._breakers.get(gate.name)
        state = CLOSED if info is None else info.state
        phase = state.phase(self.now)
        if info is None or phase is Phase.CLOSED or Place(Barrier.BREAKER, gate.name) in self._found.holds:
            return None
        line, ahead = self._line(Barrier.BREAKER, gate.name, info.waiting)
        data = {"key": gate.name, "phase": phase, "held": state.held, "open_until": None, "ahead": ahead}
        data["beside"] = self._beside(ahead)
        self._until[Barrier.BREAKER, gate.name] = None
        if state.held:
            sentence = f"its breaker {gate.name!r} is held open by an operator"
        elif phase is Phase.HALF_OPEN or state.open_until is None:
            sentence = f"its breaker {gate.name!r} is half open: one run at a time is let through"
        else:
            sentence = f"its breaker {gate.name!r} is open until {moment(state.open_until)}"
            data["open_until"] = datetime.fromtimestamp(state.open_until, UTC)
            if not (
                info.waiting if ahead is None else ahead + self._found.line_beside
            ):  # it tries one run then; what comes of that nobody knows
                self._until[Barrier.BREAKER, gate.name] = state.open_until
        return Reason("breaker", sentence + line, data)

    def _line(self, barrier: Barrier, key: str, waiting: int) -> tuple[str, int | None]:
        """Where it stands among those who wait there; None: it does not wait there, or not yet."""
        if self._info.reason != barrier or self._info.waits_at != key:
            return f", and {counted(waiting, 'waits', 'wait')}" if waiting else "", None
        ahead, beside = self._found.line_ahead, self._found.line_beside
        if beside:
            first = f"{counted(ahead, 'comes', 'come')} first" if ahead else "it is the next"
            return f", and {first} in its lane, which takes turns with {beside:,} of others", ahead
        if ahead:
            return f", and {counted(ahead, 'comes', 'come')} first", ahead
        return "" if barrier is Barrier.BREAKER else ", and it is the next", ahead

    def _beside(self, ahead: int | None) -> int | None:
        """Those of other lanes who wait where it does."""
        return None if ahead is None else self._found.line_beside

    def _is_known(self, ahead: int) -> bool:
        """Whether so many come before it, and nobody else."""
        return ahead < MOST_COUNTED and not self._found.line_beside and not self._is_last()

    def _is_last(self) -> bool:
        """In a lane of weight 0 it stands behind all others, also behind those who are yet to come."""
        return self._queue is not None and not share_of(self._queue.settings, self._info.priority)


def _is_at(reason: Reason, barrier: str, key: str) -> bool:
    if barrier == Barrier.PAUSED:
        pauses = ("task_paused", "tenant_paused")
        return reason.kind in pauses and key.startswith(reason.kind.removesuffix("_paused"))
    return reason.kind == barrier and reason.data.get("key") == key
