"""The events of processes: workers under a supervisor, and isolates. `events` has them together with all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

# Worker processes under a supervisor


@dataclass(frozen=True, slots=True)
class ProcessReady:
    """A worker process has everything imported and open, and works or stands by."""

    name: ClassVar[str] = "process.ready"
    pid: int
    after_s: float


@dataclass(frozen=True, slots=True)
class ProcessFailed:
    """A worker process ended before it was ready, or could not be started; it is tried again after a while."""

    name: ClassVar[str] = "process.failed"
    why: str
    again_s: float


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The supervisor ends a worker process that no longer does what it must."""

    name: ClassVar[str] = "process.killed"
    pid: int
    why: str


@dataclass(frozen=True, slots=True)
class ProcessDied:
    """A worker process has ended unasked; its jobs are handed back at once."""

    name: ClassVar[str] = "process.died"
    pid: int
    why: str
    running: int


@dataclass(frozen=True, slots=True)
class ProcessHandedBack:
    """The jobs of a worker process that died wait at their old places again."""

    name: ClassVar[str] = "process.handed_back"
    pid: int
    jobs: int


@dataclass(frozen=True, slots=True)
class ProcessLeftWaiting:
    """The store did not answer for longer than a lease lasts: other workers, or its own lease, see to its jobs."""

    name: ClassVar[str] = "process.left_waiting"
    pid: int
    why: str


@dataclass(frozen=True, slots=True)
class ProcessReplaced:
    """A worker process ends when what it runs has ended; another one has taken its place, or none is needed."""

    name: ClassVar[str] = "process.replaced"
    pid: int
    why: str


@dataclass(frozen=True, slots=True)
class ProcessTold:
    """Somebody asked what the worker processes are doing: one line of the supervisor's answer."""

    name: ClassVar[str] = "process.told"
    line: str


# Isolates


@dataclass(frozen=True, slots=True)
class IsolateNotStarted:
    """No process for isolated tasks could be started here; the next start is tried after `pause_s`."""

    name: ClassVar[str] = "isolate.not_started"
    error: str
    pause_s: float
