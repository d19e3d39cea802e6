"""The events of the transport between store and workers. `events` has them together with all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TransportDown:
    """Redis stopped answering, or cannot be used: work comes from the store alone meanwhile. No job depends on it."""

    name: ClassVar[str] = "transport.down"
    place: str
    error: str


@dataclass(frozen=True, slots=True)
class TransportRefused:
    """Redis is there again, and a person has to mend what stands in the way of its use; told once per reason."""

    name: ClassVar[str] = "transport.refused"
    place: str
    error: str


@dataclass(frozen=True, slots=True)
class TransportUp:
    """Redis is used again."""

    name: ClassVar[str] = "transport.up"
    place: str
    after_s: float


@dataclass(frozen=True, slots=True)
class TransportFilled:
    """A Redis that knew nothing of a queue's ready jobs, because it is new or was emptied, has been told of them."""

    name: ClassVar[str] = "transport.filled"
    queue: str
    jobs: int


@dataclass(frozen=True, slots=True)
class TransportGarbage:
    """Entries in a stream that are none of ours were dropped: somebody else writes to our keys."""

    name: ClassVar[str] = "transport.garbage"
    stream: str
    count: int
