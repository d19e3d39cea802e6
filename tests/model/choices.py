"""What the state machine may ask for: jobs, lanes, settlements. Few values of each, so that they meet.

Everything is picked by one function from lists, so that both Hypothesis and a plain random generator can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core.breaker import NO_FIGURES, BreakerFigures, BreakerGate, BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import Gate, RateGate, SlotGate, WhenFull
from holdfast.core.job import JobId, KeyClaim, NewJob
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
)
from holdfast.core.state import LIVE, State
from holdfast.core.unique import EVER, WAITING_FOR_A_TIME, UniqueClaim, WhenTaken
from holdfast.testing.contracts.arrange import ERROR, TASK, a_job

Pick = Callable[[Sequence[Any]], Any]

ORDERED = (Lane("a", 5), Lane("a", 9), Lane("b", 5))
AFTER = Lane("after", 5)
"""Jobs that wait for others: the order in which they are released is open."""
LANES = (*ORDERED, AFTER)
SHARED = Lane("b", 5)
"""Where jobs may have tenants; in the other lanes nobody does."""
TENANTS = ("", "", "x", "x", "y")
WEIGHTS = (None, 0.5, 3.0)
QUEUES = ("a", "b", "after")
COME_LAST = (
    *(("b", QueueSettings(weight=weight)) for weight in (0.0, 0.0, 1.0)),
    *(("a", QueueSettings(weights=weights)) for weights in ({"normal": 0}, {"critical": 0}, None)),
)
SOON = (0.0, 1.0, 6.0, 20.0)
LEASES = (600.0, 60.0, 60.0, 10.0, 0.0)
ROLES = ("one role", "another")
PARK_KEYS = ("t1", "t2")
WHY = "for some reason"

ONE, TWO = SlotGate("one", 1), SlotGate("two", 2)
SLOW, PAIR = RateGate("slow", Pace(1, 10.0, 1)), RateGate("pair", Pace(1, 2.0, 2))
BANK, SHOP = BreakerGate("bank", 1, 30.0, 6.0), BreakerGate("shop", 2, 30.0, 0.0)
BREAKERS = (BANK, SHOP)
COUNTS = (
    NO_FIGURES,
    NO_FIGURES,
    BreakerFigures(failures=2),
    BreakerFigures(1, open_for_s=10.0),
    BreakerFigures(3, 5.0),
)
SKIP, SWAP = SlotGate("skip", 1, when_full=WhenFull.SKIP), SlotGate("swap", 1, when_full=WhenFull.REPLACE)
Choice = tuple[tuple[Gate, ...], ...]
THEMES: tuple[Choice, ...] = (
    ((), (ONE,), (TWO,), (ONE, TWO), (TWO, ONE)),
    ((), (SLOW,), (PAIR,), (ONE, SLOW), (PAIR, TWO)),
    ((), (BANK,), (SHOP,), (BANK, ONE), (PAIR, SHOP)),
    ((), (SKIP,), (SWAP,), (SWAP,)),
    ((), (), (ONE,), (TWO, PAIR), (SHOP, TWO), (SWAP,)),
)
"""What jobs of one story have to pass: few kinds, so that they get into each other's way."""
TASKS = (TASK, TASK, "other.task")
LIMITED_AT_RUN_TIME = ("one", "two", "queue:b", f"task:{TASKS[-1]}")
PACED = Pace(1, 5.0, 2)
MOVED_TO = ORDERED
PARKED_MOVED_TO = ORDERED[:2]
"""Those of one queue in which nobody has a tenant: what a parked job's tag would mean elsewhere is open."""
COUNTED = (LIVE, LIVE | {State.SUCCEEDED}, EVER, LIVE - {State.RUNNING}, WAITING_FOR_A_TIME)
WINDOWS = {"u1": None, "u2": 10.0, "u3": 20_000.0}

VERBS = (
    *("insert", "rush", "rush", "work", "work", "work", "claim", "settle", "settle", "wait", "wait"),
    *("cancel", "cancel running", "replay", "crash", "renew", "hand back", "register", "seldom"),
)
SELDOM = (
    *("unpark", "unpark", "claim parked", "claim parked", "insert again", "progress"),
    *("sweep", "report", "lead", "resign"),
    *("pause", "prune", "purge", "purge dead", "wait long", "weigh", "keys", *("operate",) * 6),
)


def new_jobs(pick: Pick, count: int, earlier: Sequence[JobId], theme: Choice) -> list[NewJob]:
    """Requests to enqueue; `earlier` are the ids of all jobs so far, some of which they may wait for."""
    jobs: list[NewJob] = []
    for _ in range(count):
        jobs.append(_new_job(pick, [*earlier, *(job.id for job in jobs)][-8:], theme))
    return jobs


def _new_job(pick: Pick, recent: list[JobId], theme: Choice) -> NewJob:
    key = KeyClaim(pick(("k1", "k2")), pick((b"same", b"same", b"other")), pick((10.0, 9000.0)))
    job = a_job(expires_in_s=pick((None,) * 8 + SOON), key=pick((None, None, None, key)))
    if recent and pick((False, False, True)):
        waits_for = tuple(pick(recent) for _ in range(pick((1, 2, 2, 3))))
        return job._replace(queue=AFTER.queue, priority=AFTER.priority, waits_for=waits_for)
    lane = pick(ORDERED)
    return job._replace(
        task=pick(TASKS),
        queue=lane.queue,
        priority=lane.priority,
        gates=pick(theme),
        unique=pick((None, None, None, None, _unique(pick))),
        delay_s=pick((None, None, None, -5.0, *SOON)),
        tenant=pick(TENANTS) if lane == SHARED else "",
    )


def _unique(pick: Pick) -> UniqueClaim:
    key = pick(tuple(WINDOWS))
    return UniqueClaim(key, pick(COUNTED), WINDOWS[key], pick(tuple(WhenTaken)), pick((None, 5.0)))


def mark(pick: Pick, job: NewJob, token: int, *, may_fail: bool) -> list[BreakerMark]:
    """What a run says about its breaker, if it has one and says anything."""
    gates = [gate for gate in job.gates if isinstance(gate, BreakerGate)]
    failed = may_fail and pick((True, True, False))
    return [
        BreakerMark(token, failed, gate, pick((0.0, 0.0, 1.0, 60.0))) for gate in gates if pick((True, True, False))
    ]


def settlement(pick: Pick, job_id: JobId, token: int) -> Settlement:
    """Some word on a run."""
    return pick(
        (
            Succeed(job_id, token, b"1"),
            Retry(job_id, token, pick(SOON), ERROR),
            Snooze(job_id, token, pick(SOON), ERROR),
            HandBack(job_id, token, WHY, pick((Cause.HANDED_BACK, Cause.CLAIM_LOST))),
            Crashed(job_id, token, WHY),
            Park(job_id, token, UNKNOWN_TASK, pick(PARK_KEYS)),
            Bury(job_id, token, "permanent", ERROR),
            Cancel(job_id, token, "honoured"),
        )
    )
