"""What is said about uniqueness: the defaults, and the sets of states."""

from __future__ import annotations

from holdfast.core.state import ENDINGS, LIVE, State
from holdfast.core.unique import EVER, UniqueClaim, WhenTaken


def test_unless_told_a_key_is_held_by_a_live_job_and_callers_are_told_of_it() -> None:
    claim = UniqueClaim("k")
    assert claim.states == LIVE
    assert claim.when_taken is WhenTaken.EXISTING
    assert (claim.for_s, claim.longest_s) == (None, None)


def test_ever_is_every_state() -> None:
    assert EVER == LIVE | ENDINGS == frozenset(State)
