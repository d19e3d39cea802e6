"""What can be told of a store from outside, for whoever makes, migrates or examines one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What is there of a store, told without opening or changing it."""

    place: str
    exists: bool
    schema: int
    """The version of its schema; 0 where there is none yet."""
    newest: int
    """The version that this Holdfast makes and needs."""
    pending: tuple[str, ...]
    """The migrations that opening it would apply, in order."""
    engine: str
    """Name and version of the database's software."""
