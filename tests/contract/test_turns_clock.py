"""Turns at rates: how long a token is meant for one who was let go, on both stores, with their clocks moved by hand."""

from __future__ import annotations

from tests.contract.by_hand import Played

from holdfast.core.fairness import Lane
from holdfast.core.gates import TURN_KEPT_S, Barrier, Place, RateGate
from holdfast.core.job import JobId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.core.turns import LANES_AT_ONCE
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import LANE, PLENTY, a_job, drain, enlist, insert, start, state, states
from holdfast.testing.contracts.gates import use

#: A token every twenty seconds; the second may begin at once with another, of which there is none at first.
ONE, TWO = (RateGate("post", Pace(1, 20.0, burst)) for burst in (1, 2))
AT_POST = Place(Barrier.RATE, "post")
BUSY, IDLE = LANE, Lane("idle", LANE.priority)


async def _in_line(store: Store, gate: RateGate, lane: Lane, count: int) -> list[JobId]:
    """Jobs that wait at the rate, which has no token."""
    worker = await enlist(store)
    ids = await insert(store, *(a_job(gates=(gate,), queue=lane.queue) for _ in range(count)))
    assert await drain(store, worker, lane) == []
    return ids


async def _claimed(store: Store, lane: Lane) -> list[JobId]:
    return [job.id for job in await drain(store, await enlist(store), lane)]


def test_a_queue_whose_workers_are_busy_holds_up_nobody_for_long(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        await start(store, gates=(ONE,))
        busy = await _in_line(store, ONE, BUSY, 2)
        idle = await _in_line(store, ONE, IDLE, 3)
        clock.advance(20.0)
        served = await store.serve_gates(limit=PLENTY)
        assert await state(store, busy[0]) is State.READY, "it has waited longest"
        assert await _claimed(store, IDLE) == []
        clock.advance(TURN_KEPT_S)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 0, "it may still come"
        assert served.next_due_in_s is not None
        clock.advance(served.next_due_in_s - TURN_KEPT_S)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 1, "but it is high time now"
        assert await _claimed(store, IDLE) == [idle[0]]

        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        assert await _claimed(store, IDLE) == [idle[1]], "the other queue has a turn already, and does not use it"
        assert await states(store, *busy) == [State.READY, State.PARKED]

        clock.advance(20.0)
        assert await _claimed(store, BUSY) == [busy[0]], "its turn is its own all the same"
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        assert await _claimed(store, BUSY) == [busy[1]], "from now on it takes part again"
        assert await use(store, AT_POST) == (0, 1)

    play(scenario)


def test_where_several_may_begin_at_once_a_token_is_left_to_whoever_comes_late(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        for _ in range(2):
            await start(store, gates=(TWO,))
        [late] = await _in_line(store, TWO, BUSY, 1)
        idle = await _in_line(store, TWO, IDLE, 2)
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        assert await state(store, late) is State.READY
        clock.advance(10.0)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 0, "the only token is meant for it"
        clock.advance(10.0)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 1
        assert await _claimed(store, IDLE) == [idle[0]], "there is another"
        clock.advance(10.0)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 0
        assert await _claimed(store, BUSY) == [late]

    play(scenario)


def test_one_who_must_run_alone_keeps_none_of_its_lane_waiting(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        [lonely] = await insert(store, a_job(gates=(ONE,)))
        for _ in range(2):
            worker = await enlist(store, lease_s=1.0)
            assert len(await drain(store, worker)) == 1
            clock.advance(20.0)
            await store.reap_workers(limit=PLENTY)
        await start(store, gates=(ONE,), queue=IDLE.queue)
        worker = await enlist(store)
        assert (await store.claim_jobs(worker, {BUSY: PLENTY}, deadline_s=60.0, alone=True)).jobs == []
        [other] = await _in_line(store, ONE, BUSY, 1)
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        assert await states(store, lonely, other) == [State.READY, State.PARKED]
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        claimed = await store.claim_jobs(worker, {BUSY: PLENTY}, deadline_s=60.0)
        assert [job.id for job in claimed.jobs] == [other], "no worker can be alone yet, and the others go on"

    play(scenario)


def test_who_ends_with_a_turn_that_is_overdue_lets_nobody_begin_without_a_token(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        await start(store, gates=(ONE,))
        worker = await enlist(store)
        expires_at = await store.now() + 30.0
        [late] = await insert(store, a_job(gates=(ONE,), expires_at=expires_at))
        assert await drain(store, worker) == []
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        clock.advance(1.0)
        await start(store, gates=(ONE,), queue=IDLE.queue)
        clock.advance(10.0)
        await insert(store, *(a_job(gates=(ONE,)) for _ in range(3)))
        assert await drain(store, worker) == [], "the token is used"
        assert await state(store, late) is State.CANCELLED

    play(scenario)


def test_those_who_come_last_are_not_let_go_in_vain(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        await store.set_queue(IDLE.queue, QueueSettings(weight=0.0), only=("weight",))
        for _ in range(2):
            await start(store, gates=(TWO,))
        busy = await _in_line(store, TWO, BUSY, 2)
        last = await _in_line(store, TWO, IDLE, 1)
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        clock.advance(40.0)
        served = await store.serve_gates(limit=PLENTY)
        assert await states(store, *busy, *last) == [State.READY, State.PARKED, State.PARKED]
        assert served.next_due_in_s is not None
        assert served.next_due_in_s >= 1.0, "nobody is let go and waits again all the time"

    play(scenario)


def test_many_queues_that_do_not_use_their_turns_hide_no_other_one(play: Played) -> None:
    lanes = [Lane(f"busy-{n}", LANE.priority) for n in range(LANES_AT_ONCE + 20)]
    gate = RateGate("post", Pace(1, 0.1, 2 * len(lanes)))

    async def scenario(store: Store, clock: ManualClock) -> None:
        worker = await enlist(store)
        await insert(store, *(a_job(gates=(gate,)) for _ in range(gate.pace.burst)))
        assert len(await drain(store, worker)) == gate.pace.burst
        for _ in range(6):
            await insert(store, *(a_job(gates=(gate,), queue=lane.queue) for lane in lanes))
        [first, second] = await insert(store, *(a_job(gates=(gate,), queue=IDLE.queue) for _ in range(2)))
        assert await drain(store, worker, *lanes, IDLE) == []
        begun: list[JobId] = []
        for _ in range(40):
            clock.advance(2 * TURN_KEPT_S)
            await store.serve_gates(limit=PLENTY)
            begun += await _claimed(store, IDLE)
        assert begun == [first, second]

    play(scenario)
