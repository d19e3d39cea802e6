"""A rolling deploy that takes its time: workers that know a new task beside others that do not."""

from __future__ import annotations

import pytest
from tests.simulation.quiet import QuietWorld, quiet_world

from holdfast.core.state import State

LEASE_S = 4.0
SLOW = 16
"""What `slow` is called with to take about three leases."""


def parkings(quiet: QuietWorld) -> int:
    """The most of any job."""
    return max(quiet.scene.server.parkings.values())


@pytest.mark.parametrize("seed", range(5))
def test_a_new_task_gets_done_beside_workers_that_do_not_know_it(seed: int) -> None:
    """They took it from the one that knows it, every time: whoever was first to claim it had it."""
    with quiet_world(seed, lease_s=LEASE_S, poll_s=1.0, concurrency=25) as quiet:
        for _ in range(9):
            quiet.add_worker(newer=False)
        quiet.add_worker(newer=True)
        quiet.world.run(lambda: False, limit_s=5.0)
        for n in range(100):
            quiet.enqueue("novel", n)
        assert quiet.rest_within(10.0)
        assert quiet.states() == {State.SUCCEEDED}
        assert 1 <= parkings(quiet) <= 4


@pytest.mark.parametrize("seed", range(5))
def test_it_waits_for_room_where_it_is_known_and_is_not_passed_around_meanwhile(seed: int) -> None:
    """For as long as the one that knew it was busy, it was unparked and parked again every two seconds."""
    with quiet_world(seed, lease_s=LEASE_S, poll_s=1.0, concurrency=2, queues=("work",)) as quiet:
        quiet.add_worker(newer=True)
        for _ in range(10):
            quiet.enqueue("slow", SLOW)
        quiet.world.run(lambda: quiet.running() == 2, limit_s=5.0)
        quiet.enqueue("novel", 0)
        for _ in range(5):
            quiet.add_worker(newer=False)
        assert quiet.rest_within(60.0)
        assert quiet.states() == {State.SUCCEEDED}
        assert parkings(quiet) <= 4


def test_who_knows_it_has_it_before_what_is_only_ready() -> None:
    """All have work without end: whoever claims most often would have had it each time it became ready."""
    with quiet_world(1, lease_s=LEASE_S, poll_s=1.0, concurrency=2, queues=("work",)) as quiet:
        quiet.add_worker(newer=True)
        for _ in range(5):
            quiet.add_worker(newer=False)
        for n in range(600):
            quiet.enqueue("soft", 1 if n % 2 else 5)  # 0.7 s each
        for n in range(20):
            quiet.enqueue("novel", n)
        assert quiet.rest_within(60.0)
        assert quiet.states() == {State.SUCCEEDED}
        assert parkings(quiet) <= 6
