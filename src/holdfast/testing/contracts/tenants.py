"""Fairness between tenants: nobody waits for another's backlog; shares follow weights; without tenants, first in, first
out."""

from __future__ import annotations

from collections import Counter

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId
from holdfast.core.settlement import UNKNOWN_TASK, Bury, HandBack, Park, Retry, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    insert,
    lose,
    serve,
    start,
    states,
)


async def _backlog(store: Store, tenant: str, count: int, **overrides: object) -> list[JobId]:
    return await insert(store, *(a_job(tenant=tenant, **overrides) for _ in range(count)))


async def _tenants(store: Store, count: int) -> str:
    """Of the jobs that are claimed next, one by one, each a letter."""
    worker = await enlist(store)
    found = ""
    for _ in range(count):
        found += "".join(job.tenant or "-" for job in await claim(store, worker, 1))
    return found


async def check_a_tenants_first_job_waits_for_one_job_of_each_other(store: Store) -> None:
    await _backlog(store, "a", 50)
    await _backlog(store, "b", 50)
    await _backlog(store, "c", 1)
    got = await _tenants(store, 3)
    assert "c" in got, f"two tenants have work, so the third's first job is third at the latest: {got}"


async def check_it_holds_in_the_middle_of_a_backlog(store: Store) -> None:
    await _backlog(store, "a", 60)
    await claim(store, await enlist(store), 20)
    await _backlog(store, "b", 5)
    got = await _tenants(store, 10)
    assert got in ("abababababa"[:10], "bababababa"), f"they take turns from here on: {got}"


async def check_turns_are_taken_within_one_batch(store: Store) -> None:
    await insert(store, *(a_job(tenant=tenant) for tenant in "aaaabbbb"))
    got = await _tenants(store, 8)
    assert got == "abababab", f"got {got}"


async def check_jobs_of_a_tenant_stay_in_order(store: Store) -> None:
    ids = await _backlog(store, "a", 5)
    await _backlog(store, "b", 3)
    ids += await _backlog(store, "a", 5)
    got = [job.id for job in await drain(store, await enlist(store)) if job.tenant == "a"]
    assert got == ids, f"a tenant's own jobs come first in, first out: {got}"


async def check_whoever_was_away_gets_no_credit_for_it(store: Store) -> None:
    await _backlog(store, "a", 30)
    await drain(store, await enlist(store))  # the lane is empty, and only one tenant has ever been served
    await _backlog(store, "b", 30)
    await _backlog(store, "a", 30)
    shares = Counter(await _tenants(store, 20))
    assert abs(shares["a"] - 10) <= 1, f"what was before does not count: {shares}"


async def check_shares_follow_the_weights(store: Store) -> None:
    await store.set_tenant_weight("b", 3.0)
    await _backlog(store, "a", 40)
    await _backlog(store, "b", 40)
    shares = Counter(await _tenants(store, 40))
    assert abs(shares["b"] - 30) <= 1, f"three of four are the heavier tenant's: {shares}"


async def check_weights_are_kept_and_dropped(store: Store) -> None:
    assert await store.tenant_weights() == {}
    await store.set_tenant_weight("a", 2.5)
    await store.set_tenant_weight("b", 0.5)
    await store.set_tenant_weight("b", 0.25)
    assert await store.tenant_weights() == {"a": 2.5, "b": 0.25}
    await store.set_tenant_weight("a", None)
    assert await store.tenant_weights() == {"b": 0.25}


async def check_jobs_without_a_tenant_are_one_of_their_own(store: Store) -> None:
    await _backlog(store, "a", 1)
    await insert(store, *(a_job() for _ in range(20)))
    await _backlog(store, "a", 3)
    got = await _tenants(store, 7)
    assert got.count("a") >= 3, f"they take turns with the tenants: {got}"
    assert got.count("-") >= 3, f"they take turns with the tenants: {got}"


async def check_what_was_there_before_the_first_tenant_comes_first(store: Store) -> None:
    before = await insert(store, *(a_job() for _ in range(5)))
    await _backlog(store, "a", 2)
    after = await insert(store, *(a_job() for _ in range(5)))
    got = [job.id for job in await drain(store, await enlist(store)) if not job.tenant]
    assert got == [*before, *after], f"got {got}"
    await insert(store, *(a_job() for _ in range(5)))
    await _backlog(store, "a", 1)
    assert "a" in await _tenants(store, 2), "from then on they take turns"


async def check_lanes_do_not_count_for_each_other(store: Store) -> None:
    await _backlog(store, "a", 20, priority=9)
    await _backlog(store, "a", 3)
    await _backlog(store, "b", 3)
    assert await _tenants(store, 6) == "ababab", "what a tenant has in another lane is not held against it"
    got = await drain(store, await enlist(store), Lane(QUEUE, 9))
    assert len(got) == 20, f"got {len(got)}"


async def check_a_queue_without_tenants_is_first_in_first_out(store: Store) -> None:
    await _backlog(store, "a", 3, queue="other")
    ids = await insert(store, *(a_job() for _ in range(5)))
    assert [job.id for job in await drain(store, await enlist(store), LANE)] == ids


async def check_retries_queue_again_behind_their_tenants_jobs(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, tenant="a")
    await _backlog(store, "a", 4)
    await _backlog(store, "b", 4)
    await apply(store, worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    got = await drain(store, worker)
    assert [job.id for job in got if job.tenant == "a"][-1] == run.id, f"a retry is its tenant's last: {got}"
    assert "".join(job.tenant for job in got)[:8] in ("abababab", "babababa"), f"and pushes in before nobody: {got}"


async def check_replays_and_due_jobs_take_their_turn(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, tenant="a")
    await apply(store, worker, Bury(run.id, run.token, "permanent", ERROR))
    await _backlog(store, "a", 10)
    await insert(store, *(a_job(tenant="a", run_at=1.0) for _ in range(5)))
    await store.replay_jobs([run.id])
    await due(store)
    await _backlog(store, "b", 2)
    got = await _tenants(store, 5)
    assert got.count("b") == 2, f"none of them comes before others' first: {got}"


async def check_released_jobs_take_their_turn(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, queue="first")
    await insert(store, *(a_job(tenant="a", waits_for=(run.id,)) for _ in range(10)))
    await _backlog(store, "a", 5)
    await apply(store, worker, Succeed(run.id, run.token, None))
    await _backlog(store, "b", 2)
    got = await _tenants(store, 4)
    assert got.count("b") == 2, f"got {got}"


async def check_unparked_jobs_take_their_turn(store: Store) -> None:
    ids = await _backlog(store, "a", 6)
    worker = await enlist(store)
    runs = [Run(worker, job) for job in await claim(store, worker, 6)]
    await apply(store, worker, *(Park(run.id, run.token, UNKNOWN_TASK, TASK) for run in runs))
    await _backlog(store, "b", 6)
    assert await store.unpark_jobs(reason=UNKNOWN_TASK, keys=[TASK]) == len(ids)
    shares = Counter(await _tenants(store, 6))
    assert abs(shares["a"] - 3) <= 1, f"many that come back together do not shut others out: {shares}"


async def check_recovered_jobs_keep_their_place(store: Store) -> None:
    ids = await _backlog(store, "a", 6)
    worker = await enlist(store)
    [first, second] = await claim(store, worker, 2)
    await _backlog(store, "b", 3)
    await apply(store, worker, HandBack(first.id, first.token, "drained"))
    await lose(store, worker)
    got = [job.id for job in await claim(store, await enlist(store), 2)]
    assert got == [first.id, second.id] == ids[:2], f"got {got}"
    other = await enlist(store)
    [third] = await claim(store, other, 1)
    await store.hand_back_worker(other, cause=Cause.HANDED_BACK, why="gone")
    assert [job.id for job in await claim(store, await enlist(store), 1)] == [third.id]


async def check_the_line_for_a_limit_is_in_the_order_of_arrival_over_queues(store: Store) -> None:
    one, other = SlotGate("printer", 1), Lane("other", LANE.priority)
    run = await start(store, gates=(one,), queue=other.queue)
    [first, second] = await insert(
        store, a_job(tenant="a", gates=(one,), run_at=1.0), a_job(queue=other.queue, gates=(one,), run_at=2.0)
    )
    await due(store)
    assert await drain(store, run.worker, LANE, other) == [], "there is one slot, and it is taken"
    await finish(store, run)
    await serve(store)
    found = await states(store, first, second)
    assert found == [State.READY, State.PARKED], f"whoever came first, with or without a tenant, is first: {found}"


async def check_nobody_pays_for_what_was_cancelled(store: Store) -> None:
    await _backlog(store, "a", 50)
    assert await store.purge_queue(QUEUE, reason="enough", limit=PLENTY) == 50
    await _backlog(store, "b", 10)
    await _backlog(store, "a", 10)
    shares = Counter(await _tenants(store, 10))
    assert abs(shares["a"] - 5) <= 1, f"got {shares}"


async def check_nobody_is_first_again_because_he_cancelled_his_last_job(store: Store) -> None:
    await _backlog(store, "b", 10)
    worker, got = await enlist(store), ""
    for _ in range(10):
        [_, last] = await _backlog(store, "a", 2)
        await store.cancel_jobs([last], reason="a mistake")
        got += "".join(job.tenant for job in await claim(store, worker, 1))
    assert got.count("b") >= 4, f"they take turns: {got}"


async def check_nobody_pays_for_what_was_cancelled_beside_others(store: Store) -> None:
    mine = await _backlog(store, "a", 20)
    await _backlog(store, "b", 20)
    await claim(store, await enlist(store), 1)
    await store.cancel_jobs(mine, reason="enough")
    await _backlog(store, "a", 1)
    assert "a" in await _tenants(store, 2), "another's job with the same tag is not its own"


async def check_delayed_jobs_make_a_queue_one_with_tenants(store: Store) -> None:
    await insert(store, a_job(tenant="a", delay_s=LONG_S))
    await insert(store, *(a_job() for _ in range(10)))
    await _backlog(store, "b", 1)
    assert "b" in await _tenants(store, 2)


async def check_the_sweep_forgets_who_is_idle_and_nobody_else(store: Store) -> None:
    await insert(store, *(a_job(tenant=f"t{n}") for n in range(20)))
    await drain(store, await enlist(store))
    await _backlog(store, "a", 20)
    swept = await store.sweep(limit=PLENTY)
    assert not any(swept), f"there is nothing to put right: {swept}"
    await _backlog(store, "a", 10)
    await _backlog(store, "b", 1)
    assert "b" in await _tenants(store, 2), "who has a backlog is still known to have it"


async def check_a_repeated_insert_gives_no_second_tag(store: Store) -> None:
    jobs = [a_job(tenant="a") for _ in range(3)]
    await insert(store, *jobs)
    again = await store.insert_jobs([*jobs, a_job(tenant="a"), a_job(tenant="b")])
    assert [answer.repeated for answer in again] == [True] * 3 + [False] * 2, f"got {again}"  # type: ignore[union-attr]
    assert await _tenants(store, 5) == "abaaa"
