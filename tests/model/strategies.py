"""What the state machine draws: requests to enqueue, lanes, settlements. Few values of each, so that they meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.job import JobId, KeyClaim, LimitSlot, NewJob
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
)
from holdfast.testing.contracts.arrange import ERROR, a_job

ORDERED = (Lane("a", 5), Lane("a", 9), Lane("b", 5))
AFTER = Lane("after", 5)
"""Jobs that wait for others: the order in which they are released is open."""
LANES = (*ORDERED, AFTER)
QUEUES = st.sampled_from(["a", "b", "after"])
SOON = (1.0, 6.0, 20.0)
LEASES = st.sampled_from([600.0, 60.0, 10.0, 0.0])
PARK_KEYS = st.sampled_from(["t1", "t2"])
WHY = "for some reason"


@dataclass(frozen=True)
class Plan:
    """A request to enqueue, without the ids."""

    lane: Lane
    delay_s: float | None
    expires_in_s: float | None
    key: KeyClaim | None
    limit: LimitSlot | None
    waits_for: tuple[int, ...]
    """Places in the list of all ids so far, from its end. A job that waits has neither delay nor limit."""


def rarely(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.none(), values)


plans = st.builds(
    Plan,
    lane=st.sampled_from(ORDERED),
    delay_s=rarely(st.sampled_from((*SOON, 0.0, -5.0))),
    expires_in_s=rarely(st.sampled_from((*SOON, 0.0, 30.0))),
    key=rarely(
        st.builds(
            KeyClaim,
            st.sampled_from(["k1", "k2"]),
            st.sampled_from([b"same", b"same", b"other"]),
            st.sampled_from([10.0, 9000.0]),
        )
    ),
    limit=rarely(st.sampled_from([LimitSlot("one", 1), LimitSlot("two", 2)])),
    waits_for=st.one_of(st.just(()), st.just(()), st.lists(st.integers(1, 8), min_size=1, max_size=3).map(tuple)),
)


def build(plan: Plan, earlier: list[JobId]) -> NewJob:
    """The job of a plan; `earlier` are all ids so far."""
    waits_for = tuple(earlier[-place] for place in plan.waits_for if place <= len(earlier))
    job = a_job(expires_in_s=plan.expires_in_s, key=plan.key)
    if waits_for:
        return job._replace(queue=AFTER.queue, priority=AFTER.priority, waits_for=waits_for)
    return job._replace(queue=plan.lane.queue, priority=plan.lane.priority, delay_s=plan.delay_s, limit=plan.limit)


Kind = Callable[[JobId, int], Settlement]

settlements: st.SearchStrategy[Kind] = st.one_of(
    st.just(lambda job_id, token: Succeed(job_id, token, b"1")),
    st.sampled_from((0.0, *SOON)).map(lambda s: lambda job_id, token: Retry(job_id, token, s, ERROR)),
    st.sampled_from((0.0, *SOON)).map(lambda s: lambda job_id, token: Snooze(job_id, token, s, ERROR)),
    st.sampled_from([Cause.HANDED_BACK, Cause.CLAIM_LOST]).map(
        lambda cause: lambda job_id, token: HandBack(job_id, token, WHY, cause)
    ),
    PARK_KEYS.map(lambda key: lambda job_id, token: Park(job_id, token, UNKNOWN_TASK, key)),
    st.just(lambda job_id, token: Bury(job_id, token, "permanent", ERROR)),
    st.just(lambda job_id, token: Cancel(job_id, token, "honoured")),
)
