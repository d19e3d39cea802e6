"""A queue as an operator sees it: settings that can change at run time, and a report of its depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core.backpressure import Watermarks


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What the store keeps for a queue; None means the default of whoever asks."""

    paused: bool = False
    watermarks: Watermarks | None = None
    weight: float = 1.0
    """Share of this queue against others; a lane's share is queue weight × priority weight."""
    weights: Mapping[str, float] | None = None
    """Weight by priority name."""


MOST_COUNTED = 10_000
"""So far a report counts, of each queue and state but `ready`; that number means: at least so many."""


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue's depths and settings, read in one snapshot.

    `ready` is exact. A store may count the others, and each priority, up to `MOST_COUNTED` only.
    """

    name: str
    ready: int
    scheduled: int
    blocked: int
    parked: int
    running: int
    dead: int
    accepting: bool
    oldest_ready_s: float | None
    """Age of the job that has waited longest in `ready`, as far as the heads of its lanes tell."""
    by_priority: Mapping[int, int] = field(default_factory=dict)
    settings: QueueSettings = QueueSettings()
