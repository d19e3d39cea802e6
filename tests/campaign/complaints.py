"""What processes write into their logs although nothing may ever make a sound program write it."""

from __future__ import annotations

from collections.abc import Iterator

_WORDS = ("Traceback", "was never retrieved", "was never awaited", "crashed")


def complaints(lines: list[str]) -> Iterator[str]:
    """Lines that a sound program does not write.

    Not counted is one of the driver's: when a server is restarted at the moment in which a command is given up, asyncpg
    leaves a future behind that has the end of the connection in it, and that it never looks at.
    """
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        drivers = "was never retrieved" in line and "exception=ConnectionDoesNotExistError(" in following
        if any(word in line for word in _WORDS) and not drivers:
            yield line
