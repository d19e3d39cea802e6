"""How long a turn at a rate is kept for one who was let go, on both stores, with their clocks moved by hand."""

from __future__ import annotations

from tests.contract.by_hand import Played

from holdfast.core.fairness import Lane
from holdfast.core.gates import TURN_KEPT_S, Barrier, Place, RateGate
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import LANE, PLENTY, a_job, drain, insert, start, state
from holdfast.testing.contracts.gates import use

GATE = RateGate("post", Pace(1, 20.0, 1))
AT_POST = Place(Barrier.RATE, "post")
IDLE = Lane("idle", 5)


def test_a_turn_whose_workers_are_busy_goes_to_others_after_a_while(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, gates=(GATE,))
        [busy] = await insert(store, a_job(gates=(GATE,)))
        assert await drain(store, run.worker) == []
        [idle] = await insert(store, a_job(gates=(GATE,), queue=IDLE.queue))
        assert await drain(store, run.worker, IDLE) == []
        clock.advance(20.0)
        served = await store.serve_gates(limit=PLENTY)
        assert await state(store, busy) is State.READY, "the token is meant for it, which waits longer"
        assert await drain(store, run.worker, IDLE) == []
        assert served.next_due_in_s is not None
        assert served.next_due_in_s <= TURN_KEPT_S, "somebody looks again in time"

        clock.advance(TURN_KEPT_S)
        await store.serve_gates(limit=PLENTY)
        assert await drain(store, run.worker, IDLE) == [], "not before it is over"
        clock.advance(0.1)
        await store.serve_gates(limit=PLENTY)
        assert [job.id for job in await drain(store, run.worker, IDLE)] == [idle], "nobody claims the other"
        assert await drain(store, run.worker) == [], "it does not take a token that it was not given"
        assert await use(store, AT_POST) == (0, 1)

    play(scenario)


def test_a_turn_that_has_lapsed_is_given_anew(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, gates=(GATE,))
        [waiting] = await insert(store, a_job(gates=(GATE,)))
        assert await drain(store, run.worker) == []
        clock.advance(20.0)
        await store.serve_gates(limit=PLENTY)
        clock.advance(TURN_KEPT_S + 0.1)
        claimed = await store.claim_jobs(run.worker, {LANE: PLENTY}, deadline_s=60.0)
        assert [job.id for job in claimed.jobs] == [waiting], "nobody else waits there, and there is a token"
        assert await use(store, AT_POST) == (0, 0)

    play(scenario)
