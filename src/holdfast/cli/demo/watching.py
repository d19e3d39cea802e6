"""Watches the demonstration through the public interface: a subscriber of events that can be asked for a picture."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.app import Holdfast
from holdfast.cli.demo.telling import told
from holdfast.core.job import JobInfo
from holdfast.core.queue import QueueInfo
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo
from holdfast.telemetry.events import Event, JobBuried, JobEnqueued, JobRetried, JobSettled, WorkersReaped

_KEPT_NEWS = 200
_KEPT_SECONDS = 40
_LISTED = 50
_OF_INTEREST = (State.RUNNING, State.SCHEDULED, State.DEAD)


class News(NamedTuple):
    """Something worth a line."""

    number: int
    """Counts from 1, so that a reader knows what is new."""
    at_s: float
    name: str
    sentence: str
    fields: Mapping[str, Any]


class Tally(NamedTuple):
    """What has happened so far, as this process has heard of it."""

    enqueued: int = 0
    succeeded: int = 0
    retried: int = 0
    dead: int = 0
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One picture of everything."""

    at_s: float
    now: float
    """The wall clock, for what is due when."""
    url: str
    queues: tuple[QueueInfo, ...]
    running: tuple[JobInfo, ...]
    """Oldest first."""
    retrying: tuple[JobInfo, ...]
    """Soonest first."""
    dead: tuple[JobInfo, ...]
    """Newest first."""
    workers: tuple[WorkerInfo, ...]
    per_second: tuple[int, ...]
    """Jobs that succeeded in each of the last whole seconds, oldest first."""
    tally: Tally
    news: tuple[News, ...]
    draining: bool = False


class Watcher:
    """Attach it to the app's telemetry; ask it for a snapshot as often as you like."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._per_second: Counter[int] = Counter()
        self._news: deque[News] = deque(maxlen=_KEPT_NEWS)

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    @property
    def tally(self) -> Tally:
        """What has been counted so far."""
        return Tally(**{name: self._counts[name] for name in Tally._fields})

    def __call__(self, event: Event) -> None:
        """Count an event, and keep it if it is worth a line."""
        match event:
            case JobEnqueued():
                self._counts["enqueued"] += 1
            case JobSettled(outcome="succeeded"):
                self._counts["succeeded"] += 1
                self._per_second[int(self.elapsed_s)] += 1
            case JobRetried():
                self._counts["retried"] += 1
            case JobBuried():
                self._counts["dead"] += 1
            case WorkersReaped():
                self._counts["recovered"] += event.jobs
            case _:
                pass
        if sentence := told(event):
            self.tell(event.name, sentence, dataclasses.asdict(event))

    def tell(self, name: str, sentence: str, fields: Mapping[str, Any] | None = None) -> None:
        """Add a piece of news that no event brings."""
        self._counts["news"] += 1
        self._news.append(News(self._counts["news"], self.elapsed_s, name, sentence, fields or {}))

    async def snapshot(self, *, draining: bool = False) -> Snapshot:
        """Everything as it is now."""
        hf = self._hf
        running, scheduled, dead = [await hf.jobs.list(state=state, limit=_LISTED) for state in _OF_INTEREST]
        retrying = [job for job in scheduled if job.attempts]
        at_s = self.elapsed_s
        this_second = int(at_s)
        first = max(0, this_second - _KEPT_SECONDS)
        return Snapshot(
            at_s=at_s,
            now=time.time(),
            url=hf.config.url,
            queues=tuple(await hf.queues.list()),
            running=tuple(sorted(running, key=lambda job: (job.progress is None, job.id))),
            retrying=tuple(sorted(retrying, key=lambda job: (job.run_at is None, job.run_at))),
            dead=tuple(dead),
            workers=tuple(await hf.workers.list()),
            per_second=tuple(self._per_second[second] for second in range(first, this_second)),
            tally=self.tally,
            news=tuple(self._news),
            draining=draining,
        )
