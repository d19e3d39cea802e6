"""Where a claim begins to look: behind what was taken, and where there are tags a moment behind that."""

from __future__ import annotations

from holdfast.core.fairness import Lane
from holdfast.runtime.clock import ManualClock
from holdfast.stores.postgres.floors import GROUND, SLACK_S, Floors

LANE = Lane("default", 5)


def test_without_tags_the_floor_is_behind_the_last_job_taken() -> None:
    floors = Floors(ManualClock())
    floors.raise_to(LANE, 0, 7)
    assert floors.of(LANE) == (0, 7)
    assert floors.is_raised(LANE)


def test_with_tags_it_is_where_the_lane_was_a_moment_ago() -> None:
    clock = ManualClock()
    floors = Floors(clock)
    floors.raise_to(LANE, 100, 7)
    assert floors.of(LANE) == GROUND, "a job whose insertion has begun before may still come there"
    clock.advance(SLACK_S / 2)
    floors.raise_to(LANE, 200, 8)
    assert floors.of(LANE) == GROUND
    clock.advance(2 * SLACK_S)
    floors.raise_to(LANE, 300, 9)
    assert floors.of(LANE) == (100, 7)
    clock.advance(2 * SLACK_S)
    floors.raise_to(LANE, 400, 10)
    assert floors.of(LANE) == (300, 9), "each stays until it is old enough"


def test_it_falls_as_a_whole() -> None:
    clock = ManualClock()
    floors = Floors(clock)
    floors.raise_to(LANE, 100, 7)
    clock.advance(2 * SLACK_S)
    floors.raise_to(LANE, 200, 8)
    floors.fall()
    assert floors.of(LANE) == GROUND
    clock.advance(2 * SLACK_S)
    floors.raise_to(LANE, 300, 9)
    assert floors.of(LANE) == GROUND, "what it was about to be is forgotten, too"
    floors.drop([LANE])
    clock.advance(2 * SLACK_S)
    floors.raise_to(LANE, 400, 10)
    assert floors.of(LANE) == GROUND


def test_no_floor_lasts_longer_than_a_second() -> None:
    clock = ManualClock()
    floors = Floors(clock)
    floors.raise_to(LANE, 0, 7)
    clock.advance(1.0)
    floors.settle_down()
    assert floors.of(LANE) == GROUND
