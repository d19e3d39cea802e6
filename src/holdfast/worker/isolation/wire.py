"""What a worker and its isolates tell each other: one JSON object per line, never a pickle.

Arguments and results are JSON texts already and travel as texts. No settlement carries the job and the token: the
worker knows which run it has lent the isolate for, and nothing that comes back can name another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, assert_never
from uuid import UUID

from holdfast.core.cause import Cause
from holdfast.core.job import ClaimedJob, ErrorInfo
from holdfast.core.settlement import (
    LONGEST_S,
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
)
from holdfast.core.shown import shown
from holdfast.worker.run import Interruption, Run

Message: TypeAlias = Mapping[str, Any]

#: What an isolate says before it calls any of the user's code: whatever kills it from then on is that code's doing.
BEGUN: Final[Message] = {"begun": True}

_SLACK = 1024 * 1024


class Unsettled(Enum):
    """A run whose end is not the worker's to write."""

    FINISHED = "finished"
    """It has committed its success by itself, in `transaction()`."""
    LOST = "lost"
    """It has found out that the job is not its own any more."""


def longest(limit: int) -> int:
    """Bytes that a message may have which carries a JSON text of up to `limit` bytes.

    Escaping makes at most six bytes of one; the slack is for an error with its traceback, which are bounded, too.
    """
    return 6 * limit + _SLACK


def encode(message: Message) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"


def decode(line: bytes) -> Message:
    """ValueError for what is not a message."""
    try:
        message = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise ValueError(f"a message is an object, not {type(message).__name__}")
    return message


def request_of(run: Run) -> Message:
    """The run, to be sent to an isolate."""
    job = run.job
    texts = {name: _text(getattr(job, name)) for name in ("payload", "options", "headers")}
    return {"run": job._asdict() | texts | {"id": job.id.hex}, "worker": run.worker.hex}


def requested_run(message: Message) -> Run:
    """The run that a worker wants."""
    fields = dict(message["run"])
    fields |= {name: _bytes(fields[name]) for name in ("payload", "options", "headers")}
    return Run(ClaimedJob(**fields | {"id": UUID(fields["id"])}), UUID(message["worker"]))


def interruption_of(run: Run, why: Interruption) -> Message:
    """A run is to stop."""
    return {"interrupt": run.job.token, "why": why.name, "reason": run.cancel_reason}


def interrupt(run: Run, message: Message) -> None:
    """Do to the run what the message wants; one that was meant for an earlier run does nothing."""
    if message["interrupt"] == run.job.token:
        run.cancel_reason = message["reason"]
        run.interrupt(Interruption[message["why"]])


def answer_of(answer: Settlement | Unsettled, *, failed: bool | None = None) -> Message:
    """What came of a run, to be sent to the worker; `failed` is what it says about its breaker."""
    message = _answer(answer)
    return message if failed is None else {**message, "failed": failed}


def failed_in(message: Message) -> bool | None:
    """What an answer says about the breaker of its task; None: nothing."""
    failed = message.get("failed")
    return failed if isinstance(failed, bool) else None


def _answer(answer: Settlement | Unsettled) -> Message:
    match answer:
        case Unsettled():
            return {"ended": answer.value}
        case Succeed(result=result):
            return {"ended": "succeed", "result": _text(result)}
        case Retry(delay_s=delay_s, error=error):
            return {"ended": "retry", "delay_s": delay_s, "error": _error(error)}
        case Snooze(delay_s=delay_s, error=error):
            return {"ended": "snooze", "delay_s": delay_s, "error": _error(error)}
        case HandBack(why=why, cause=cause):
            return {"ended": "hand_back", "why": why, "cause": cause.value}
        case Crashed(why=why):
            return {"ended": "crash", "why": why}
        case Park(reason=reason, key=key):
            return {"ended": "park", "reason": reason, "key": key}
        case Bury(reason=reason, error=error):
            return {"ended": "bury", "reason": reason, "error": _error(error)}
        case Cancel(reason=reason):
            return {"ended": "cancel", "reason": reason}
        case _:
            assert_never(answer)


def answered(message: Message, job: ClaimedJob) -> Settlement | Unsettled:
    """What a message says of this run; ValueError for what is not an answer."""
    run = (job.id, job.token)
    match message:
        case {"ended": "finished" | "lost" as word}:
            return Unsettled(word)
        case {"ended": "succeed", "result": str() | None as result}:
            return Succeed(*run, _bytes(result))
        case {"ended": "retry", "delay_s": float() | int() as delay_s, "error": {} as error}:
            return Retry(*run, _seconds(delay_s), _error_from(error))
        case {"ended": "snooze", "delay_s": float() | int() as delay_s, "error": {} as error}:
            return Snooze(*run, _seconds(delay_s), _error_from(error))
        case {"ended": "hand_back", "why": str() as why, "cause": str() as cause}:
            return HandBack(*run, why, Cause(cause))
        case {"ended": "crash", "why": str() as why}:
            return Crashed(*run, why)
        case {"ended": "park", "reason": str() as reason, "key": str() as key}:
            return Park(*run, reason, key)
        case {"ended": "bury", "reason": str() as reason, "error": {} as error}:
            return Bury(*run, reason, _error_from(error))
        case {"ended": "cancel", "reason": str() as reason}:
            return Cancel(*run, reason)
        case _:
            raise ValueError(f"not an answer: {shown(message, 200)}")


def _seconds(value: float) -> float:
    if not 0 <= value <= LONGEST_S:  # also for NaN: a job must not wait for a time that never comes
        raise ValueError(f"not a delay: {shown(value)}")
    return float(value)


def _text(value: bytes | None) -> str | None:
    # Whoever wrote the job may have written anything: what is no text is judged over there, where it is decoded.
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")


def _error(error: ErrorInfo) -> Message:
    return {"type": error.type, "message": error.message, "traceback": error.traceback}


def _error_from(fields: Message) -> ErrorInfo:
    match fields:
        case {"type": str() as kind, "message": str() as message, "traceback": str() as traceback}:
            return ErrorInfo(kind, message, traceback)
        case _:
            raise ValueError(f"not an error: {shown(fields, 200)}")
