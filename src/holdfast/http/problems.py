"""Every kind of problem, and the one table that says which error of the library is which."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from holdfast.core.errors import (
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOptions,
    JobNotFound,
    JobStateError,
    KeyHeld,
    NotOpen,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    RoutingFailed,
    StoreBroken,
    StoreDataError,
    StoreError,
    StoreUnavailable,
    UnknownTask,
)
from holdfast.http.problem import Kind, Problem

# ---------------------------------------------------------------- who asks

UNAUTHENTICATED: Final = Kind(
    "unauthenticated", 401, "A key is needed", "Send `Authorization: Bearer KEY`; `holdfast keys create` makes a key."
)
FORBIDDEN: Final = Kind(
    "forbidden", 403, "The key may not do this", "Use a key with the scope, queue and tenant that this needs."
)
CROSS_SITE: Final = Kind(
    "cross-site", 403, "Requests from other sites are refused", "Name the site in `origins=` if it is meant to ask."
)
TOO_MANY_REQUESTS: Final = Kind(
    "too-many-requests", 429, "Too many requests", "Wait as long as `Retry-After` says, then go on more slowly."
)

# ---------------------------------------------------------------- what is asked for

NOT_FOUND: Final = Kind("not-found", 404, "There is nothing here", "Look at `openapi.json` for what there is.")
METHOD_NOT_ALLOWED: Final = Kind(
    "method-not-allowed", 405, "This cannot be done here", "The header `Allow` says what can be done here."
)
JOB_NOT_FOUND: Final = Kind(
    "job-not-found", 404, "There is no such job", "Check the id; ended jobs are pruned after their retention."
)
BATCH_NOT_FOUND: Final = Kind(
    "batch-not-found", 404, "There is no such batch", "Check the id; ended jobs are pruned after their retention."
)
QUEUE_NOT_FOUND: Final = Kind("queue-not-found", 404, "There is no such queue", "`GET queues` lists those there are.")
TASK_NOT_FOUND: Final = Kind("task-not-found", 404, "There is no such task", "`GET tasks` lists those there are.")
NOT_SET: Final = Kind("not-set", 404, "Nothing is set for it", "What the code says holds; nothing is to be cleared.")
BODY_TOO_LARGE: Final = Kind(
    "body-too-large",
    413,
    "The body is too large",
    "Send less at once; keep large data elsewhere and pass a reference.",
)
UNSUPPORTED_MEDIA_TYPE: Final = Kind(
    "unsupported-media-type", 415, "The body is not JSON", "Send `Content-Type: application/json`, not compressed."
)
BODY_TOO_SLOW: Final = Kind("body-too-slow", 408, "The body did not arrive in time", "Send it again, without a pause.")
INVALID_JSON: Final = Kind("invalid-json", 422, "The body cannot be read", "Send JSON within the limit that is named.")
INVALID_REQUEST: Final = Kind(
    "invalid-request", 422, "The request does not fit", "Mend the field that is named; `openapi.json` says what fits."
)
INVALID_ARGUMENTS: Final = Kind(
    "invalid-arguments", 422, "The call does not fit its task", "Mend the argument; `GET tasks/NAME` shows its schema."
)
UNKNOWN_TASK: Final = Kind(
    "unknown-task", 422, "No task has this name", "Check the name against `known`, or `GET tasks`."
)
NOT_ROUTED: Final = Kind(
    "not-routed", 422, "Nobody could say where this job goes", "Name a queue in the request, or mend the app's router."
)

# ---------------------------------------------------------------- as things stand

IDEMPOTENCY_CONFLICT: Final = Kind(
    "idempotency-conflict", 409, "The key belongs to another request", "Use a new `Idempotency-Key` for a new request."
)
NOT_UNIQUE: Final = Kind(
    "not-unique",
    409,
    "Such a job is there already",
    "`job_id` is the one that is in the way, where it is yours to see.",
)
JOB_STATE: Final = Kind(
    "job-state", 409, "The job's state does not allow this", "`GET jobs/ID` says where it is; it may change yet."
)
QUEUE_FULL: Final = Kind(
    "queue-full", 503, "The queue accepts nothing now", "Try again after `Retry-After` seconds, with the same key."
)
STORE_UNAVAILABLE: Final = Kind(
    "store-unavailable", 503, "The store is out of reach", "Try again after `Retry-After` seconds, with the same key."
)
OUTCOME_UNKNOWN: Final = Kind(
    "outcome-unknown", 503, "Nobody knows whether it was done", "Repeat it with the same `Idempotency-Key`."
)
STORE_BROKEN: Final = Kind(
    "store-broken", 503, "The store cannot be used as it is", "An operator has to act: `holdfast doctor` says what."
)
SHUTTING_DOWN: Final = Kind("shutting-down", 503, "The server is not open", "Try again in a moment.")
TOO_MANY_STREAMS: Final = Kind(
    "too-many-streams", 503, "Too many clients follow jobs here", "Try again later, or ask for the job now and then."
)
UNEXPECTED: Final = Kind(
    "unexpected", 500, "An unexpected error", "The server's log says more, under the id in `X-Request-Id`."
)

KINDS: Final[tuple[Kind, ...]] = tuple(value for value in list(vars().values()) if isinstance(value, Kind))

#: From special to general: the first that fits says the kind.
_ERRORS: Final[tuple[tuple[type[HoldfastError], Kind], ...]] = (
    (InvalidArguments, INVALID_ARGUMENTS),
    (InvalidOptions, INVALID_REQUEST),
    (UnknownTask, UNKNOWN_TASK),
    (RoutingFailed, NOT_ROUTED),
    (QueueFull, QUEUE_FULL),
    (IdempotencyConflict, IDEMPOTENCY_CONFLICT),
    (NotUnique, NOT_UNIQUE),
    (JobNotFound, JOB_NOT_FOUND),
    (JobStateError, JOB_STATE),
    (NotOpen, SHUTTING_DOWN),
    (OutcomeUnknown, OUTCOME_UNKNOWN),
    (KeyHeld, STORE_UNAVAILABLE),
    (StoreUnavailable, STORE_UNAVAILABLE),
    (StoreDataError, INVALID_REQUEST),
    (StoreBroken, STORE_BROKEN),
    (StoreError, STORE_UNAVAILABLE),
)
_SOON_S: Final = 1.0
_LATER_S: Final = 30.0
#: What is said of the store in place of its own words, which name places and people: these are for the log.
_KEPT_BACK: Final = {
    STORE_UNAVAILABLE: "the store is out of reach, locked or full for now; what was asked for was not completed",
    OUTCOME_UNKNOWN: "the store did not answer in time: it may or may not have been done",
    STORE_BROKEN: "the store refuses this, or has another form than this server needs",
    SHUTTING_DOWN: "this server is starting or stopping",
}


def problem_of(error: HoldfastError) -> Problem | None:
    """An error of the library as a problem; None: it is nobody's fault but ours."""
    kind = next((kind for cls, kind in _ERRORS if isinstance(error, cls)), None)
    if kind is None:
        return None
    detail = _KEPT_BACK.get(kind, str(error))
    return Problem(kind, detail, field=_field_of(error), more=_more_of(error), headers=_headers_of(error, kind))


def retry_after(seconds: float) -> dict[str, str]:
    """The header, in whole seconds, at least one."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def _headers_of(error: HoldfastError, kind: Kind) -> dict[str, str]:
    if isinstance(error, QueueFull):
        return retry_after(_LATER_S if error.draining else error.retry_after)
    if kind is STORE_BROKEN:
        return retry_after(_LATER_S)
    return retry_after(_SOON_S) if kind.status == 503 else {}


def _more_of(error: HoldfastError) -> dict[str, Any]:
    match error:
        case QueueFull():
            return {
                "queue": error.queue, "depth": error.depth, "parked": error.parked, "draining": error.draining,
            }  # fmt: skip
        case IdempotencyConflict() | NotUnique() | JobNotFound():
            return {"job_id": str(error.job_id)}
        case _:
            return {}


def _field_of(error: HoldfastError) -> str | None:
    return getattr(error, "field", None)


def statuses(kinds: Iterable[Kind]) -> dict[int, list[Kind]]:
    """The kinds by status, for the documentation of a route."""
    found: dict[int, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(kind.status, []).append(kind)
    return found
