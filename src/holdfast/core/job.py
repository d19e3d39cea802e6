"""What is known of a job: the request to store (`NewJob`), a run to do (`ClaimedJob`), a report (`JobInfo`).

Values only. NamedTuples on the hot path: they are immutable, cheap to make, and bind to SQL as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.core.error_words import fingerprint_of
from holdfast.core.state import State

JobId = UUID
WorkerId = UUID


class LimitSlot(NamedTuple):
    """At most `size` jobs with this `key` run at once; a slot row is taken in the claim's transaction."""

    key: str
    size: int


class KeyClaim(NamedTuple):
    """An idempotency key, scoped to the job's tenant; the fingerprint is task and arguments."""

    key: str
    fingerprint: bytes
    window_s: float


class NewJob(NamedTuple):
    """One request to enqueue, complete and encoded. The id is made by the client, so repeating is safe."""

    id: JobId
    task: str
    queue: str
    priority: int
    payload: bytes
    tenant: str = ""
    options: bytes | None = None
    """What the call overrides for its run (limits of time, retry policy), as JSON."""
    max_attempts: int | None = None
    """None: the policy of the task as the worker knows it."""
    tags: tuple[str, ...] = ()
    metadata: bytes | None = None
    headers: bytes | None = None
    delay_s: float | None = None
    """Relative to the store's clock; exclusive with `run_at`."""
    run_at: float | None = None
    expires_in_s: float | None = None
    expires_at: float | None = None
    key: KeyClaim | None = None
    waits_for: tuple[JobId, ...] = ()
    """Ids that must end before this job is released from `blocked`."""
    limit: LimitSlot | None = None


class ClaimedJob(NamedTuple):
    """One run to do, under one token. `task` is None where the body is gone, which is an ending, not silence."""

    id: JobId
    token: int
    attempt: int
    task: str | None
    queue: str
    priority: int
    payload: bytes | None
    options: bytes | None
    max_attempts: int | None
    tenant: str
    alone: bool
    headers: bytes | None = None


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What is kept of an exception: text only, never a pickled object."""

    type: str
    message: str
    traceback: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for the same failure, whatever numbers and names its message holds; empty where nothing failed."""
        return fingerprint_of(self.type, self.message, self.traceback)


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One run that did not succeed, or was lost, with its cause."""

    number: int
    token: int
    cause: str
    error: ErrorInfo | None
    worker: str | None
    started_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come; the last one reported is kept after the job's end."""

    done: float
    total: float | None
    at: datetime

    @property
    def fraction(self) -> float | None:
        return None if not self.total else min(1.0, self.done / self.total)


@dataclass(frozen=True, slots=True)
class JobInfo:
    """All that can be told of a job, read in one statement."""

    id: JobId
    task: str
    queue: str
    priority: int
    tenant: str
    state: State
    attempt: int
    max_attempts: int | None
    created_at: datetime
    run_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    expires_at: datetime | None = None
    worker: str | None = None
    progress: Progress | None = None
    stage: str | None = None
    result: Any = None
    error: ErrorInfo | None = None
    attempts: tuple[AttemptInfo, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    reason: str | None = None
    """Why it is parked, cancelled or dead."""
    cancel_requested: bool = False
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None
