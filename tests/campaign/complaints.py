"""What processes write into their logs although nothing may ever make a sound program write it."""

from __future__ import annotations

from collections.abc import Iterator

#: None of them is excused as a driver's: a future of asyncpg's that "was never retrieved" was the trace of a connection
#: that two event loops used at once.
_WORDS = ("Traceback", "was never retrieved", "was never awaited", "crashed", "different loop")


def complaints(lines: list[str]) -> Iterator[str]:
    """Lines that a sound program does not write."""
    return (line for line in lines if any(word in line for word in _WORDS))
