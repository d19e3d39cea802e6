"""All that keeps one waiting job from running now: pauses, missing workers, and gates that would not let it pass."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from holdfast.core.breaker import CLOSED, BreakerGate, Phase
from holdfast.core.explanation import Reason
from holdfast.core.gates import Barrier, Candidate, Place, RateGate, SlotGate, gates_of, places_of
from holdfast.core.job import JobInfo
from holdfast.core.queue import QueueInfo
from holdfast.core.rate import next_token_at, tokens
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Store
from holdfast.stores.flow import BreakerInfo, Circumstances, GateInfo

_FAR_S: Final = 1e9  # a guess about what is later than this helps nobody, and may be no date at all
_UNKNOWN: Final = "is parked: no worker that has seen it knows its task; it runs when one that does appears"


def moment(at: datetime | float) -> str:
    """As people read it."""
    return f"{at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


class Hindrances:
    """What was found for one job."""

    def __init__(
        self,
        info: JobInfo,
        candidate: Candidate,
        *,
        now: float,
        queue: QueueInfo | None,
        workers: list[WorkerInfo],
        pauses: list[Reason],
        gates: list[Reason],
        until: dict[str, float],
    ) -> None:
        self.now = now
        self._info = info
        self._candidate = candidate
        self._queue = queue
        self._workers = workers
        self._pauses = pauses
        self._gates = gates
        self._until = until

    @classmethod
    async def look(cls, store: Store, info: JobInfo, found: Circumstances, queue: QueueInfo | None) -> Hindrances:
        """Ask the store for all that could keep it."""
        rules, now, workers = await store.rules(), await store.now(), await store.list_workers()
        candidate = Candidate(info.task, info.queue, info.tenant, found.gates)
        places = places_of([candidate], rules)
        used = {each.place: each for each in await store.gates(sorted(places))} if places else {}
        breakers = {each.name: each for each in await store.breakers()} if found.gates else {}
        pauses = []
        if info.task in rules.paused_tasks:
            pauses.append(Reason("task_paused", f"task {info.task} is paused", {"task": info.task}))
        if info.tenant and info.tenant in rules.paused_tenants:
            pauses.append(Reason("tenant_paused", f"tenant {info.tenant!r} is paused", {"tenant": info.tenant}))
        gates: list[Reason] = []
        until: dict[str, float] = {}
        for gate in gates_of(candidate, rules):
            match gate:
                case SlotGate():
                    reason = _limit(gate, used.get(Place(Barrier.LIMIT, gate.key)), info.state)
                case RateGate():
                    reason = _rate(gate, used.get(Place(Barrier.RATE, gate.key)), now, until)
                case BreakerGate():
                    reason = _breaker(gate, breakers.get(gate.name), now, until)
            if reason is not None:
                gates.append(reason)
        return cls(info, candidate, now=now, queue=queue, workers=workers, pauses=pauses, gates=gates, until=until)

    def reasons(self) -> Iterator[Reason]:
        """What would keep it even if it were next, the widest first."""
        queue = self._info.queue
        if self._queue is not None and self._queue.settings.paused:
            yield Reason("queue_paused", f"queue {queue!r} is paused", {"queue": queue})
        if not self._workers:
            yield Reason("no_worker", "no worker is running", {"workers": 0})
        elif not any(not worker.queues or queue in worker.queues for worker in self._workers):
            data = {"workers": len(self._workers), "queue": queue}
            yield Reason("no_worker", f"no running worker serves queue {queue!r}", data)
        yield from self._pauses
        yield from self._gates

    def parked_first(self) -> tuple[Reason, ...]:
        """Of a parked job: first what it is parked for, then the rest."""
        reason, key = self._info.reason or "", self._info.waits_at or ""
        if reason == UNKNOWN_TASK:
            return (Reason("unknown_task", _UNKNOWN, {"task": self._info.task}), *self.reasons())
        rest = list(self.reasons())
        own = next((each for each in rest if _is_at(each, reason, key)), None)
        if own is None:
            sentence = f"is parked: it waits at {reason} {key!r}, which would let it pass by now"
            return (Reason(reason, sentence, {"key": key}), *rest)
        rest.remove(own)
        return (Reason(own.kind, f"is parked: {own.sentence}", own.data), *rest)

    def ends_at(self) -> datetime | None:
        """When what it is parked for ends by itself, where that is known and nothing else keeps it."""
        if len(list(self.reasons())) != 1:
            return None
        until = self._until.get(self._info.waits_at or "")
        return None if until is None or until > self.now + _FAR_S else datetime.fromtimestamp(until, UTC)


def _is_at(reason: Reason, barrier: str, key: str) -> bool:
    if barrier == Barrier.PAUSED:
        return reason.kind in ("task_paused", "tenant_paused") and key.startswith(reason.kind.removesuffix("_paused"))
    return reason.kind == barrier and reason.data.get("key") == key


def _limit(gate: SlotGate, used: GateInfo | None, state: State) -> Reason | None:
    if used is None or used.held < gate.size:
        return None
    others = max(0, used.waiting - (state is State.PARKED))
    wait = f", and {others:,} others wait" if others else ""
    return Reason(
        "limit",
        f"its limit {gate.key!r} is full: {used.held:,} of {gate.size:,} run{wait}",
        {"key": gate.key, "name": gate.name or gate.key, "held": used.held, "size": gate.size, "waiting": used.waiting},
    )


def _rate(gate: RateGate, used: GateInfo | None, now: float, until: dict[str, float]) -> Reason | None:
    full_at = None if used is None else used.full_at
    if tokens(full_at, now, gate.pace) >= 1:
        return None
    next_s = next_token_at(full_at, now, gate.pace)
    waiting = 0 if used is None else used.waiting
    until[gate.key] = next_s + max(0, waiting - 1) * gate.pace.gap_s
    at = datetime.fromtimestamp(next_s, UTC)
    return Reason(
        "rate",
        f"its rate {gate.key!r} ({gate.pace}) is used up: the next run may begin in {max(0.0, next_s - now):.1f} s",
        {"key": gate.key, "name": gate.name or gate.key, "rate": str(gate.pace), "next_at": at, "waiting": waiting},
    )


def _breaker(gate: BreakerGate, info: BreakerInfo | None, now: float, until: dict[str, float]) -> Reason | None:
    state = CLOSED if info is None else info.state
    phase = state.phase(now)
    if phase is Phase.CLOSED:
        return None
    data = {"key": gate.name, "phase": phase, "held": state.held, "open_until": None}
    if state.held:
        return Reason("breaker", f"its breaker {gate.name!r} is held open by an operator", data)
    if phase is Phase.HALF_OPEN or state.open_until is None:
        return Reason("breaker", f"its breaker {gate.name!r} is half open: one run at a time is let through", data)
    until[gate.name] = state.open_until
    data["open_until"] = datetime.fromtimestamp(state.open_until, UTC)
    return Reason("breaker", f"its breaker {gate.name!r} is open until {moment(state.open_until)}", data)
