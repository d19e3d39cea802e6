"""When the store's clock may be trusted for reaping."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.clock_guard import ClockGuard

LEASE_S = 10.0


class Machine:
    """A store's clock and our monotonic one, moved by hand."""

    def __init__(self) -> None:
        self.guard = ClockGuard()
        self.store_s = 1_700_000_000.0
        self.monotonic_s = 5_000.0

    def after(self, seconds: float, *, jump_s: float = 0.0) -> bool:
        self.store_s += seconds + jump_s
        self.monotonic_s += seconds
        return self.guard.observe(self.store_s, self.monotonic_s, lease_s=LEASE_S)


def test_the_first_sight_is_trusted() -> None:
    machine = Machine()
    assert machine.after(0)
    assert machine.guard.difference_s == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-0.04, 0.04)), max_size=20))
def test_clocks_that_go_together_are_trusted_for_ever(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    assert all(machine.after(seconds, jump_s=wobble) for seconds, wobble in steps)


@pytest.mark.parametrize("jump_s", [1.5, -1.5, 3600.0, -86400.0])
def test_a_jump_is_distrusted_for_one_lease(jump_s: float) -> None:
    machine = Machine()
    machine.after(0)
    assert not machine.after(2, jump_s=jump_s)
    assert machine.guard.difference_s == pytest.approx(jump_s)
    assert not machine.after(5)
    assert machine.guard.difference_s == pytest.approx(0)
    assert not machine.after(4.9)
    assert machine.after(0.1)
    assert machine.after(100)


def test_a_jump_within_the_tolerance_is_nothing() -> None:
    machine = Machine()
    machine.after(0)
    assert machine.after(2, jump_s=0.9)
    assert machine.guard.difference_s == pytest.approx(0.9)


def test_another_jump_starts_the_lease_again() -> None:
    machine = Machine()
    machine.after(0)
    assert not machine.after(1, jump_s=3600)
    assert not machine.after(9.9, jump_s=-3600)
    assert not machine.after(9.9)
    assert machine.after(0.2)


def test_a_jump_seen_only_after_the_distrust_is_seen_all_the_same() -> None:
    machine = Machine()
    machine.after(0)
    assert not machine.after(1, jump_s=3600)
    assert not machine.after(50, jump_s=3600)


def test_many_small_steps_add_up() -> None:
    machine = Machine()
    machine.after(0)
    assert machine.after(1, jump_s=0.6)
    assert not machine.after(1, jump_s=0.6)


def test_a_slow_drift_is_no_jump() -> None:
    machine = Machine()
    assert all(machine.after(1, jump_s=0.01) for _ in range(1_000))


def test_a_suspended_machine_whose_monotonic_clock_stood_still_waits() -> None:
    machine = Machine()
    machine.after(0)
    assert not machine.after(0.0, jump_s=600)


def test_an_unreadable_clock_is_not_trusted() -> None:
    machine = Machine()
    machine.after(0)
    assert not machine.guard.observe(math.nan, machine.monotonic_s, lease_s=LEASE_S)


def test_the_tolerance_can_be_set() -> None:
    guard = ClockGuard(tolerance_s=0.1)
    assert guard.observe(0, 0, lease_s=1)
    assert not guard.observe(1.2, 1, lease_s=1)
