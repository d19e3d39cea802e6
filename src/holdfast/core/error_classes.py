"""What kinds of errors there are, and what is done about each: a table that users read and put rows before.

A task's `RetryPolicy` goes first where it names an exception. What a failure then means for the job is decided here,
by `ErrorClasses.judge`; that it is written is the settlement's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from holdfast.core.error_class import ErrorClass
from holdfast.core.error_table import BUILT_IN
from holdfast.core.errors import InvalidOptions, QueueFull
from holdfast.core.exception_names import listed
from holdfast.core.http_answer import http_answer, retry_after_s
from holdfast.core.retry import RetryPolicy, Ruling
from holdfast.core.stood_for import names_of

OTHER: Final = "other"
"""The class of an error that no row knows: the policy's backoff."""
EXHAUSTED: Final = "exhausted"
NOT_RETRIED: Final = "not_retried"
_SPREAD: Final = 0.1  # those who were told the same time do not come back together


class Found(NamedTuple):
    """The row that knows an exception."""

    row: ErrorClass | None
    trouble: str = ""
    """What a row's own `when` raised, if one did."""

    @property
    def name(self) -> str:
        return OTHER if self.row is None else self.row.name


class Judgement(NamedTuple):
    """What becomes of a job after a failure."""

    error_class: str
    delay_s: float | None
    """None: it is dead."""
    reason: str = ""
    """Why it is dead."""
    charged: bool = True
    """Whether the run counts as an attempt."""


class ErrorClasses:
    """The rows in the order in which they are asked; the first that knows an exception decides."""

    __slots__ = ("_rows",)

    def __init__(self, own: Iterable[ErrorClass] = ()) -> None:
        self._rows: tuple[ErrorClass, ...] = (*own, *BUILT_IN)

    def __iter__(self) -> Iterator[ErrorClass]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, exc: BaseException) -> Found:
        """The row for an exception. A `when` that raises does not match, and is told of."""
        names = names_of(exc)
        answer = http_answer(exc)
        trouble = ""
        for row in self._rows:
            by_status = answer is not None and answer.status in row.statuses
            if not by_status and not listed(names, row.exceptions) and (row.exceptions or row.statuses):
                continue
            try:
                if row.when is None or row.when(exc):
                    return Found(row, trouble)
            except BaseException as error:  # users' code: even SystemExit must not get out of here
                trouble = trouble or f"when= of class {row.name} raised {type(error).__name__}"
        return Found(None, trouble)

    def judge(
        self,
        exc: BaseException,
        attempt: int,
        policy: RetryPolicy,
        *,
        rng: Callable[[], float],
        now: Callable[[], float],
    ) -> Judgement:
        """What follows when this attempt (counted from 1) has failed with `exc`."""
        found = self.find(exc)
        row, name = found.row, found.name + (f" ({found.trouble})" if found.trouble else "")
        ruling = policy.ruling(exc)
        delay_s = policy.delay_for(exc)
        if ruling is Ruling.GIVE_UP:
            return Judgement(name, None, EXHAUSTED if attempt >= policy.max_attempts else NOT_RETRIED)
        asked_s = _asked_s(exc, now) if row is not None and row.then == "retry_after" and delay_s is None else None
        if row is not None and asked_s is not None:
            asked_s = min(row.longest, asked_s * (1 + _SPREAD * rng()))
            if not row.charge:
                return Judgement(name, asked_s, charged=False)
        # A policy that names the exception has said that it is worth trying, and how often.
        tries = None if row is None or ruling is Ruling.RETRY else row.max_attempts
        if attempt >= min(policy.max_attempts, tries or policy.max_attempts):
            return Judgement(name, None, EXHAUSTED)
        if row is not None and row.then == "dead" and ruling is not Ruling.RETRY and delay_s is None:
            return Judgement(name, None, NOT_RETRIED)
        if delay_s is not None:
            return Judgement(name, delay_s)
        if asked_s is not None:
            return Judgement(name, max(asked_s, policy.longest_s(attempt)))
        if row is not None and row.delay is not None:
            return Judgement(name, row.delay * (0.5 + rng()))
        return Judgement(name, policy.backoff_s(attempt, rng=rng))


def check_classes(value: object) -> ErrorClasses:
    """What was given as `errors=`; None is nothing beside the built-in table."""
    if value is None:
        return BUILT_IN_CLASSES
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise InvalidOptions(f"errors={value!r:.80}: needs a list of ErrorClass(…)")
    for row in value:
        if not isinstance(row, ErrorClass):
            raise InvalidOptions(f"errors: {row!r:.80} is not an ErrorClass(…) but {type(row).__name__}")
    return ErrorClasses(value)


def _asked_s(exc: BaseException, now: Callable[[], float]) -> float | None:
    if isinstance(exc, QueueFull):
        return exc.retry_after
    answer = http_answer(exc)
    return None if answer is None else retry_after_s(answer, now=now)


BUILT_IN_CLASSES: Final = ErrorClasses()
