"""How long jobs that must run alone wait for one another."""

from __future__ import annotations

import pytest
from tests.simulation.quiet import quiet_world

from holdfast.core.state import State

LEASE_S = 4.0
A_LEASE_LONG = 6
"""What `slow` is called with to take as long as a lease."""


@pytest.mark.parametrize("concurrency", [2, 25])
def test_where_nothing_else_is_to_be_done_one_follows_the_other(concurrency: int) -> None:
    """After each there was as much time for ordinary work, although there was none: an idle worker stood still."""
    with quiet_world(1, lease_s=LEASE_S, poll_s=1.0, concurrency=concurrency) as quiet:
        for _ in range(10):
            quiet.enqueue("slow", A_LEASE_LONG, losses=2)
        quiet.add_worker()
        assert quiet.rest_within(10 * LEASE_S + 5.0)
        assert quiet.states() == {State.SUCCEEDED}


def test_ordinary_work_has_its_share_of_the_time_as_soon_as_there_is_some() -> None:
    """Each of these comes after the one before it: a worker that took a lonely job in between would need that long."""
    with quiet_world(1, lease_s=LEASE_S, poll_s=1.0, concurrency=25) as quiet:
        for _ in range(4):
            quiet.enqueue("slow", 16, losses=2)
        quiet.add_worker()
        quiet.world.run(lambda: State.RUNNING in quiet.states(), limit_s=10.0)
        lonely = len(quiet.model.jobs)
        quiet.enqueue("quick", 0)
        served = 0
        while State.READY in quiet.states() or State.RUNNING in quiet.states():
            now_s = quiet.world.now_s
            jobs = list(quiet.model.jobs.values())
            quiet.world.run(lambda: jobs[-1].state is State.SUCCEEDED, limit_s=now_s + 1000.0)  # noqa: B023
            waited_s = quiet.world.now_s - now_s
            served += waited_s < 1.0
            if len(jobs) - lonely == 20:
                break
            quiet.enqueue("quick", 0)
        assert served >= 17, "no more than three of the twenty waited for a lonely one"
