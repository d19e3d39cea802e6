"""A process's way to the store: the whole contract, each call with the fate that the seed gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tests.simulation.flow_wire import FlowWire
from tests.simulation.process import Process
from tests.simulation.server import Server
from tests.simulation.weather import Fate, Weather

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Settlement, Verdict
from holdfast.core.worker import NewWorker
from holdfast.stores.base import (
    CancelAnswer,
    CancelRequest,
    Claim,
    Ended,
    Hint,
    InsertResult,
    JobFilter,
    JobPage,
    Lead,
    Promotion,
    Reaped,
    Renewal,
    Swept,
)
from holdfast.stores.dead import Replayed

T = TypeVar("T")
_REQUESTS = ("insert_jobs", "replay_jobs")


class Network:
    """The store and all wires that lead to it."""

    def __init__(self, server: Server, weather: Weather) -> None:
        self.server = server
        self.weather = weather
        self.wires: list[Wire] = []
        self.requests_under_way = 0
        """What producers asked for and the store has yet to hear of, also after they have given up on it."""

    def tell(self, hint: Hint) -> None:
        """Somebody changed something: most hear of it, some time."""
        for wire in self.wires:
            wire.hear(hint)


class Wire(FlowWire):
    """A `Store`, as far as the simulated processes use one."""

    def __init__(self, process: Process, network: Network) -> None:
        self._process = process
        self._world = process.world
        self._network = network
        self._server = network.server
        self._listeners: list[Callable[[Hint], None]] = []
        self._heard = Hint.NOTHING
        self.cut_until_s = 0.0
        """Only this process does not reach the store until then."""
        self.late_by_s = 0.0
        """So much longer answers take to this process."""
        network.wires.append(self)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    # ------------------------------------------------------------ calls

    async def _ask(self, verb: str, execute: Callable[[], T], *, begun_within_s: float | None = None) -> T:
        world, weather = self._world, self._network.weather
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        fate = weather.fate(world.now_s)
        if world.now_s < self.cut_until_s:
            fate = weather.rng.choice((Fate.REFUSED, Fate.CUT, Fate.HUNG, Fate.HUNG))
        call = _Call(self, verb, execute, answered, world.now_s, begun_within_s)
        way_s = weather.way_s()
        if fate is Fate.ANSWERED:
            self._execute_after(way_s, call, weather.way_s() + self.late_by_s)
        else:
            world.happened[f"call {fate.name.lower()}"] += 1
            self._strike(call, fate, way_s)
        return await answered

    def _strike(self, call: _Call, fate: Fate, way_s: float) -> None:
        world, weather = self._world, self._network.weather
        world.say(self._process.name, f"{call.verb}: {fate.name.lower()}")
        answer_s = way_s + weather.way_s()
        match fate:
            case Fate.REFUSED:
                world.after(answer_s, partial(call.fail, unknown=False))
            case Fate.CUT:
                world.after(answer_s, partial(call.fail, unknown=True))
            case Fate.LOST:
                self._execute_after(way_s, call, None)
                world.after(answer_s, partial(call.fail, unknown=True))
            case Fate.LATE:
                world.after(way_s, partial(call.fail, unknown=True))
                self._execute_after(way_s + weather.patience_s(), call, None)
            case Fate.HUNG:
                patience_s = weather.patience_s()
                if weather.rng.random() < 0.5:
                    self._execute_after(patience_s * weather.rng.random(), call, None)
                world.after(patience_s, partial(call.fail, unknown=True))

    def _execute_after(self, seconds: float, call: _Call, back_s: float | None) -> None:
        self._network.requests_under_way += call.verb in _REQUESTS
        self._world.after(seconds, partial(self._execute, call, back_s))

    def _execute(self, call: _Call, back_s: float | None) -> None:
        """In the store. `back_s`: how long the answer is under way; None: there is none."""
        world, server = self._world, self._server
        self._network.requests_under_way -= call.verb in _REQUESTS
        if call.begun_within_s is not None and world.now_s - call.asked_s > call.begun_within_s:
            return
        server.tick()
        try:
            answer, error = call.execute(), None
        except HoldfastError as raised:
            answer, error = None, raised
        if world.trace is not None:
            world.say(self._process.name, f"{call.verb} → {_shown(error or answer)}")
        if hint := server.note_moves():
            self._network.tell(hint)
        if back_s is not None:
            world.after(back_s, partial(call.answer, answer, error))

    # ------------------------------------------------------------ hints

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def hear(self, hint: Hint) -> None:
        weather = self._network.weather
        if not self._listeners or self._process.is_dead or weather.rng.random() < weather.hints_lost:
            return
        if not self._heard:
            self._world.after(weather.way_s(), self._pass_on)
        self._heard |= hint

    def _pass_on(self) -> None:
        hint, self._heard = self._heard, Hint.NOTHING
        if self._network.weather.hints_lost and self._network.weather.rng.random() < 0.1:
            hint = Hint.ANYTHING
        for callback in self._listeners:
            self._process.main.call_soon(callback, hint)

    # ------------------------------------------------------------ the contract

    async def insert_jobs(
        self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True
    ) -> list[InsertResult]:
        put_in = partial(self._server.insert_jobs, tuple(jobs), whole=whole, admit=admit)
        return await self._ask("insert_jobs", put_in)

    async def cancel_jobs(self, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
        def execute() -> list[CancelAnswer]:
            answers = self._server.cancel_jobs(ids, reason=reason)
            if CancelAnswer.REQUESTED in answers:
                self._network.tell(Hint.CANCEL)
            return answers

        ids = tuple(job_ids)
        return await self._ask("cancel_jobs", execute)

    async def endings(self, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
        return await self._ask("endings", partial(self._server.endings, tuple(job_ids)))

    async def register_worker(self, worker: NewWorker, *, lease_s: float) -> None:
        await self._ask("register_worker", partial(self._server.register_worker, worker, lease_s=lease_s))

    async def renew_worker(
        self, worker: WorkerId, *, lease_s: float, held_for_s: float, lag_s: float | None = None
    ) -> Renewal:
        renew = partial(self._server.renew_worker, worker, lease_s=lease_s, held_for_s=held_for_s)
        return await self._ask("renew_worker", renew)

    async def claim_jobs(
        self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float, alone: bool = False
    ) -> Claim:
        claim = partial(self._server.claim_jobs, worker, dict(lanes), alone=alone)
        return await self._ask("claim_jobs", claim, begun_within_s=deadline_s)

    async def settle_jobs(
        self, worker: WorkerId, settlements: Sequence[Settlement], *, marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        settle = partial(self._server.settle_jobs, worker, tuple(settlements), tuple(marks))
        return await self._ask("settle_jobs", settle)

    async def record_progress(
        self, worker: WorkerId, job_id: JobId, token: int, *, done: float, total: float | None, stage: str | None
    ) -> bool:
        return await self._ask("record_progress", partial(self._server.record_progress, worker, job_id, token))

    async def cancel_requests(self, worker: WorkerId) -> list[CancelRequest]:
        return await self._ask("cancel_requests", partial(self._server.cancel_requests, worker))

    async def hand_back_worker(
        self, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
    ) -> int:
        back = partial(self._server.hand_back_worker, worker, cause=cause, suspects=suspects)
        return await self._ask("hand_back_worker", back)

    async def claim_parked(
        self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str], deadline_s: float
    ) -> Claim:
        claim = partial(self._server.claim_parked, worker, tuple(lanes), tasks=tuple(tasks))
        return await self._ask("claim_parked", claim, begun_within_s=deadline_s)

    async def unpark_jobs(self, *, reason: str, keys: Sequence[str]) -> int:
        return await self._ask("unpark_jobs", partial(self._server.unpark_jobs, reason=reason, keys=tuple(keys)))

    async def now(self) -> float:
        return await self._ask("now", self._server.now)

    async def promote_jobs(self, *, limit: int) -> Promotion:
        return await self._ask("promote_jobs", partial(self._server.promote_jobs, limit=limit))

    async def expire_jobs(self, *, limit: int) -> int:
        return await self._ask("expire_jobs", self._server.expire_jobs)

    async def reap_workers(self, *, limit: int, as_of: float | None = None) -> Reaped:
        return await self._ask("reap_workers", partial(self._server.reap_workers, as_of=as_of))

    async def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
        keep = {"keep_succeeded_s": keep_succeeded_s, "keep_cancelled_s": keep_cancelled_s}
        return await self._ask("prune_jobs", partial(self._server.prune_jobs, **keep))

    async def sweep(self, *, limit: int) -> Swept:
        return await self._ask("sweep", self._server.sweep)

    async def fold_depths(self, *, limit: int) -> int:
        return 0

    async def lead(self, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
        return await self._ask("lead", partial(self._server.lead, role, holder, lease_s=lease_s))

    async def resign(self, role: str, holder: WorkerId) -> None:
        await self._ask("resign", partial(self._server.resign, role, holder))

    async def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        return await self._ask("replay_jobs", partial(self._server.replay_jobs, tuple(job_ids)))

    async def record_act(self, *, by: str, what: str, name: str, said: Mapping[str, Any]) -> None:
        """The record of what operators do is no part of the model."""

    async def queue_settings(self) -> dict[str, QueueSettings]:
        return await self._ask("queue_settings", self._server.queue_settings)

    async def set_queue(
        self, queue: str, settings: QueueSettings, *, only: Collection[str] | None = None, by: str = ""
    ) -> None:
        await self._ask("set_queue", partial(self._server.set_queue, queue, settings))

    async def tenant_weights(self) -> dict[str, float]:
        return await self._ask("tenant_weights", self._server.tenant_weights)

    async def set_tenant_weight(self, tenant: str, weight: float | None, *, by: str = "") -> None:
        await self._ask("set_tenant_weight", partial(self._server.set_tenant_weight, tenant, weight))

    async def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        return await self._ask("job_infos", partial(self._server.job_infos, tuple(job_ids)))

    async def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None = None) -> JobPage:
        return await self._ask("list_jobs", partial(self._server.list_jobs, where, limit=limit, before=before))


class _Call:
    """One call under way."""

    __slots__ = ("_future", "_wire", "asked_s", "begun_within_s", "execute", "verb")

    def __init__(
        self,
        wire: Wire,
        verb: str,
        execute: Callable[[], Any],
        future: asyncio.Future[Any],
        asked_s: float,
        begun_within_s: float | None,
    ) -> None:
        self._wire = wire
        self._future = future
        self.verb = verb
        self.execute = execute
        self.asked_s = asked_s
        self.begun_within_s = begun_within_s

    def answer(self, answer: Any, error: Exception | None) -> None:
        """It has arrived; the loop that asked hears of it at its next turn, as of anything that comes from outside."""
        if not self._wire._process.is_dead:
            self._future.get_loop().call_soon_threadsafe(self._resolve, answer, error)

    def _resolve(self, answer: Any, error: Exception | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(answer)
        else:
            self._future.set_exception(error)

    def fail(self, *, unknown: bool) -> None:
        words = "the answer is missing" if unknown else "out of reach"
        self.answer(None, StoreUnavailable(f"{self.verb}: {words}", unknown=unknown))


def _shown(answer: object) -> str:
    if isinstance(answer, Exception):
        return f"{type(answer).__name__}: {answer}"
    if isinstance(answer, Claim):
        return f"{len(answer.jobs)} jobs" + ", lonely ones wait" * answer.lonely
    return f"{answer!r:.100}"
