"""One run on the board: that it has begun, until when it may run, that it has ended."""

from __future__ import annotations

import time

from holdfast.core.job import ClaimedJob
from holdfast.core.overdue import Verdicts
from holdfast.worker.supervision.board import NO_LIMIT, Board


class Watched:
    """Made when user code is about to begin; from then on the death of this process may be the run's doing."""

    __slots__ = ("_at", "_attempt", "_board", "_verdicts")

    def __init__(self, board: Board, job: ClaimedJob, verdicts: Verdicts, task: bytes, limit_s: float | None) -> None:
        """`task` as `task_text` has it; `limit_s`: the hard limit, if it begins to count at once."""
        self._board = board
        self._verdicts = verdicts
        self._attempt = job.attempt
        now_s = time.monotonic()
        limits = NO_LIMIT if limit_s is None else (now_s + limit_s, limit_s, verdicts.of(job.attempt))
        self._at = board.begin(job.token, job.id, now_s, task, limits)

    def limit(self, limit_s: float) -> None:
        """The hard limit begins to count. From any thread."""
        verdict = self._verdicts.of(self._attempt)
        self._board.limit(self._at, overdue_s=time.monotonic() + limit_s, limit_s=limit_s, verdict=verdict)

    def end(self) -> None:
        """User code has ended."""
        self._board.end(self._at)
