"""One run of one job in this process: where it stands, and how it is asked to stop. What it does is the executor's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from holdfast.core.breaker import BreakerMark
from holdfast.core.job import ClaimedJob, WorkerId


class Interruption(Enum):
    """Why the worker wants a run to stop."""

    CANCEL = auto()
    """Somebody asked to cancel the job."""
    TIMEOUT = auto()
    """Its hard limit has passed."""
    DRAIN = auto()
    """The worker is stopping and its grace period is over."""
    NO_THREAD = auto()
    """No thread came free for it here; it may be started elsewhere."""
    LEASE_LOST = auto()
    """The job belongs to somebody else by now."""


class Run:
    """The first interruption counts. User code on the loop is cancelled; in a thread, `strike` does it.

    What still waits for a thread is cancelled on the loop. That writes `interruption` and then reads `in_thread`, the
    thread writes `in_thread` and then reads `interruption`: one of them sees the other, so nothing that was given
    back is started.
    """

    __slots__ = (
        "cancel_reason",
        "failed",
        "finished",
        "in_thread",
        "interruption",
        "job",
        "mark",
        "row",
        "started_s",
        "strike",
        "task",
        "thread",
        "user_code",
        "worker",
    )

    def __init__(self, job: ClaimedJob, worker: WorkerId) -> None:
        self.job = job
        self.worker = worker
        self.task: asyncio.Task[Any] | None = None
        self.interruption: Interruption | None = None
        self.cancel_reason = ""
        self.started_s = 0.0
        self.user_code: asyncio.Task[Any] | None = None
        """The task to cancel, while it waits for user code to end."""
        self.row = 0
        """Where it stands on the board, under a supervisor, while its user code runs."""
        self.in_thread = False
        self.thread = 0
        """The one that its function began in."""
        self.strike: Callable[[], None] | None = None
        """Raises a cancellation inside the function, while it is in a thread."""
        self.failed: bool | None = None
        """What its end says about its task's breaker; None: nothing."""
        self.mark: BreakerMark | None = None
        """The same, as it is written."""
        self.finished = False
        """Its success is on record, committed in a transaction of its own: whatever comes after does not count."""

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """What was begun is tidied up in peace: an interruption is noted and cancels nothing meanwhile."""
        user_code, self.user_code = self.user_code, None
        try:
            yield
        finally:
            self.user_code = user_code

    def interrupt(self, why: Interruption) -> None:
        """Ask the run to stop. Again for the same reason asks again: a cancellation may have been swallowed."""
        if self.interruption is None or why is Interruption.LEASE_LOST:
            self.interruption = why
        if self.user_code is None:
            return
        if not self.in_thread:
            self.user_code.cancel()
        elif self.strike is not None:
            self.strike()
