"""How long a turn at a rate is kept for one who was let go, on both stores, with their clocks moved by hand."""

from __future__ import annotations

import pytest
from tests.contract.by_hand import Played

from holdfast.core.fairness import Lane
from holdfast.core.gates import TURN_KEPT_S, Barrier, Place, RateGate
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import PLENTY, a_job, drain, insert, start, state, states
from holdfast.testing.contracts.gates import use

#: A token every twenty seconds; the second may begin at once with another, of which there is none at first.
GATES = [RateGate("post", Pace(1, 20.0, burst)) for burst in (1, 2)]
AT_POST = Place(Barrier.RATE, "post")
IDLE = Lane("idle", 5)


@pytest.mark.parametrize("gate", GATES, ids=["one", "two"])
def test_a_turn_whose_workers_are_busy_goes_to_others_after_a_while(play: Played, gate: RateGate) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, gates=(gate,))
        if gate.pace.burst > 1:
            await start(store, gates=(gate,))
        [busy] = await insert(store, a_job(gates=(gate,)))
        assert await drain(store, run.worker) == []
        [idle] = await insert(store, a_job(gates=(gate,), queue=IDLE.queue))
        assert await drain(store, run.worker, IDLE) == []
        clock.advance(20.0)
        served = await store.serve_gates(limit=PLENTY)
        assert await state(store, busy) is State.READY, "the token is meant for it, which waits longer"
        assert await drain(store, run.worker, IDLE) == []
        clock.advance(TURN_KEPT_S)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 0, "not before it is over"
        assert served.next_due_in_s is not None
        clock.advance(served.next_due_in_s - TURN_KEPT_S)
        assert (await store.serve_gates(limit=PLENTY)).unparked == 1, "but then"
        assert await drain(store, run.worker) == [], "it does not take the token that is another's now"
        assert [job.id for job in await drain(store, run.worker, IDLE)] == [idle], "nobody claimed the other"
        assert await use(store, AT_POST) == (0, 1)

    play(scenario)


def test_a_turn_that_has_lapsed_is_none_at_the_claim(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, gates=(GATES[0],))
        first, second = await insert(store, *(a_job(gates=(GATES[0],)) for _ in range(2)))
        assert await drain(store, run.worker) == []
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        assert await states(store, first, second) == [State.READY, State.PARKED]
        clock.advance(TURN_KEPT_S + 0.1)
        assert await drain(store, run.worker) == [], "another waits there, who may have the token by now"
        await store.serve_gates(limit=PLENTY)
        assert len(await drain(store, run.worker)) == 1
        assert await use(store, AT_POST) == (0, 1)

    play(scenario)


def test_a_turn_that_has_lapsed_is_not_missed_where_nobody_else_waits(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, gates=(GATES[0],))
        [waiting] = await insert(store, a_job(gates=(GATES[0],)))
        assert await drain(store, run.worker) == []
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        clock.advance(TURN_KEPT_S + 0.1)
        assert [job.id for job in await drain(store, run.worker)] == [waiting]
        assert await use(store, AT_POST) == (0, 0)

    play(scenario)
