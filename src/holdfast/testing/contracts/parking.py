"""Parking: jobs that wait for something other than time, and whoever lifts the reason."""

from __future__ import annotations

from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Park
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LANE,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    enlist,
    finish,
    info,
    insert,
    lose,
    resume,
    start,
    state,
    states,
)


async def _parked(store: Store, key: str, reason: str = UNKNOWN_TASK) -> Run:
    run = await start(store)
    await apply(store, run.worker, Park(run.id, run.token, reason, key))
    return run


async def check_lifting_a_reason_makes_ready(store: Store) -> None:
    runs = [await _parked(store, key) for key in ("a", "b", "a", "c")]
    count = await store.unpark_jobs(reason=UNKNOWN_TASK, keys=["a", "b"])
    assert count == 3, f"got {count}"
    found = await states(store, *(run.id for run in runs))
    assert found == [State.READY, State.READY, State.READY, State.PARKED], f"got {found}"
    jobs = await claim(store, await enlist(store))
    assert {job.id for job in jobs} == {run.id for run in runs[:3]}, f"got {jobs}"
    assert {job.attempt for job in jobs} == {1}, f"parking charges nothing: {jobs}"


async def check_lifting_something_else_lifts_nothing(store: Store) -> None:
    run = await _parked(store, "a")
    assert await store.unpark_jobs(reason="breaker", keys=["a"]) == 0, "another reason"
    assert await store.unpark_jobs(reason=UNKNOWN_TASK, keys=["b"]) == 0, "another key"
    assert await store.unpark_jobs(reason=UNKNOWN_TASK, keys=[]) == 0, "no key"
    assert await state(store, run.id) is State.PARKED, "so it stays"


async def check_a_job_may_be_parked_again(store: Store) -> None:
    run = await _parked(store, "a")
    await store.unpark_jobs(reason=UNKNOWN_TASK, keys=["a"])
    run = await resume(store, run.id, worker=run.worker)
    await apply(store, run.worker, Park(run.id, run.token, "breaker", "smtp"))
    assert await store.unpark_jobs(reason=UNKNOWN_TASK, keys=["a"]) == 0, "that reason is gone"
    assert "breaker" in ((await info(store, run.id)).reason or ""), "the last reason is told"
    assert await store.unpark_jobs(reason="breaker", keys=["smtp"]) == 1, "this one holds"


async def check_what_others_do_not_know_is_handed_over(store: Store) -> None:
    runs = [await _parked(store, key) for key in ("a", "b", "a", "c")]
    worker = await enlist(store)
    for expected in runs[:3]:
        claimed = await store.claim_parked(worker, [LANE], tasks=["b", "a"], deadline_s=60)
        assert [job.id for job in claimed.jobs] == [expected.id], f"the oldest that is known, one at a time: {claimed}"
        assert claimed.scanned == {LANE: 1}, f"got {claimed}"
        [job] = claimed.jobs
        assert (job.attempt, job.alone) == (1, False), f"parking charges nothing: {job}"
        assert await state(store, job.id) is State.RUNNING, "it did not come by ready"
        await finish(store, Run(worker, job))
    nothing = await store.claim_parked(worker, [LANE], tasks=["b", "a"], deadline_s=60)
    assert (nothing.jobs, sum(nothing.scanned.values())) == ([], 0), f"got {nothing}"
    assert await state(store, runs[3].id) is State.PARKED, "nobody who knows it has come"


async def check_what_is_handed_over_was_parked_as_unknown(store: Store) -> None:
    await _parked(store, "a", reason="breaker")
    await insert(store, a_job())
    claimed = await store.claim_parked(await enlist(store), [LANE], tasks=["a", TASK], deadline_s=60)
    assert not claimed.jobs, f"got {claimed}"


async def check_a_hand_over_keeps_to_lanes_pauses_and_leases(store: Store) -> None:
    run = await _parked(store, "a")
    worker = await enlist(store)
    elsewhere = await store.claim_parked(worker, [Lane("elsewhere", 5)], tasks=["a"], deadline_s=60)
    assert not elsewhere.jobs, f"got {elsewhere}"
    await store.set_queue(LANE.queue, QueueSettings(paused=True))
    paused = await store.claim_parked(worker, [LANE], tasks=["a"], deadline_s=60)
    assert not paused.jobs, f"got {paused}"
    await store.set_queue(LANE.queue, QueueSettings())
    await lose(store, worker)
    try:
        await store.claim_parked(worker, [LANE], tasks=["a"], deadline_s=60)
    except LeaseLost:
        assert await state(store, run.id) is State.PARKED, "so it stays"
    else:
        raise AssertionError("a worker without a lease has nothing handed over")


async def check_what_must_run_alone_is_not_handed_over(store: Store) -> None:
    [job_id] = await insert(store, a_job())
    for _ in range(2):
        worker = await enlist(store)
        assert await claim(store, worker)
        await lose(store, worker)
    run = await resume(store, job_id)
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, "a"))
    claimed = await store.claim_parked(await enlist(store), [LANE], tasks=["a"], deadline_s=60)
    assert not claimed.jobs, f"it would run beside others: {claimed}"
    assert await store.unpark_jobs(reason=UNKNOWN_TASK, keys=["a"]) == 1, "it is lifted like any other"


async def check_a_hand_over_looks_at_limits(store: Store) -> None:
    [limited] = await insert(store, a_job(gates=(SlotGate("one", 1),)))
    run = await resume(store, limited)
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, "a"))
    [other] = await insert(store, a_job(gates=(SlotGate("one", 1),)))
    holder = await resume(store, other)
    worker = await enlist(store)
    claimed = await store.claim_parked(worker, [LANE], tasks=["a"], deadline_s=60)
    assert (claimed.jobs, claimed.scanned) == ([], {LANE: 1}), f"there is one slot, and another has it: {claimed}"
    assert "limit" in ((await info(store, limited)).reason or ""), "so it waits for the slot"
    await finish(store, holder)
    assert await state(store, limited) is State.READY, "and has it when it is free"
