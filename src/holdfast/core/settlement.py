"""What one run's outcome means for its job: the only place that decides between ending and another run.

`decide` is the whole rule; each kind of settlement has one named class, and a store applies it fenced by job,
token and worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, assert_never

from holdfast.core.cause import Cause
from holdfast.core.error_classes import BUILT_IN_CLASSES, ErrorClasses
from holdfast.core.errors import HardTimeout, PermanentError, RetryLater
from holdfast.core.job import ErrorInfo, JobId
from holdfast.core.outcome import (
    CancelHonoured,
    Failed,
    Interrupted,
    Outcome,
    ProcessDied,
    Rejected,
    Succeeded,
    TimedOut,
    Unknown,
    describe,
)
from holdfast.core.retry import RetryPolicy


class Verdict(StrEnum):
    """The store's answer to one settlement."""

    APPLIED = "applied"
    ALREADY = "already"
    """This token's settlement is on record: the first answer was lost."""
    LOST = "lost"
    """The lease had passed on: the result is dropped."""


class Succeed(NamedTuple):
    """→ `succeeded`."""

    job_id: JobId
    token: int
    result: bytes | None


@dataclass(frozen=True, slots=True)
class Retry:
    """→ `scheduled`, charged: the attempt failed."""

    job_id: JobId
    token: int
    delay_s: float
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Snooze:
    """→ `scheduled`, not charged: the task, or whom it asked, or a retry budget, wants another time."""

    job_id: JobId
    token: int
    delay_s: float
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class HandBack:
    """→ `ready` at its old place, not charged."""

    job_id: JobId
    token: int
    why: str
    cause: Cause = Cause.HANDED_BACK


@dataclass(frozen=True, slots=True)
class Crashed:
    """→ `ready` at its old place, not charged; or → `dead` as poison: it has killed its own process once more."""

    job_id: JobId
    token: int
    why: str


@dataclass(frozen=True, slots=True)
class Park:
    """→ `parked` under `key` until the reason is lifted, not charged."""

    job_id: JobId
    token: int
    reason: str
    key: str


@dataclass(frozen=True, slots=True)
class Bury:
    """→ `dead`."""

    job_id: JobId
    token: int
    reason: str
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Cancel:
    """→ `cancelled`: a running job honoured the request."""

    job_id: JobId
    token: int
    reason: str


Settlement = Succeed | Retry | Snooze | HandBack | Crashed | Park | Bury | Cancel

UNKNOWN_TASK = "unknown_task"
LONGEST_S = 10 * 365 * 86_400.0


def decide(
    outcome: Outcome,
    *,
    job_id: JobId,
    token: int,
    attempt: int,
    policy: RetryPolicy,
    rng: Callable[[], float],
    now: Callable[[], float] = lambda: 0.0,
    classes: ErrorClasses = BUILT_IN_CLASSES,
) -> Settlement:
    """Turn what happened into what is written. `now` is the wall clock: an error may name a date."""

    def after_failure(exception: BaseException) -> Settlement:
        name, delay_s, reason, charged = classes.judge(exception, attempt, policy, rng=rng, now=now)
        error = describe(exception, error_class=name)
        if delay_s is None:
            return Bury(job_id, token, reason, error)
        return (Retry if charged else Snooze)(job_id, token, delay_s, error)

    match outcome:
        case Succeeded(result):
            return Succeed(job_id, token, result)
        case Failed(RetryLater() as later):
            return Snooze(job_id, token, _seconds(later.after), describe(later))
        case Failed(PermanentError() as exception):
            return Bury(job_id, token, "permanent", describe(exception))
        case Failed(exception):
            return after_failure(exception)
        case TimedOut(limit_s):
            return after_failure(HardTimeout(f"the run was ended at its hard limit of {limit_s:g} s"))
        case Rejected(reason, exception):
            return Bury(job_id, token, reason, describe(exception))
        case Unknown(task):
            return Park(job_id, token, UNKNOWN_TASK, task)
        case CancelHonoured(reason):
            return Cancel(job_id, token, reason)
        case Interrupted(why):
            return HandBack(job_id, token, why)
        case ProcessDied(why):
            return Crashed(job_id, token, why)
        case _:
            assert_never(outcome)


def _seconds(after: float) -> float:
    """A subclass of RetryLater may have been given anything; what is not a number is its failure."""
    seconds = float(after)
    if not 0 <= seconds <= LONGEST_S:
        raise ValueError(f"RetryLater.after is {after!r}: needs seconds from 0 to ten years")
    return seconds
