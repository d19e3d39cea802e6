"""Deadlines: what was not started by its deadline is cancelled, wherever it waits, and never run."""

from __future__ import annotations

from holdfast.core.settlement import UNKNOWN_TASK, Park
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    TASK,
    a_job,
    apply,
    claim,
    drain,
    enlist,
    finish,
    info,
    insert,
    start,
    state,
    states,
)

PAST = 1.0


async def check_what_waits_past_its_deadline_is_cancelled(store: Store) -> None:
    [blocker] = await insert(store, a_job(delay_s=LONG_S))
    jobs = [
        a_job(expires_at=PAST),
        a_job(expires_in_s=0),
        a_job(expires_at=PAST, delay_s=LONG_S),
        a_job(expires_at=PAST, waits_for=(blocker,)),
    ]
    ids = await insert(store, *jobs)
    count = await store.expire_jobs(limit=PLENTY)
    assert count == 4, f"got {count}"
    for found in await store.job_infos(ids):
        assert found is not None, "an expired job is kept"
        assert found.state is State.CANCELLED, f"got {found}"
        assert found.reason, f"it says why: {found}"
        assert found.ended_at is not None, f"got {found}"
    assert await state(store, blocker) is State.SCHEDULED, "others are left alone"
    assert await store.expire_jobs(limit=PLENTY) == 0, "each expires once"


async def check_a_parked_job_expires(store: Store) -> None:
    run = await start(store, expires_in_s=LONG_S)
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, TASK))
    assert await store.expire_jobs(limit=PLENTY) == 0, "its deadline is far"
    assert await state(store, run.id) is State.PARKED, "so it stays"


async def check_an_expired_job_is_not_run(store: Store) -> None:
    late, fine = a_job(expires_at=PAST), a_job(expires_in_s=LONG_S)
    await insert(store, late, fine)
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == [fine.id], f"too late is too late, also before anybody swept: {got}"
    await store.expire_jobs(limit=PLENTY)
    assert await state(store, late.id) is State.CANCELLED, "it ends as cancelled"


async def check_expired_jobs_do_not_hide_others_from_a_claim(store: Store) -> None:
    await insert(store, *(a_job(expires_at=PAST) for _ in range(4)))
    [fine] = await insert(store, a_job())
    worker = await enlist(store)
    got: list[object] = []
    for _ in range(6):
        claimed = await store.claim_jobs(worker, {LANE: 2}, deadline_s=60)
        got += [job.id for job in claimed.jobs]
        if claimed.scanned.get(LANE, 0) < 2:
            break  # the lane says that it is empty
    assert got == [fine], f"a lane is empty only when it was scanned short: {got}"


async def check_a_started_job_does_not_expire(store: Store) -> None:
    run = await start(store, expires_in_s=LONG_S)
    assert await store.expire_jobs(limit=PLENTY) == 0, "it was started in time"
    await finish(store, run)
    assert await state(store, run.id) is State.SUCCEEDED, "and so it ends well"


async def check_expiring_is_bounded(store: Store) -> None:
    ids = await insert(store, *(a_job(expires_at=PAST) for _ in range(5)))
    counts = [await store.expire_jobs(limit=2) for _ in range(4)]
    assert counts == [2, 2, 1, 0], f"got {counts}"
    assert await states(store, *ids) == [State.CANCELLED] * 5, "all have expired"


async def check_an_expired_job_has_an_ending(store: Store) -> None:
    [job_id] = await insert(store, a_job(expires_at=PAST))
    await store.expire_jobs(limit=PLENTY)
    ending = (await store.endings([job_id]))[job_id]
    assert ending is not None, "waiters are told"
    assert ending.state is State.CANCELLED, f"got {ending}"
    assert ending.reason == (await info(store, job_id)).reason, f"got {ending}"
    assert await claim(store, await enlist(store)) == [], "it never runs"
