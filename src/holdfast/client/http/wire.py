"""What goes over the wire, and what comes back: requests, jobs and errors. Nothing is sent here."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NoReturn
from uuid import UUID

from holdfast.client.http.call_options import options_on_the_wire
from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.errors import (
    ApiRefused,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobStateError,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    RoutingFailed,
    StoreBroken,
    StoreUnavailable,
    UnknownTask,
)
from holdfast.core.ids import parse_job_id
from holdfast.core.job import AttemptInfo, ErrorInfo, JobId, JobInfo, Progress
from holdfast.core.queue import QueueInfo, QueueRates, QueueSettings
from holdfast.core.queue_options import OPTION_NAMES, check_options
from holdfast.core.state import State

#: Answers after which the same request may be sent again, whatever it asks for: nothing was done, or a key guards it.
AGAIN: Final = frozenset({429, 502, 503, 504})
#: Between two tries, in seconds, whatever a server asks for.
LONGEST_REST_S: Final = 5.0
_PREFIX: Final = "urn:holdfast:problem:"
_ERRORS: Final[Mapping[str, type[HoldfastError]]] = {
    "invalid-json": InvalidArguments,
    "invalid-arguments": InvalidArguments,
    "invalid-request": InvalidOptions,
    "unknown-task": UnknownTask,
    "not-routed": RoutingFailed,
    "queue-full": QueueFull,
    "idempotency-conflict": IdempotencyConflict,
    "not-unique": NotUnique,
    "job-not-found": JobNotFound,
    "job-state": JobStateError,
    "store-unavailable": StoreUnavailable,
    "shutting-down": StoreUnavailable,
    "outcome-unknown": OutcomeUnknown,
    "store-broken": StoreBroken,
}


def bearer(key: str) -> str:
    """The header that goes with every request. A key that cannot be one is not shown: it may be one but for a slip."""
    key = key.strip() if isinstance(key, str) else ""  # as it comes out of a file
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise InvalidOptions("key=…: needs the text that `holdfast keys create` printed, as `hf_…`")
    return f"Bearer {key}"


def path_of(job_id: JobId | str) -> str:
    """Where a job is. What is no id is refused here: as a part of a path it could lead anywhere."""
    return f"/jobs/{parse_job_id(job_id)}"


def value_of(status: int, content: bytes) -> Any:
    """What an answer holds; ApiRefused where it is none of the API's."""
    try:
        return json.loads(content)
    except ValueError:
        raise ApiRefused(f"the server answered with {status}, and not as the API does", status=status) from None


def submission(
    task: str, args: Sequence[Any], kwargs: Mapping[str, Any], key: str | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers of a submission. It always has a key, so that sending it again is safe."""
    body: dict[str, Any] = {"task": task, "args": list(args), "kwargs": dict(kwargs)}
    return body | options_on_the_wire(options), {"Idempotency-Key": key or f"auto-{secrets.token_hex(16)}"}


def raise_problem(status: int, content: bytes, headers: Mapping[str, str]) -> NoReturn:
    """The error that the same call would have raised in process; ApiRefused where only a server has it."""
    try:
        said = json.loads(content)
        kind = str(said["type"]).removeprefix(_PREFIX)
        detail = str(said["detail"])
    except (ValueError, KeyError, TypeError):
        raise ApiRefused(f"the server answered with {status}, and not as the API does", status=status) from None
    field = said.get("field")
    known = _ERRORS.get(kind)
    if known is None:
        raise ApiRefused(f"{detail} ({kind})", status=status, kind=kind, field=field)
    raise _made(known, detail, said, retry_after_s(headers))


def kind_of(content: bytes) -> str | None:
    """Which of the API's problems it is; None where it is none of the API's."""
    try:
        said = json.loads(content)
        kind = str(said["type"])
    except (ValueError, KeyError, TypeError):
        return None
    return kind.removeprefix(_PREFIX) if kind.startswith(_PREFIX) else None


def retry_after_s(headers: Mapping[str, str], *, default: float = 1.0) -> float:
    """The seconds that a server asks for."""
    try:
        return max(0.0, float(headers.get("Retry-After", default)))
    except ValueError:
        return default


def _made(kind: type[HoldfastError], detail: str, said: Mapping[str, Any], after_s: float) -> HoldfastError:
    """An error with the words of the server, which has made them from its own."""
    error = kind.__new__(kind, detail)
    error.args = (detail,)
    members = {
        "field": said.get("field"),
        "queue": said.get("queue"),
        "depth": said.get("depth"),
        "parked": said.get("parked", 0),
        "draining": said.get("draining", False),
        "retry_after": after_s,
        "job_id": said.get("job_id"),
        "index": None,
        "key": None,
        "unknown": kind is OutcomeUnknown,
    }
    for name, value in members.items():
        setattr(error, name, value)
    return error


def job_of(said: Mapping[str, Any]) -> JobInfo:
    """A job, as in process; what the key may not see is empty."""
    payload, progress = said["payload"] or {}, said["progress"]
    times = {name: _moment(said[name]) for name in ("run_at", "started_at", "ended_at", "expires_at")}
    return JobInfo(
        id=UUID(said["id"]),
        task=said["task"],
        queue=said["queue"],
        priority=said["priority"],
        tenant=said["tenant"],
        state=State(said["state"]),
        attempt=said["attempt"],
        max_attempts=said["max_attempts"],
        created_at=datetime.fromisoformat(said["created_at"]),
        worker=said["worker"],
        progress=progress and Progress(progress["done"], progress["total"], datetime.fromisoformat(progress["at"])),
        stage=said["stage"],
        result=payload.get("result"),
        error=_error(said["error"]),
        attempts=tuple(map(_attempt, said["attempts"])),
        tags=tuple(said["tags"]),
        metadata=payload.get("metadata"),
        reason=said["reason"],
        waits_at=said["waits_at"],
        cancel_requested=said["cancel_requested"],
        args=tuple(payload.get("args", ())),
        kwargs=payload.get("kwargs"),
        **times,
    )


def queue_of(said: Mapping[str, Any]) -> QueueInfo:
    """A queue, as in process; its marks are those that hold, also where they are the server's own."""
    high_age_s, weights = said["high_age_s"], said["weights"]
    options = said.get("options", {})  # an older server does not tell them, a newer one may know more
    counts = {name: said[name] for name in ("ready", "scheduled", "blocked", "parked", "running", "dead")}
    return QueueInfo(
        name=said["name"],
        accepting=said["accepting"],
        oldest_ready_s=said["oldest_ready_s"],
        by_priority={int(priority): count for priority, count in said["by_priority"].items()},
        settings=QueueSettings(
            paused=said["paused"],
            watermarks=Watermarks(said["high_watermark"], said["low_watermark"]),
            weight=weights["weight"],
            weights=None if weights["is_default"] else weights["priorities"],
            ages=None if high_age_s is None else AgeMarks(high_age_s, said["low_age_s"]),
            draining=said["draining"],
            options=check_options(said["name"], {name: options[name] for name in OPTION_NAMES if name in options}),
        ),
        **counts,
    )


def rates_of(said: Mapping[str, Any]) -> QueueRates:
    """How quickly jobs come and go; a newer server may tell more than is known here, an older one less."""
    return QueueRates(**{each.name: said[each.name] for each in fields(QueueRates) if each.name in said})


def result_of(job: JobInfo) -> Any:
    """What the job returned; raises what a handle in process raises."""
    if job.state is State.DEAD:
        error = job.error or ErrorInfo("", "")
        raise JobFailed(job.id, error_type=error.type, message=error.message)
    if job.state is State.CANCELLED:
        raise JobCancelled(job.id, reason=job.reason)
    return job.result


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _error(said: Mapping[str, Any] | None) -> ErrorInfo | None:
    return None if said is None else ErrorInfo(said["type"], said["message"] or "", said["traceback"] or "")


def _attempt(said: Mapping[str, Any]) -> AttemptInfo:
    ended = datetime.fromisoformat(said["ended_at"])
    return AttemptInfo(
        said["number"], 0, said["cause"], _error(said["error"]), said["worker"], _moment(said["started_at"]), ended
    )
