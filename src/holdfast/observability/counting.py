"""Counts what happens in this process, from its events. Nothing is counted, and nothing costs, until it is attached."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from holdfast.observability import catalogue as c
from holdfast.observability.naming import OTHER, Names
from holdfast.observability.tally import Full, Tally
from holdfast.telemetry import events as e
from holdfast.telemetry import flow_events, process_events, transport_events
from holdfast.telemetry.hub import Telemetry

MOST_TASKS: Final = 200
MOST_QUEUES: Final = 100
#: A task may run in many queues: so many pairs have series of their own.
MOST_PAIRS: Final = 300
#: Reasons and classes are few, and an app's code chooses them.
MOST_REASONS: Final = 30

_MILLISECONDS_AT: Final = 80  # of a job's id, which begins with the time of its enqueue


class _Pair:
    """The series of one task in one queue, so that a job costs one look-up."""

    __slots__ = ("_labels", "_tally", "enqueued", "run", "settled", "started", "took", "wait", "waited")

    def __init__(self, tally: Tally, queue: str, task: str) -> None:
        self._tally = tally
        self._labels = queue, task
        self.settled: dict[str, int] = {}
        for outcome in ("succeeded", "retry", "dead") if task != OTHER else _OUTCOMES:
            self.outcome(outcome)
        self.enqueued = tally.series(c.ENQUEUED, queue, task)
        self.started = tally.series(c.STARTED, queue, task)
        self.run = tally.series(c.RUN, queue, task)
        self.wait = tally.series(c.WAIT, queue, task)
        self.took, self.waited = self.run + c.RUN.slots - 1, self.wait + c.WAIT.slots - 1

    def outcome(self, name: str) -> int:
        slot = self.settled[name] = self._tally.series(c.SETTLED, *self._labels, name)
        return slot


_OUTCOMES: Final = ("succeeded", "retry", "snooze", "handed_back", "crashed", "parked", "dead", "cancelled")


class Counting:
    """The numbers of one process; `attach` it to the events of one app."""

    def __init__(
        self,
        tally: Tally,
        *,
        known_task: Callable[[str], bool],
        now: Callable[[], float] = time.time,
    ) -> None:
        self.tally = tally
        self._numbers, self._lock = tally.numbers, tally.lock
        self.tasks = Names(MOST_TASKS, known=known_task)
        self.queues = Names(MOST_QUEUES)
        self._reasons = Names(MOST_REASONS)
        self._now = now
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._others = self._pairs[OTHER, OTHER] = _Pair(tally, OTHER, OTHER)  # there has to be room for these
        self._plain = {metric.name: tally.series(metric) for metric in _PLAIN}

    def attach(self, telemetry: Telemetry) -> Callable[[], None]:
        """Count from now on; returns what stops it."""
        heard: dict[type[e.Event], Callable[..., None]] = {
            e.JobEnqueued: self._enqueued,
            e.JobStarted: self._started,
            e.JobSettled: self._settled,
            e.JobRetried: lambda event: self._add(c.RETRIED, self.tasks(event.task), self._reasons(event.error_class)),
            e.JobBuried: lambda event: self._add(c.DEAD, self.tasks(event.task), self._reasons(event.reason)),
            e.JobParked: lambda event: self._add(c.PARKED, self._reasons(event.reason)),
            e.JobLost: self._adder(c.LOST),
            e.JobOverdue: self._adder(c.OVERDUE),
            e.JobsPromoted: lambda event: self._count(c.PROMOTED, event.count),
            e.JobsPruned: lambda event: self._count(c.PRUNED, event.count),
            e.JobsSwept: lambda event: self._count(c.SWEPT, sum(event.counts.values())),
            e.WorkersReaped: self._reaped,
            e.LeadTaken: self._adder(c.LEADS),
            e.ClockDisagrees: self._adder(c.CLOCK),
            e.QueueClosed: lambda event: self._add(c.CLOSED, self.queues(event.queue)),
            e.QueueRefused: lambda event: self._add(c.REFUSED, self.queues(event.queue), event.why),
            e.QueueRetriesStretched: lambda event: self._add(c.STRETCHED, self.queues(event.queue)),
            flow_events.BreakerOpened: self._adder(c.BREAKERS),
            e.WorkerLeaseLost: self._adder(c.LEASES_LOST),
            e.WorkerBlocked: self._adder(c.BLOCKED),
            e.ServiceCrashed: self._adder(c.SERVICES),
            e.StoreDown: self._adder(c.STORE_LOST),
            transport_events.TransportDown: self._adder(c.TRANSPORT_LOST),
            process_events.ProcessDied: self._adder(c.DIED),
            process_events.ProcessKilled: self._adder(c.KILLED),
            process_events.ProcessHandedBack: lambda event: self._count(c.HANDED_BACK, event.jobs),
        }
        detaching = [telemetry.attach(count, only=kind) for kind, count in heard.items()]

        def detach() -> None:
            for each in detaching:
                each()

        return detach

    def lag(self, seconds: float) -> None:
        """The event loop was late by so much."""
        self.tally.observe(self._plain[c.LAG.name], c.LAGS, seconds)

    # ------------------------------------------------------------ every job

    def _enqueued(self, event: e.JobEnqueued) -> None:
        pair = self._pairs.get((event.queue, event.task)) or self._pair(event.queue, event.task)
        self.tally.add(pair.enqueued)

    # These two come with every job, so each takes the lock once, and calls hardly anything.

    def _started(self, event: e.JobStarted) -> None:
        pair = self._pairs.get((event.queue, event.task)) or self._pair(event.queue, event.task)
        numbers = self._numbers
        if event.attempt > 1:
            with self._lock:
                numbers[pair.started] += 1.0
            return
        waited_s = max(0.0, self._now() - (event.job_id.int >> _MILLISECONDS_AT) / 1000)
        bucket = pair.wait + bisect_left(c.SECONDS, waited_s)
        with self._lock:
            numbers[pair.started] += 1.0
            numbers[bucket] += 1.0
            numbers[pair.waited] += waited_s

    def _settled(self, event: e.JobSettled) -> None:
        pair = self._pairs.get((event.queue, event.task)) or self._pair(event.queue, event.task)
        slot = pair.settled.get(event.outcome)
        if slot is None:
            slot = self._outcome(pair, event.outcome)
        numbers, took_s = self._numbers, event.duration_s
        bucket = pair.run + bisect_left(c.SECONDS, took_s)
        with self._lock:
            numbers[slot] += 1.0
            numbers[bucket] += 1.0
            numbers[pair.took] += took_s

    def _pair(self, queue: str, task: str) -> _Pair:
        """Kept under the names that came only where these are the labels: others may be without number."""
        labels = self.queues(queue), self.tasks(task)
        pair = self._pairs.get(labels)
        if pair is None:
            if len(self._pairs) > MOST_PAIRS:
                return self._others
            try:
                pair = _Pair(self.tally, *labels)
            except Full:
                return self._others
            self._pairs[labels] = pair
        return pair

    def _outcome(self, pair: _Pair, outcome: str) -> int:
        try:
            return pair.outcome(outcome)
        except Full:
            return self._others.settled[outcome]

    # ------------------------------------------------------------ what is rarer

    def _reaped(self, event: e.WorkersReaped) -> None:
        self._count(c.REAPED_WORKERS, len(event.workers))
        self._count(c.REAPED_JOBS, event.jobs)

    def _adder(self, metric: c.Metric) -> Callable[[object], None]:
        slot, add = self._plain[metric.name], self.tally.add
        return lambda event: add(slot)

    def _count(self, metric: c.Metric, amount: float) -> None:
        self.tally.add(self._plain[metric.name], amount)

    def _add(self, metric: c.Metric, *labels: str) -> None:
        try:
            slot = self.tally.series(metric, *labels)
        except Full:
            return
        self.tally.add(slot)


_PLAIN: Final = tuple(
    metric
    for metric in c.CATALOGUE
    if metric.source is c.Source.PROCESS and not metric.labels and metric.kind is not c.Kind.GAUGE
)
