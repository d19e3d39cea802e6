"""The PostgreSQL store: every method of the contract, handed to a connection that is there for it.

The verbs themselves live in the modules named after what they do; this one only connects them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

from holdfast.core.backpressure import Watermarks
from holdfast.core.cause import Cause
from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueInfo, QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Settlement, Verdict
from holdfast.core.worker import NewWorker, WorkerInfo
from holdfast.runtime.clock import Clock, SystemClock
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
    StoreStatus,
    Swept,
)
from holdfast.stores.postgres import (
    claim,
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
from holdfast.stores.postgres.beats import Beats
from holdfast.stores.postgres.dispatching import Dispatching
from holdfast.stores.postgres.engine import Engine
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.flush import flush
from holdfast.stores.postgres.gates import Gates
from holdfast.stores.postgres.outbox import Outbox
from holdfast.stores.postgres.statements import DEFAULT_SCHEMA
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.postgres.visits import GuestVisit
from holdfast.stores.postgres.wakeups import Wakeups

T = TypeVar("T")

DEFAULT_WATERMARKS = Watermarks(high=10_000, low=2_000)


class PostgresStore:
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
        self.dispatch = Dispatching(self._engine, self._wakeups, self._floors, self._reopening)
        self._outbox = Outbox(self._engine.query, self._wakeups.tell)
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

    async def _do(self, verb: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """A verb without a connection of its own; queues that it has drained may open. Waits for nobody's limits."""
        engine, left = self._engine, list[str]()
        result, drained = await engine.transact(verb, engine.verbs, operation, left=left)
        await sweep.mend_limits(engine, left)
        return await self._reopening(result, drained)

    async def _reopening(self, result: T, drained: Collection[str]) -> T:
        """After the commit: whatever goes wrong here takes nothing back, and the next look at the gate opens it."""
        with contextlib.suppress(StoreUnavailable):
            if drained and await self._gates.reopen(drained):
                self._wakeups.tell(Hint.OPENED)
        return result

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
        line = engine.inserts if all(job.key is None for job in jobs) else engine.keyed
        operation = partial(insert.insert_jobs, jobs=jobs, whole=whole, shut=shut)
        try:
            return (await engine.transact("insert_jobs", line, operation))[0]
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

    async def claim_jobs(
        self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float, alone: bool = False
    ) -> Claim:
        one = partial(claim.claim_alone, worker=worker, lanes=lanes)
        return await self._by(deadline_s, self._claim_one(one) if alone else self._claim(worker, lanes))

    async def claim_parked(
        self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str], deadline_s: float
    ) -> Claim:
        one = partial(claim.claim_parked, worker=worker, lanes=lanes, tasks=tasks)
        return await self._by(deadline_s, self._claim_parked(one, tasks))

    async def _claim_parked(self, one: Callable[[Tx], Awaitable[Claim]], tasks: Sequence[str]) -> Claim:
        found = await self._engine.query("claim_jobs.any_parked", UNKNOWN_TASK, tasks)
        return await self._claim_one(one) if found else Claim([], {})

    async def _by(self, deadline_s: float, claiming: Coroutine[Any, Any, Claim]) -> Claim:
        if deadline_s <= 0:
            claiming.close()
            raise StoreUnavailable("claim_jobs: dropped at its deadline")
        try:
            async with asyncio.timeout(deadline_s):
                return await claiming
        except TimeoutError:
            raise StoreUnavailable(f"claim_jobs: no answer within {deadline_s:g} s", unknown=True) from None

    async def _claim(self, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
        self._floors.settle_down()
        raised = {lane for lane in lanes if self._floors.is_raised(lane)}
        taken = await self._take(worker, lanes)
        short = {lane: quota - taken.scanned[lane] for lane, quota in lanes.items() if lane in raised}
        short = {lane: left for lane, left in short.items() if left > 0}
        if short:  # from above the ground: only a look from there says that a lane is empty
            self._floors.drop(short)
            taken = taken.followed_by(await self._take(worker, short, seen=taken.attached))
        if taken.attached:
            claiming = partial(claim.claim_attached, worker=worker, job_ids=taken.attached)
            jobs, _ = await self._engine.transact("claim_jobs", self._engine.claims, claiming)
            taken = taken.joined_by(jobs)
        if taken.headless:
            ending = partial(claim.end_headless, worker=worker, jobs=taken.headless)
            await self._engine.transact("settle_jobs", self._engine.settlements, ending)
        if taken.jobs:
            self._wakeups.tell(Hint.RUNNING)
        await self._reopening(None, taken.closed)
        return Claim(taken.jobs, taken.scanned, taken.lonely)

    async def _take(self, worker: WorkerId, lanes: Mapping[Lane, int], *, seen: Collection[JobId] = ()) -> claim.Taken:
        columns = claim.columns(lanes, self._floors)
        rows = await self._engine.call("claim_jobs", self._engine.claims, "claim_jobs.ordinary", worker, *columns)
        return claim.take_apart(rows, lanes, self._floors, seen)

    async def _claim_one(self, claiming: Callable[[Tx], Awaitable[Claim]]) -> Claim:
        return await self._reopening(*await self._engine.transact("claim_jobs", self._engine.claims, claiming))

    async def settle_jobs(self, worker: WorkerId, settlements: Sequence[Settlement]) -> list[Verdict]:
        """By one statement; what that leaves, because something hangs on it or it is not ours, in a transaction."""
        if not settlements:
            return []
        engine = self._engine
        flushed = await flush(partial(engine.call, "settle_jobs", engine.settlements), worker, settlements)
        self.dispatch.tell(flushed)
        if Hint.READY in flushed.hints:
            await self.dispatch.returned(settlements)
        if len(flushed.tokens) == len(settlements):
            return [Verdict.APPLIED] * len(settlements)
        left = [each for each in settlements if each.token not in flushed.tokens]
        settling = partial(settle.settle_jobs, worker=worker, settlements=left)
        verdicts = iter(await self._reopening(*await engine.transact("settle_jobs", engine.settlements, settling)))
        return [Verdict.APPLIED if each.token in flushed.tokens else next(verdicts) for each in settlements]

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

    async def reap_workers(self, *, limit: int) -> Reaped:
        return await self._do("reap_workers", partial(workers.reap_workers, limit=limit))

    async def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
        prune = partial(ended.prune_jobs, keep_succeeded_s=keep_succeeded_s, keep_cancelled_s=keep_cancelled_s)
        return await self._do("prune_jobs", partial(prune, limit=limit))

    async def sweep(self, *, limit: int) -> Swept:
        swept = await self._do("sweep", partial(sweep.sweep, limit=limit))
        # By itself: producers wait for the tags that it has in hand, and what a sweep waits for may take long.
        await self._do("sweep", partial(tenants.forget, limit=limit))
        slots, unparked = await sweep.sweep_limits(self._engine, limit=limit)
        return swept._replace(slots_freed=slots, unparked=unparked)

    async def fold_depths(self, *, limit: int) -> int:
        [(folded,)] = await self._engine.query("queues.fold", limit)
        return int(folded)

    async def lead(self, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
        rows = await self._engine.call("lead", self._engine.verbs, "leader.lead", role, holder, lease_s)
        return Lead(rows[0][0]) if rows else None

    async def resign(self, role: str, holder: WorkerId) -> None:
        await self._engine.call("resign", self._engine.verbs, "leader.resign", role, holder)

    # ------------------------------------------------------------ dead letters

    async def replay_jobs(self, job_ids: Sequence[JobId]) -> int:
        return await self._do("replay_jobs", partial(ended.replay_jobs, job_ids=job_ids))

    async def edit_dead(self, job_id: JobId, *, payload: bytes) -> bool:
        return await self._do("edit_dead", partial(ended.edit_dead, job_id=job_id, payload=payload))

    async def purge_dead(self, job_ids: Sequence[JobId]) -> int:
        return await self._do("purge_dead", partial(ended.purge_dead, job_ids=job_ids))

    # ------------------------------------------------------------ queues

    async def queue_settings(self) -> dict[str, QueueSettings]:
        self._learn_tenanted(await self._engine.query("tenants.tenanted"))
        return queues.settings_of(await self._engine.query("queues.settings"))

    def _learn_tenanted(self, rows: Iterable[Any]) -> None:
        self._engine.tenanted.update(row[0] for row in rows)

    async def set_queue(self, queue: str, settings: QueueSettings, *, only: Collection[str] | None = None) -> None:
        await self._do("set_queue", partial(queues.set_queue, queue=queue, settings=settings, only=only))
        self._gates.forget()
        if settings.paused and (only is None or "paused" in only):  # what was kept for its jobs is for others now
            keys = await self._engine.query("sweep.reserved_limits", queue)
            await sweep.mend_limits(self._engine, [row[0] for row in keys])

    async def purge_queue(self, queue: str, *, reason: str, limit: int) -> int:
        return await self._do("purge_queue", partial(waiting.purge_queue, queue=queue, reason=reason, limit=limit))

    async def tenant_weights(self) -> dict[str, float]:
        return dict(map(tuple, await self._engine.query("tenants.weights")))

    async def set_tenant_weight(self, tenant: str, weight: float | None) -> None:
        await self._do("set_tenant_weight", partial(tenants.set_weight, tenant=tenant, weight=weight))

    # ------------------------------------------------------------ reports

    async def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        return await self._engine.snapshot(partial(inspect.job_infos, job_ids=job_ids))

    async def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None = None) -> JobPage:
        return await self._engine.snapshot(partial(listing.list_jobs, where=where, limit=limit, before=before))

    async def count_jobs(self, where: JobFilter, *, most: int | None = None) -> int:
        return await self._engine.snapshot(partial(listing.count_jobs, where=where, most=most))

    async def list_queues(self) -> list[QueueInfo]:
        return await self._engine.snapshot(queues.list_queues)

    async def list_workers(self) -> list[WorkerInfo]:
        return await self._engine.snapshot(queues.list_workers)
