"""A queue as an operator sees it: settings that can change at run time, and a report of its depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.errors import InvalidOptions
from holdfast.core.priority import DEFAULT_WEIGHTS, LARGEST_WEIGHT, PRIORITIES, check_weights, weight_of
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, QueueOptions


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What the store keeps for a queue; None means the default of whoever asks."""

    paused: bool = False
    """Whether nothing more of it is started."""
    watermarks: Watermarks | None = None
    """Ready and parked jobs at which it stops accepting (`high`), and accepts again (`low`)."""
    weight: float = 1.0
    """Share of this queue against others; a lane's share is queue weight × priority weight."""
    weights: Mapping[str, float] | None = None
    """Weight by priority name."""
    ages: AgeMarks | None = None
    """How long the oldest ready job may have waited before it stops accepting, and for it to accept again."""
    draining: bool = False
    """Whether it accepts nothing until an operator says otherwise, while what it has goes on."""
    options: QueueOptions = NO_QUEUE_OPTIONS
    """What operators say goes before what each process is configured with, field by field."""
    ignored: tuple[str, ...] = field(default=(), compare=False)
    """Those that the store has in a form that makes no sense, written by hand: they count as not set."""


def share_of(settings: QueueSettings, priority: int, own: float | None = None) -> float:
    """A lane's weight; `own` is what a worker was told of the queue, and goes before what the store says."""
    try:
        weights = DEFAULT_WEIGHTS if settings.weights is None else check_weights(settings.weights)
    except InvalidOptions:  # written by hand into the store: the defaults hold
        weights = DEFAULT_WEIGHTS
    return (settings.weight if own is None else own) * weight_of(priority, weights)


def last_priorities(settings: QueueSettings) -> list[int]:
    """Those of which jobs are started only when nothing else is ready."""
    return [priority for priority in PRIORITIES if not share_of(settings, priority)]


MOST_COUNTED = 10_000
"""So far a report counts, of each queue and state but `ready`; that number means: at least so many."""


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue's depths and settings, read in one snapshot.

    `ready` is exact. A store may count the others, and each priority, up to `MOST_COUNTED` only.
    """

    name: str
    """The queue's name."""
    ready: int
    """Jobs that may start now."""
    scheduled: int
    """Jobs that wait for a time."""
    blocked: int
    """Jobs that wait for other jobs."""
    parked: int
    """Jobs that wait for something else, as for a worker that knows their task."""
    running: int
    """Jobs that run."""
    dead: int
    """Dead letters."""
    accepting: bool
    """Whether enqueues go through at once; False while it is full."""
    oldest_ready_s: float | None
    """Age of the job that has waited longest in `ready`, as far as the heads of its lanes tell."""
    by_priority: Mapping[int, int] = field(default_factory=dict)
    """Ready jobs by priority."""
    settings: QueueSettings = QueueSettings()
    """What was set for it at run time."""

    @property
    def waiting(self) -> int:
        """All that wait in it, for whatever it is."""
        return self.ready + self.scheduled + self.blocked + self.parked


RATES_OVER_S = 60.0
"""Rates are those of the last minute, or of less where that is more than `MOST_SAMPLED` jobs of all queues."""
MOST_SAMPLED = 2_000


@dataclass(frozen=True, slots=True)
class QueueRates:
    """How quickly jobs came, began and ended lately, from the jobs that the store still has.

    Of the runs of a job only the last one is counted. After a burst of more than `MOST_SAMPLED` jobs at once, these are
    the least that it can have been.
    """

    enqueued_per_s: float = 0.0
    """Jobs that were enqueued, each second."""
    started_per_s: float = 0.0
    """Jobs that began to run, and run yet or have ended."""
    ended_per_s: float = 0.0
    """Jobs that ended, in whichever way."""
    over_s: float = RATES_OVER_S
    """The time that this is about, in seconds; the same for all queues."""


def parse_served(entries: Iterable[str]) -> dict[str, float | None]:
    """The queues of a worker, written as `mail` or `mail=3`, with the weights that go before those in the store."""
    served: dict[str, float | None] = {}
    for entry in entries:
        name, equals, text = (part.strip() for part in entry.partition("="))
        weight = _weight(text) if equals else None
        if not name or (equals and weight is None):
            raise InvalidOptions(
                f"{entry!r}: write a queue as in 'mail', or with its weight as in 'mail=3', at most {LARGEST_WEIGHT:,}"
            )
        if served.get(name, weight) != weight:
            raise InvalidOptions(f"queue {name!r} was given twice, with and without a weight or with two weights")
        served[name] = weight
    return served


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 <= weight <= LARGEST_WEIGHT else None
