"""How much one client may ask for: every number that a request is measured against, in one value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.json_text import MAX_DEPTH
from holdfast.core.rate import parse_pace
from holdfast.core.shown import shown

MOST_SUBMITTED: Final = 1_000
MOST_IDS: Final = 1_000
#: Of jobs, each of which may be as large as its arguments and its result together.
MOST_LISTED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """The limits of one API process; each has a default that suits most."""

    body: int = 2 * 1024 * 1024
    """Bytes of a body; that of a job's arguments is `payload_limit`. Defaults to 2 MiB."""
    batch_body: int = 16 * 1024 * 1024
    """Bytes of a body with many submissions. Defaults to 16 MiB."""
    body_s: float = 20.0
    """Seconds within which a body has to arrive. Defaults to 20."""
    depth: int = MAX_DEPTH
    """Levels of nesting. Defaults to 64."""
    keys: int = 50_000
    """Members of all objects in a body together. Defaults to 50,000."""
    parts: int = 500_000
    """Texts, commas and brackets in a body: what it takes to build it. Defaults to 500,000."""
    string: int = 1024 * 1024
    """Characters of one text. Defaults to 1,048,576."""
    rate: str = "2000/s"
    """Requests of one key. Defaults to 2,000 a second."""
    failed_rate: str = "30/m"
    """Failed authentications from one address. Defaults to 30 a minute."""
    wait_s: float = 60.0
    """Seconds that `Prefer: wait` may ask for; more is cut down to it. Defaults to 60."""
    waits: int = 1_000
    """Requests that wait for an ending at once; beyond them, nobody waits. Defaults to 1,000."""
    store_s: float = 30.0
    """Seconds that a submission waits for the store to say what became of it. Defaults to 30."""
    streams: int = 1_000
    """Clients that follow jobs at once. Defaults to 1,000."""
    stream_s: float = 600.0
    """Seconds after which a client that follows is told to come again, with its key. Defaults to ten minutes."""
    quiet_s: float = 15.0
    """Seconds after which a stream that has nothing to tell says so, to find out who has gone. Defaults to 15."""
    stalled_s: float = 30.0
    """Seconds after which a client that reads nothing is given up. Defaults to 30."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                parse_pace(value)
            elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise InvalidOptions(f"HttpLimits({each.name}={shown(value)}): needs a number above 0")
