"""A worker as the store knows it: one process, one random identity per start, one lease."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.core.job import WorkerId


@dataclass(frozen=True, slots=True)
class NewWorker:
    """What a worker says of itself when it registers."""

    id: WorkerId
    host: str
    pid: int
    concurrency: int
    queues: tuple[str, ...] = ()
    """Empty: every queue."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A registered worker, with what it runs now."""

    id: WorkerId
    host: str
    pid: int
    concurrency: int
    queues: tuple[str, ...]
    started_at: datetime
    lease_until: datetime
    running: int
