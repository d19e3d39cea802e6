"""The contract of a transport: it carries announcements of ready jobs to workers, and may lose, repeat or delay any.

Nothing depends on one for more than speed: whoever reads from it also looks into the store. So none of these methods
raises because the transport is away; `is_up` says so, and whoever announces or reads does without it. A suite in
`holdfast.testing.contracts.transports` runs on every transport.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId


class Entry(NamedTuple):
    """An announcement that one consumer has read, and nobody else reads unless this one dies over it."""

    lane: Lane
    id: bytes
    """The transport's own name for it."""
    job_id: JobId | None
    """None: some job of this lane is ready."""


class Reading(NamedTuple):
    """What was read at once."""

    entries: list[Entry]
    more: frozenset[Lane] = frozenset()
    """Lanes that have more to read."""


NOTHING = Reading([])


class Consumer(Protocol):
    """The part of a transport that one worker reads with. Belongs to one event loop."""

    @property
    def is_up(self) -> bool:
        """Whether announcements come this way now; if not, the store alone says what is ready."""
        ...

    def arrived(self) -> list[Entry]:
        """Take what came by `listen` since the last time."""
        ...

    async def read(self, quotas: Mapping[Lane, int]) -> Reading:
        """Up to so many entries per lane, oldest first, without waiting for any; forgets what was acknowledged."""
        ...

    def ack(self, entries: Collection[Entry]) -> None:
        """These are dealt with: soon forgotten. Only after what they led to is committed."""
        ...

    def hand_on(self, entries: Collection[Entry]) -> None:
        """Somebody else is to have these: there is no room for them here."""
        ...

    def listen(self, lanes: Collection[Lane], *, most: int) -> None:
        """Until told otherwise, have entries of these lanes come by themselves, about `most` of a lane at once; each
        time some have come, the waker is called. No lanes: nothing more, but for what is on its way already."""
        ...

    async def close(self) -> None:
        """Hand on what was read and not acknowledged, and sign off."""
        ...


class Upkeep(NamedTuple):
    """What a transport was found to need or to have needed."""

    unfilled: tuple[str, ...] = ()
    """Queues of whose ready jobs it knows nothing, because it is new or has lost its memory."""
    recovered: int = 0
    """Entries of dead consumers that others can read now."""
    forgotten: int = 0
    """Dead consumers that were removed."""


class Transport(Protocol):
    """A whole transport."""

    async def open(self) -> None:
        """Connect and check. ConfigError where a person has to act; one that is away is no error."""
        ...

    async def close(self) -> None:
        """Deliver what was announced, for a moment at most, and disconnect."""
        ...

    @property
    def is_up(self) -> bool: ...

    def consumer(self, name: str, *, wake: Callable[[], None], on_news: Callable[[], None] = ...) -> Consumer:
        """What a worker of this name reads with; `wake` is called when something has come, or the way has changed;
        `on_news` when the settings of a queue of which was read have changed in the store, or may have."""
        ...

    def publish(self, announcements: Sequence[Announcement]) -> bool:
        """Have these delivered soon, without waiting. False: they were not taken, so that others have to be told
        otherwise. What was taken and could not be delivered after all is told of by `on_undelivered`."""
        ...

    def tell_news(self, queue: str) -> None:
        """A queue's settings have changed in the store: whoever reads of it is to look there. May be lost."""
        ...

    async def tend(self, queues: Collection[str]) -> Upkeep:
        """Look after what dead consumers have left behind; for one process at a time, harmless in two."""
        ...

    async def fill(self, queue: str, announcements: Sequence[Announcement]) -> None:
        """Announce a queue's ready jobs, in order, to a transport that knows nothing of them; as many as it takes."""
        ...
