"""What a supervisor and a worker process say to each other: one JSON object per line over a pair of sockets."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

LONGEST_LINE: Final = 64 * 1024


class Order(StrEnum):
    """From the supervisor."""

    WORK = "work"
    """Begin to claim; until then the process stands by, with everything imported and open."""
    WORK_ALONE = "work_alone"
    """The same, but only jobs that must run alone, one at a time."""
    RETIRE = "retire"
    """Claim nothing more, and end when what runs has ended, however long that takes."""
    DRAIN = "drain"
    """Claim nothing more, and end within the grace period."""
    NOW = "now"
    """Hand back what runs, and end."""
    TELL = "tell"
    """Write what runs here, and where it stands, to the log."""


class Word(StrEnum):
    """From the worker process."""

    LOADED = "loaded"
    """The app is imported; `settings` are those that it has."""
    READY = "ready"
    """Everything is open and has begun: it stands by."""
    WORKING = "working"
    """It has a lease, and claims."""


def line_of(kind: Order | Word, **details: Any) -> bytes:
    """As it goes over the line."""
    return json.dumps({"kind": kind, **details}).encode() + b"\n"


def parse_line(line: bytes) -> tuple[str, dict[str, Any]]:
    """Kind and details; what is not of this form was not written by us, and is a kind that nobody knows."""
    try:
        details = json.loads(line)
        return str(details.pop("kind")), details
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return "", {}
