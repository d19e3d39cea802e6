"""What a nemesis can do, by kind: the table of strikes, and the choice of kinds that `--faults` makes."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Strike(NamedTuple):
    """How often it comes in one round: on SQLite, on PostgreSQL, and where there is a Redis beside that."""

    name: str
    kind: str
    on_sqlite: int
    on_postgres: int
    with_redis: int = 0


RESTART = "restart the server in immediate mode"
STOP_PAST_LEASE = "stop a worker past its lease"
#: One round, shuffled; after whole rounds only, so that the proportions hold.
STRIKES = (
    Strike("kill a worker", "kill", 5, 18),
    Strike("kill a process under a supervisor", "kill", 2, 3),
    Strike("kill a supervisor", "kill", 1, 1),
    Strike("kill a supervisor with its processes", "kill", 1, 1),
    Strike("kill a producer", "kill", 3, 2),
    Strike(STOP_PAST_LEASE, "stop", 2, 1),
    Strike("stop a worker for a moment", "stop", 2, 1),
    Strike("stop a process under a supervisor", "stop", 1, 1),
    Strike("stop a supervisor past its lease", "stop", 1, 1),
    Strike("drain a worker", "drain", 1, 1),
    Strike("drain a worker in a hurry", "drain", 1, 1),
    Strike("drain a supervisor", "drain", 1, 1),
    Strike("drain a supervisor in a hurry", "drain", 0, 1),
    Strike("roll a supervisor", "drain", 1, 1),
    Strike("plant a job that crashes its process", "poison", 1, 1),
    Strike("plant a job that does not end", "poison", 1, 1),
    Strike("plant a job that crashes its isolate", "poison", 1, 1),
    Strike("cancel jobs", "operators", 4, 2),
    Strike("replay dead jobs", "operators", 3, 2),
    Strike(RESTART, "restart", 0, 2),
    Strike("restart the server in fast mode", "restart", 0, 1),
    Strike("end connections", "connections", 0, 2),
    Strike("lose answers", "network", 0, 1),
    Strike("lose the answers to COMMIT", "network", 0, 1),
    Strike("leave answers hanging", "network", 0, 1),
    Strike("slow answers down", "network", 0, 1),
    Strike("cut connections", "network", 0, 1),
    Strike("freeze connections", "network", 0, 1),
    Strike("refuse connections", "network", 0, 1),
    Strike("kill Redis", "redis", 0, 0, 4),
    Strike("wipe Redis", "redis", 0, 0, 3),
    Strike("flush Redis", "redis", 0, 0, 2),
    Strike("cut Redis off", "redis", 0, 0, 3),
    Strike("freeze the way to Redis", "redis", 0, 0, 3),
)
#: Not struck by the nemesis, but carried by processes from their birth.
FAILPOINTS = "failpoints"
KINDS = (*dict.fromkeys(strike.kind for strike in STRIKES), FAILPOINTS)


def parse_faults(text: str) -> frozenset[str]:
    """Kinds with commas between them; ValueError with the list of those that there are."""
    named = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in named if name not in KINDS]:
        raise ValueError(f"there is no fault called {', '.join(unknown)}; there are: {', '.join(KINDS)}")
    if not named:
        raise ValueError(f"name at least one kind of faults: {', '.join(KINDS)}")
    return frozenset(named)


def a_round(kinds: Collection[str], *, postgres: bool, redis: bool = False) -> list[str]:
    """The strikes of one round, not yet shuffled."""

    def times(strike: Strike) -> int:
        return (strike.on_postgres if postgres else strike.on_sqlite) + (strike.with_redis if redis else 0)

    return [strike.name for strike in STRIKES if strike.kind in kinds for _ in range(times(strike))]
