"""What may be said about a task and about one call of it, checked in sentences; nothing here is looked up later."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.limit_options import Breaker, Limit, Rate
from holdfast.core.names import check_name
from holdfast.core.once_options import Debounce, Once, Throttle, Unique, once_of
from holdfast.core.priority import parse_priority
from holdfast.core.retry import RetryPolicy
from holdfast.core.shown import shown
from holdfast.core.unset import UNSET, Unset

DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5
DEFAULT_TIMEOUT_S = 300.0
OWN = "the task"
"""In `TaskOptions.said_by`: what it says itself."""
_MOST_TAGS = 20
_EARLIEST_S = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LATEST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What holds for a task, after every level has had its say."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    soft_timeout_s: float | None = None
    isolate: bool = False
    """Whether it runs in a process of its own."""
    tenant: str | Callable[..., object] = ""
    """On whose behalf its jobs are, or a function of a call's arguments that says it."""
    limits: tuple[Limit, ...] = ()
    """Its own, and those of its queue; each of the latter has a name."""
    rates: tuple[Rate, ...] = ()
    breaker: Breaker | None = None
    once: Once | None = None
    """What becomes of a call too many."""
    said_by: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Which level has said what of queue, priority and tenant."""

    flows: bool = field(init=False, compare=False, repr=False)
    """Whether a job's gates, or what makes it unique, have to be worked out; most tasks have none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "flows", bool(self.limits or self.rates or self.breaker or self.once))


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What one call says of itself; UNSET leaves it to the task."""

    delay_s: float | None = None
    run_at: float | None = None
    expires_in_s: float | None = None
    expires_at: float | None = None
    priority: int | Unset = UNSET
    queue: str | Unset = UNSET
    tenant: str | Unset = UNSET
    key: str | None = None
    key_window_s: float | Unset = UNSET
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    timeout_s: float | Unset | None = UNSET
    soft_timeout_s: float | Unset | None = UNSET
    retry: RetryPolicy | Unset = UNSET
    wait_s: float | Unset = UNSET
    once: Once | Unset | None = UNSET
    connection: object = None
    """The caller's own, in whose transaction the job is enqueued; None: it is committed by itself."""

    def __post_init__(self) -> None:
        if self.delay_s is not None and self.run_at is not None:
            raise InvalidOptions("delay= and run_at= say two different times; give one of them")
        check_debounce(self.once, self)


def check_debounce(once: Once | Unset | None, options: CallOptions) -> None:
    """What debounces says by itself when the job runs."""
    if isinstance(once, Debounce) and (options.delay_s is not None or options.run_at is not None):
        given = "delay=" if options.delay_s is not None else "run_at="
        raise InvalidOptions(f"debounce= and {given} say two different times; give one of them")
    if isinstance(once, Debounce) and options.expires_in_s is not None and options.expires_in_s <= once.wait_s:
        raise InvalidOptions(
            f"expires={options.expires_in_s:g} is not above debounce={once.wait_s:g}: no such job would ever run"
        )


NO_OPTIONS = CallOptions()


def call_options(
    *,
    delay: Seconds | Unset | None = UNSET,
    run_at: datetime | Unset | None = UNSET,
    expires: Seconds | datetime | Unset | None = UNSET,
    priority: int | str | Unset = UNSET,
    queue: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    key: str | Unset | None = UNSET,
    key_window: Seconds | Unset = UNSET,
    tags: Sequence[str] | Unset = UNSET,
    metadata: Mapping[str, Any] | Unset | None = UNSET,
    timeout: Seconds | Unset | None = UNSET,
    soft_timeout: Seconds | Unset | None = UNSET,
    retry: RetryPolicy | Unset = UNSET,
    wait: Seconds | Unset = UNSET,
    unique: Unique | Unset | None = UNSET,
    debounce: Debounce | Seconds | Unset | None = UNSET,
    throttle: Throttle | Seconds | Unset | None = UNSET,
    connection: object = UNSET,
) -> dict[str, Any]:
    """The fields of `CallOptions` that were given, checked; what was not given is left out."""
    fields: dict[str, Any] = {}
    if not isinstance(connection, Unset):
        fields["connection"] = connection
    if not isinstance(delay, Unset):
        fields["delay_s"] = None if delay is None else seconds("delay", delay)
    if not isinstance(run_at, Unset):
        fields["run_at"] = None if run_at is None else _moment("run_at", run_at)
    if not isinstance(expires, Unset):
        fields["expires_at"] = _moment("expires", expires) if isinstance(expires, datetime) else None
        fields["expires_in_s"] = (
            None if isinstance(expires, datetime) or expires is None else seconds("expires", expires)
        )
    if not isinstance(priority, Unset):
        fields["priority"] = parse_priority(priority)
    if not isinstance(queue, Unset):
        fields["queue"] = check_name("queue", queue)
    if not isinstance(tenant, Unset):
        fields["tenant"] = check_name("tenant", tenant) if tenant else ""
    if not isinstance(key, Unset):
        fields["key"] = None if key is None else check_name("key", key)
    if not isinstance(key_window, Unset):
        fields["key_window_s"] = seconds("key_window", key_window, at_least=1.0)
    if not isinstance(tags, Unset):
        fields["tags"] = _tags(tags)
    if not isinstance(metadata, Unset):
        fields["metadata"] = _metadata(metadata)
    if not isinstance(timeout, Unset):
        fields["timeout_s"] = limit_s("timeout", timeout)
    if not isinstance(soft_timeout, Unset):
        fields["soft_timeout_s"] = limit_s("soft_timeout", soft_timeout)
    if not isinstance(retry, Unset):
        fields["retry"] = _policy(retry)
    if not isinstance(wait, Unset):
        fields["wait_s"] = seconds("wait", wait)
    if (once := once_of(unique, debounce, throttle)) is not UNSET:
        fields["once"] = once
    return fields


def check_limits(soft_s: float | None, hard_s: float | None) -> None:
    """The soft limit must leave the task time to tidy up before the hard one."""
    if soft_s is not None and hard_s is not None and soft_s >= hard_s:
        raise InvalidOptions(
            f"soft_timeout={soft_s:g} is not below timeout={hard_s:g}: the soft limit must come first, to leave the "
            "task time to tidy up"
        )


def yes_or_no(name: str, value: object) -> bool:
    """An option that is on or off."""
    if not isinstance(value, bool):
        raise InvalidOptions(f"{name}={shown(value)}: needs True or False, not {type(value).__name__}")
    return value


def limit_s(name: str, value: Seconds | None) -> float | None:
    """A limit of time; None is no limit."""
    return None if value is None else seconds(name, value, at_least=0.001)


def tenant_of(value: object) -> str | Callable[..., object]:
    """A task's tenant: a name, or a function of a call's arguments."""
    if isinstance(value, str):
        return check_name("tenant", value) if value else ""
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise InvalidOptions(
            f"tenant={shown(value)}: needs a text, or a plain function of the call's arguments, as in "
            "`lambda account, **_: account`"
        )
    return value


def _moment(name: str, value: datetime) -> float:
    if not isinstance(value, datetime):
        raise InvalidOptions(f"{name}={shown(value)}: needs a datetime with a time zone, not {type(value).__name__}")
    if value.tzinfo is None:
        raise InvalidOptions(
            f"{name}={value.isoformat()}: has no time zone; use datetime.now(UTC), or give it one with "
            ".replace(tzinfo=…)"
        )
    at_s = value.timestamp()
    if not _EARLIEST_S <= at_s < _LATEST_S:  # what is stored is read again as a datetime in UTC
        raise InvalidOptions(f"{name}={value.isoformat()}: needs to be in the years 1 to 9998, in UTC")
    return at_s


def _policy(value: RetryPolicy) -> RetryPolicy:
    if not isinstance(value, RetryPolicy):
        raise InvalidOptions(f"retry={shown(value)}: needs a RetryPolicy(…), not {type(value).__name__}")
    return value


def _tags(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidOptions(f"tags={shown(value)}: needs a list of texts")
    if len(value) > _MOST_TAGS:
        raise InvalidOptions(f"tags: {len(value)} were given, at most {_MOST_TAGS} are kept per job")
    return tuple(dict.fromkeys(check_name("tag", tag) for tag in value))


def _metadata(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidOptions(f"metadata={shown(value)}: needs a mapping from texts to JSON values")
    return dict(value)
