"""What keeps a job, out of what a store has told: the sentences, and when it lets go by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from holdfast.client.hindrances import Hindrances
from holdfast.core.breaker import BreakerGate, BreakerState
from holdfast.core.gates import NO_RULES, Barrier, Gate, Place, RateGate, Rules, SlotGate
from holdfast.core.job import JobInfo
from holdfast.core.queue import MOST_COUNTED, QueueInfo, QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo
from holdfast.stores.flow import BreakerInfo, Circumstances, GateInfo, Lately

NOW = 1_800_000_000.0
AT = datetime.fromtimestamp(NOW, UTC)
ONE, HOURLY, BANK = SlotGate("one", 2), RateGate("hourly", Pace(1, 3600.0, 1)), BreakerGate("bank", 5, 60.0, 30.0)
AT_ONE, AT_HOURLY = Place(Barrier.LIMIT, "one"), Place(Barrier.RATE, "hourly")
FULL = GateInfo(AT_ONE, 2, 7)
SPENT = GateInfo(AT_HOURLY, 0, 4, NOW + 3600)


def job(state: State = State.PARKED, reason: str | None = None, key: str | None = None) -> JobInfo:
    return JobInfo(uuid4(), "t", "q", 5, "acme", state, 0, None, AT, reason=reason, waits_at=key)


def look(info: JobInfo, *gates: Gate, weight: float = 1.0, **given: Any) -> Hindrances:
    """One worker, nothing paused, nothing in use, unless it is said."""
    worker = WorkerInfo(uuid4(), "here", 1, 1, (), AT, AT + timedelta(seconds=given.pop("lease_s", 10)), 0)
    found = Circumstances(
        gates, **{name: given.pop(name) for name in ("holds", "line_ahead", "line_beside", "lately") if name in given}
    )
    queue = QueueInfo("q", 1, 0, 0, 0, 0, 0, True, None, {5: 1}, QueueSettings(weight=weight))
    used = {each.place: each for each in given.pop("used", ())}
    breakers = {each.name: each for each in given.pop("breakers", ())}
    return Hindrances(
        info,
        found,
        now=NOW,
        queue=queue,
        workers=[worker],
        rules=given.pop("rules", NO_RULES),
        used=used,
        breakers=breakers,
        **given,
    )


def parked(*gates: Gate, at: Place, **given: Any) -> tuple[list[str], float | None]:
    """The sentences, and in how many seconds it starts."""
    found = look(job(State.PARKED, at.barrier, at.key), *gates, **given)
    ends_at = found.ends_at()
    return [each.sentence for each in found.parked_first()], ends_at and ends_at.timestamp() - NOW


def test_at_a_limit_it_is_told_who_comes_first_and_the_pace_of_the_limit() -> None:
    full = "is parked: its limit 'one' is full: 2 of 2 run"
    assert parked(ONE, at=AT_ONE, used=[FULL]) == ([f"{full}, and it is the next"], None)
    assert parked(ONE, at=AT_ONE, used=[FULL], line_ahead=1) == ([f"{full}, and 1 comes first"], None)
    lately = Lately(60.0, 0, 6)
    told = f"{full}, and 2 come first; as lately, it starts in about 30 s"
    assert parked(ONE, at=AT_ONE, used=[FULL], line_ahead=2, lately=lately) == ([told], 30.0)
    far = parked(ONE, at=AT_ONE, used=[FULL], line_ahead=MOST_COUNTED, lately=lately)
    assert far == ([f"{full}, and 10,000+ come first"], None), "nobody has counted them"
    last = parked(ONE, at=AT_ONE, used=[FULL], lately=lately, weight=0)
    assert last == ([f"{full}, and it is the next"], None), "whoever comes goes before it"


def test_it_is_told_that_other_lanes_take_turns_and_nobody_knows_when() -> None:
    full, turns = "is parked: its limit 'one' is full: 2 of 2 run", "in its lane, which takes turns with 850 of others"
    given: dict[str, Any] = {"used": [FULL], "lately": Lately(60.0, 0, 6), "line_beside": 850}
    assert parked(ONE, at=AT_ONE, **given) == ([f"{full}, and it is the next {turns}"], None)
    assert parked(ONE, at=AT_ONE, **given, line_ahead=3) == ([f"{full}, and 3 come first {turns}"], None)
    _, in_s = parked(HOURLY, at=AT_HOURLY, used=[SPENT], line_beside=1)
    assert in_s is None


def test_a_limit_that_was_made_smaller_has_to_become_emptier_first() -> None:
    over = GateInfo(AT_ONE, 5, 1)
    [sentence], in_s = parked(ONE, at=AT_ONE, used=[over], lately=Lately(60.0, 0, 6))
    assert sentence.startswith("is parked: its limit 'one' is full: 5 of 2 run")
    assert in_s == 40.0, "three too many, then its own slot"


def test_two_things_that_keep_it_leave_no_estimate() -> None:
    sentences, in_s = parked(ONE, HOURLY, at=AT_ONE, used=[FULL, SPENT], lately=Lately(60.0, 0, 6))
    assert sentences == [
        "is parked: its limit 'one' is full: 2 of 2 run, and it is the next",
        "its rate 'hourly' (1/h) is used up: the next run may begin in 3600.0 s, and 4 wait",
    ]
    assert in_s is None


def test_a_slot_that_is_kept_for_it_is_no_hindrance() -> None:
    ready = job(State.READY)
    assert [each.kind for each in look(ready, ONE, used=[FULL]).reasons()] == ["limit"]
    assert list(look(ready, ONE, used=[FULL], holds=frozenset({AT_ONE})).reasons()) == []


def test_a_bucket_that_a_slower_pace_has_left_behind_is_no_emptier_than_empty() -> None:
    late = GateInfo(AT_HOURLY, 0, 1, NOW + 1_000_000)
    assert parked(HOURLY, at=AT_HOURLY, used=[late])[1] == 3600.0


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (Place(Barrier.PAUSED, "task:t"), "the pause of 'task:t' is over"),
        (Place(Barrier.PAUSED, "tenant:acme"), "the pause of 'tenant:acme' is over"),
        (AT_ONE, "its limit 'one' would let it pass by now"),
        (AT_HOURLY, "its rate 'hourly' would let it pass by now"),
        (Place(Barrier.BREAKER, "bank"), "its breaker 'bank' would let it pass by now"),
    ],
)
def test_what_has_just_been_lifted_is_told_with_a_kind_of_its_own(at: Place, told: str) -> None:
    found = look(job(State.PARKED, at.barrier, at.key), ONE, HOURLY, BANK)
    [reason] = found.parked_first()
    assert reason.kind == "lifted"
    assert reason.sentence == f"is parked: {told}, so it is about to be looked at again"
    assert found.ends_at() is None


def test_a_pause_is_named_by_its_own_kind() -> None:
    rules = Rules(frozenset({"t"}), frozenset({"acme"}))
    found = look(job(State.PARKED, Barrier.PAUSED, "tenant:acme"), rules=rules)
    assert [each.kind for each in found.parked_first()] == ["tenant_paused", "task_paused"]


def test_an_unknown_task_is_named() -> None:
    [reason] = look(job(State.PARKED, UNKNOWN_TASK, "t")).parked_first()
    assert reason.sentence.startswith("is parked: no worker that has seen it knows its task 't'; ")


def test_a_worker_whose_lease_has_run_out_is_none() -> None:
    assert [each.kind for each in look(job(State.READY), lease_s=-1).reasons()] == ["no_worker"]


def breaker(open_for_s: float | None, *, held: bool = False, waiting: int = 0) -> BreakerInfo:
    state = BreakerState((), None if open_for_s is None else NOW + open_for_s, held)
    return BreakerInfo("bank", state, state.phase(NOW), waiting)


@pytest.mark.parametrize(
    ("run_in_s", "given", "starts_in_s"),
    [
        (60, {}, 60),
        (-60, {}, 0),
        (60, {"used": [SPENT]}, 5 * 3600),
        (86_400, {"used": [SPENT]}, 86_400),
        (60, {"used": [FULL]}, 60),
        (60, {"used": [SPENT], "weight": 0}, None),
        (60, {"breakers": [breaker(600)]}, 600),
        (60, {"breakers": [breaker(-1)]}, 60),
        (60, {"breakers": [breaker(None, held=True)]}, None),
        (60, {"rules": Rules(paused_tasks=frozenset({"t"}))}, None),
        (60, {"lease_s": -1}, None),
    ],
    ids=[
        "its time",
        "it is due",
        "its turn at the rate",
        "the rate has gone on by then",
        "a limit may have room by then",
        "it comes last",
        "an open breaker",
        "a half-open one",
        "one that is held",
        "a pause",
        "nobody serves it",
    ],
)
def test_a_scheduled_job_starts_no_sooner_than_what_is_known(
    run_in_s: float, given: dict[str, Any], starts_in_s: float | None
) -> None:
    at = look(job(State.SCHEDULED), ONE, HOURLY, BANK, **given).not_before(AT + timedelta(seconds=run_in_s))
    assert (at and at.timestamp() - NOW) == starts_in_s
