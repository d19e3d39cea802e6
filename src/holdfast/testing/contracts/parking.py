"""Parking: jobs that wait for something other than time, and whoever lifts the reason."""

from __future__ import annotations

from holdfast.core.settlement import UNKNOWN_TASK, Park
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import Run, apply, claim, enlist, info, resume, start, state, states


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
