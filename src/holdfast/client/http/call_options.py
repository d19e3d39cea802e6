"""Options of a call as they go over the wire: those of `task.options(…)`, or a submission's fields.

Nothing is left out in silence: what cannot be sent is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.core.durations import seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.once_options import By, Debounce, Throttle, Unique, once_of
from holdfast.core.retry import RetryPolicy
from holdfast.core.shown import shown

#: Durations, which have their unit in the name on the wire.
_SPANS: Final = ("delay", "key_window", "timeout", "soft_timeout", "wait")
_ONCE: Final = ("unique", "debounce", "throttle")


def options_on_the_wire(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a submission. None is as if it had not been given, but for what is to be none of the task's."""
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name in _ONCE:
            fields[name] = _once(name, value)
        elif name in ("timeout", "soft_timeout") and value is None:
            raise InvalidOptions(f"{name}=None: a run without a limit cannot be asked for from here; the task says so")
        elif value is not None:
            fields |= _field(name, value)
    return fields


def _field(name: str, value: Any) -> dict[str, Any]:
    if name in _SPANS:
        return {f"{name}_s": seconds(name, value)}
    if name == "expires":
        return _moment("expires_at", value) if isinstance(value, datetime) else {"expires_in_s": seconds(name, value)}
    if isinstance(value, datetime):
        return _moment(name, value)
    if name == "retry" and isinstance(value, RetryPolicy):
        return {name: value.to_data()}
    return {name: list(value) if name == "tags" and not isinstance(value, str) else value}


def _moment(name: str, value: datetime) -> dict[str, Any]:
    return {name: value.isoformat()}


def _once(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Mapping):  # as it goes over the wire already
        return value
    once = once_of(**{name: value})
    match once:
        case Unique():
            states = None if once.states is None else sorted(map(str, once.claim.states))
            said = {"for_s": _span(once.for_), "states": states, "when_taken": once.when_taken}
        case Debounce():
            said = {"wait_s": once.wait_s, "longest_s": _span(once.longest)}
        case Throttle():
            said = {"every_s": _span(once.every)}
        case _:
            raise InvalidOptions(f"{name}={shown(value)}: cannot be sent")
    return {field: each for field, each in (said | {"by": _by(name, once.by)}).items() if each is not None}


def _span(value: Any) -> float | None:
    return None if value is None else seconds("seconds", value)


def _by(name: str, by: By) -> list[str] | None:
    if callable(by):
        raise InvalidOptions(f"{name}: by= is a function, which cannot be sent; name the arguments, as in by=('to',)")
    return None if by is None else [by] if isinstance(by, str) else list(by)
