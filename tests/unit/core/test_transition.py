"""The state machine as a graph: who can get where."""

from __future__ import annotations

import pytest

from holdfast.core.state import ENDINGS, LIVE, State
from holdfast.core.transition import TRANSITIONS, Verb, allowed

ALL = [None, *State]


def steps(state: State | None, *, without: frozenset[Verb] = frozenset()) -> set[State | None]:
    return {after for verb, before, after in TRANSITIONS if before is state and verb not in without}


def reachable(state: State | None, *, without: frozenset[Verb] = frozenset()) -> set[State | None]:
    seen: set[State | None] = set()
    todo = [state]
    while todo:
        for after in steps(todo.pop(), without=without) - seen:
            seen.add(after)
            todo.append(after)
    return seen


def test_a_state_is_live_or_ended() -> None:
    assert set(State) == LIVE | ENDINGS
    assert not LIVE & ENDINGS
    assert {state for state in State if state.ended} == ENDINGS


@pytest.mark.parametrize("state", sorted(LIVE))
def test_every_live_state_can_reach_every_ending(state: State) -> None:
    assert reachable(state) >= ENDINGS


@pytest.mark.parametrize("state", sorted(LIVE))
def test_every_live_state_can_be_run_without_a_persons_help(state: State) -> None:
    people = frozenset({Verb.CANCEL, Verb.REPLAY})
    assert State.SUCCEEDED in reachable(state, without=people)


@pytest.mark.parametrize("state", sorted(State))
def test_every_state_comes_from_an_enqueue(state: State) -> None:
    assert state in reachable(None)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED])
def test_what_ended_for_good_only_leaves_the_store(state: State) -> None:
    assert steps(state) == {None}


def test_the_dead_are_replayed_or_removed() -> None:
    assert steps(State.DEAD) == {State.READY, None}
    assert steps(State.DEAD, without=frozenset({Verb.REPLAY})) == {None}


def test_only_a_claim_makes_a_job_run_and_only_from_ready() -> None:
    into = {(verb, before) for verb, before, after in TRANSITIONS if after is State.RUNNING}
    assert into == {(Verb.CLAIM, State.READY)}


def test_only_settle_makes_a_job_succeed() -> None:
    into = {(verb, before) for verb, before, after in TRANSITIONS if after is State.SUCCEEDED}
    assert into == {(Verb.SETTLE, State.RUNNING)}


def test_a_running_job_leaves_by_settle_or_reap_only() -> None:
    assert {verb for verb, before, _ in TRANSITIONS if before is State.RUNNING} == {Verb.SETTLE, Verb.REAP}


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.EXPIRE])
def test_whatever_waits_can_be_cancelled_and_can_expire(verb: Verb) -> None:
    moves = {(before, after) for each, before, after in TRANSITIONS if each is verb}
    assert moves == {(state, State.CANCELLED) for state in LIVE - {State.RUNNING}}


def test_nothing_leaves_the_store_while_it_lives() -> None:
    assert {before for _, before, after in TRANSITIONS if after is None} == set(ENDINGS)


def test_every_verb_moves_something_and_nothing_moves_nowhere() -> None:
    assert {verb for verb, _, _ in TRANSITIONS} == set(Verb)
    assert all(before is not after for _, before, after in TRANSITIONS)


@pytest.mark.parametrize("before", ALL)
@pytest.mark.parametrize("after", ALL)
def test_allowed_is_what_some_verb_does(before: State | None, after: State | None) -> None:
    assert allowed(before, after) == (after in steps(before))
