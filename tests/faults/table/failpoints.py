"""The cells of every failpoint: each strike at each moment on each store; and the moments that have no failpoint."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.table.cells import FAILURES, REDIS, SAID, SQLITE, STORES, Cell, Strike, fault_at

from holdfast.stores import moments
from holdfast.transports import moments as transport
from holdfast.worker import executor

PART = "failpoints"
#: The moments that FAULTS names, as they are called in the code.
NAMES = {
    "insert_jobs.begin": "E1",
    "insert_jobs.inside": "E2",
    "insert_jobs.committed": "E3",
    "claim_jobs.begin": "C1",
    "claim_jobs.committed": "C3",
    transport.PUBLISH_BEGIN: "E4",
    transport.PUBLISH_DONE: "E5",
    transport.FETCH_BEGIN: "C1",
    transport.FETCH_DONE: "C2",
    transport.FETCH_CLAIMED: "R4",
    executor.C4: "C4",
    executor.R2: "R2",
    "settle_jobs.committed": "R3",
    "renew_worker.begin": "H1",
    "renew_worker.inside": "H1",
    "renew_worker.committed": "H1",
    "reap_workers.inside": "M1",
    "lead.committed": "M3",
    "resign.committed": "M3",
    "prune_jobs.inside": "M4",
    "migrate.begin": "M5",
    "migrate.inside": "M5",
    "migrate.committed": "M5",
}
HOLDS = {
    Strike.FAIL: "whoever asked asks again; it happens once, as a whole, and every job ends",
    Strike.HANG: "others go on meanwhile; what comes late is refused or counts once, and every job ends",
    Strike.KILL: "what was committed counts, the rest never was; others take over, and every job ends",
    Strike.STOP: "others take over past the lease; who wakes changes nothing and goes on under a name that counts",
}
LOCKED = "the file is locked: others wait, nothing is lost; who wakes finishes, and everybody goes on"
_NOTHING_TO_FAIL = "there is nothing between these two lines that could fail and leave the process alive"


def points() -> list[str]:
    """Every failpoint that this table knows; a test compares them with those of the code."""
    verbs = [f"{verb}.{moment}" for verb in (*moments.VERBS, "finish", "migrate") for moment in FAILURES]
    return [*verbs, executor.C4, executor.R2]


#: On the way of announcements: only where there is a Redis.
ANNOUNCING = (
    transport.PUBLISH_BEGIN,
    transport.PUBLISH_DONE,
    transport.FETCH_BEGIN,
    transport.FETCH_DONE,
    transport.FETCH_CLAIMED,
)


def cells() -> Iterator[Cell]:
    for point in points():
        for strike in Strike:
            for store in STORES:
                yield _cell(point, strike, store)
    for point in ANNOUNCING:
        for strike in Strike:
            fault = fault_at(point, strike)
            yield Cell(PART, point, fault, REDIS, HOLDS[strike], scene="announced", strike=strike)
    yield from _user_code()


def _cell(point: str, strike: Strike, store: str) -> Cell:
    fault = fault_at(point, strike)
    base = {"part": PART, "moment": point, "fault": fault, "store": store, "holds": _holds(point, strike, store)}
    if strike is Strike.FAIL and point in (executor.C4, executor.R2):
        return Cell(**base, reason=_NOTHING_TO_FAIL)
    if point.startswith("finish.") and store == SQLITE:
        return Cell(**base, reason="a run finishes inside a transaction of the user's on PostgreSQL alone")
    return Cell(**base, scene="migrating" if point.startswith("migrate.") else "struck", strike=strike)


def _holds(point: str, strike: Strike, store: str) -> str:
    if point.startswith("migrate."):
        return "a step is there as a whole or not at all; others wait for it or go on from there, and jobs run"
    locked = store == SQLITE and point.endswith(".inside") and strike in (Strike.HANG, Strike.STOP)
    return LOCKED if locked else HOLDS[strike]


_R1 = {
    Strike.FAIL: "the attempt has failed, with the cause on record, and is repeated",
    Strike.HANG: "it is ended at its limit, charged, and repeated",
    Strike.KILL: "it runs again, cause lease_expired, and ends once",
    Strike.STOP: "it runs again elsewhere; who wakes changes nothing",
}


def _user_code() -> Iterator[Cell]:
    """R1: a task strikes its own process."""
    for strike in Strike:
        for store in STORES:
            fault = "raise" if strike is Strike.FAIL else SAID[strike]
            yield Cell(PART, "R1", fault, store, _R1[strike], scene="in_user_code", strike=strike)


#: Moments of FAULTS that no failpoint of today stands for.
WITHOUT_FAILPOINT = {
    "M2": "not built yet: it belongs to schedules",
    **{f"W{n}": "not built yet: it belongs to workflows" for n in range(1, 6)},
}
_ANSWERED = "tests/integration/test_enqueue.py::test_what_was_answered_is_in_the_file"
_SETTLED = "tests/supervision/test_hand_back.py::test_a_run_that_has_ended_is_not_suspected"


def named_moments() -> Iterator[Cell]:
    """What the list of moments has and the list of failpoints has not."""
    for moment, why in WITHOUT_FAILPOINT.items():
        yield Cell(PART, moment, "any", "any", "", reason=why)
    for store in STORES:
        yield Cell(PART, "E6", "kill -9", store, "what was answered is on record", test=_ANSWERED)
    for store in STORES:
        yield Cell(PART, "R5", "kill -9", store, "what was settled does not run again", test=_SETTLED)
