from __future__ import annotations

import pytest

from holdfast.runtime.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_has_a_wall_time_and_never_goes_back() -> None:
    clock: Clock = SystemClock()
    assert clock.now() > 1_700_000_000
    assert clock.monotonic() <= clock.monotonic()


def test_advance_moves_both_clocks_by_the_same() -> None:
    clock = ManualClock(5_000.0)
    before = clock.monotonic()
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic() - before) == (5_002.5, 2.5)


def test_the_wall_clock_can_jump_alone() -> None:
    clock = ManualClock(5_000.0)
    before = clock.monotonic()
    clock.jump_wall(-3_600)
    assert (clock.now(), clock.monotonic()) == (1_400.0, before)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_time_does_not_pass_backwards(seconds: float) -> None:
    with pytest.raises(ValueError, match="jump_wall"):
        ManualClock().advance(seconds)
