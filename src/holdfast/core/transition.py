"""The state machine as data: which verb may move a job from where to where. Drawn in docs/state_machine.md."""

from __future__ import annotations

from enum import StrEnum

from holdfast.core.state import State


class Verb(StrEnum):
    """What moves a job; spelt the same in stores, SQL files, events and docs."""

    ENQUEUE = "enqueue"
    PROMOTE = "promote"
    CLAIM = "claim"
    SETTLE = "settle"
    REAP = "reap"
    PARK = "park"
    UNPARK = "unpark"
    RELEASE = "release"
    CANCEL = "cancel"
    EXPIRE = "expire"
    REPLAY = "replay"
    PRUNE = "prune"


_WAITING = (State.READY, State.SCHEDULED, State.BLOCKED, State.PARKED)

#: Every allowed move. `None` is "not in the store": before enqueue, after prune or purge.
TRANSITIONS: frozenset[tuple[Verb, State | None, State | None]] = frozenset(
    {
        (Verb.ENQUEUE, None, State.READY),
        (Verb.ENQUEUE, None, State.SCHEDULED),
        (Verb.ENQUEUE, None, State.BLOCKED),
        (Verb.PROMOTE, State.SCHEDULED, State.READY),
        (Verb.CLAIM, State.READY, State.RUNNING),
        (Verb.CLAIM, State.READY, State.DEAD),  # its body is gone
        (Verb.CLAIM, State.READY, State.CANCELLED),  # its limit is full, and says skip
        (Verb.PARK, State.READY, State.PARKED),
        (Verb.SETTLE, State.RUNNING, State.SUCCEEDED),
        (Verb.SETTLE, State.RUNNING, State.SCHEDULED),
        (Verb.SETTLE, State.RUNNING, State.READY),
        (Verb.SETTLE, State.RUNNING, State.PARKED),
        (Verb.SETTLE, State.RUNNING, State.DEAD),
        (Verb.SETTLE, State.RUNNING, State.CANCELLED),
        (Verb.REAP, State.RUNNING, State.READY),
        (Verb.REAP, State.RUNNING, State.DEAD),
        (Verb.REAP, State.RUNNING, State.CANCELLED),
        (Verb.UNPARK, State.PARKED, State.READY),
        (Verb.RELEASE, State.BLOCKED, State.READY),
        (Verb.RELEASE, State.BLOCKED, State.SCHEDULED),
        (Verb.REPLAY, State.DEAD, State.READY),
        (Verb.PRUNE, State.SUCCEEDED, None),
        (Verb.PRUNE, State.CANCELLED, None),
        (Verb.PRUNE, State.DEAD, None),
        *((Verb.CANCEL, state, State.CANCELLED) for state in _WAITING),
        *((Verb.EXPIRE, state, State.CANCELLED) for state in _WAITING),
    }
)


def allowed(before: State | None, after: State | None) -> bool:
    """Whether any verb moves a job from `before` to `after`."""
    return any((verb, before, after) in TRANSITIONS for verb in Verb)
