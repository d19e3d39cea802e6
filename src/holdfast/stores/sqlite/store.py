"""The SQLite store: every method of the contract, handed to the writer thread or to a reader.

The verbs themselves live in the modules named after what they do; this one only connects them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast.core.api_key import ApiKey
from holdfast.core.backpressure import Watermarks
from holdfast.core.breaker import BreakerFigures, BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.errors import HoldfastError, InvalidOptions
from holdfast.core.fairness import Lane
from holdfast.core.gates import Place, Rules
from holdfast.core.job import JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueInfo, QueueRates, QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.routing import Rule
from holdfast.core.settlement import Settlement, Verdict
from holdfast.core.unique import Rekeyed
from holdfast.core.worker import NewWorker, WorkerInfo
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.threads import in_new_thread
from holdfast.stores.api_keys import KeyUse
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
from holdfast.stores.flow import BreakerInfo, Circumstances, GateInfo, Position, Served, SettingChange
from holdfast.stores.routes import Rerouted
from holdfast.stores.sqlite import (
    api_keys,
    breakers,
    circumstances,
    claim,
    ended,
    gate_reports,
    gates,
    insert,
    inspect,
    leader,
    moving,
    queues,
    routes,
    rules,
    serve,
    settle,
    tenants,
    unique,
    waiting,
    workers,
)
from holdfast.stores.sqlite.reader import Reader
from holdfast.stores.sqlite.writer import Writer
from holdfast.stores.transactions import Finish, Visit

DEFAULT_WATERMARKS = Watermarks(high=10_000, low=2_000)


class SqliteStore:
    """A store in one file; `:memory:` is a private temporary file that goes with the store."""

    def __init__(self, path: str, *, watermarks: Watermarks = DEFAULT_WATERMARKS, clock: Clock | None = None) -> None:
        self._private: str | None = None
        if path == ":memory:":
            self._private = tempfile.mkdtemp(prefix="holdfast-")
            path = str(Path(self._private) / "holdfast.db")
        self.path = path
        self._clock = clock or SystemClock()
        self._writer = Writer(path, clock=self._clock, watermarks=watermarks)
        # Two: a slow report must not keep the engine's own questions waiting.
        self._reader = Reader(path, name="engine")
        self._reports = Reader(path, name="report")
        self._forgetting = tenants.Forgetting()
        self._dropping = unique.Dropping()

    async def open(self) -> None:
        await in_new_thread(self._writer.open)

    async def close(self) -> None:
        await in_new_thread(self._close)

    def _close(self) -> None:
        self._reader.close()
        self._reports.close()
        self._writer.close()
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        return self._writer.subscribe(callback)

    # ------------------------------------------------------------ enqueue

    async def insert_jobs(
        self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True
    ) -> list[InsertResult]:
        return await self._writer.submit(
            "insert_jobs", partial(insert.insert_jobs, jobs=jobs, whole=whole, admit=admit)
        )

    def visit(self, connection: object, *, blocking: bool) -> Visit:
        raise InvalidOptions(
            "connection=: to enqueue inside your own transaction needs the PostgreSQL store; on SQLite enqueue after "
            "your commit, with an idempotency key if you have to repeat it"
        )

    def finishing(self) -> AbstractAsyncContextManager[Finish]:
        raise HoldfastError(
            "current_job().transaction() needs the PostgreSQL store: on SQLite your data lives elsewhere, so effect "
            "and completion cannot commit together; make the effect idempotent instead"
        )

    async def cancel_jobs(self, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
        return await self._writer.submit("cancel_jobs", partial(waiting.cancel_jobs, job_ids=job_ids, reason=reason))

    async def endings(self, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
        return await self._reader.query(partial(inspect.endings, job_ids=job_ids))

    # ------------------------------------------------------------ leases

    async def register_worker(self, worker: NewWorker, *, lease_s: float) -> None:
        await self._writer.submit("register_worker", partial(workers.register_worker, worker=worker, lease_s=lease_s))

    async def renew_worker(
        self, worker: WorkerId, *, lease_s: float, held_for_s: float, lag_s: float | None = None
    ) -> Renewal:
        renew = partial(workers.renew_worker, worker=worker, lease_s=lease_s)
        return await self._writer.submit("renew_worker", partial(renew, held_for_s=held_for_s, lag_s=lag_s))

    async def claim_jobs(
        self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float, alone: bool = False
    ) -> Claim:
        take = claim.claim_alone if alone else claim.claim_jobs
        return await self._writer.submit("claim_jobs", partial(take, worker=worker, lanes=lanes), deadline_s=deadline_s)

    async def settle_jobs(
        self, worker: WorkerId, settlements: Sequence[Settlement], *, marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        return await self._writer.submit(
            "settle_jobs", partial(settle.settle_jobs, worker=worker, settlements=settlements, marks=marks)
        )

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
        report = partial(settle.record_progress, worker=worker, job_id=job_id, token=token)
        return await self._writer.submit("record_progress", partial(report, done=done, total=total, stage=stage))

    async def cancel_requests(self, worker: WorkerId) -> list[CancelRequest]:
        rows = await self._reader.query(
            lambda db: db.execute(workers.SQL["cancel_requests"], (worker.bytes,)).fetchall()
        )
        return [CancelRequest(UUID(bytes=job_id), token, reason) for job_id, token, reason in rows]

    async def hand_back_worker(
        self, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
    ) -> int:
        handing = partial(workers.hand_back_worker, worker=worker)
        return await self._writer.submit("hand_back_worker", partial(handing, cause=cause, why=why, suspects=suspects))

    async def claim_parked(
        self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str], deadline_s: float
    ) -> Claim:
        if not await self._reader.query(partial(claim.are_parked, tasks=tasks)):
            return Claim([], {})  # asked often, mostly for nothing: the one writer has better things to do
        take = partial(claim.claim_parked, worker=worker, lanes=lanes, tasks=tasks)
        return await self._writer.submit("claim_jobs", take, deadline_s=deadline_s)

    async def unpark_jobs(self, *, reason: str, keys: Sequence[str]) -> int:
        return await self._writer.submit("unpark_jobs", partial(workers.unpark_jobs, reason=reason, keys=keys))

    # ------------------------------------------------------------ upkeep

    async def now(self) -> float:
        return self._clock.now()

    async def promote_jobs(self, *, limit: int) -> Promotion:
        return await self._writer.submit("promote_jobs", partial(waiting.promote_jobs, limit=limit))

    async def expire_jobs(self, *, limit: int) -> int:
        return await self._writer.submit("expire_jobs", partial(waiting.expire_jobs, limit=limit))

    async def reap_workers(self, *, limit: int, as_of: float | None = None) -> Reaped:
        return await self._writer.submit("reap_workers", partial(workers.reap_workers, limit=limit, as_of=as_of))

    async def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
        prune = partial(ended.prune_jobs, keep_succeeded_s=keep_succeeded_s, keep_cancelled_s=keep_cancelled_s)
        return await self._writer.submit("prune_jobs", partial(prune, limit=limit))

    async def sweep(self, *, limit: int) -> Swept:
        sweep = partial(ended.sweep, limit=limit, tags=self._forgetting, uniques=self._dropping)
        swept, more = await self._writer.submit("sweep", sweep)
        while more:  # behind very many that nobody serves there may be one that somebody does
            unparked, more = await self._writer.submit("sweep", partial(serve.sweep_gates, limit=limit))
            swept = swept._replace(unparked=swept.unparked + unparked)
        return swept

    async def fold_depths(self, *, limit: int) -> int:
        return 0  # there is one writer, who keeps the depths themselves

    async def lead(self, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
        return await self._writer.submit("lead", partial(leader.lead, role=role, holder=holder, lease_s=lease_s))

    async def resign(self, role: str, holder: WorkerId) -> None:
        await self._writer.submit("resign", partial(leader.resign, role=role, holder=holder))

    async def leading(self, role: str) -> Lead | None:
        return await self._reports.query(partial(leader.leading, role=role, now=self._clock.now()))

    # ------------------------------------------------------------ dead letters

    async def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        return await self._writer.submit("replay_jobs", partial(ended.replay_jobs, job_ids=job_ids))

    async def edit_dead(self, job_id: JobId, *, payload: bytes, rekeyed: Rekeyed | None = None) -> bool:
        edit = partial(ended.edit_dead, job_id=job_id, payload=payload, rekeyed=rekeyed)
        return await self._writer.submit("edit_dead", edit)

    async def purge_dead(self, job_ids: Sequence[JobId]) -> int:
        return await self._writer.submit("purge_dead", partial(ended.purge_dead, job_ids=job_ids))

    # ------------------------------------------------------------ queues

    async def queue_settings(self) -> dict[str, QueueSettings]:
        self._writer.tenanted |= await self._reader.query(tenants.tenanted)
        return await self._reader.query(queues.queue_settings)

    async def set_queue(
        self, queue: str, settings: QueueSettings, *, only: Collection[str] | None = None, by: str = ""
    ) -> None:
        setting = partial(queues.set_queue, queue=queue, settings=settings, only=only, by=by)
        await self._writer.submit("set_queue", setting)

    async def purge_queue(self, queue: str, *, reason: str, limit: int) -> int:
        return await self._writer.submit(
            "purge_queue", partial(waiting.purge_queue, queue=queue, reason=reason, limit=limit)
        )

    # ------------------------------------------------------------ tenants

    async def tenant_weights(self) -> dict[str, float]:
        return await self._reader.query(tenants.weights)

    async def set_tenant_weight(self, tenant: str, weight: float | None, *, by: str = "") -> None:
        setting = partial(tenants.set_weight, tenant=tenant, weight=weight, by=by)
        await self._writer.submit("set_tenant_weight", setting)

    # ------------------------------------------------------------ flow control

    async def rules(self) -> Rules:
        return await self._reader.query(gates.read_rules)

    async def set_limit(
        self, name: str, *, size: int | None, pace: Pace | None, by: str, only: Collection[str] | None = None
    ) -> tuple[int | None, Pace | None]:
        setting = partial(rules.set_limit, name=name, size=size, pace=pace, by=by, only=only)
        return await self._writer.submit("set_limit", setting)

    async def set_paused(self, *, task: str | None = None, tenant: str | None = None, paused: bool, by: str) -> None:
        setting = partial(rules.set_paused, task=task, tenant=tenant, paused=paused, by=by)
        await self._writer.submit("set_paused", setting)

    async def routes(self) -> tuple[Rule, ...]:
        return await self._reader.query(routes.routes)

    async def set_route(
        self, pattern: str, *, queue: str | None, priority: int | None, by: str, only: Collection[str] | None = None
    ) -> Rerouted:
        setting = partial(routes.set_route, pattern=pattern, queue=queue, priority=priority, by=by, only=only)
        return await self._writer.submit("set_route", setting)

    async def breakers(self) -> list[BreakerInfo]:
        return await self._reports.query(partial(breakers.breakers, now=self._clock.now()))

    async def set_breaker(self, name: str, *, closed: bool, by: str) -> None:
        await self._writer.submit("set_breaker", partial(rules.set_breaker, name=name, closed=closed, by=by))

    async def set_breaker_figures(
        self, name: str, figures: BreakerFigures, *, by: str, only: Collection[str] | None = None
    ) -> BreakerFigures:
        setting = partial(rules.set_breaker_figures, name=name, figures=figures, by=by, only=only)
        return await self._writer.submit("set_breaker_figures", setting)

    async def gates(self, places: Sequence[Place] | None = None, *, limit: int = 500) -> list[GateInfo]:
        report = partial(gate_reports.gates, places=places, limit=limit, now=self._clock.now())
        return await self._reports.query(report)

    async def serve_gates(self, *, limit: int) -> Served:
        return await self._writer.submit("serve_gates", partial(serve.serve_gates, limit=limit))

    async def position(self, job_id: JobId) -> Position | None:
        return await self._reports.query(partial(moving.position, job_id=job_id))

    async def circumstances(self, job_id: JobId) -> Circumstances | None:
        return await self._reports.query(partial(circumstances.circumstances, job_id=job_id, now=self._clock.now()))

    async def move_jobs(self, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
        moving_them = partial(moving.move_jobs, job_ids=job_ids, queue=queue, priority=priority)
        return await self._writer.submit("move_jobs", moving_them)

    async def setting_changes(self, *, limit: int, before: int | None = None) -> list[SettingChange]:
        return await self._reports.query(partial(rules.setting_changes, limit=limit, before=before))

    # ------------------------------------------------------------ keys of the API

    async def add_api_key(self, key: ApiKey, *, by: str) -> bool:
        return await self._writer.submit("add_api_key", partial(api_keys.add_api_key, key=key, by=by))

    async def api_keys(self, key_ids: Sequence[str] | None = None) -> list[ApiKey]:
        return await self._reader.query(partial(api_keys.api_keys, key_ids=key_ids))

    async def rotate_api_key(self, key_id: str, digest: bytes, *, grace_s: float, by: str) -> ApiKey | None:
        rotate = partial(api_keys.rotate_api_key, key_id=key_id, digest=digest, grace_s=grace_s, by=by)
        return await self._writer.submit("rotate_api_key", rotate)

    async def revoke_api_key(self, key_id: str, *, by: str) -> ApiKey | None:
        return await self._writer.submit("revoke_api_key", partial(api_keys.revoke_api_key, key_id=key_id, by=by))

    async def note_key_uses(self, uses: Mapping[str, KeyUse]) -> None:
        await self._writer.submit("note_key_uses", partial(api_keys.note_key_uses, uses=uses))

    async def record_act(self, *, by: str, what: str, name: str, said: Mapping[str, Any]) -> None:
        await self._writer.submit("record_act", partial(api_keys.record_act, by=by, what=what, name=name, said=said))

    # ------------------------------------------------------------ reports

    async def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        return await self._reports.query(partial(inspect.job_infos, job_ids=job_ids))

    async def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None = None) -> JobPage:
        return await self._reports.query(partial(inspect.list_jobs, where=where, limit=limit, before=before))

    async def count_jobs(self, where: JobFilter, *, most: int | None = None) -> int:
        return await self._reports.query(partial(inspect.count_jobs, where=where, most=most))

    async def list_queues(self) -> list[QueueInfo]:
        return await self._reports.query(partial(queues.list_queues, now=self._clock.now()))

    async def queue_rates(self) -> dict[str, QueueRates]:
        return await self._reports.query(partial(queues.queue_rates, now=self._clock.now()))

    async def list_workers(self) -> list[WorkerInfo]:
        return await self._reports.query(queues.list_workers)
