"""The cells of a Redis, or a Redis Cluster, beside PostgreSQL: each fault at each moment of an announcement's way."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.table.cells import REDIS, Cell

from holdfast.transports import moments
from holdfast.worker import executor

PART = "Redis server"
IDLE = "idle"
#: As FAULTS calls them, and where they are in the code.
POINTS = {
    "E4": moments.PUBLISH_BEGIN,
    "E5": moments.PUBLISH_DONE,
    "C1": moments.FETCH_BEGIN,
    "C2": moments.FETCH_DONE,
    "C3": "claim_jobs.committed",
    "C4": executor.C4,
    "R4": moments.FETCH_CLAIMED,
}
MOMENTS = (IDLE, *POINTS)
_BY_THE_STORE = "every enqueue is accepted; work comes from the store meanwhile; Redis is used again by itself"
_ANEW = f"{_BY_THE_STORE}, and told anew of what is ready"
_STALE = f"{_ANEW}; announcements of what has ended or been taken lead to nothing"
FAULTS = {
    "killed, back after a while": ("kill", _BY_THE_STORE),
    "wiped": ("wipe", _ANEW),
    "loses the last of what it wrote": ("truncate", _STALE),
    "cut off: connections reset, none accepted": ("partition", _BY_THE_STORE),
    "black hole: nothing passes, nobody is told": ("black_hole", _BY_THE_STORE),
    "frozen by SIGSTOP": ("freeze", _BY_THE_STORE),
    "slow: every answer 0.1 s late": ("slow 0.1", "it is waited for; nothing is lost, nothing happens twice"),
    "slow: every answer 2 s late": ("slow 2", _BY_THE_STORE),
    "a stale replica is promoted": ("promote", _STALE),
    "answers LOADING": ("answer LOADING", _BY_THE_STORE),
    "answers READONLY": ("answer READONLY", _BY_THE_STORE),
    "everything is flushed": ("flush", _ANEW),
    "garbage in every stream": ("garbage", "it is dropped, said once, and nobody stumbles over it"),
}

CLUSTER = "Redis Cluster"
CLUSTER_FAULTS = {
    "the master of the queue is killed, its replica takes over": ("fail_over", _STALE),
    "the master of the queue is killed, and back before anybody takes over": ("restart", _ANEW),
    "an operator has the replica take over": ("hand_over", _ANEW),
    "the slot of the queue moves to another node": ("move", _ANEW),
}


def cells() -> Iterator[Cell]:
    for moment in MOMENTS:
        for fault, (strike, holds) in FAULTS.items():
            yield Cell(PART, moment, fault, REDIS, holds, scene="struck_redis", strike=strike)


def cluster_cells() -> Iterator[Cell]:
    for moment in MOMENTS:
        for fault, (strike, holds) in CLUSTER_FAULTS.items():
            yield Cell(CLUSTER, moment, fault, REDIS, holds, scene="struck_cluster", strike=strike)
