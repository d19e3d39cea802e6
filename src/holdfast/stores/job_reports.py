"""Reports on a job from what a store has read: the error worth showing, the call in a payload. The same in every
store."""

from __future__ import annotations

import json
from typing import Any

from holdfast.core.job import AttemptInfo, ErrorInfo


def call_of(payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
    """The arguments; none where the payload, which may come from outside, is no call."""
    try:
        call = json.loads(payload)
        return tuple(call["args"]), dict(call["kwargs"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return (), None


def value_of(text: bytes | str | None) -> Any:
    """A stored JSON value; None where it is none: one bad row must not keep a person from seeing all the others."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def metadata_of(text: bytes | None) -> dict[str, Any] | None:
    """An object, or none where something else is stored."""
    found = value_of(text)
    return found if isinstance(found, dict) else None


def error_of(error_type: str | None, message: str | None, attempts: tuple[AttemptInfo, ...]) -> ErrorInfo | None:
    """The error that ended a dead job, else that of its latest run; with the traceback where there was one."""
    latest = next((each.error for each in reversed(attempts) if each.error and each.error.type), None)
    if error_type is None:
        return latest
    if latest is not None and (latest.type, latest.message) == (error_type, message):
        return latest
    return ErrorInfo(error_type, message or "")
