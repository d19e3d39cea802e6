"""What the board says of every run of one task: its name, its hard limit, and what becomes of a run that passes it."""

from __future__ import annotations

import math

from holdfast.core.overdue import Verdicts
from holdfast.core.retry import RetryPolicy
from holdfast.worker.supervision.board import terms_of


class Terms:
    """By attempt; made once, because every run needs them."""

    __slots__ = ("_by_attempt", "_task", "blames", "limit_s", "verdicts")

    def __init__(self, task: str, verdicts: Verdicts, limit_s: float | None, *, blames: bool = False) -> None:
        """`limit_s`: the hard limit, if it begins to count when the run does. `blames`: that a run passes it counts
        against the breaker of its task."""
        self._task = task
        self.blames = blames
        self.verdicts = verdicts
        self.limit_s = math.inf if limit_s is None else limit_s
        self._by_attempt: dict[int, bytes] = {}

    def under(self, policy: RetryPolicy) -> Terms:
        """Those of another policy."""
        return Terms(self._task, self.verdicts.under(policy), self.limit_s, blames=self.blames)

    def limited(self, limit_s: float | None) -> Terms:
        """Those of another limit."""
        return Terms(self._task, self.verdicts, limit_s, blames=self.blames)

    def of(self, attempt: int) -> bytes:
        """As the board has them."""
        terms = self._by_attempt.get(attempt)
        if terms is None:
            verdict = math.nan if self.limit_s == math.inf else self.verdicts.of(attempt)
            said = terms_of(self._task, limit_s=self.limit_s, verdict=verdict, blames=self.blames)
            terms = self._by_attempt[attempt] = said
        return terms
