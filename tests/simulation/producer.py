"""A simulated producer: the real client, asked for all that people and programs ask for; all of it is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from random import Random
from typing import Any
from uuid import UUID

from tests.history.records import Answer, Op
from tests.simulation.flow_tasks import FLOWING
from tests.simulation.replaced import signature_of
from tests.simulation.scene import Scene
from tests.simulation.server import NOBODYS
from tests.simulation.tasks import DEFINED, NEW
from tests.simulation.wire import Wire

from holdfast.client.client import Client
from holdfast.client.handle import JobHandle
from holdfast.client.request import Request
from holdfast.core.errors import (
    IdempotencyConflict,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobStateError,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    StoreUnavailable,
)
from holdfast.core.options import CallOptions
from holdfast.telemetry.hub import Telemetry

# Of the call that is at it: others come in between, while it looks what operators say.
_ids: ContextVar[list[UUID]] = ContextVar("ids")
_requests: ContextVar[list[Request]] = ContextVar("requests")
_ORDINARY = (
    "quick",
    "quick",
    "slow",
    "slow",
    "slow",
    "flaky",
    "doomed",
    "snoozing",
    "reporting",
    "soft",
    "hard",
    "stubborn",
    "novel",
)
_FLOWING = tuple(FLOWING)


class SimulatedProducer:
    """Lives once; its calls come at random times, several of them at once."""

    def __init__(self, scene: Scene, number: int) -> None:
        self._scene = scene
        self._rng = Random(scene.rng.getrandbits(64))
        self._story = scene.story
        self._known: list[UUID] = []
        self._deadly = 1 if self._rng.random() < 0.15 else 0
        self.process = scene.world.new_process(f"client{number}")
        self.wire = Wire(self.process, scene.network)
        self.has_ended = False
        self._make_id = self.process.new_job_id
        self.process.new_job_id = self._new_job_id  # type: ignore[method-assign, assignment]
        self.process.begin(self._live(), on_end=self._note_end)

    def _note_end(self) -> None:
        self.has_ended = True

    async def _live(self) -> None:
        self._client = Client(self.wire, NEW, self._scene.config, clock=self.process, telemetry=Telemetry())  # type: ignore[arg-type]
        await self._client.start()
        calls = self._rng.choice((3, 6, 12))
        acts = [self._later(self._rng.random() * 0.8 * self._scene.faults_last_s) for _ in range(calls)]
        await asyncio.gather(*acts)
        await self._client.close()

    async def _later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        draw = self._rng.random()
        if draw < 0.45:
            await self._enqueue_one()
        elif draw < 0.65:
            await self._enqueue_many()
        elif draw < 0.8:
            await self._cancel()
        else:
            await self._replay()

    # ------------------------------------------------------------ enqueue

    async def _enqueue_one(self) -> None:
        request = self._request(self._rng.random() < 0.3)

        async def ask() -> list[JobHandle[Any]]:
            return [await self._client.enqueue(request)]

        handles = await self._asked([request], ask)
        if handles and self._rng.random() < 0.3:
            await self._await_result(handles[0])

    async def _enqueue_many(self) -> None:
        requests = [self._request(self._rng.random() < 0.1) for _ in range(self._rng.choice((2, 3, 6)))]
        await self._asked(requests, lambda: self._client.enqueue_many(requests))

    def _request(self, keyed: bool) -> Request:
        rng = self._rng
        name = rng.choice(_FLOWING if rng.random() < 0.3 else _ORDINARY)
        if rng.random() < 0.02:
            return Request(NOBODYS, (1,), {}, CallOptions(queue="work"))
        if self._deadly:
            self._deadly -= 1
            name = "deadly"
        options: dict[str, Any] = {"priority": rng.choice((0, 5, 5, 9))}
        if self._scene.config.queues:
            options["queue"] = "work"
        if rng.random() < 0.2:
            options["delay_s"] = rng.random() * 2 * self._scene.config.lease_s
        if rng.random() < 0.1:
            options["expires_in_s"] = rng.random() * self._scene.config.lease_s
        n = rng.randrange(100)
        if keyed:
            key = rng.randrange(3)
            # Mostly what everybody asks for with this key; sometimes something else, which must be refused.
            name, n, options["key"] = "quick", key if rng.random() < 0.8 else n, f"key{key}"
        return Request(name, (n,), {}, CallOptions(**options), signature_of(DEFINED[name]))

    async def _asked(
        self, requests: list[Request], ask: Callable[[], Awaitable[list[JobHandle[Any]]]]
    ) -> list[JobHandle[Any]]:
        ids: list[UUID] = []
        _ids.set(ids)
        told: list[UUID | None] = [None] * len(requests)
        handles: list[JobHandle[Any]] = []
        _requests.set(requests)
        asked_s = self._scene.world.now_s
        try:
            handles = await ask()
            told = [handle.id for handle in handles]
            answer = Answer.OK
        except OutcomeUnknown as unknown:
            answer = Answer.UNKNOWN
            gave_up = isinstance(unknown.__cause__, StoreUnavailable)  # and was not refused after a try without answer
            if gave_up and (after_s := self._scene.world.now_s - asked_s) < self._scene.config.unknown_after_s:
                self._scene.world.object_to(self.process, f"was told after {after_s:.2f} s that nobody knows")
        except (QueueFull, IdempotencyConflict, NotUnique, StoreUnavailable):  # all of these say: for certain
            answer = Answer.FAIL
        for request, job_id, other in zip(requests, ids, told, strict=True):
            self._write(Op.ENQUEUE, job_id, answer, other, request)
        self._scene.world.say(self.process.name, f"enqueue of {len(requests)}: {answer}")
        self._known += ids
        return handles

    def _new_job_id(self) -> UUID:
        job_id, ids = self._make_id(), _ids.get()
        self._write(Op.ENQUEUE, job_id, Answer.ASKED, None, _requests.get()[len(ids)])
        ids.append(job_id)
        return job_id

    def _write(self, op: Op, job_id: UUID, answer: Answer, told: object, request: Request | None = None) -> None:
        key = request.options.key if request is not None else None
        what = f"{request.task}{request.args}" if request is not None else ""
        self._story.asked(op, job_id, answer, told, key=key, what=what)

    async def _await_result(self, handle: JobHandle[Any]) -> None:
        try:
            value = await handle.result(timeout=self._rng.random() * 4 * self._scene.config.lease_s)
        except TimeoutError:
            return
        except JobFailed:
            self._story.results.append((handle.id, "dead", None))
        except JobCancelled:
            self._story.results.append((handle.id, "cancelled", None))
        else:
            self._story.results.append((handle.id, "succeeded", value))

    # ------------------------------------------------------------ people

    async def _cancel(self) -> None:
        if self._known:
            job_id = self._rng.choice(self._known)
            await self._operate(Op.CANCEL, job_id, self._client.jobs.cancel(job_id, reason="not wanted"))

    async def _replay(self) -> None:
        if not self._known:
            return
        job_id = self._rng.choice(self._known)
        if self._rng.random() < 0.5:
            await self._operate(Op.REPLAY, job_id, self._client.jobs.retry(job_id))
            return
        await self._operate(Op.REPLAY, job_id, self._client.dead.replay([job_id]))

    async def _operate(self, op: Op, job_id: UUID, call: Coroutine[Any, Any, Any]) -> None:
        self._write(op, job_id, Answer.ASKED, None)
        told = None
        try:
            told = await call
            answer = Answer.FAIL if op is Op.REPLAY and told == 0 else Answer.OK
        except (JobStateError, JobNotFound):
            answer = Answer.FAIL
        except StoreUnavailable as error:
            answer = Answer.UNKNOWN if error.unknown else Answer.FAIL
        self._scene.world.say(self.process.name, f"{op}: {answer} {told or ''}")
        self._write(op, job_id, answer, told)
