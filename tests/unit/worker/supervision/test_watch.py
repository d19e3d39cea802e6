"""Which processes are ended or replaced, by what their boards show and a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from holdfast.config import Config
from holdfast.worker.supervision.board import Board, terms_of
from holdfast.worker.supervision.watch import Watch

CONFIG = Config(lease_s=10.0, kill_after_s=2.0)
JOB = UUID(int=3)


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Seen:
    """As much of a `Child` as is looked at."""

    board: Board
    working_since_s: float = 1000.0

    def memory_mb(self) -> float:
        return 300.0


@pytest.fixture
def child() -> Iterator[Seen]:
    board = Board.make()
    board.introduce(UUID(int=1))
    board.beat(1000.0, 0.0)
    yield Seen(board)
    board.close()


def looks(watch: Watch, time: Time, child: Seen, *, until: float) -> list[str]:
    """Every half second, as the supervisor does; why the process was to be ended the first time."""
    while time.now < until:
        time.now += 0.5
        if sentences := list(watch.look([child], CONFIG)):  # type: ignore[list-item]  # as much as is looked at
            return [each.why for each in sentences]
    return []


def test_a_process_that_beats_is_left_alone(child: Seen) -> None:
    time = Time()
    watch = Watch(time)
    for beat_s in range(1002, 1040, 2):
        assert looks(watch, time, child, until=beat_s) == []
        child.board.beat(beat_s, 0.0)


def test_a_silent_process_is_ended_while_its_lease_lasts(child: Seen) -> None:
    time = Time()
    assert "no sign of life for 6.5 s" in looks(Watch(time), time, child, until=1020)[0]
    assert time.now < 1000 + CONFIG.lease_s


def test_a_process_without_a_lease_may_be_silent(child: Seen) -> None:
    """It waits for its store, and holds nothing."""
    child.board.introduce(None)
    time = Time()
    assert looks(Watch(time), time, child, until=1100) == []


def test_after_a_pause_of_its_own_the_supervisor_gives_everybody_time(child: Seen) -> None:
    """The machine slept: all of them were stopped for as long."""
    time = Time()
    watch = Watch(time)
    time.now += 3600.0
    assert looks(watch, time, child, until=time.now + 5.0) == []
    assert looks(watch, time, child, until=time.now + 5.0) != [], "but not for ever"


def test_a_run_is_given_a_moment_past_its_limit(child: Seen) -> None:
    row = child.board.begin(5, JOB, 1000.0, terms_of("shop.send"))
    child.board.limit(row, overdue_s=1001.0, limit_s=1.0, verdict=0.0)
    time = Time()
    [why] = looks(Watch(time), time, child, until=1020)
    assert time.now == 1003.0
    assert why == f"job {JOB} shop.send did not end at its hard limit of 1 s"


def test_a_run_that_ended_in_that_moment_is_left_alone(child: Seen) -> None:
    row = child.board.begin(5, JOB, 1000.0, terms_of("shop.send"))
    child.board.limit(row, overdue_s=1001.0, limit_s=1.0, verdict=0.0)
    time = Time()
    watch = Watch(time)
    assert looks(watch, time, child, until=1002.5) == []
    child.board.end(row)
    assert looks(watch, time, child, until=1005) == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, None),
        ({"max_jobs": 41}, None),
        ({"max_jobs": 40}, "it has done 40 jobs"),
        ({"max_age_s": 60.0}, None),
        ({"max_age_s": 50.0}, "it is 50 s old"),
        ({"max_memory_mb": 300}, None),
        ({"max_memory_mb": 299}, "it has 300 MB of memory"),
    ],
)
def test_what_is_worn_out_is_replaced(child: Seen, settings: dict[str, float], why: str | None) -> None:
    child.board.count(taken=0, done=40)
    time = Time()
    time.now += 50.0
    assert Watch(time).worn_out(child, Config(**settings)) == why  # type: ignore[arg-type]  # as above


def test_a_process_that_waits_for_its_lease_may_be_silent(child: Seen) -> None:
    """It has said who it is, and the store does not answer; the beats of the lease before do not count."""
    child.board.introduce(UUID(int=2))
    time = Time()
    assert looks(Watch(time), time, child, until=1100) == []
