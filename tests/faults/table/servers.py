"""The cells of a PostgreSQL server and the way to it: each fault at each moment of a job's life."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.table.cells import POSTGRES, Cell

PART = "PostgreSQL server"
IDLE, PRODUCING, RUNNING = "idle", "producing", "running"
MOMENTS = (IDLE, PRODUCING, "claiming", RUNNING, "settling", "beating")
#: The statements of each moment, for faults that befall one statement.
STATEMENTS = {
    IDLE: ".",
    PRODUCING: r"\.insert_(new_)?jobs\(|^COMMIT",
    "claiming": r"\.claim_jobs\(|^COMMIT",
    RUNNING: ".",
    "settling": r"\.settle_jobs\(|^COMMIT",
    "beating": r"UPDATE \S+\.worker SET lease_until",
}
_AGAIN = "it is repeated, never in part; nothing is lost, nothing happens twice"
_LATER = "it is waited for; what runs goes on; all goes on by itself when it is back"
_UNKNOWN = "the answer is asked for again: one job, one ending"
_GIVEN_UP = "the wait ends, the connection is given up, the answer counts as unknown; a lease may be lost, no job"
#: What it is called, how the scene deals it, and what must hold.
FAULTS = {
    "restart -m immediate": ("restart immediate", _LATER),
    "restart -m fast": ("restart fast", _LATER),
    "backends terminated (57P01)": ("terminate", _AGAIN),
    "answers lost, COMMIT's too": ("lose", _UNKNOWN),
    "requests lost": ("abandon", _AGAIN),
    "answers never come": ("hang", _GIVEN_UP),
    "deadlock 40P01": ("refuse 40P01", _AGAIN),
    "serialization failure 40001": ("refuse 40001", _AGAIN),
    "lock timeout 55P03": ("refuse 55P03", _AGAIN),
    "disk full 53100": ("refuse 53100", _LATER),
    "out of memory 53200": ("refuse 53200", _LATER),
    "statement cancelled 57014": ("refuse 57014", _AGAIN),
    "admin shutdown 57P01": ("refuse 57P01", _AGAIN),
    "too many connections 53300": ("turn_away 53300", _LATER),
    "starting up 57P03": ("turn_away 57P03", _LATER),
    "slow: one byte at a time": ("slow", _LATER),
    "slow: every answer 0.1 s late": ("delay", _LATER),
    "half-open: nothing passes": ("freeze", _GIVEN_UP),
}
_SMART = "a smart shutdown waits until every client has gone: to those that stay nothing happens, others meet 57P03"


def cells() -> Iterator[Cell]:
    for moment in MOMENTS:
        for fault, (strike, holds) in FAULTS.items():
            yield Cell(PART, moment, fault, POSTGRES, holds, scene="struck_server", strike=strike)
        yield Cell(PART, moment, "restart -m smart", POSTGRES, _LATER, reason=_SMART)
