"""What is known of a job: the request to store (`NewJob`), a run to do (`ClaimedJob`), a report (`JobInfo`).

Values only. NamedTuples on the hot path: they are immutable, cheap to make, and bind to SQL as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from holdfast.core.error_words import fingerprint_of
from holdfast.core.gates import Gate
from holdfast.core.state import State
from holdfast.core.unique import UniqueClaim

JobId = UUID
WorkerId = UUID


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
    gates: tuple[Gate, ...] = ()
    """What each of its runs has to pass."""
    unique: UniqueClaim | None = None


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


CLASS_LINE: Final = "error class: "
"""How the last line of a traceback begins that tells the error's class."""
PUT_OFF_LINE: Final = "retry budget: put off by "
"""How the line before it begins where the retry waits longer than by itself, because of its queue's retry budget."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What is kept of an exception: text only, never a pickled object."""

    type: str
    """As in `ConnectionError` or `shop.bank.CardRefused`."""
    message: str
    """What `str(exception)` said."""
    traceback: str = ""
    """The lines of its traceback."""

    @property
    def fingerprint(self) -> str:
        """The same for the same failure, whatever numbers and names its message holds; empty where nothing failed."""
        return fingerprint_of(self.type, self.message, self.traceback)

    @property
    def error_class(self) -> str:
        """The row of the table of errors that decided what follows, as in `transient`; empty where none was asked."""
        last = self.traceback.rstrip("\n").rpartition("\n")[2]
        return last.removeprefix(CLASS_LINE) if last.startswith(CLASS_LINE) else ""

    @property
    def put_off(self) -> str:
        """By how much its queue's retry budget has put off the retry, as in `41.2 s`; empty where it has not."""
        for line in self.traceback.rstrip("\n").split("\n")[-2:]:
            if line.startswith(PUT_OFF_LINE):
                return line.removeprefix(PUT_OFF_LINE)
        return ""

    def put_off_by(self, seconds: float) -> ErrorInfo:
        """The same with the line that says it; the class stays the last one."""
        trace, said = self.traceback, f"{PUT_OFF_LINE}{seconds:.1f} s\n"
        if trace and not trace.endswith("\n"):
            trace += "\n"
        at = len(trace) - len(f"{CLASS_LINE}{self.error_class}\n") if self.error_class else len(trace)
        return replace(self, traceback=trace[:at] + said + trace[at:])


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One run that did not succeed, or was lost, with its cause."""

    number: int
    """Which attempt it was; runs that are not counted share the number of the one that is."""
    token: int
    """Grows with every run of every job in the store."""
    cause: str
    """Why there was, or will be, another run (`retry`, `snooze`, `lease_expired`, `replay`, …), or how it ended."""
    error: ErrorInfo | None
    """What it raised, if anything."""
    worker: str | None
    """The id of the worker that ran it."""
    started_at: datetime | None
    """When it began."""
    ended_at: datetime
    """When it ended, or was found to be lost."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come; the last one reported is kept after the job's end."""

    done: float
    """How much is done."""
    total: float | None
    """Of how much; None where that is not known."""
    at: datetime
    """When it was reported."""

    @property
    def fraction(self) -> float | None:
        """From 0 to 1; None without a total."""
        return None if not self.total else min(1.0, self.done / self.total)


@dataclass(frozen=True, slots=True)
class JobInfo:
    """All that can be told of a job, read in one statement. Times are in UTC."""

    id: JobId
    """The job's id, a UUID."""
    task: str
    """The name of its task."""
    queue: str
    """The queue that it waits, or waited, in."""
    priority: int
    """0 to 9, 9 is the most urgent."""
    tenant: str
    """On whose behalf; empty for nobody's."""
    state: State
    """Where it is."""
    attempt: int
    """The attempt that runs or was the last; 0 before the first."""
    max_attempts: int | None
    """Attempts that it may have; None where only its task, which is not known here, says it."""
    created_at: datetime
    """When it was enqueued."""
    run_at: datetime | None = None
    """When it may start, if it waits for a time."""
    started_at: datetime | None = None
    """When its last run began."""
    ended_at: datetime | None = None
    """When it ended."""
    expires_at: datetime | None = None
    """If it has not started by then, it is cancelled."""
    worker: str | None = None
    """The id of the worker that runs it, or ran it last."""
    progress: Progress | None = None
    """What the task last reported."""
    stage: str | None = None
    """The word that the task last reported with its progress."""
    result: Any = None
    """What the task returned, as plain JSON; `JobHandle.result` gives it in the task's own type."""
    error: ErrorInfo | None = None
    """The error that made it dead, else that of its latest failed run."""
    attempts: tuple[AttemptInfo, ...] = ()
    """Every run that did not succeed, oldest first."""
    tags: tuple[str, ...] = ()
    """As they were given."""
    metadata: dict[str, Any] | None = None
    """As it was given."""
    reason: str | None = None
    """Why it is parked, cancelled or dead."""
    waits_at: str | None = None
    """Of a parked job: what it waits for under that reason, as the key of its limit or the name of its breaker."""
    cancel_requested: bool = False
    """Whether it runs and was asked to stop."""
    args: tuple[Any, ...] = ()
    """Its arguments by place, as plain JSON."""
    kwargs: dict[str, Any] | None = None
    """Its arguments by name, as plain JSON."""
