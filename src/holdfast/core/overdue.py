"""What becomes of a run that ends with its process because it did not end at its hard limit.

Nobody is left to ask then, so it is decided when the run begins, and kept as one number beside it: `Verdicts` makes it,
`settlement` reads it. An ordinary time-out, which the run's own process can tell, is in `core.settlement`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from holdfast.core.error_classes import BUILT_IN_CLASSES, EXHAUSTED, NOT_RETRIED, ErrorClasses, Judgement
from holdfast.core.errors import HardTimeout
from holdfast.core.job import JobId
from holdfast.core.outcome import describe
from holdfast.core.retry import RetryPolicy
from holdfast.core.settlement import Bury, Retry

_EXHAUSTED: Final = math.nan
_NOT_RETRIED: Final = math.inf
_TIMEOUT: Final = HardTimeout("the run did not end at its hard limit")


class Verdicts:
    """Those of one policy, by attempt: made once, because every run needs one and hardly any uses it."""

    __slots__ = ("_by_attempt", "_classes", "_policy")

    def __init__(self, policy: RetryPolicy, classes: ErrorClasses = BUILT_IN_CLASSES) -> None:
        self._policy = policy
        self._classes = classes
        self._by_attempt: dict[int, float] = {}

    def under(self, policy: RetryPolicy) -> Verdicts:
        """Those of another policy."""
        return Verdicts(policy, self._classes)

    def of(self, attempt: int) -> float:
        """Seconds to the next attempt, or (negative) the longest delay of which a random share is taken; or none."""
        verdict = self._by_attempt.get(attempt)
        if verdict is None:
            verdict = self._by_attempt[attempt] = self._decide(attempt)
        return verdict

    def _decide(self, attempt: int) -> float:
        longest = self._judge(attempt, 1.0)
        if longest.delay_s is None:
            return _EXHAUSTED if longest.reason == EXHAUSTED else _NOT_RETRIED
        return longest.delay_s if longest == self._judge(attempt, 0.0) else -longest.delay_s

    def _judge(self, attempt: int, drawn: float) -> Judgement:
        return self._classes.judge(_TIMEOUT, attempt, self._policy, rng=lambda: drawn, now=lambda: 0.0)


def settlement(verdict: float, job_id: JobId, token: int, *, limit_s: float, rng: Callable[[], float]) -> Retry | Bury:
    """The end of the run: charged, and another attempt where its policy allows one."""
    error = describe(HardTimeout(f"the run did not end at its hard limit of {limit_s:g} s: its process was killed"))
    if math.isnan(verdict):
        return Bury(job_id, token, EXHAUSTED, error)
    if verdict == _NOT_RETRIED:
        return Bury(job_id, token, NOT_RETRIED, error)
    return Retry(job_id, token, verdict if verdict >= 0 else -verdict * rng(), error)
