"""Delivery: who gets which event, and that nobody can harm the emitter."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from holdfast.core.errors import InvalidOptions
from holdfast.telemetry.events import EVENTS, Event, JobsPromoted, JobsPruned, StoreUp
from holdfast.telemetry.hub import Telemetry


def test_subscribers_get_every_event_in_the_order_they_attached() -> None:
    telemetry, seen = Telemetry(), []
    telemetry.attach(lambda event: seen.append(("first", event)))
    telemetry.attach(lambda event: seen.append(("second", event)))
    telemetry.emit(JobsPruned(1))
    telemetry.emit(StoreUp(2.0))
    assert seen == [
        ("first", JobsPruned(1)),
        ("second", JobsPruned(1)),
        ("first", StoreUp(2.0)),
        ("second", StoreUp(2.0)),
    ]


@pytest.mark.parametrize("only", [JobsPruned, (JobsPruned,), (JobsPruned, JobsPruned)])
def test_only_limits_the_types(only: Any) -> None:
    telemetry, seen = Telemetry(), list[Event]()
    telemetry.attach(seen.append, only=only)
    telemetry.emit(JobsPromoted(1))
    telemetry.emit(JobsPruned(2))
    assert seen == [JobsPruned(2)]


def test_wants_follows_attach_and_detach() -> None:
    telemetry = Telemetry()
    assert not any(telemetry.wants(kind) for kind in EVENTS)
    detach_one = telemetry.attach(print, only=JobsPruned)
    assert [kind for kind in EVENTS if telemetry.wants(kind)] == [JobsPruned]
    detach_all = telemetry.attach(print)
    assert all(telemetry.wants(kind) for kind in EVENTS)
    detach_all()
    assert [kind for kind in EVENTS if telemetry.wants(kind)] == [JobsPruned]
    detach_one()
    assert not telemetry.wants(JobsPruned)


def test_detach_ends_delivery_and_may_be_repeated() -> None:
    telemetry, seen = Telemetry(), list[Event]()
    detach = telemetry.attach(seen.append)
    telemetry.attach(seen.append)
    detach()
    detach()
    telemetry.emit(JobsPruned(1))
    assert seen == [JobsPruned(1)], "the other subscription of the same function stays"


def test_two_apps_do_not_hear_each_other() -> None:
    seen = list[Event]()
    Telemetry().attach(seen.append)
    Telemetry().emit(JobsPruned(1))
    assert seen == []


def test_a_raising_subscriber_is_reported_once_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    telemetry, seen = Telemetry(), list[Event]()

    def broken(event: Event) -> None:
        raise RuntimeError("no disk")

    telemetry.attach(broken)
    telemetry.attach(seen.append)
    with caplog.at_level(logging.ERROR, logger="holdfast.telemetry"):
        telemetry.emit(JobsPruned(1))
        telemetry.emit(JobsPruned(2))
    assert seen == [JobsPruned(1), JobsPruned(2)]
    (record,) = caplog.records
    assert "broken" in record.getMessage()
    assert "job.pruned" in record.getMessage()
    assert record.exc_info
    assert str(record.exc_info[1]) == "no disk"


def test_an_interrupt_in_a_subscriber_is_not_swallowed() -> None:
    telemetry = Telemetry()

    def interrupted(event: Event) -> None:
        raise KeyboardInterrupt

    telemetry.attach(interrupted)
    with pytest.raises(KeyboardInterrupt):
        telemetry.emit(JobsPruned(1))


def test_a_subscriber_may_attach_and_detach_while_it_is_called() -> None:
    telemetry, seen = Telemetry(), list[Event]()

    def once(event: Event) -> None:
        detach()
        telemetry.attach(seen.append)

    detach = telemetry.attach(once)
    telemetry.emit(JobsPruned(1))
    telemetry.emit(JobsPruned(2))
    assert seen == [JobsPruned(2)]


def test_threads_attach_emit_and_detach_without_losing_a_subscription() -> None:
    telemetry, rounds = Telemetry(), 300
    steady = list[Event]()
    telemetry.attach(steady.append)
    start = threading.Barrier(4)
    kept: list[list[Event]] = []

    def churn() -> None:
        start.wait()
        for _ in range(rounds):
            telemetry.attach(lambda event: None)()
            telemetry.emit(JobsPruned(1))
        mine = list[Event]()
        telemetry.attach(mine.append)
        kept.append(mine)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(steady) == 4 * rounds
    telemetry.emit(StoreUp(1.0))
    assert [mine[-1] for mine in kept] == [StoreUp(1.0)] * 4


def test_wrong_use_gets_a_sentence() -> None:
    telemetry = Telemetry()
    with pytest.raises(InvalidOptions, match=r"attach\('x'\): a subscriber is a function that takes one event"):
        telemetry.attach("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptions, match=r"attach\(only=…\): <class 'int'> is not one of the events"):
        telemetry.attach(print, only=int)  # type: ignore[arg-type]
