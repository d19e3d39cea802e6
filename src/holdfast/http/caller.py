"""Who asks, and what of the jobs and queues is his to see and to touch. Denies whatever nobody has allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from holdfast.core.api_key import ApiKey, Scope
from holdfast.core.errors import JobNotFound
from holdfast.core.job import JobInfo
from holdfast.http.problem import Problem
from holdfast.http.problems import FORBIDDEN


class Reach(Enum):
    """What a route is about, and so which keys it is closed to."""

    NOTHING = auto()
    """Nobody's: as the list of tasks."""
    JOBS = auto()
    """Jobs; of a key that is bound to queues or a tenant, only theirs."""
    QUEUE = auto()
    """The queue that the path names, or all of them; a tenant's key knows nothing of what others have there."""
    CLUSTER = auto()
    """Everybody's; not for a key that is bound to anything."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever came with a key, or was let in without one."""

    name: str
    """For the record of changes."""
    scopes: frozenset[Scope]
    queues: frozenset[str] | None = None
    tenant: str | None = None

    @classmethod
    def with_key(cls, key: ApiKey) -> Caller:
        return cls(f"key {key.id} ({key.name})", key.scopes, key.queues, key.tenant)

    @property
    def reads_payloads(self) -> bool:
        """Whether he may see what callers and tasks wrote into jobs."""
        return Scope.READ_PAYLOAD in self.scopes

    def require(self, scope: Scope, reach: Reach, path: dict[str, Any]) -> None:
        """Refuse him here, before anything is looked up."""
        if scope not in self.scopes:
            raise Problem(FORBIDDEN, f"this needs a key with the scope {scope!s}", more={"scope": str(scope)})
        if reach is Reach.CLUSTER and (self.queues is not None or self.tenant is not None):
            raise Problem(FORBIDDEN, "this concerns everybody, and the key is bound to a queue or a tenant")
        if reach is Reach.QUEUE:
            if self.tenant is not None:
                raise Problem(FORBIDDEN, "this concerns all tenants of a queue, and the key is bound to one")
            if (queue := path.get("queue")) is not None:
                self.check_queue(queue)

    def check_queue(self, queue: str) -> None:
        """Refuse him where the queue is not his."""
        if self.queues is not None and queue not in self.queues:
            raise Problem(FORBIDDEN, f"the key is not for queue {queue!r}", field="queue")

    def check_tenant(self, tenant: str) -> None:
        """Refuse him where the tenant is not his."""
        if self.tenant is not None and tenant != self.tenant:
            raise Problem(FORBIDDEN, "the key is bound to another tenant", field="tenant")

    def sees(self, job: JobInfo) -> bool:
        """Whether the job is his to see and to touch."""
        return (self.tenant is None or job.tenant == self.tenant) and (self.queues is None or job.queue in self.queues)

    def his(self, job: JobInfo | None, job_id: object) -> JobInfo:
        """The job; somebody else's is as if it were not there, so that ids tell nothing."""
        if job is None or not self.sees(job):
            raise JobNotFound(job_id)
        return job

    def narrowed(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        """The same filters, made to match only what is his: one set for each of his queues. None: nothing is."""
        if self.tenant is not None:
            if filters.get("tenant") not in (None, self.tenant):
                return []
            filters = filters | {"tenant": self.tenant}
        if self.queues is None:
            return [filters]
        asked = filters.get("queue")
        queues: Iterable[str] = sorted(self.queues) if asked is None else self.queues & {asked}
        return [filters | {"queue": queue} for queue in queues]
