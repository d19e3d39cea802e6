"""What can be told of a transport from outside, for whoever examines one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server of a transport."""

    place: str
    version: str
    used_bytes: int
    most_bytes: int
    """How much it may use; 0: as much as there is."""


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """What the transport knows of the lanes of one queue."""

    queue: str
    entries: int
    """Announcements, those that were read and not yet acknowledged among them."""
    read: int
    """Those."""
    read_for_s: float
    """For how long the oldest of them."""
    is_filled: bool
    """Whether it was told of all ready jobs since it last may have forgotten some."""
    foreign: tuple[str, ...] = ()
    """Names that hold something of somebody else's."""


@dataclass(frozen=True, slots=True)
class TransportStatus:
    """Told without changing anything but that it was tried."""

    place: str
    error: str = ""
    """Why it is not used now."""
    servers: tuple[ServerStatus, ...] = ()
    queues: tuple[LaneStatus, ...] = ()
