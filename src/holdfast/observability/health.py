"""Whether a process lives, and whether what it needs is there: plain values, for whoever serves or prints them.

Live means only that the event loop answers: whoever restarts what is not live must not do so because a database is
away. Ready means that the process can do its work now. What only makes the work slower, or is another process's
business (Redis, the leader, workers), is `degraded` and does not make it unready.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from holdfast.app import Holdfast
from holdfast.core.errors import HoldfastError
from holdfast.core.queue import QueueInfo
from holdfast.core.shown import counted
from holdfast.core.urls import mask
from holdfast.observability.cluster import Away, Cluster, ClusterView
from holdfast.observability.views import transport_is_up, view_of
from holdfast.stores.status import StoreStatus

#: A schema changes with a deploy: it need not be looked at every second.
_SCHEMA_FRESH_S: Final = 30.0
#: So many queues are named, those with the most ready jobs first.
_MOST_QUEUES: Final = 100


class Status(StrEnum):
    """What a check found."""

    OK = "ok"
    DEGRADED = "degraded"
    """Worth a look; the process can work all the same."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """All checks, by name; `queues` are those of workers, by queue."""

    checks: Mapping[str, Check]
    queues: Mapping[str, Check] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether nothing has failed."""
        return all(check.status is not Status.FAILED for check in self.checks.values())

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ready": self.ready,
            "checks": {name: _data(check) for name, check in self.checks.items()},
            "queues": {name: _data(check) for name, check in self.queues.items()},
        }


def _data(check: Check) -> dict[str, str]:
    return {"status": str(check.status), "reason": check.reason}


def ok(reason: str) -> Check:
    return Check(Status.OK, reason)


def degraded(reason: str) -> Check:
    return Check(Status.DEGRADED, reason)


def failed(reason: str) -> Check:
    return Check(Status.FAILED, mask(reason))


async def liveness() -> dict[str, str]:
    """Answers where the event loop runs, and looks at nothing else."""
    return {"status": "ok"}


class Examiner:
    """Looks at what a process needs; keeps what it saw for a moment, so that many who ask cost no more than one."""

    def __init__(
        self,
        view: ClusterView,
        *,
        status: Callable[[], Awaitable[StoreStatus]],
        transport: Callable[[], bool | None],
        is_private: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._status = status
        self._transport = transport
        self._is_private = is_private
        self._monotonic = monotonic
        self._schema: Check | None = None
        self._schema_s = 0.0

    async def examine(self) -> Readiness:
        """Everything, as it is about now."""
        seen = await self._view.look()
        checks = {"transport": self._transport_check()}
        if isinstance(seen, Away):
            unknown = degraded("not known while the store is away")
            checks |= {"store": failed(seen.why), "schema": unknown, "leader": unknown, "workers": unknown}
            return Readiness(_sorted(checks))
        checks |= {"store": ok("answers"), "schema": await self._schema_check(), "leader": _leader(seen)}
        queues = dict(_queue_checks(seen))
        checks["workers"] = _workers(seen, queues)
        return Readiness(_sorted(checks), queues)

    def _transport_check(self) -> Check:
        match self._transport():
            case None:
                return ok("none is configured")
            case True:
                return ok("Redis is used")
            case False:
                return degraded("Redis is not used now: work comes from the store alone")

    async def _schema_check(self) -> Check:
        if self._is_private:
            return ok("private to this process")
        if self._schema is None or self._monotonic() - self._schema_s >= _SCHEMA_FRESH_S:
            try:
                found = await self._status()
            except HoldfastError as error:
                return failed(str(error))
            self._schema, self._schema_s = _schema(found), self._monotonic()
        return self._schema


def _schema(found: StoreStatus) -> Check:
    if found.pending:
        return failed(f"version {found.schema}, and this program needs {found.newest}: run `holdfast migrate`")
    newer = f"; this program knows {found.newest}" if found.schema > found.newest else ""
    return ok(f"version {found.schema}{newer}")


def _leader(seen: Cluster) -> Check:
    if seen.term is None:
        return degraded("nobody leads the upkeep: nothing old is pruned until a worker does")
    return ok(f"somebody leads, term {seen.term}")


def _queue_checks(seen: Cluster) -> Iterator[tuple[str, Check]]:
    for queue in sorted(seen.queues, key=lambda each: (-each.ready, each.name))[:_MOST_QUEUES]:
        yield queue.name, _queue(queue, seen.workers_of(queue.name))


def _queue(queue: QueueInfo, workers: int) -> Check:
    served = f"{counted(workers, 'worker')}, {queue.ready} ready"
    if queue.settings.paused:
        return ok(f"paused; {served}")
    if not workers and queue.ready:
        return degraded(f"no worker serves it, and {counted(queue.ready, 'job')} {_are(queue.ready)} ready")
    return ok(served)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _workers(seen: Cluster, queues: Mapping[str, Check]) -> Check:
    count = len(seen.workers)
    idle = [name for name, check in queues.items() if check.status is not Status.OK]
    if idle:
        return degraded(f"{count} live; no worker serves {', '.join(idle[:5])}{', …' if len(idle) > 5 else ''}")
    return ok(f"{count} live")


def _sorted(checks: dict[str, Check]) -> dict[str, Check]:
    return dict(sorted(checks.items()))


_examiners: weakref.WeakKeyDictionary[Holdfast, Examiner] = weakref.WeakKeyDictionary()


async def readiness(hf: Holdfast) -> Readiness:
    """Whether this process can do its work now, and what keeps it; asked often, it looks about once a second."""
    examiner = _examiners.get(hf)
    if examiner is None:
        app = weakref.proxy(hf)
        examiner = _examiners[hf] = Examiner(
            view_of(hf),
            status=lambda: app.store_status(),
            transport=lambda: transport_is_up(app),
            is_private=hf.config.url == ":memory:",
        )
    return await examiner.examine()
