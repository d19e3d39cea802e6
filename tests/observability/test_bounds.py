"""However many names come: a bounded number of series, in bounded memory; the rest is `other`, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import count
from uuid import UUID

import pytest

from holdfast.core.ids import new_job_id
from holdfast.observability import catalogue as c
from holdfast.observability.counting import MOST_PAIRS, MOST_QUEUES, MOST_REASONS, MOST_TASKS, Counting
from holdfast.observability.merging import Merged
from holdfast.observability.tally import SIZE, Full, Series, Tally, read_margin
from holdfast.telemetry.events import JobBuried, JobEnqueued, JobSettled, JobStarted
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.supervision.board import MARGIN, Board

JOB, WORKER = new_job_id(), UUID(int=7)
MANY = 3000


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board.make()
    yield made
    made.close()


def counted(tally: Tally) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(each.metric.name, each.labels): sum(each.values) for each in tally.read()}


def total(tally: Tally, metric: c.Metric) -> float:
    return sum(value for (name, _), value in counted(tally).items() if name == metric.name)


def test_made_up_tasks_make_no_series() -> None:
    telemetry, tally = Telemetry(), Tally()
    counting = Counting(tally, known_task=lambda name: name == "shop.sell")
    counting.attach(telemetry)
    for number in range(MANY):
        telemetry.emit(JobEnqueued(JOB, f"made.up.{number}", "mail", 5, "ready"))
        telemetry.emit(JobBuried(JOB, f"made.up.{number}", 1, "", f"reason {number}"))
    telemetry.emit(JobEnqueued(JOB, "shop.sell", "mail", 5, "ready"))
    found = counted(tally)
    assert found[c.ENQUEUED.name, ("mail", "other")] == MANY
    assert found[c.ENQUEUED.name, ("mail", "shop.sell")] == 1
    assert len(counting._pairs) == 3, "what is not known is not remembered, either"
    assert total(tally, c.DEAD) == MANY
    assert len([name for name, _ in found if name == c.DEAD.name]) == MOST_REASONS + 1


def test_many_queues_and_tasks_are_bounded_and_nothing_is_lost() -> None:
    telemetry, tally = Telemetry(), Tally()
    counting = Counting(tally, known_task=lambda name: True)
    counting.attach(telemetry)
    for number in range(MANY):
        queue, task = f"queue-{number % 500}-{'q' * 50}", f"task-{number}-{'t' * 100}"
        telemetry.emit(JobEnqueued(JOB, task, queue, 5, "ready"))
        telemetry.emit(JobStarted(JOB, task, queue, 1, WORKER))
        for outcome in ("succeeded", "snooze", "cancelled"):
            telemetry.emit(JobSettled(JOB, task, queue, 1, outcome, 0.5))
    found = counted(tally)
    assert {total(tally, each) for each in (c.ENQUEUED, c.STARTED)} == {MANY}
    assert total(tally, c.SETTLED) == 3 * MANY
    queues, tasks = zip(*(labels for name, labels in found if name == c.ENQUEUED.name), strict=True)
    assert len(set(queues)) <= MOST_QUEUES + 1
    assert len(set(tasks)) <= MOST_TASKS + 1
    assert len(queues) <= MOST_PAIRS + 1
    assert {"other"} <= set(queues) & set(tasks)


def test_where_there_is_no_room_for_a_name_it_is_other() -> None:
    telemetry, tally = Telemetry(), Tally()
    counting = Counting(tally, known_task=lambda name: True)
    counting.attach(telemetry)
    with contextlib.suppress(Full):
        for number in count():
            tally.series(c.PARKED, f"{number}" + "x" * 10)
    telemetry.emit(JobSettled(JOB, "t" * 200, "mail", 1, "dead", 0.5))
    telemetry.emit(JobSettled(JOB, "t" * 200, "mail", 1, "cancelled", 0.5))
    found = counted(tally)
    assert found[c.SETTLED.name, ("other", "other", "dead")] == 1
    assert found[c.SETTLED.name, ("other", "other", "cancelled")] == 1


def test_a_tally_on_a_board_is_read_by_another_process_also_after_the_writers_death(board: Board) -> None:
    child = os.fork()
    if child == 0:
        try:
            tally = Tally(Board(board.fd).margin)
            telemetry = Telemetry()
            Counting(tally, known_task=lambda name: True).attach(telemetry)
            for _ in range(5):
                telemetry.emit(JobSettled(JOB, "t", "q", 1, "succeeded", 0.02))
            os.kill(os.getpid(), 9)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    found = {(each.metric.name, each.labels): each.values for each in read_margin(board.read_margin())}
    assert found[c.SETTLED.name, ("q", "t", "succeeded")] == [5.0]
    assert found[c.RUN.name, ("q", "t")][c.SECONDS.index(0.025)] == 5.0
    assert SIZE <= MARGIN


def test_what_another_version_has_counted_and_is_not_known_here_is_left_out(board: Board) -> None:
    tally = Tally(board.margin)
    tally.add(tally.series(c.Metric("holdfast_of_tomorrow_total", c.Kind.COUNTER, "")))
    tally.add(tally.series(c.Metric(c.LOST.name, c.Kind.COUNTER, "", ("with", "labels")), "a", "b"))
    tally.add(tally.series(c.OVERDUE))
    assert list(read_margin(board.read_margin())) == [Series(c.OVERDUE, (), [1.0])]
    tally.numbers.release()
    tally._names.release()
    tally._used.release()


def test_no_margin_is_nothing_counted() -> None:
    assert list(read_margin(b"")) == []
    assert list(Tally(memoryview(bytearray(10))).read()) == []


def test_merging_adds_counters_and_takes_the_least_or_most_of_gauges() -> None:
    def of(metric: c.Metric, *values: float) -> list[Series]:
        return [Series(metric, (), (value,)) for value in values]

    series = [*of(c.LOST, 1, 2), *of(c.TRANSPORT_UP, 1, 0), *of(c.LAG_NOW, 0.5, 2.0)]
    assert {each.metric: each.values for each in Merged(series)} == {
        c.LOST: [3],
        c.TRANSPORT_UP: [0],
        c.LAG_NOW: [2.0],
    }


def test_merging_is_bounded_over_generations_of_processes() -> None:
    merged = Merged(most=10)
    for number in range(1000):
        merged.take([Series(c.PARKED, (f"reason {number}",), (1.0,))])
    found = list(merged)
    assert len(found) == 11
    assert sum(each.values[0] for each in found) == 1000
