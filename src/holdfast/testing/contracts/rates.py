"""Rates: runs begin at a pace, over all workers; whoever comes too early waits without a slot or an attempt."""

from __future__ import annotations

import asyncio

from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Gate, Place, RateGate, SlotGate
from holdfast.core.job import JobId, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import HandBack, Retry
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    Run,
    a_job,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    info,
    insert,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import ELSEWHERE, nothing_is_left, use

SLOW = RateGate("post", Pace(1, LONG_S, 1))
PAIR = RateGate("post", Pace(1, LONG_S, 2))
AT_POST = Place(Barrier.RATE, "post")
QUEUES = (LANE.queue, ELSEWHERE.queue)
QUICK = Pace(5_000, 1.0, 1)
"""A token is earned again in a moment."""


async def a_moment(store: Store) -> None:
    """Ask until the store's clock has gone on so far that a quick bucket is full."""
    full_at = await store.now() + 3 * QUICK.gap_s
    while await store.now() < full_at:
        pass


async def check_a_burst_runs_and_the_others_wait(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(PAIR,)) for _ in range(5)))
    before = await store.now()
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == ids[:2], f"the oldest two: {got}"
    assert await states(store, *ids[2:]) == [State.PARKED] * 3, "the others wait"
    found = await info(store, ids[2])
    assert (found.reason, found.attempt, found.attempts) == ("rate", 0, ()), f"no attempt is used: {found}"
    [gate] = await store.gates([AT_POST])
    assert (gate.held, gate.waiting) == (0, 3), f"a rate has no slots: {gate}"
    assert gate.full_at is not None, f"got {gate}"
    assert abs(gate.full_at - before - 2 * LONG_S) < 60, f"both tokens are to be earned again: {gate}"


async def check_the_sweep_tells_of_nobody_whose_time_has_only_just_come(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(RateGate("post", QUICK),)) for _ in range(5)))
    await drain(store, await enlist(store))
    await a_moment(store)
    before = await states(store, *ids)
    swept = await store.sweep(limit=PLENTY)
    assert swept.unparked == 0, f"whoever promotes was about to come: {swept}"
    found = await states(store, *ids)
    assert found.count(State.PARKED) == before.count(State.PARKED) - 1, f"it goes on all the same: {before}, {found}"


async def check_an_ending_earns_nothing(store: Store) -> None:
    run = await start(store, gates=(SLOW,))
    [waiting] = await insert(store, a_job(gates=(SLOW,)))
    await drain(store, run.worker)
    await finish(store, run)
    await serve(store)
    assert await state(store, waiting) is State.PARKED, "only time does"


async def check_every_run_spends_a_token(store: Store) -> None:
    retried = await start(store, gates=(SLOW,))
    await apply(store, retried.worker, Retry(retried.id, retried.token, 0, ERROR))
    await due(store)
    assert await drain(store, retried.worker) == [], "another attempt is another run"
    found = await info(store, retried.id)
    assert (found.state, found.reason, found.attempt) == (State.PARKED, "rate", 1), f"got {found}"
    other = RateGate("other", SLOW.pace)
    run = await start(store, gates=(other,))
    await apply(store, run.worker, HandBack(run.id, run.token, "drained"))
    assert await drain(store, run.worker) == [], "so is the next run of what was handed back"
    assert (await info(store, run.id)).reason == "rate"


async def check_no_token_is_spent_by_whoever_is_held_back_elsewhere(store: Store) -> None:
    one = SlotGate("printer", 1)
    holding = await start(store, gates=(one,))
    waiting, other = await insert(store, a_job(gates=(SLOW, one)), a_job(gates=(SLOW,)))
    got = [job.id for job in await drain(store, holding.worker)]
    assert got == [other], f"the token is for who can run: {got}"
    assert (await info(store, waiting)).reason == "limit", "the first waits for its slot"


async def check_whoever_waits_for_a_token_holds_no_slot(store: Store) -> None:
    one = SlotGate("printer", 1)
    await start(store, gates=(SLOW,))
    [waiting] = await insert(store, a_job(gates=(one, SLOW)))
    worker = await enlist(store)
    assert await drain(store, worker) == [], "there is no token"
    assert (await info(store, waiting)).reason == "rate"
    assert await use(store, Place(Barrier.LIMIT, one.key)) == (0, 0), "and no slot is held meanwhile"


async def check_it_is_told_when_the_next_token_is_earned(store: Store) -> None:
    await start(store, gates=(SLOW,))
    found = await store.serve_gates(limit=PLENTY)
    assert tuple(found) == (0, 0, None), f"nobody waits: {found}"
    await insert(store, a_job(gates=(SLOW,)))
    await drain(store, await enlist(store))
    found = await store.serve_gates(limit=PLENTY)
    assert (found.unparked, found.moved) == (0, 0), f"it is not due: {found}"
    assert found.next_due_in_s is not None, f"somebody waits: {found}"
    assert LONG_S / 2 < found.next_due_in_s <= LONG_S, f"got {found}"


async def check_waiters_are_let_go_when_their_token_is_earned(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(RateGate("fast", QUICK),)) for _ in range(4)))
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[:1], f"one token at a time: {got}"
    while len(got) < len(ids):
        found = await _let_go(store)
        assert found == 1, f"one token at a time: {found}"
        got += [job.id for job in await drain(store, worker)]
    assert got == ids, f"in their order: {got}"


async def _let_go(store: Store) -> int:
    """How many were let go when the next gate was due, which is in a moment."""
    patience = await store.now() + 30
    while await store.now() < patience:
        found = await store.serve_gates(limit=PLENTY)
        assert found.unparked or found.next_due_in_s is not None, f"somebody waits for a token: {found}"
        if found.unparked:
            return found.unparked
    raise AssertionError("the token was earned long ago")


async def check_no_more_are_let_go_than_there_are_tokens(store: Store) -> None:
    await start(store, gates=(SLOW,))
    ids = await insert(store, *(a_job(gates=(SLOW,)) for _ in range(5)))
    worker = await enlist(store)
    await drain(store, worker)
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 3), by="me")
    assert await serve(store) == 2, "one of three is spent"
    assert await states(store, *ids) == [State.READY] * 2 + [State.PARKED] * 3, "the oldest go"
    assert [job.id for job in await drain(store, worker)] == ids[:2], "and find their tokens"
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 100), by="me")
    assert await serve(store) == 3, "a larger burst is there at once"
    assert [job.id for job in await drain(store, worker)] == ids[2:], "for all who wait"


async def check_a_quicker_pace_does_not_pay_for_a_slower_one(store: Store) -> None:
    await start(store, gates=(SLOW,))
    ids = await insert(store, *(a_job(gates=(SLOW,)) for _ in range(2)))
    worker = await enlist(store)
    await drain(store, worker)
    await store.set_limit("post", size=None, pace=QUICK, by="me")
    got: list[JobId] = []
    while len(got) < len(ids):
        await _let_go(store)
        got += [job.id for job in await drain(store, worker)]
    assert got == ids, f"the hour that one run took to be earned is not waited for: {got}"


async def check_the_line_is_not_jumped_while_tokens_are_earned(store: Store) -> None:
    await start(store, gates=(SLOW,))
    older = await insert(store, *(a_job(gates=(SLOW,)) for _ in range(2)))
    worker = await enlist(store)
    await drain(store, worker)
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 2), by="me")
    await serve(store)
    [newer] = await insert(store, a_job(gates=(SLOW,)))
    got = [job.id for job in await drain(store, worker)]
    assert got == older[:1], f"whoever was let go stands before who came later: {got}"
    assert await states(store, older[1], newer) == [State.PARKED] * 2


async def _let_go_with_a_turn(store: Store, *more: Gate) -> tuple[WorkerId, JobId]:
    """A job that waited, and for which the next token is meant."""
    first = await start(store, gates=(SLOW,))
    [waiting] = await insert(store, a_job(gates=(SLOW, *more)))
    assert await drain(store, first.worker) == []
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 2), by="me")
    await serve(store)
    assert await state(store, waiting) is State.READY
    assert await use(store, AT_POST) == (1, 0), "its turn is kept"
    return first.worker, waiting


async def check_newcomers_leave_the_token_to_whoever_was_let_go(store: Store) -> None:
    worker, waiting = await _let_go_with_a_turn(store)
    [newer] = await insert(store, a_job(gates=(SLOW,), queue=ELSEWHERE.queue))
    assert await drain(store, worker, ELSEWHERE) == [], "the only token is meant for another"
    assert [job.id for job in await drain(store, worker)] == [waiting]
    assert await use(store, AT_POST) == (0, 1), "its turn is used, and the newer one waits"
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 3), by="me")
    await serve(store)
    assert [job.id for job in await drain(store, worker, ELSEWHERE)] == [newer]


async def check_newcomers_stand_behind_those_who_wait_for_tokens(store: Store) -> None:
    """However urgent their lane is, and although a token is there: who waits has only not been looked at."""
    run = await start(store, gates=(SLOW,))
    [waiting] = await insert(store, a_job(gates=(SLOW,)))
    assert await drain(store, run.worker) == []
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 2), by="me")
    urgent = Lane(ELSEWHERE.queue, 9)
    [newer] = await insert(store, a_job(gates=(SLOW,), queue=urgent.queue, priority=urgent.priority))
    quotas = {urgent: PLENTY, LANE: PLENTY}
    claimed = await store.claim_jobs(run.worker, quotas, deadline_s=LONG_S)
    assert claimed.jobs == [], "it waits behind the other"
    await serve(store)
    claimed = await store.claim_jobs(run.worker, quotas, deadline_s=LONG_S)
    assert len(claimed.jobs) == 1, "there is one token"
    assert {*await states(store, waiting, newer)} == {State.PARKED, State.RUNNING}


async def check_of_a_rate_each_lane_has_its_share_whatever_comes(store: Store) -> None:
    """One waits while two urgent ones come for each token."""
    gate = RateGate("fast", QUICK)
    run = await start(store, gates=(gate,))
    urgent = Lane(ELSEWHERE.queue, 9)
    [waiting] = await insert(store, a_job(gates=(gate,)))
    assert await drain(store, run.worker) == [] or await state(store, waiting) is State.RUNNING
    for _ in range(30):
        if await state(store, waiting) is State.RUNNING:
            return
        await insert(store, *(a_job(gates=(gate,), queue=urgent.queue, priority=9) for _ in range(2)))
        await a_moment(store)
        await serve(store)
        await store.claim_jobs(run.worker, {urgent: PLENTY, LANE: PLENTY}, deadline_s=LONG_S)
    raise AssertionError("thirty tokens went to those who came later")


async def check_whatever_ends_a_turn_gives_it_to_the_next(store: Store) -> None:
    worker, waiting = await _let_go_with_a_turn(store)
    [next_one] = await insert(store, a_job(gates=(SLOW,), queue=ELSEWHERE.queue))
    assert await drain(store, worker, ELSEWHERE) == []
    await serve(store)
    await store.cancel_jobs([waiting], reason="not needed")
    await store.serve_gates(limit=PLENTY)
    assert [job.id for job in await drain(store, worker, ELSEWHERE)] == [next_one], "it is looked at without a delay"
    assert await use(store, AT_POST) == (0, 0)


async def check_a_turn_is_not_kept_in_a_paused_queue(store: Store) -> None:
    worker, _ = await _let_go_with_a_turn(store)
    [other] = await insert(store, a_job(gates=(SLOW,), queue=ELSEWHERE.queue))
    assert await drain(store, worker, ELSEWHERE) == []
    await store.set_queue(LANE.queue, QueueSettings(paused=True), only=("paused",))
    await serve(store)
    assert [job.id for job in await drain(store, worker, ELSEWHERE)] == [other]


async def check_those_who_come_last_do_not_keep_out_one_of_them_who_was_let_go(store: Store) -> None:
    last = Lane(ELSEWHERE.queue, LANE.priority)
    await store.set_queue(last.queue, QueueSettings(weight=0.0), only=("weight",))
    run = await start(store, gates=(SLOW,))
    first, second = await insert(store, *(a_job(gates=(SLOW,), queue=last.queue) for _ in range(2)))
    assert await drain(store, run.worker, last) == []
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 2), by="me")
    await serve(store)
    assert await state(store, first) is State.READY
    assert await use(store, AT_POST) == (0, 1), "nothing is kept for it"
    assert [job.id for job in await drain(store, run.worker, last)] == [first]
    assert await state(store, second) is State.PARKED


async def check_each_key_has_its_own_tokens_and_one_name_for_all(store: Store) -> None:
    gates = [RateGate(f"post:{number}", SLOW.pace, "post") for number in range(3)]
    ids = await insert(store, *(a_job(gates=(gate,)) for gate in gates for _ in range(2)))
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[::2], f"one of each key: {got}"
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 2), by="me")
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert sorted(got) == sorted(ids[1::2]), f"what is said of the name holds for every key: {got}"


async def check_two_rates_are_both_kept(store: Store) -> None:
    wide = RateGate("wide", Pace(1, LONG_S, 10))
    ids = await insert(store, *(a_job(gates=(wide, SLOW)) for _ in range(3)))
    worker = await enlist(store)
    assert [job.id for job in await drain(store, worker)] == ids[:1], "the narrow one decides"
    before = (await store.gates([Place(Barrier.RATE, "wide")]))[0].full_at
    assert before is not None
    now = await store.now()
    assert before - now < 1.5 * LONG_S, "and those that wait have spent nothing of the wide one"


async def check_a_cancelled_waiter_leaves_nothing_behind(store: Store) -> None:
    fast = RateGate("fast", QUICK)
    ids = await insert(store, a_job(gates=(fast,)), a_job(gates=(fast,)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await store.cancel_jobs(ids[1:], reason="not needed")
    assert await use(store, Place(Barrier.RATE, "fast")) == (0, 0), "nobody waits"
    await finish(store, Run(worker, job))
    await a_moment(store)
    await nothing_is_left(store)


async def check_a_bucket_that_is_not_full_outlives_the_sweep(store: Store) -> None:
    run = await start(store, gates=(SLOW,))
    await finish(store, run)
    await store.sweep(limit=PLENTY)
    [waiting] = await insert(store, a_job(gates=(SLOW,)))
    assert await drain(store, run.worker) == [], "what was spent is not forgotten"
    assert (await info(store, waiting)).reason == "rate"


async def check_the_pace_holds_between_workers_that_claim_at_once(store: Store) -> None:
    pace = Pace(500, 1.0, 5)
    api = RateGate("api", pace)
    ids = await insert(store, *(a_job(gates=(api,), queue=queue) for _ in range(30) for queue in QUEUES))
    begun: set[JobId] = set()

    async def work(lane: Lane) -> None:
        worker = await enlist(store)
        while len(begun) < len(ids):
            begun.update(job.id for job in await claim(store, worker, 10, lane=lane))
            await store.serve_gates(limit=PLENTY)

    await asyncio.gather(*(work(lane) for lane in (LANE, ELSEWHERE) * 2))
    infos = [found for found in await store.job_infos(ids) if found is not None and found.started_at is not None]
    starts = sorted(found.started_at.timestamp() for found in infos if found.started_at is not None)
    assert len(starts) == len(ids), "all have begun"
    for first, at in enumerate(starts):
        for count, later in enumerate(starts[first:], start=1):
            most = pace.burst + (later - at) * pace.count + 0.01
            assert count <= most, f"{count} runs began within {later - at:.6f} s: at most {most:.3f} may"
