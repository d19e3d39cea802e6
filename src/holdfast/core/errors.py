"""Every error that Holdfast raises, in one tree.

HoldfastError
├── ConfigError              a setting is wrong; says which, where it came from, what to write instead
├── InvalidOptions           a decorator or `.options(…)` was given something senseless
├── InvalidArguments         a call does not fit its task, or cannot be stored as JSON
├── UnknownTask              no task of that name is registered here
├── StartupFailed            a hook, the lifespan or a provider raised: the worker did not start
├── NotOpen                  used before `async with hf:` or after it
├── RoutingFailed            a router of yours raised, or answered with what is no route
├── QueueFull                the queue stayed above its low watermark until the deadline, or is being drained
├── IdempotencyConflict      the key is taken by a different request
├── NotUnique                another job has what has to be unique
├── JobNotFound              no job has that id (any more)
├── JobStateError            the job is not in a state that allows this
├── JobFailed                the awaited job ended dead
├── JobCancelled             the awaited job ended cancelled
├── ApiRefused               the HTTP API refused a request for a reason of its own: the key, a limit, the connection
├── LeaseLost                this run is no longer the job's owner: nothing that it writes counts
├── SoftTimeout              raised inside a task at its soft limit
├── HardTimeout              recorded when a run was ended at its hard limit
├── PermanentError           raised by a task: dead at once, no further attempt
├── RetryLater               raised by a task: run again after a delay, not counted as an attempt
└── StoreError
    ├── StoreUnavailable     out of reach, locked or full for now; the same call may succeed later
    │   └── KeyHeld          the idempotency key is in a transaction that is still open
    ├── OutcomeUnknown       the store may or may not have committed; asking again was given up
    ├── StoreDataError       the store refuses these very rows; other rows would pass
    └── StoreBroken          wrong file, wrong schema, no permission: a person has to act

Messages name the thing, the place and the remedy. Drivers' errors are translated once, in the store.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Base of everything Holdfast raises on purpose."""


class ConfigError(HoldfastError):
    """A setting is wrong."""


class InvalidOptions(HoldfastError, ValueError):
    """A task, queue or call was configured with something senseless."""


class InvalidArguments(HoldfastError, ValueError):
    """The arguments do not fit the task's signature, or cannot be stored as JSON."""

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        self.field = field
        """The first argument at fault, as in `kwargs.to` or `args[0].street`; None where none is to be named."""
        super().__init__(message)


class UnknownTask(HoldfastError, LookupError):
    """No task of that name is registered in this app."""


class StartupFailed(HoldfastError):
    """The worker did not start, because something of yours that it begins with raised; the cause has its traceback."""


class NotOpen(HoldfastError, RuntimeError):
    """The app has no open store: use it inside `async with hf:`."""


class RoutingFailed(HoldfastError):
    """A router of yours, or a task's `tenant=`, did not say where a job goes; nothing was enqueued."""


class QueueFull(HoldfastError):
    """The queue is over its watermark and stayed so until the caller's deadline; or an operator drains it."""

    def __init__(
        self,
        queue: str,
        *,
        depth: int,
        high: int,
        low: int,
        retry_after: float,
        age_s: float | None = None,
        draining: bool = False,
        parked: int = 0,
        paused: bool = False,
    ) -> None:
        self.queue = queue
        self.depth = depth
        """Jobs that wait there: those that are ready, and those that are parked."""
        self.parked = parked
        """Those of them that wait for something else than a worker, as at a limit or an open breaker."""
        self.retry_after = retry_after
        self.draining = draining
        """It accepts nothing until an operator says otherwise: to wait is of no use."""
        self.paused = paused
        """It was paused when this process last heard of it: nothing of it is started, so it does not drain."""
        if draining:
            goes_on = f"{depth:,} waiting job{' goes' if depth == 1 else 's go'} on"
            super().__init__(
                f"queue {queue!r} is being drained: it accepts nothing until an operator says otherwise (`holdfast "
                f"queues undrain {queue}`), while its {goes_on}; nothing was enqueued"
            )
            return
        ready, remedy, marks = depth - parked, "add workers", "raise the watermarks"
        there = f"{ready:,} job{' is' if ready == 1 else 's are'} ready"
        if parked:
            there += f" and {parked:,} {'is' if parked == 1 else 'are'} parked"
        if paused:
            remedy = f"resume it, as it is paused (`holdfast queues resume {queue}`)"
        elif parked and parked >= ready:  # they wait at a limit, a rate or a breaker, or for a pause or a task
            remedy = (
                "see what the parked ones wait for, as more workers change nothing there (`holdfast jobs list --state "
                "parked`, `holdfast jobs explain ID`)"
            )
        until = f"(high watermark {high:,}) and it accepts more once it has drained to {low:,}"
        if age_s is not None and depth < high:
            until = f"and the oldest has waited {age_s:.0f} s; it accepts more once that is below its low mark on age"
            marks += " on its age"
        super().__init__(
            f"queue {queue!r} is full: {there} {until}; nothing was enqueued; try again in {retry_after:g} s, "
            f"{remedy}, or {marks}"
        )


class IdempotencyConflict(HoldfastError):
    """The same idempotency key was used before for a different task or other arguments."""

    def __init__(self, key: str, *, tenant: str, job_id: object, index: int | None = None) -> None:
        self.key = key
        self.job_id = job_id
        self.index = index
        item = "" if index is None else f"item {index}: "
        scope = f" of tenant {tenant!r}" if tenant else ""
        super().__init__(
            f"{item}idempotency key {key!r}{scope} already belongs to job {job_id}, which has another task or "
            "other arguments; nothing was enqueued; use a new key for a new request"
        )


class NotUnique(HoldfastError):
    """A job that has to be unique is there already; `job_id` is the one that is in the way."""

    def __init__(self, job_id: object, *, task: str, index: int | None = None, replaying: object = None) -> None:
        self.job_id = job_id
        self.index = index
        if replaying is not None:
            super().__init__(
                f"job {replaying} stays dead: {task} has to be unique, and job {job_id} is there already; nothing was "
                "replayed; try again once that one has ended, and its time is over where it has one"
            )
            return
        item = "" if index is None else f"item {index}: "
        super().__init__(
            f"{item}{task} has to be unique, and job {job_id} is there already; nothing was enqueued; with "
            "when_taken='existing' the call gives a handle of that job, with 'replace' it goes instead of it"
        )


class JobNotFound(HoldfastError, LookupError):
    """No job has this id; it may have been pruned."""

    def __init__(self, job_id: object, *, enlisted: bool = False) -> None:
        self.job_id = job_id
        why = "ended jobs are pruned after their retention"
        if enlisted:
            why = f"it was enqueued inside a transaction, and exists once that has committed; {why}"
        super().__init__(f"there is no job {job_id}; {why}")


class JobStateError(HoldfastError):
    """The job's state does not allow what was asked."""


class JobFailed(HoldfastError):
    """The awaited job ended `dead`."""

    def __init__(self, job_id: object, *, error_type: str, message: str) -> None:
        self.job_id = job_id
        self.error_type = error_type
        self.error_message = message
        super().__init__(f"job {job_id} is dead after {error_type}: {message}")


class JobCancelled(HoldfastError):
    """The awaited job ended `cancelled`."""

    def __init__(self, job_id: object, *, reason: str | None) -> None:
        self.job_id = job_id
        self.reason = reason
        super().__init__(f"job {job_id} was cancelled" + (f": {reason}" if reason else ""))


class ApiRefused(HoldfastError):
    """A server refused a request for a reason that only the HTTP API has; or could not be reached."""

    def __init__(self, message: str, *, status: int | None = None, kind: str = "", field: str | None = None) -> None:
        self.status = status
        """That of the answer; None: there was none."""
        self.kind = kind
        """The name of the problem, as in `forbidden`."""
        self.field = field
        """The part of the request that is at fault."""
        super().__init__(message)


class LeaseLost(HoldfastError):
    """This worker was declared dead, or this run lost its lease: its writes are refused."""


class SoftTimeout(HoldfastError):
    """Raised inside a task when its soft limit is reached; uncaught, it fails the attempt."""


class HardTimeout(HoldfastError):
    """Recorded as the error of an attempt that was ended at its hard limit."""


class PermanentError(HoldfastError):
    """Raise it in a task that can never succeed: the job is dead at once, without further attempts."""


class RetryLater(HoldfastError):
    """Raise it in a task to be run again in `after` seconds; such a run is not counted as an attempt."""

    def __init__(self, message: str = "", *, after: float) -> None:
        is_number = isinstance(after, (int, float)) and not isinstance(after, bool)
        if not is_number or not 0 <= after < 10 * 365 * 86400:
            raise InvalidOptions(f"RetryLater(after={after!r}): needs seconds from 0 to ten years")
        self.after = float(after)
        super().__init__(message or f"asked to run again in {after:g} s")


class StoreError(HoldfastError):
    """Something is wrong with, or in, the store."""


class StoreUnavailable(StoreError):
    """The store is out of reach, locked or full for now; repeating the call may succeed."""

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        self.unknown = unknown
        """True: the write may have been committed, only the answer is missing."""
        super().__init__(message)


class KeyHeld(StoreUnavailable):
    """The idempotency key is held by a transaction that is still open; nothing was enqueued under it."""


class OutcomeUnknown(StoreError):
    """Whether the write was committed could not be found out in time."""


class StoreDataError(StoreError):
    """The store refuses these rows themselves; a batch is bisected to find them."""


class StoreBroken(StoreError):
    """The store cannot be used as it is: a person has to act."""
