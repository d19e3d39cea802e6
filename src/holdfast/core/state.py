"""The states of a job, and who moves a job into and out of each; the store keeps one table per live state."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a job is. It is in exactly one state, because it is in exactly one table."""

    READY = "ready"
    """May be claimed now. In: enqueue, promote, release, unpark, replay, hand-back, reap. Out: claim, cancel,
    expire."""

    SCHEDULED = "scheduled"
    """Waits for a time. In: enqueue with a delay, settle with a retry or snooze, release. Out: promote, cancel,
    expire."""

    BLOCKED = "blocked"
    """Waits for other jobs. In: enqueue. Out: release (when all of them have ended), cancel, expire."""

    RUNNING = "running"
    """Leased by one worker under one token. In: claim. Out: settle by that worker and token, hand-back, reap."""

    PARKED = "parked"
    """Waits for something other than time, with the reason: unknown task, limit. In: claim, settle. Out:
    unpark, cancel, expire."""

    SUCCEEDED = "succeeded"
    """Ended well. In: settle. Out: prune."""

    DEAD = "dead"
    """Gave up; a dead letter that waits for a person. In: settle, reap (poison). Out: replay, purge."""

    CANCELLED = "cancelled"
    """Ended on request or by its deadline. In: cancel, expire, settle, reap. Out: prune."""

    @property
    def ended(self) -> bool:
        return self in ENDINGS


ENDINGS = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})
LIVE = frozenset(State) - ENDINGS
