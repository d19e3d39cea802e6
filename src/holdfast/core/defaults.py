"""Options that several tasks share, and how a task's own come out of all that is said; not what one call says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, TypeVar

from holdfast.core.durations import Seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.limit_options import Breaker, Concurrency, Limit, Rate, Rates, breaker_of, limits_of, rates_of
from holdfast.core.names import check_name
from holdfast.core.once_options import Debounce, Once, Throttle, Unique, once_of
from holdfast.core.options import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DEFAULT_TIMEOUT_S,
    OWN,
    TaskOptions,
    call_options,
    check_limits,
    limit_s,
    tenant_of,
    yes_or_no,
)
from holdfast.core.priority import parse_priority
from holdfast.core.retry import RetryPolicy
from holdfast.core.shown import shown
from holdfast.core.unset import UNSET, Unset

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefaults:
    """Options that tasks share: those of an app, of a queue, or of the tasks that name them with `base=`.

    They are those of `@hf.task`: `queue`, `priority`, `tenant`, `retry`, `timeout`, `soft_timeout`, `isolate`,
    `concurrency`, `rate`, `breaker`, `unique`, `debounce`, `throttle`. What is UNSET is left to the next level; None is
    a value, as in `timeout=None` for no limit. What a queue's defaults say of `concurrency` and `rate` holds beside
    what its tasks say, and without a `name=` for all of them together.
    """

    queue: str | Unset = UNSET
    priority: int | str | Unset = UNSET
    retry: RetryPolicy | Unset = UNSET
    timeout: Seconds | Unset | None = UNSET
    soft_timeout: Seconds | Unset | None = UNSET
    isolate: bool | Unset = UNSET
    tenant: str | Callable[..., object] | Unset = UNSET
    concurrency: Concurrency | Unset = UNSET
    rate: Rates | Unset = UNSET
    breaker: Breaker | str | Unset | None = UNSET
    unique: Unique | Unset | None = UNSET
    debounce: Debounce | Seconds | Unset | None = UNSET
    throttle: Throttle | Seconds | Unset | None = UNSET

    def __post_init__(self) -> None:
        fields = call_options(
            queue=self.queue,
            priority=self.priority,
            retry=self.retry,
            timeout=self.timeout,
            soft_timeout=self.soft_timeout,
        )
        check_limits(fields.get("soft_timeout_s"), fields.get("timeout_s"))
        if not isinstance(self.isolate, Unset):
            yes_or_no("isolate", self.isolate)
        if not isinstance(self.tenant, Unset):
            tenant_of(self.tenant)
        self.limits, self.rates, self.breaks, self.once  # noqa: B018  # each refuses what makes no sense

    @property
    def limits(self) -> tuple[Limit, ...] | Unset:
        return self.concurrency if isinstance(self.concurrency, Unset) else limits_of(self.concurrency)

    @property
    def rates(self) -> tuple[Rate, ...] | Unset:
        return self.rate if isinstance(self.rate, Unset) else rates_of(self.rate)

    @property
    def breaks(self) -> Breaker | Unset | None:
        return self.breaker if isinstance(self.breaker, Unset) else breaker_of(self.breaker)

    @property
    def once(self) -> Once | Unset | None:
        """What it says about a call too many: one of `unique`, `debounce` and `throttle`."""
        return once_of(self.unique, self.debounce, self.throttle)


class TaskFields(TypedDict, total=False):
    """What `@hf.task(…)` takes beside a name and a base, for type checkers: the fields of `TaskDefaults`."""

    queue: str | Unset
    priority: int | str | Unset
    retry: RetryPolicy | Unset
    timeout: Seconds | Unset | None
    soft_timeout: Seconds | Unset | None
    isolate: bool | Unset
    tenant: str | Callable[..., object] | Unset
    concurrency: Concurrency | Unset
    rate: Rates | Unset
    breaker: Breaker | str | Unset | None
    unique: Unique | Unset | None
    debounce: Debounce | Seconds | Unset | None
    throttle: Throttle | Seconds | Unset | None


NO_DEFAULTS = TaskDefaults()


def resolve_options(
    own: TaskDefaults,
    *,
    base: TaskDefaults = NO_DEFAULTS,
    queues: Mapping[str, TaskDefaults] | None = None,
    app: TaskDefaults = NO_DEFAULTS,
) -> TaskOptions:
    """Each option from the first that gives it: the task's own, its base, its queue's, the app's, built in."""
    queue = _first(DEFAULT_QUEUE, own.queue, base.queue, app.queue)
    of_queue = (queues or {}).get(queue, NO_DEFAULTS)
    levels = (own, base, of_queue, app)
    tasks = (own, base, app)
    priorities: list[int | str] = [each.priority for each in levels if not isinstance(each.priority, Unset)]
    timeout_s = limit_s("timeout", _first(DEFAULT_TIMEOUT_S, *(each.timeout for each in levels)))
    soft_timeout_s = limit_s("soft_timeout", _first(None, *(each.soft_timeout for each in levels)))
    check_limits(soft_timeout_s, timeout_s)
    return TaskOptions(
        queue=check_name("queue", queue),
        priority=parse_priority([*priorities, DEFAULT_PRIORITY][0]),
        retry=_first(_BUILT_IN_RETRY, *(each.retry for each in levels)),
        timeout_s=timeout_s,
        soft_timeout_s=soft_timeout_s,
        isolate=_first(False, *(each.isolate for each in levels)),
        tenant=tenant_of(_first("", *(each.tenant for each in levels))),
        limits=(
            *_first((), *(each.limits for each in tasks)),
            *(replace(each, name=each.name or f"queue:{queue}") for each in _first((), of_queue.limits)),
        ),
        rates=(
            *_first((), *(each.rates for each in tasks)),
            *(replace(each, name=each.name or f"queue:{queue}") for each in _first((), of_queue.rates)),
        ),
        breaker=_first(None, *(each.breaks for each in levels)),
        once=_first(None, *(each.once for each in levels)),
        said_by=_said_by(queue, levels),
    )


def _said_by(queue: str, levels: Sequence[TaskDefaults]) -> dict[str, str]:
    """Who says where its jobs go, in words."""
    names = (OWN, "the task's base", f"the defaults of queue {queue!r}", "the app's defaults")
    return {
        option: name
        for option in ("queue", "priority", "tenant")
        for name, level in reversed(tuple(zip(names, levels, strict=True)))
        if not isinstance(getattr(level, option), Unset)
    }


def check_defaults(name: str, value: object) -> TaskDefaults:
    """What was given as an app's, a queue's or a base's defaults; None is nothing."""
    if value is None:
        return NO_DEFAULTS
    if not isinstance(value, TaskDefaults):
        raise InvalidOptions(f"{name}={shown(value)}: needs a TaskDefaults(…), not {type(value).__name__}")
    return value


def check_queue_defaults(value: Mapping[str, TaskDefaults] | None) -> Mapping[str, TaskDefaults]:
    """The defaults of queues, by their names."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidOptions(f"queue_defaults={shown(value)}: needs a mapping from queue names to TaskDefaults(…)")
    for queue, defaults in value.items():
        where = f"queue_defaults[{check_name('queue', queue)!r}]"
        if not isinstance(check_defaults(where, defaults).queue, Unset):
            raise InvalidOptions(f"{where}: names a queue itself; leave out queue={defaults.queue!r}")
    return dict(value)


def _first(built_in: T, *values: T | Unset) -> T:
    return next((value for value in values if not isinstance(value, Unset)), built_in)


_BUILT_IN_RETRY = RetryPolicy()
