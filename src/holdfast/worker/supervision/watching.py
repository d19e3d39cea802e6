"""One run on the board: that it has begun, until when it may run, that it has ended."""

from __future__ import annotations

import time

from holdfast.core.job import ClaimedJob
from holdfast.core.overdue import Verdicts
from holdfast.worker.supervision.board import Board, task_text


class Watched:
    """Made when user code is about to begin; from then on the death of this process may be the run's doing."""

    __slots__ = ("_attempt", "_board", "_row", "_verdicts")

    def __init__(self, board: Board, job: ClaimedJob, verdicts: Verdicts, limit_s: float | None) -> None:
        """`limit_s`: the hard limit, if it begins to count at once."""
        self._board = board
        self._verdicts = verdicts
        self._attempt = job.attempt
        now_s, task = time.monotonic(), task_text(job.task or "")
        if limit_s is None:
            self._row = board.begin(job.token, job.id, now_s, task)
        else:
            limits = (now_s + limit_s, limit_s, verdicts.of(job.attempt))
            self._row = board.begin(job.token, job.id, now_s, task, limits)

    def limit(self, limit_s: float) -> None:
        """The hard limit begins to count. From any thread."""
        verdict = self._verdicts.of(self._attempt)
        self._board.limit(self._row, overdue_s=time.monotonic() + limit_s, limit_s=limit_s, verdict=verdict)

    def end(self) -> None:
        """User code has ended."""
        self._board.end(self._row)
