"""Full limits that are not waited for: a newcomer is skipped, or replaces those who were before it."""

from __future__ import annotations

from holdfast.core.gates import Barrier, Place, RateGate, SlotGate, WhenFull
from holdfast.core.rate import Pace
from holdfast.core.settlement import Cancel, Retry
from holdfast.core.state import State
from holdfast.stores.base import CancelRequest, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    Run,
    a_job,
    apply,
    drain,
    enlist,
    finish,
    info,
    insert,
    lose,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import ELSEWHERE, nothing_is_left, use

SKIP = SlotGate("report", 1, when_full=WhenFull.SKIP)
REPLACE = SlotGate("build", 1, when_full=WhenFull.REPLACE)
AT_REPLACE = Place(Barrier.LIMIT, REPLACE.key)


async def check_a_skipped_job_is_cancelled_and_says_why(store: Store) -> None:
    run = await start(store, gates=(SKIP,))
    [skipped] = await insert(store, a_job(gates=(SKIP,)))
    [after] = await insert(store, a_job(waits_for=(skipped,), queue="after"))
    assert await drain(store, run.worker) == [], "the limit is full"
    found = await info(store, skipped)
    assert (found.state, found.reason) == (State.CANCELLED, "skipped: limit report is full"), f"got {found}"
    assert (found.attempt, found.attempts) == (0, ()), f"it never ran: {found}"
    assert found.ended_at is not None, f"got {found}"
    assert await state(store, after) is State.READY, "whoever waited for it is told, as of any ending"
    await finish(store, run)
    again = await start(store, gates=(SKIP,))
    await finish(store, again)
    await store.cancel_jobs([after], reason="enough")
    await nothing_is_left(store)


async def check_of_several_in_one_claim_the_first_runs_and_the_others_are_skipped(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(SKIP,)) for _ in range(3)))
    [job] = await drain(store, await enlist(store))
    assert job.id == ids[0], "the oldest"
    assert await states(store, *ids[1:]) == [State.CANCELLED] * 2, "the limit is full at once"


async def check_a_job_that_would_be_skipped_spends_and_takes_nothing(store: Store) -> None:
    run = await start(store, gates=(SKIP,))
    other = SlotGate("printer", 1)
    await insert(store, a_job(gates=(other, SKIP)))
    await drain(store, run.worker)
    assert await use(store, Place(Barrier.LIMIT, other.key)) == (0, 0), "nothing is taken on the way"


async def check_a_newcomer_replaces_who_runs(store: Store) -> None:
    run = await start(store, gates=(REPLACE,))
    [newer] = await insert(store, a_job(gates=(REPLACE,)))
    assert await drain(store, run.worker) == [], "it waits until the other has stopped"
    assert (await info(store, newer)).reason == "limit", "as at any full limit"
    requests = await store.cancel_requests(run.worker)
    reason = f"replaced by {newer}"
    assert requests == [CancelRequest(run.id, run.token, reason)], f"who runs is asked to stop: {requests}"
    await apply(store, run.worker, Cancel(run.id, run.token, reason))
    await serve(store)
    [job] = await drain(store, run.worker)
    assert job.id == newer, "its turn has come"
    await finish(store, Run(run.worker, job))
    await nothing_is_left(store)


async def check_of_those_who_wait_only_the_newest_is_left(store: Store) -> None:
    run = await start(store, gates=(REPLACE,))
    older = [*await insert(store, a_job(gates=(REPLACE,)))]
    await drain(store, run.worker)
    older += await insert(store, *(a_job(gates=(REPLACE,)) for _ in range(2)))
    [newest] = await insert(store, a_job(gates=(REPLACE,)))
    await drain(store, run.worker)
    assert await states(store, *older) == [State.CANCELLED] * 3, "each was replaced by the next"
    assert (await info(store, older[-1])).reason == f"replaced by {newest}", "and says by which"
    assert (await info(store, older[0])).reason == f"replaced by {older[1]}", "also the one that was parked before"
    assert await use(store, AT_REPLACE) == (1, 1), "one runs, one waits"
    [request] = await store.cancel_requests(run.worker)
    assert request.reason == f"replaced by {older[0]}", f"who runs was asked once, by the first: {request}"
    await finish(store, run)
    await serve(store)
    assert await state(store, run.id) is State.SUCCEEDED, "a success that comes first wins"
    assert [job.id for job in await drain(store, run.worker)] == [newest], "the newest runs"


async def check_who_was_leased_in_the_same_claim_is_replaced_as_well(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(REPLACE,)) for _ in range(3)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    assert job.id == ids[0], "the first finds room"
    [request] = await store.cancel_requests(worker)
    assert request == CancelRequest(job.id, job.token, f"replaced by {ids[1]}"), f"and is asked to stop: {request}"
    assert await states(store, *ids[1:]) == [State.CANCELLED, State.PARKED], "the last one waits"


async def check_who_was_let_go_and_has_not_begun_is_replaced_as_well(store: Store) -> None:
    run = await start(store, gates=(REPLACE,))
    [older] = await insert(store, a_job(gates=(REPLACE,), queue=ELSEWHERE.queue))
    await drain(store, run.worker, ELSEWHERE)
    await finish(store, run)
    await serve(store)
    assert await state(store, older) is State.READY, "the slot is kept for it"
    [newer] = await insert(store, a_job(gates=(REPLACE,)))
    assert (await store.claim_jobs(run.worker, {LANE: 1}, deadline_s=60)).jobs == [], "which the newer one finds"
    found = await info(store, older)
    assert (found.state, found.reason) == (State.CANCELLED, f"replaced by {newer}"), f"it waits, as others do: {found}"
    await serve(store)
    assert [job.id for job in await drain(store, run.worker)] == [newer], "and the newest runs"


async def check_who_comes_from_another_gate_is_as_old_as_it_is(store: Store) -> None:
    """The newest is who was enqueued last, wherever it has waited before."""
    rate = RateGate("post", Pace(1, LONG_S, 1))
    first = await start(store, gates=(rate,))
    run = await start(store, worker=first.worker, gates=(REPLACE,))
    late, latest = await insert(store, a_job(gates=(rate, REPLACE)), a_job(gates=(rate, REPLACE)))
    assert await drain(store, first.worker) == [], "no token"
    [between] = await insert(store, a_job(gates=(REPLACE,)))
    assert await drain(store, run.worker) == [], "it asks the other to stop"
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 3), by="me")  # there are tokens
    await serve(store)
    found = [await info(store, job_id) for job_id in (late, latest)]
    assert [each.state for each in found] == [State.CANCELLED] * 2, "there was a newer one"
    assert [each.reason for each in found] == [f"replaced by {between}"] * 2, f"got {found}"
    assert (await info(store, between)).waits_at == REPLACE.key
    await apply(store, run.worker, Cancel(run.id, run.token, "as it was asked"))
    await serve(store)
    assert [job.id for job in await drain(store, run.worker)] == [between]


async def check_a_retry_does_not_replace_a_newer_one(store: Store) -> None:
    old = await start(store, gates=(REPLACE,))
    await apply(store, old.worker, Retry(old.id, old.token, 0.0, ERROR))
    new = await start(store, worker=old.worker, gates=(REPLACE,))
    await store.promote_jobs(limit=PLENTY)
    assert await drain(store, old.worker) == [], "there is a newer one"
    assert await store.cancel_requests(old.worker) == [], "which nobody asks to stop"
    found = await info(store, old.id)
    assert (found.state, found.reason) == (State.CANCELLED, f"replaced by {new.id}"), f"got {found}"
    await finish(store, new)
    await nothing_is_left(store)


async def check_who_was_asked_to_stop_replaces_nobody(store: Store) -> None:
    old = await start(store, gates=(REPLACE,))
    await apply(store, old.worker, Retry(old.id, old.token, 0.0, ERROR))
    new = await start(store, worker=old.worker, gates=(REPLACE,))
    await store.cancel_jobs([new.id], reason="never mind")
    await store.promote_jobs(limit=PLENTY)
    assert await drain(store, old.worker) == [], "it waits until the other has stopped"
    await apply(store, new.worker, Cancel(new.id, new.token, "never mind"))
    await serve(store)
    assert [job.id for job in await drain(store, old.worker)] == [old.id], "one of the two is left"


async def check_those_with_other_keys_are_left_alone(store: Store) -> None:
    other = SlotGate("another build", 1, when_full=WhenFull.REPLACE)
    run = await start(store, gates=(other,))
    [waiting] = await insert(store, a_job(gates=(other,)))
    await drain(store, run.worker)
    first = await start(store, worker=run.worker, gates=(REPLACE,))
    await insert(store, a_job(gates=(REPLACE,)))
    await drain(store, run.worker)
    asked = {request.job_id for request in await store.cancel_requests(run.worker)}
    assert asked == {run.id, first.id}, f"each by its own: {asked}"
    assert await state(store, waiting) is State.PARKED, "and its waiter stays"


async def check_an_older_one_of_another_lane_does_not_replace_a_newer_one(store: Store) -> None:
    [older] = await insert(store, a_job(gates=(REPLACE,), queue=ELSEWHERE.queue))
    newer = await start(store, gates=(REPLACE,))
    assert await drain(store, newer.worker, ELSEWHERE) == [], "there is a newer one"
    assert await store.cancel_requests(newer.worker) == [], "which nobody asks to stop"
    found = await info(store, older)
    assert (found.state, found.reason) == (State.CANCELLED, f"replaced by {newer.id}"), f"got {found}"
    await finish(store, newer)
    await nothing_is_left(store)


async def check_one_that_lost_its_worker_does_not_replace_a_newer_one(store: Store) -> None:
    old = await start(store, gates=(REPLACE,), queue=ELSEWHERE.queue)
    await lose(store, old.worker)
    new = await start(store, gates=(REPLACE,))
    assert await drain(store, new.worker, ELSEWHERE) == [], "there is a newer one"
    assert await store.cancel_requests(new.worker) == [], "which nobody asks to stop"
    assert (await info(store, old.id)).reason == f"replaced by {new.id}"
    await finish(store, new)
    await nothing_is_left(store)
