"""The sentences about workers and lanes, and what they are concluded from."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import uuid4

import pytest

from holdfast.client.capacity import Capacity, counted, living, serving
from holdfast.core.explanation import Reason, ReasonKind
from holdfast.core.job import JobInfo
from holdfast.core.queue import MOST_COUNTED, QueueInfo, QueueSettings
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo
from holdfast.stores.flow import STILL_S, Lately

NOW = 1_800_000_000.0
AT = datetime.fromtimestamp(NOW, UTC)


def job(priority: int = 5, queue: str = "q") -> JobInfo:
    return JobInfo(uuid4(), "t", queue, priority, "", State.READY, 0, None, AT)


def worker(running: int, concurrency: int, *queues: str, lease_s: float = 10) -> WorkerInfo:
    until = datetime.fromtimestamp(NOW + lease_s, UTC)
    return WorkerInfo(uuid4(), "here", 1, concurrency, queues, AT, until, running)


def queues(*, running: int = 0, **lanes: dict[int, int] | QueueInfo) -> dict[str, QueueInfo]:
    lanes = lanes or {"q": {5: 1}}
    return {
        name: each
        if isinstance(each, QueueInfo)
        else QueueInfo(name, sum(each.values()), 0, 0, 0, running, 0, True, None, each)
        for name, each in lanes.items()
    }


def paused(name: str, ready: dict[int, int]) -> QueueInfo:
    return QueueInfo(name, 1, 0, 0, 0, 0, 0, True, None, ready, QueueSettings(paused=True))


def weighed(name: str, weight: float, ready: dict[int, int]) -> QueueInfo:
    return QueueInfo(name, 1, 0, 0, 0, 0, 0, True, None, ready, QueueSettings(weight=weight))


def said(info: JobInfo, **given: Any) -> list[tuple[str, str]]:
    given = {"queues": queues(), **given}
    return [(each.kind, each.sentence) for each in Capacity(info, **given).hindrances()]


def test_a_free_slot_is_no_hindrance_and_no_worker_is_not_told_here() -> None:
    assert said(job(), workers=[worker(1, 2)]) == []
    assert said(job(), workers=[]) == []


def test_all_slots_are_told_with_their_number() -> None:
    assert said(job(), workers=[worker(1, 1)]) == [
        ("workers_busy", "the only slot of the 1 worker that serves it is taken")
    ]
    assert said(job(), workers=[worker(3, 3), worker(9, 7)]) == [
        ("workers_busy", "all 10 slots of the 2 workers that serve it are taken")
    ]


def test_whoever_has_to_run_alone_needs_a_worker_that_runs_nothing() -> None:
    busy = [worker(1, 5), worker(2, 5)]
    assert said(job(), workers=busy, alone=True) == [
        ("workers_busy", "it has to run alone, and none of the 2 workers that serve it is idle")
    ]
    assert said(job(), workers=[*busy, worker(0, 5)], alone=True) == []


def test_a_worker_without_a_lease_or_of_other_queues_has_no_slot_for_it() -> None:
    late, theirs, mine = worker(0, 1, lease_s=-1), worker(0, 1, "other"), worker(0, 1, "q")
    assert serving(living([late, theirs, mine], now=NOW), "q") == [mine]


def test_the_bound_of_a_queue_is_told_when_it_is_reached() -> None:
    workers = [worker(2, 10), worker(2, 10)]
    assert said(job(), workers=workers, bound=2, queues=queues(running=3)) == []
    [(kind, sentence)] = said(job(), workers=workers, bound=2, queues=queues(running=4))
    assert kind == "workers_busy"
    assert sentence == (
        "as many jobs of queue 'q' run as may at once, 4: at most 2 in each of the 2 workers that serve it "
        "(concurrency of the queue)"
    )
    [(_, of_one)] = said(job(), workers=workers[:1], bound=2, queues=queues(running=2))
    assert of_one.endswith(": at most 2 in the 1 worker that serves it (concurrency of the queue)")


@pytest.mark.parametrize(
    ("waited_s", "stirred", "running", "told"),
    [
        (STILL_S, 2, 3, True),
        (STILL_S - 1, 2, 3, False),
        (STILL_S, 3, 3, False),
        (STILL_S, 2, 0, False),
    ],
    ids=["left", "not for long", "slots come and go", "nothing of its queue runs"],
)
def test_a_slot_that_is_left_free_for_long_hints_at_a_bound(
    waited_s: float, stirred: int, running: int, told: bool
) -> None:
    found = said(
        job(),
        workers=[worker(7, 10)],
        queues=queues(running=running),
        waited_s=waited_s,
        lately=Lately(60.0, 0, 0, stirred),
    )
    assert bool(found) is told
    if told:
        assert found[0][1].startswith(
            "the 1 worker that serves it has free slots and leaves it, as where only so many "
        )


def test_it_starts_now_only_where_nothing_speaks_against_it() -> None:
    free, busy = [worker(0, 2)], [worker(2, 2)]
    assert Capacity(job(), workers=free, queues=queues()).may_start_now
    assert not Capacity(job(), workers=busy, queues=queues()).may_start_now
    assert not Capacity(job(), workers=free, queues=queues(running=1)).may_start_now, "it may be at a bound"
    assert not Capacity(job(), workers=free, queues=queues(), waited_s=STILL_S).may_start_now, "it would have"


def test_a_lane_of_weight_0_is_held_by_what_its_workers_have_besides() -> None:
    lanes = queues(q={5: 1}, z=weighed("z", 0, {5: 2}), p=paused("p", {5: 4}), w=weighed("w", 0, {9: 8}))
    last = job(queue="z")
    assert said(last, workers=[worker(0, 1)], queues=lanes) == [
        (
            "comes_last",
            "its lane has weight 0: it starts only when nothing else is ready, and 1 job of another lane is",
        )
    ]
    assert said(last, workers=[worker(0, 1), worker(0, 1, "z", "p")], queues=lanes) == [], "one has nothing else"
    assert said(job(), workers=[worker(0, 1)], queues=lanes) == [], "it has a weight"
    assert Capacity(last, workers=[], queues=lanes).share() == 0


def test_shares_are_of_lanes_that_may_start_and_lanes_of_weight_0_are_equal_among_themselves() -> None:
    lanes = queues(q={5: 1, 7: 1}, p=paused("p", {5: 4}))
    assert Capacity(job(), workers=[], queues=lanes).share() == 0.25
    assert Capacity(job(queue="p"), workers=[], queues=lanes).share() is None, "it is paused"
    assert Capacity(job(priority=9), workers=[], queues=lanes).share() == 0.6, "its lane may just have become empty"
    zeros = queues(z=weighed("z", 0, {5: 2, 9: 1}))
    assert Capacity(job(queue="z"), workers=[], queues=zeros).share() == 0.5
    assert Capacity(job(queue="new"), workers=[], queues={}).share() == 1


def test_numbers_have_their_nouns_and_say_where_counting_ended() -> None:
    assert counted(1, "waits", "wait") == "1 waits"
    assert counted(1_234, "waits", "wait") == "1,234 wait"
    assert counted(MOST_COUNTED, "waits", "wait") == "10,000+ wait"


def test_every_kind_of_a_reason_is_named_where_it_is_documented() -> None:
    text = inspect.getsource(Reason)
    assert [kind for kind in get_args(ReasonKind) if f"`{kind}`" not in text] == []
