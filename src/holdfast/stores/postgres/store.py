"""The PostgreSQL store: every method of the contract, handed to a connection that is there for it.

The verbs themselves live in the modules named after what they do; this one only connects them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from holdfast.core.backpressure import Watermarks
from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.job import JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueInfo, QueueRates, QueueSettings, last_priorities
from holdfast.core.settlement import Settlement, Verdict
from holdfast.core.unique import Rekeyed
from holdfast.core.worker import NewWorker, WorkerInfo
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.stores.base import (
    CancelAnswer,
    CancelRequest,
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
from holdfast.stores.postgres import (
    ended,
    finish,
    insert,
    inspect,
    listing,
    migrating,
    opening,
    queues,
    settle,
    sweep,
    tenants,
    waiting,
    workers,
)
from holdfast.stores.postgres.api_keys import ApiKeyVerbs
from holdfast.stores.postgres.beats import Beats
from holdfast.stores.postgres.claim_verbs import ClaimVerbs
from holdfast.stores.postgres.dispatching import Dispatching
from holdfast.stores.postgres.engine import Engine
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.flush import Flushed, flush, flush_marked
from holdfast.stores.postgres.gates import Gates
from holdfast.stores.postgres.outbox import Outbox
from holdfast.stores.postgres.serving import serve_now
from holdfast.stores.postgres.statements import DEFAULT_SCHEMA
from holdfast.stores.postgres.visits import GuestVisit
from holdfast.stores.postgres.wakeups import Wakeups
from holdfast.stores.status import StoreStatus

DEFAULT_WATERMARKS = Watermarks(high=10_000, low=2_000)


class PostgresStore(ClaimVerbs, ApiKeyVerbs):
    """A store in one schema of a PostgreSQL database.

    `pooled`: the way there leads through a PgBouncer in transaction mode, so nothing is notified and nothing prepared.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        pooled: bool = False,
        watermarks: Watermarks = DEFAULT_WATERMARKS,
        clock: Clock | None = None,
    ) -> None:
        self.schema = schema
        self._pooled = pooled
        self._clock = clock or SystemClock()
        place = opening.place_of(url, schema)
        self._engine = Engine(url, schema=schema, pooled=pooled, place=place, tell=lambda tx: self.dispatch.tell(tx))
        self._floors = Floors(self._clock)
        self._gates = Gates(self._engine.look, self._engine.tenanted, watermarks=watermarks, clock=self._clock)
        self._wakeups = Wakeups(
            self._engine.doorway,
            channel=f"holdfast_{schema}",
            notify=not pooled,
            on_returned=self._floors.fall,
        )
        self.dispatch = Dispatching(self._engine, self._wakeups, self._floors, self._reopening, self._claim_attached)
        self._outbox = Outbox(self._engine.query, self._wakeups.tell, self.dispatch.announce_ready)
        self._beats = Beats(self._engine)

    async def open(self, *, migrate: bool = False) -> None:
        """Connect and check. The tables are made by `holdfast migrate`, or here where `migrate` says so."""
        place = self._engine.place
        try:
            async with self._engine.aside() as connection:
                await opening.check_server(connection, place, pooled=self._pooled)
                if migrate:
                    await migrating.migrate(connection, self.schema, place)
                await migrating.check_schema_version(connection, self.schema, place)
                self._learn_tenanted(await connection.fetch(self._engine.sql["tenants.tenanted"]))
        except BaseException:  # nobody closes what was never open
            await self._engine.close()
            raise
        self._wakeups.start()

    async def status(self) -> StoreStatus:
        """What is there, told without opening or changing it."""
        async with self._engine.aside() as connection:
            return await opening.status(connection, self.schema, self._engine.place)

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, without opening the store; the names of what was applied."""
        async with self._engine.aside() as connection:
            await opening.check_server(connection, self._engine.place, pooled=self._pooled)
            return await migrating.migrate(connection, self.schema, self._engine.place)

    async def migration_plan(self) -> str:
        """The SQL that `migrate` would run now; empty where there is nothing to do."""
        async with self._engine.aside() as connection:
            return await migrating.plan(connection, self.schema)

    async def close(self) -> None:
        await self._outbox.close()
        await self._wakeups.close()
        await self._beats.close()
        await self._engine.close()

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        return self._wakeups.subscribe(callback)

    # ------------------------------------------------------------ enqueue

    async def insert_jobs(
        self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True
    ) -> list[InsertResult]:
        if not jobs:
            return []
        shut = await self._gates.shut(jobs)  # also for those that go past: it tells which queues have tenants
        shut = shut if admit else {}
        if not (whole and shut):
            await self._gates.meet([job for job in jobs if job.queue not in shut] if shut else jobs)
        engine = self._engine
        if not shut:
            inserting = partial(engine.call, "insert_jobs", engine.inserts)
            answers = await insert.insert_ordinary(inserting, jobs, engine.tenanted)
            if answers is not None:
                self._wakeups.tell(self.dispatch.inserted(jobs, answers))
                return answers
        line = engine.inserts if all(job.key is None and job.unique is None for job in jobs) else engine.keyed
        operation = partial(insert.insert_jobs, jobs=jobs, whole=whole, shut=shut)
        try:
            return await self._after(*await engine.transact("insert_jobs", line, operation))
        except insert.Refused as refused:
            return refused.answers

    def visit(self, connection: object, *, blocking: bool) -> GuestVisit:
        return GuestVisit(self._engine, self._gates, self._outbox, connection, blocking=blocking)

    def finishing(self) -> AbstractAsyncContextManager[finish.FinishBlock]:
        return finish.finishing(self._engine, self._wakeups.tell)

    async def cancel_jobs(self, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
        return await self._do("cancel_jobs", partial(waiting.cancel_jobs, job_ids=job_ids, reason=reason))

    async def endings(self, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
        return inspect.endings(await self._engine.query("inspect.endings", job_ids))

    # ------------------------------------------------------------ leases

    async def register_worker(self, worker: NewWorker, *, lease_s: float) -> None:
        row = (worker.id, worker.host, worker.pid, worker.concurrency, worker.queues, lease_s)
        await self._engine.call("register_worker", self._engine.verbs, "workers.register", *row)
        self._beats.start()

    async def renew_worker(
        self, worker: WorkerId, *, lease_s: float, held_for_s: float, lag_s: float | None = None
    ) -> Renewal:
        return await self._beats.renew(worker, lease_s=lease_s, held_for_s=held_for_s, lag_s=lag_s)

    async def settle_jobs(
        self, worker: WorkerId, settlements: Sequence[Settlement], *, marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        """By one statement; what that leaves, because somebody waits for it or it is not ours, in a transaction."""
        if not settlements:
            return []
        engine = self._engine
        flushed = Flushed(set())
        if not any(mark.failed for mark in marks):
            breakers = [mark.breaker.name for mark in marks]
            flushing = partial(engine.call, "settle_jobs", engine.settlements)
            flushed = await flush(flushing, worker, settlements, breakers, attached=self._attached)
            self.dispatch.tell(flushed)
            if Hint.READY in flushed.hints:
                await self.dispatch.returned(settlements)
            if flushed.waited:
                await serve_now(engine)
            if len(flushed.tokens) == len(settlements):
                return [Verdict.APPLIED] * len(settlements)
        left = [each for each in settlements if each.token not in flushed.tokens]
        if marks and not flushed.tokens:
            marking = partial(flush_marked, worker=worker, settlements=left, marks=marks)
            verdicts, waited = await self._after(*await engine.transact("settle_jobs", engine.settlements, marking))
            if waited:
                await serve_now(engine)
            return verdicts
        settling = partial(settle.settle_jobs, worker=worker, settlements=left)
        found = iter(await self._after(*await engine.transact("settle_jobs", engine.settlements, settling)))
        return [Verdict.APPLIED if each.token in flushed.tokens else next(found) for each in settlements]

    async def record_progress(
        self,
        worker: WorkerId,
        job_id: JobId,
        token: int,
        *,
        done: float,
        total: float | None,
        stage: str | None,
    ) -> bool:
        report = (worker, job_id, token, done, total, stage)
        rows = await self._engine.call("record_progress", self._engine.verbs, "settle_jobs.progress", *report)
        self._wakeups.tell(Hint.RUNNING)
        return bool(rows)

    async def cancel_requests(self, worker: WorkerId) -> list[CancelRequest]:
        return [CancelRequest(*row) for row in await self._engine.query("workers.cancel_requests", worker)]

    async def hand_back_worker(
        self, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
    ) -> int:
        handing = partial(workers.hand_back_worker, worker=worker)
        return await self._do("hand_back_worker", partial(handing, cause=cause, why=why, suspects=suspects))

    async def unpark_jobs(self, *, reason: str, keys: Sequence[str]) -> int:
        count = 0
        while True:
            unparked = await self._do("unpark_jobs", partial(workers.unpark_jobs, reason=reason, keys=keys))
            count += unparked
            if unparked < workers.UNPARKED_AT_ONCE:
                return count

    # ------------------------------------------------------------ upkeep

    async def now(self) -> float:
        [(now,)] = await self._engine.query("transaction.now")
        return float(now.timestamp())

    async def promote_jobs(self, *, limit: int) -> Promotion:
        return await self._do("promote_jobs", partial(waiting.promote_jobs, limit=limit))

    async def expire_jobs(self, *, limit: int) -> int:
        return await self._do("expire_jobs", partial(waiting.expire_jobs, limit=limit))

    async def reap_workers(self, *, limit: int, as_of: float | None = None) -> Reaped:
        return await self._do("reap_workers", partial(workers.reap_workers, limit=limit, as_of=as_of))

    async def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
        prune = partial(ended.prune_jobs, keep_succeeded_s=keep_succeeded_s, keep_cancelled_s=keep_cancelled_s)
        return await self._do("prune_jobs", partial(prune, limit=limit))

    async def sweep(self, *, limit: int) -> Swept:
        swept = await self._do("sweep", partial(sweep.sweep, limit=limit))
        # By itself: producers wait for the tags that it has in hand, and what a sweep waits for may take long.
        await self._do("sweep", partial(tenants.forget, limit=limit))
        slots, unparked = await sweep.sweep_gates(self._engine, limit=limit)
        return swept._replace(slots_freed=slots, unparked=unparked)

    async def fold_depths(self, *, limit: int) -> int:
        [(folded,)] = await self._engine.query("queues.fold", limit)
        return int(folded)

    async def lead(self, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
        rows = await self._engine.call("lead", self._engine.verbs, "leader.lead", role, holder, lease_s)
        return Lead(rows[0][0]) if rows else None

    async def resign(self, role: str, holder: WorkerId) -> None:
        await self._engine.call("resign", self._engine.verbs, "leader.resign", role, holder)

    async def leading(self, role: str) -> Lead | None:
        rows = await self._engine.query("leader.leading", role)
        return Lead(rows[0][0]) if rows else None

    # ------------------------------------------------------------ dead letters

    async def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        return await self._do("replay_jobs", partial(ended.replay_jobs, job_ids=job_ids))

    async def edit_dead(self, job_id: JobId, *, payload: bytes, rekeyed: Rekeyed | None = None) -> bool:
        edit = partial(ended.edit_dead, job_id=job_id, payload=payload, rekeyed=rekeyed)
        return await self._do("edit_dead", edit)

    async def purge_dead(self, job_ids: Sequence[JobId]) -> int:
        return await self._do("purge_dead", partial(ended.purge_dead, job_ids=job_ids))

    # ------------------------------------------------------------ queues

    async def queue_settings(self) -> dict[str, QueueSettings]:
        self._learn_tenanted(await self._engine.query("tenants.tenanted"))
        return queues.settings_of(await self._engine.query("queues.settings"))

    def _learn_tenanted(self, rows: Iterable[Any]) -> None:
        self._engine.tenanted.update(row[0] for row in rows)

    async def set_queue(
        self, queue: str, settings: QueueSettings, *, only: Collection[str] | None = None, by: str = ""
    ) -> None:
        await self._do("set_queue", partial(queues.set_queue, queue=queue, settings=settings, only=only, by=by))
        self._gates.forget()
        self.dispatch.set(queue)
        if settings.paused or last_priorities(settings):
            # What was kept for jobs that nobody comes for now, or only at last, is for others.
            await sweep.hand_on(self._engine, await self._engine.query("serving.kept_for", queue))

    async def purge_queue(self, queue: str, *, reason: str, limit: int) -> int:
        return await self._do("purge_queue", partial(waiting.purge_queue, queue=queue, reason=reason, limit=limit))

    async def tenant_weights(self) -> dict[str, float]:
        return tenants.weights_of(await self._engine.query("tenants.weights"))

    # ------------------------------------------------------------ reports

    async def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        return await self._engine.snapshot(partial(inspect.job_infos, job_ids=job_ids))

    async def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None = None) -> JobPage:
        return await self._engine.snapshot(partial(listing.list_jobs, where=where, limit=limit, before=before))

    async def count_jobs(self, where: JobFilter, *, most: int | None = None) -> int:
        return await self._engine.snapshot(partial(listing.count_jobs, where=where, most=most))

    async def list_queues(self) -> list[QueueInfo]:
        return await self._engine.snapshot(queues.list_queues)

    async def queue_rates(self) -> dict[str, QueueRates]:
        return await self._engine.snapshot(queues.queue_rates)

    async def list_workers(self) -> list[WorkerInfo]:
        return await self._engine.snapshot(queues.list_workers)
