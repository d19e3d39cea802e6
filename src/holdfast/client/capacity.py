"""What workers and lanes mean for one ready job: whether a slot is free for it, who is preferred, its share. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.explanation import Reason
from holdfast.core.job import JobInfo
from holdfast.core.queue import MOST_COUNTED, QueueInfo, share_of
from holdfast.core.worker import WorkerInfo
from holdfast.stores.flow import NOTHING_LATELY, STILL_S, Lately


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun and what follows it; as reports count, which stop at some number."""
    return f"{count:,}{'+' if count >= MOST_COUNTED else ''} {one if count == 1 else many}"


def living(workers: Sequence[WorkerInfo], *, now: float) -> list[WorkerInfo]:
    """Whose lease has run out claims nothing, also while nobody has reaped it."""
    return [worker for worker in workers if worker.lease_until.timestamp() > now]


def serving(workers: Sequence[WorkerInfo], queue: str) -> list[WorkerInfo]:
    """Those who claim from a queue."""
    return [worker for worker in workers if not worker.queues or queue in worker.queues]


class Capacity:
    """For one job, of those who serve its queue."""

    def __init__(
        self,
        info: JobInfo,
        *,
        workers: Sequence[WorkerInfo],
        queues: Mapping[str, QueueInfo],
        bound: int | None = None,
        alone: bool = False,
        waited_s: float = 0.0,
        lately: Lately = NOTHING_LATELY,
    ) -> None:
        """`bound`: jobs of its queue that each of them runs at once, as operators or the settings here say."""
        self._info = info
        self._workers = workers
        self._queues = queues
        self._bound = bound
        self._alone = alone
        self._waited_s = waited_s
        self._lately = lately
        own = queues.get(info.queue)
        self.queue_running = 0 if own is None else own.running

    @property
    def free(self) -> int:
        """Slots in which nothing runs; for a job that must run alone, workers that run nothing."""
        if self._alone:
            return sum(not worker.running for worker in self._workers)
        return sum(max(0, worker.concurrency - worker.running) for worker in self._workers)

    def hindrances(self) -> Iterator[Reason]:
        """Why nobody takes it although somebody serves its queue."""
        yield from self._last()
        yield from self._busy()

    # ------------------------------------------------------------ slots

    def _busy(self) -> Iterator[Reason]:
        if not self._workers:
            return
        slots, running = sum(each.concurrency for each in self._workers), sum(each.running for each in self._workers)
        data: dict[str, Any] = {"workers": len(self._workers), "slots": slots, "running": running}
        whose = f"the {counted(len(self._workers), 'worker that serves', 'workers that serve')} it"
        if not self.free:
            taken = "the only slot" if slots == 1 else f"all {slots:,} slots"
            sentence = f"{taken} of {whose} {'is' if slots == 1 else 'are'} taken"
            if self._alone:
                sentence = f"it has to run alone, and none of {whose} is idle"
            yield Reason("workers_busy", sentence, data)
            return
        name = f"queue {self._info.queue!r}"
        data |= {"queue": self._info.queue, "queue_running": self.queue_running, "bound": self._bound}
        if self._bound is not None and self.queue_running >= self._most(self._bound):
            where = whose if len(self._workers) == 1 else f"each of {whose}"
            sentence = (
                f"as many jobs of {name} run as may at once, {self.queue_running:,}: at most {self._bound:,} in "
                f"{where} (concurrency of the queue)"
            )
            yield Reason("workers_busy", sentence, data)
        elif self.queue_running and self._passed_over:
            leave = "has free slots and leaves it" if len(self._workers) == 1 else "have free slots and leave it"
            sentence = (
                f"{whose} {leave}, as where only so many jobs of {name} may run at once (concurrency of the queue): "
                f"{self.queue_running:,} of them {'runs' if self.queue_running == 1 else 'run'}"
            )
            yield Reason("workers_busy", sentence, data)

    def _most(self, bound: int) -> int:
        return sum(min(bound, worker.concurrency) for worker in self._workers)

    @property
    def _passed_over(self) -> bool:
        """Whether a slot was free for as long as it takes to claim. Every end of a run frees one for a moment."""
        return self._waited_s >= STILL_S and self.free > self._lately.stirred

    @property
    def may_start_now(self) -> bool:
        """Whether somebody is free who takes it at once: nothing speaks against it."""
        return self.free > 0 and not self.queue_running and self._waited_s < STILL_S

    # ------------------------------------------------------------ lanes

    @property
    def weightless(self) -> bool:
        """Whether its lane is served only when nothing else is ready."""
        queue = self._queues.get(self._info.queue)
        return queue is not None and not share_of(queue.settings, self._info.priority)

    def _last(self) -> Iterator[Reason]:
        """Every worker that serves it has something better to do."""
        if not self.weightless or not self._workers:
            return
        others: dict[tuple[str, int], int] = {}
        for worker in self._workers:
            lanes = {
                lane: ready
                for lane, (weight, ready) in self._lanes().items()
                if weight and ready and (not worker.queues or lane[0] in worker.queues)
            }
            if not lanes:
                return
            others |= lanes
        ready = sum(others.values())
        sentence = (
            "its lane has weight 0: it starts only when nothing else is ready, and "
            f"{counted(ready, 'job of another lane is', 'jobs of other lanes are')}"
        )
        yield Reason("comes_last", sentence, {"ready_elsewhere": ready})

    def share(self) -> float | None:
        """The part of all starts that its lane gets while the same lanes have ready jobs; None while it is paused."""
        queue = self._queues.get(self._info.queue)
        if queue is not None and queue.settings.paused:
            return None
        own = (self._info.queue, self._info.priority)
        weights = {lane: weight for lane, (weight, ready) in self._lanes().items() if ready or lane == own}
        if not any(weights.values()):  # among themselves, those of weight 0 are equal
            weights = dict.fromkeys(weights, 1.0)
        return weights[own] / sum(weights.values()) if own in weights else 1.0

    def _lanes(self) -> dict[tuple[str, int], tuple[float, int]]:
        """Weight and ready jobs of the lanes that may be started from."""
        found = {
            (queue.name, priority): (share_of(queue.settings, priority), ready)
            for queue in self._queues.values()
            for priority, ready in queue.by_priority.items()
            if not queue.settings.paused
        }
        own = self._queues.get(self._info.queue)
        if own is not None and not own.settings.paused:
            weight = share_of(own.settings, self._info.priority)
            found.setdefault((self._info.queue, self._info.priority), (weight, 0))
        return found
