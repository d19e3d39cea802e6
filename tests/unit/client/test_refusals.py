"""When a refused producer is told to come again."""

from __future__ import annotations

from holdfast.client.refusals import Refusals
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Full
from holdfast.telemetry.events import QueueRefused
from holdfast.telemetry.hub import Telemetry


def told(*depths: int, age_s: float | None) -> float:
    """After these depths were seen, two seconds apart, in a queue that opens at ten jobs."""
    clock = ManualClock()
    refusals = Refusals(clock=clock, telemetry=Telemetry())
    for depth in depths:
        clock.advance(2.0)
        refusals.note(Full("mail", depth, 100, 10, age_s))
    return refusals.error(Full("mail", depths[-1], 100, 10, age_s)).retry_after


def test_by_how_its_depth_drains_as_long_as_that_keeps_it_closed() -> None:
    assert told(100, 80, age_s=None) == 7.0
    assert told(100, 80, age_s=50.0) == 7.0


def test_where_only_age_keeps_it_closed_the_drain_says_nothing() -> None:
    assert told(9, 8, age_s=50.0) == 5.0
    assert told(5, 5, age_s=50.0) == 5.0


def test_every_refusal_is_told() -> None:
    telemetry, heard = Telemetry(), list[object]()
    telemetry.attach(heard.append, only=QueueRefused)
    refusals = Refusals(clock=ManualClock(), telemetry=telemetry)
    refusals.error(Full("mail", 100, 100, 10))
    refusals.error(Full("mail", 5, 100, 10, draining=True))
    assert heard == [QueueRefused("mail", "full"), QueueRefused("mail", "draining")]


def test_whoever_is_refused_for_its_age_is_told_when_it_opens_again() -> None:
    refusals = Refusals(clock=ManualClock(), telemetry=Telemetry())
    told = str(refusals.error(Full("mail", 2, 100, 10, 61.0, parked=1)))
    assert told.startswith(
        "queue 'mail' is full: 1 job is ready and 1 is parked and the oldest has waited 61 s; it accepts more once "
        "that is below its low mark on age; nothing was enqueued"
    )
