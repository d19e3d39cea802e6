"""What this process has heard of full queues: each switch is told once, and how they drain says when to come again."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.backpressure import LATEST_RETRY_S, DrainWatch, retry_after
from holdfast.core.errors import QueueFull
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Full
from holdfast.telemetry.events import QueueClosed, QueueOpened, QueueRefused
from holdfast.telemetry.hub import Telemetry


class Refusals:
    """One per client. A queue is closed, as far as is known here, from the first refusal to the next acceptance."""

    def __init__(
        self, *, clock: Clock, telemetry: Telemetry, is_paused: Callable[[str], bool] = lambda _: False
    ) -> None:
        """`is_paused`: whether a queue was, when this process last heard of it."""
        self._is_paused = is_paused
        self._clock = clock
        self._telemetry = telemetry
        self.closed: dict[str, DrainWatch] = {}

    def note(self, full: Full) -> None:
        """The queue has refused."""
        watch = self.closed.get(full.queue)
        if watch is None:
            watch = self.closed[full.queue] = DrainWatch()
            self._telemetry.emit(QueueClosed(full.queue, full.depth, full.parked))
        watch.saw(full.depth, self._clock.monotonic())

    def accepted(self, queue: str) -> None:
        """The queue has taken a job that was sent after it had refused one."""
        if self.closed.pop(queue, None) is not None:
            self._telemetry.emit(QueueOpened(queue))

    def error(self, full: Full) -> QueueFull:
        """What to tell a caller who was refused."""
        if self._telemetry.wants(QueueRefused):
            self._telemetry.emit(QueueRefused(full.queue, "draining" if full.draining else "full"))
        watch = self.closed.get(full.queue)
        queue, depth, high, low, age_s, draining, parked = full
        # Where only age keeps it closed, nothing is known from how its depth changes.
        drain_per_s = None if watch is None or depth <= low else watch.per_s
        after_s = retry_after(depth, low, drain_per_s)
        after_s = LATEST_RETRY_S if draining else round(after_s, 1)
        marks: dict[str, int] = {"depth": depth, "high": high, "low": low, "parked": parked}
        paused = self._is_paused(queue)
        return QueueFull(queue, **marks, retry_after=after_s, age_s=age_s, draining=draining, paused=paused)
