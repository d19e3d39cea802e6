"""What makes a call one too many: another job with the same unique key. Values only; the store judges in its insert."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.core.state import LIVE, State


class WhenTaken(StrEnum):
    """What becomes of a call whose unique key another job holds."""

    REJECT = "reject"
    """It is refused with `NotUnique`."""
    EXISTING = "existing"
    """It gives a handle of the job that is there."""
    REPLACE = "replace"
    """It goes instead of the job that is there, which is cancelled."""


class UniqueClaim(NamedTuple):
    """A unique key as the store keeps it: the job that has it, holds it while it is in one of `states`, and no longer
    than `for_s` from its enqueueing on."""

    key: str
    """Made by the client out of task, tenant and what has to be unique."""
    states: frozenset[State] = LIVE
    for_s: float | None = None
    """None: as long as the job is in one of the states."""
    when_taken: WhenTaken = WhenTaken.EXISTING
    longest_s: float | None = None
    """With `REPLACE`: a job that replaces others is due at the latest so long after the first of them was enqueued."""

    @property
    def counts_first_waits_only(self) -> bool:
        """Whether it is about jobs that wait for their time alone: then one that waits for its retry is none of them,
        it has begun."""
        return self.states == WAITING_FOR_A_TIME


class Rekeyed(NamedTuple):
    """The unique key of a job whose arguments are others now, by the rule that gave it the one of before."""

    before: str
    after: str


EVER: Final = frozenset(State)
WAITING_FOR_A_TIME: Final = frozenset({State.SCHEDULED})
