"""Everything a producer and an operator can do on one open store; the app makes one when it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from holdfast.client.acts import Acts
from holdfast.client.arguments import plain_result
from holdfast.client.audit import Audit
from holdfast.client.breakers import Breakers
from holdfast.client.dead import DeadLetters
from holdfast.client.endings import Endings
from holdfast.client.enlisting import Enlistment
from holdfast.client.enqueuer import Enqueuer
from holdfast.client.handle import JobHandle
from holdfast.client.heard_routes import HeardRoutes
from holdfast.client.jobs import Jobs
from holdfast.client.keys import Keys
from holdfast.client.limits import Limits
from holdfast.client.operator import Operator
from holdfast.client.placing import Routing
from holdfast.client.queues import Queues, Workers
from holdfast.client.request import Request, build_job
from holdfast.client.routes import Routes
from holdfast.client.tasks import Tasks
from holdfast.client.tenants import Tenants
from holdfast.config import Config
from holdfast.core.errors import InvalidArguments, InvalidOptions, RoutingFailed
from holdfast.core.job import JobId, NewJob
from holdfast.core.task import Registry
from holdfast.core.unset import Unset, given
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Store
from holdfast.telemetry.hub import Telemetry

#: Hears of the jobs that a call has stored before the call returns; for tests, where time stands still: with it, nobody
#: waits for a full queue.
OnEnqueued = Callable[[Sequence[NewJob]], Awaitable[None]]

MOST_AT_ONCE = 10_000


class Client:
    """Enqueues, and holds the nouns: jobs, dead letters, queues, routes, tasks, tenants, limits, breakers, keys, …."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        *,
        clock: Clock,
        telemetry: Telemetry,
        on_enqueued: OnEnqueued | None = None,
        routing: Routing | None = None,
    ) -> None:
        self._store = store
        self._routing = routing or Routing(())
        self.heard = HeardRoutes(store, clock=clock, telemetry=telemetry)
        self._config = config
        self._monotonic = clock.monotonic  # every enqueue asks it, to learn that nothing is due
        self._telemetry = telemetry
        self._on_enqueued = on_enqueued
        self._enqueuer = Enqueuer(store, config, clock=clock, telemetry=telemetry)
        self.endings = Endings(store, poll_s=config.poll_s)
        operator = Operator(store, telemetry)
        acts = Acts(operator)
        bounds = {name: each.bound for name, each in config.queue_options.items() if each.bound is not None}
        self.jobs = Jobs(store, registry, acts, poll_s=config.poll_s, bounds=bounds)
        self.dead = DeadLetters(store, self.jobs, registry, config, acts)
        self.queues = Queues(operator, partial(_queues_of, registry, config, self._routing))
        self.routes = Routes(operator, registry, self._routing, self.heard)
        self.tasks = Tasks(operator, registry)
        self.tenants = Tenants(operator)
        self.limits = Limits(operator, registry)
        self.breakers = Breakers(operator, registry)
        self.audit = Audit(store)
        self.keys = Keys(operator)
        self.workers = Workers(store)

    async def start(self) -> None:
        await self.endings.start()

    async def close(self) -> None:
        await self.heard.close()
        await self._enqueuer.close()
        await self.endings.stop()

    async def enqueue(self, request: Request) -> JobHandle[Any]:
        """One job, committed when this returns; or inserted into the transaction of its connection."""
        if request.options.connection is not None:
            [handle] = await self._enlist(await self.enlist_one(request, blocking=False), [request])
            return handle
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
        job = self._job(request)
        job_id = await self._enqueuer.enqueue(job, wait_s=self._wait_s(request.options.wait_s))
        if self._on_enqueued is not None and job_id == job.id:
            await self._on_enqueued([job])
        return self._handle(job_id, request, existing=job_id != job.id)

    async def enqueue_many(self, requests: Sequence[Request], *, connection: object = None) -> list[JobHandle[Any]]:
        """All of them in one transaction, or none; handles in order. A bad item is named by its index."""
        if connection is not None:
            return await self._enlist(await self.enlist_many(requests, connection, blocking=False), requests)
        jobs = await self._build(requests, None)
        wait_s = min(map(self._wait_s, {request.options.wait_s for request in requests}), default=0.0)
        ids = await self._enqueuer.enqueue_many(jobs, wait_s=wait_s)
        if self._on_enqueued is not None:
            await self._on_enqueued([job for job, job_id in zip(jobs, ids, strict=True) if job.id == job_id])
        return self.handles(ids, requests)

    async def enlist_one(self, request: Request, *, blocking: bool) -> Enlistment:
        """One job, to be brought into the transaction of the connection that its options name."""
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
        jobs, connection = [self._job(request)], request.options.connection
        return self._enlistment(jobs, connection, blocking=blocking, numbered=False)

    async def enlist_many(self, requests: Sequence[Request], connection: object, *, blocking: bool) -> Enlistment:
        """Jobs to be brought into the transaction of a connection."""
        jobs = await self._build(requests, connection)
        return self._enlistment(jobs, connection, blocking=blocking, numbered=True)

    def _enlistment(self, jobs: Sequence[NewJob], connection: object, *, blocking: bool, numbered: bool) -> Enlistment:
        return Enlistment(
            self._store,
            jobs,
            connection,
            blocking=blocking,
            numbered=numbered,
            refusals=self._enqueuer.refusals,
            telemetry=self._telemetry,
        )

    async def _enlist(self, enlistment: Enlistment, requests: Sequence[Request]) -> list[JobHandle[Any]]:
        await enlistment.prepare()
        ids = await enlistment.insert()
        await enlistment.follow()
        return self.handles(ids, requests, enlisted=True)

    async def _build(self, requests: Sequence[Request], connection: object) -> list[NewJob]:
        if not isinstance(requests, Sequence) or isinstance(requests, Request):
            raise InvalidArguments(f"enqueue_many needs a list of requests, not {type(requests).__name__}")
        if len(requests) > MOST_AT_ONCE:
            raise InvalidArguments(
                f"enqueue_many: {len(requests):,} requests were given, at most {MOST_AT_ONCE:,} go into one "
                "transaction; send them in several calls"
            )
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
        jobs = []
        for index, request in enumerate(requests):
            if not isinstance(request, Request):
                raise InvalidArguments(
                    f"item {index}: needs a request made by task.request(…), not {type(request).__name__}"
                )
            if request.options.connection is not None and request.options.connection is not connection:
                raise InvalidOptions(
                    f"item {index}: was made with options(connection=…); one transaction is for all of them, so give "
                    "the connection to enqueue_many(…, connection=…)"
                )
            try:
                jobs.append(self._job(request))
            except (InvalidArguments, InvalidOptions, RoutingFailed) as error:
                raise type(error)(f"item {index}: {error}") from error
        return jobs

    def _job(self, request: Request) -> NewJob:
        """Of a call that comes just now: somebody has looked what operators say, if that was due."""
        routing, operators = self._routing, self.heard.patterns
        return build_job(request, self._config, routing if routing.in_use or operators.rules else None, operators)

    def _wait_s(self, wait_s: float | Unset) -> float:
        return 0.0 if self._on_enqueued is not None else given(wait_s, self._config.wait_s)

    def handles(
        self, ids: Sequence[JobId], requests: Sequence[Request], *, enlisted: bool = False
    ) -> list[JobHandle[Any]]:
        """`enlisted`: they may not be there yet, and perhaps never will."""
        return [self._handle(job_id, request, enlisted=enlisted) for job_id, request in zip(ids, requests, strict=True)]

    def _handle(
        self, job_id: JobId, request: Request, *, enlisted: bool = False, existing: bool = False
    ) -> JobHandle[Any]:
        decode = plain_result if request.signature is None else request.signature.decode_result
        return JobHandle(job_id, self, decode, enlisted=enlisted, existing=existing)


def _queues_of(registry: Registry, config: Config, routing: Routing) -> set[str]:
    """The queues that this app knows by itself."""
    routed = {rule.route.queue for rule in routing.patterns.rules if not isinstance(rule.route.queue, Unset)}
    return {task.options.queue for task in registry} | config.queue_options.keys() | config.served.keys() | routed
