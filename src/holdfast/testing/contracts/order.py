"""Order within a lane: first in, first out; recovered jobs keep their place, retries and replays queue again."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.settlement import Bury, HandBack, Retry, Snooze
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    Run,
    a_job,
    apply,
    claim,
    drain,
    due,
    enlist,
    insert,
    lose,
)


async def _three(store: Store) -> tuple[Run, list[object], list[object]]:
    """Three jobs, the oldest of which runs; all ids, and the ids that wait."""
    ids: list[object] = list(await insert(store, a_job(), a_job(), a_job()))
    worker = await enlist(store)
    [oldest] = await claim(store, worker, 1)
    assert oldest.id == ids[0], "the oldest comes first"
    return Run(worker, oldest), ids, ids[1:]


async def _order(store: Store) -> list[object]:
    """All that can be had from the lane, one by one."""
    worker = await enlist(store)
    found: list[object] = []
    while jobs := await claim(store, worker, 1):
        found += [job.id for job in jobs]
    return found


async def check_first_in_first_out(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(10)))
    ids += await insert(store, *(a_job() for _ in range(10)))
    worker = await enlist(store)
    got = []
    for quota in (1, 4, 15):
        got += [job.id for job in await claim(store, worker, quota)]
    assert got == ids, "jobs of a lane are claimed in the order they came"


async def check_a_claim_answers_in_order(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(20)))
    got = [job.id for job in await drain(store, await enlist(store), LANE)]
    assert got == ids, "one claim lists a lane's jobs oldest first"


async def check_a_handed_back_job_gets_its_place_back(store: Store) -> None:
    run, ids, _ = await _three(store)
    await apply(store, run.worker, HandBack(run.id, run.token, "drained"))
    got = await _order(store)
    assert got == ids, f"got {got}, expected {ids}"


async def check_a_lost_claim_gets_its_place_back(store: Store) -> None:
    run, ids, _ = await _three(store)
    await apply(store, run.worker, HandBack(run.id, run.token, "nobody ran it", Cause.CLAIM_LOST))
    got = await _order(store)
    assert got == ids, f"got {got}, expected {ids}"


async def check_a_reaped_job_gets_its_place_back(store: Store) -> None:
    run, ids, _ = await _three(store)
    await lose(store, run.worker)
    got = await _order(store)
    assert got == ids, f"got {got}, expected {ids}"


async def check_a_removed_workers_jobs_get_their_places_back(store: Store) -> None:
    ids: list[object] = list(await insert(store, *(a_job() for _ in range(6))))
    worker = await enlist(store)
    await claim(store, worker, 3)
    await store.hand_back_worker(worker, cause=Cause.WORKER_LOST, why="killed")
    got = await _order(store)
    assert got == ids, f"got {got}, expected {ids}"


async def check_a_retried_job_queues_again(store: Store) -> None:
    run, ids, waiting = await _three(store)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    got = await _order(store)
    assert got == [*waiting, ids[0]], f"a retry goes to the tail: {got}"


async def check_a_snoozed_job_queues_again(store: Store) -> None:
    run, ids, waiting = await _three(store)
    await apply(store, run.worker, Snooze(run.id, run.token, 0, ERROR))
    await due(store)
    got = await _order(store)
    assert got == [*waiting, ids[0]], f"a snoozed job goes to the tail: {got}"


async def check_a_replayed_job_queues_again(store: Store) -> None:
    run, ids, waiting = await _three(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    await store.replay_jobs([run.id])
    got = await _order(store)
    assert got == [*waiting, ids[0]], f"a replay goes to the tail: {got}"


async def check_due_jobs_come_in_the_order_of_their_times(store: Store) -> None:
    now = await store.now()
    ids: list[object] = list(await insert(store, *(a_job(run_at=now + 0.001 * i) for i in (-30, -10, -20))))
    await due(store)
    got = await _order(store)
    assert set(got) == set(ids), f"all are due: {got}"
