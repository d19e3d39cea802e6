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
    """Made at random at every start."""
    host: str
    """The machine that it runs on."""
    pid: int
    """Its process there."""
    concurrency: int
    """Jobs that it runs at once, at most."""
    queues: tuple[str, ...]
    """The queues that it serves; empty: every queue."""
    started_at: datetime
    """When it registered."""
    lease_until: datetime
    """Without another heartbeat by then, its jobs go to others."""
    running: int
    """Jobs that it runs now."""
    lag_s: float = 0.0
    """Seconds that its event loop last took to answer; 0 while that is hardly anything."""
