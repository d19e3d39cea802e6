"""Events about flow control: what operators have changed, and what became of circuit breakers. Part of `events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class QueueSettingsIgnored:
    """What the store has of these settings of a queue makes no sense, and counts as not set."""

    name: ClassVar[str] = "queue.settings_ignored"
    queue: str
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RouteUnheard:
    """This producer cannot read what operators say of routes, for another reason than that the store is away: jobs go
    where it was known last."""

    name: ClassVar[str] = "route.unheard"
    error: str


@dataclass(frozen=True, slots=True)
class SettingChanged:
    """Somebody has changed, from this process, what all processes go by: a queue, route, task, tenant, limit or
    breaker."""

    name: ClassVar[str] = "setting.changed"
    what: str
    which: str
    said: str
    by: str


@dataclass(frozen=True, slots=True)
class JobsLetGo:
    """Jobs that waited at a limit, rate, breaker or pause are ready."""

    name: ClassVar[str] = "job.let_go"
    count: int


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Runs of this process have found it out: jobs of the breaker wait, at first for so long."""

    name: ClassVar[str] = "breaker.opened"
    breaker: str
    for_s: float


@dataclass(frozen=True, slots=True)
class BreakerClosed:
    """Runs of this process have found it out: a probe succeeded, and jobs of the breaker run again."""

    name: ClassVar[str] = "breaker.closed"
    breaker: str


FlowEvent: TypeAlias = QueueSettingsIgnored | RouteUnheard | SettingChanged | JobsLetGo | BreakerOpened | BreakerClosed
