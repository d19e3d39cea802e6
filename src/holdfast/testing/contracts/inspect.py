"""Reports: one job, lists by filter and page, counts."""

from __future__ import annotations

from typing import Any

from holdfast.core.job import JobId
from holdfast.core.settlement import Bury, Park, Retry
from holdfast.core.state import State
from holdfast.stores.base import JobFilter, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    PRIORITY,
    QUEUE,
    TASK,
    a_job,
    an_id,
    apply,
    enlist,
    finish,
    info,
    insert,
    start,
)


async def check_a_job_tells_all_that_was_asked_of_it(store: Store) -> None:
    job = a_job(tenant="acme", max_attempts=3, tags=("a", "ü"), metadata=b'{"who": {"is": "me"}}')
    await insert(store, job)
    found = await info(store, job.id)
    assert (found.id, found.task, found.queue, found.priority) == (job.id, TASK, QUEUE, PRIORITY), f"got {found}"
    assert (found.tenant, found.max_attempts, found.attempt) == ("acme", 3, 0), f"got {found}"
    assert (found.tags, found.metadata) == (("a", "ü"), {"who": {"is": "me"}}), f"got {found}"
    assert (found.state, found.worker, found.started_at, found.ended_at) == (State.READY, None, None, None)
    assert not found.cancel_requested, f"got {found}"
    assert found.created_at.tzinfo is not None, "times are aware"


async def check_missing_jobs_keep_their_place_in_the_answer(store: Store) -> None:
    first, second = await insert(store, a_job(), a_job())
    found = await store.job_infos([second, an_id(), first, second])
    assert [job and job.id for job in found] == [second, None, first, second], f"got {found}"
    assert await store.job_infos([]) == [], "nothing asked, nothing answered"


async def check_an_ended_job_tells_of_its_last_run(store: Store) -> None:
    run = await start(store)
    await finish(store, run, b"[1, 2]")
    found = await info(store, run.id)
    assert (found.worker, found.result) == (str(run.worker), [1, 2]), f"got {found}"
    assert found.started_at is not None, f"got {found}"
    assert found.ended_at is not None, f"got {found}"
    assert found.created_at <= found.started_at <= found.ended_at, f"got {found}"


async def _found(store: Store, **where: Any) -> set[JobId]:
    """What a filter finds; the count must agree."""
    condition = JobFilter(**where)
    page = await store.list_jobs(condition, limit=PLENTY)
    found = list(page)
    while page.next is not None:
        page = await store.list_jobs(condition, limit=PLENTY, before=page.next)
        found += page
    assert len({job.id for job in found}) == len(found), f"a job is listed once: {found}"
    count = await store.count_jobs(condition)
    assert count == len(found), f"{where}: counted {count}, listed {len(found)}"
    few = await store.count_jobs(condition, most=1)
    assert few == min(1, count), f"{where}: counted {few}, and was to stop at one"
    return {job.id for job in found}


async def check_every_filter(store: Store) -> None:
    worker = await enlist(store)
    dead = await start(store, worker=worker, task="shop.ship", tenant="acme", tags=("red", "blue"))
    await apply(store, worker, Bury(dead.id, dead.token, "permanent", ERROR))
    done = await start(store, worker=worker, task="shop.bill", tags=("blue",))
    await finish(store, done)
    [ready, later] = await insert(store, a_job(queue="other", tenant="acme"), a_job(delay_s=LONG_S))
    running = await start(store, worker=worker)
    everything = {dead.id, done.id, ready, later, running.id}
    assert await _found(store) == everything, "no filter, all jobs"
    for state, expected in (
        (State.DEAD, {dead.id}),
        (State.SUCCEEDED, {done.id}),
        (State.READY, {ready}),
        (State.SCHEDULED, {later}),
        (State.RUNNING, {running.id}),
        (State.BLOCKED, set()),
        (State.PARKED, set()),
        (State.CANCELLED, set()),
    ):
        assert await _found(store, state=state) == expected, f"by state {state}"
    assert await _found(store, queue="other") == {ready}, "by queue"
    assert await _found(store, task="shop.ship") == {dead.id}, "by task"
    assert await _found(store, tenant="acme") == {dead.id, ready}, "by tenant"
    assert await _found(store, tag="blue") == {dead.id, done.id}, "by tag"
    assert await _found(store, tag="re") == set(), "by whole tags only"
    assert await _found(store, error_type=ERROR.type) == {dead.id}, "by the error's type"
    assert await _found(store, fingerprint=ERROR.fingerprint) == {dead.id}, "by the error's fingerprint"
    assert await _found(store, fingerprint="0" * 16) == set(), "by the error's fingerprint"
    assert await _found(store, text="WORK did") == {dead.id}, "by words of the error's message, in any order"
    assert await _found(store, text="did not wor") == set(), "by whole words only"
    assert await _found(store, text="100%") == set(), "a text is a text, not a pattern"
    assert await _found(store, text="work", state=State.READY) == set(), "only dead jobs have errors"
    assert await _found(store, reason="permanent") == {dead.id}, "by reason"
    assert await _found(store, reason="permanent", tenant="acme", tag="red") == {dead.id}, "by reason and others"
    assert await _found(store, reason="permanent", tenant="") == set(), "by reason and others"
    now = await store.now()
    assert await _found(store, created_after=now - LONG_S) == everything, "by time"
    assert await _found(store, created_before=now - LONG_S) == set(), "by time"
    assert await _found(store, created_after=now + LONG_S) == set(), "by time"
    assert await _found(store, tenant="acme", state=State.READY) == {ready}, "all conditions must hold"


async def check_lists_come_newest_first_in_pages(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(7)))
    pages: list[list[JobId]] = []
    page = await store.list_jobs(JobFilter(), limit=3)
    while page:
        pages.append([job.id for job in page])
        page = await store.list_jobs(JobFilter(), limit=3, before=page.next or page[-1].id)
    assert [job_id for page in pages for job_id in page] == ids[::-1], f"got {pages}"
    assert [len(page) for page in pages] == [3, 3, 1], f"got {pages}"


async def check_every_pair_of_filters_holds_for_each_state(store: Store) -> None:
    worker = await enlist(store)
    seen: dict[JobId, tuple[State, str, str]] = {}
    for task in ("shop.ship", "shop.bill"):
        for tenant in ("", "acme"):
            what: dict[str, Any] = {"task": task, "tenant": tenant}
            gone, lost, off, late = [await start(store, worker=worker, **what) for _ in range(4)]
            await finish(store, gone)
            await apply(store, worker, Bury(lost.id, lost.token, "permanent", ERROR))
            await apply(store, worker, Park(off.id, off.token, "unknown_task", task))
            await apply(store, worker, Retry(late.id, late.token, LONG_S, ERROR))
            waits, held = await insert(store, a_job(**what, delay_s=LONG_S), a_job(**what, waits_for=(late.id,)))
            [called_off] = await insert(store, a_job(**what, delay_s=LONG_S))
            await store.cancel_jobs([called_off], reason="not needed")
            for job_id, state in (
                (gone.id, State.SUCCEEDED),
                (lost.id, State.DEAD),
                (off.id, State.PARKED),
                (late.id, State.SCHEDULED),
                (waits, State.SCHEDULED),
                (held, State.BLOCKED),
                (called_off, State.CANCELLED),
            ):
                seen[job_id] = (state, task, tenant)
    for state in State:
        for name, at in (("task", 1), ("tenant", 2)):
            for value in {each[at] for each in seen.values()}:
                expected = {job_id for job_id, each in seen.items() if each[0] is state and each[at] == value}
                assert await _found(store, state=state, queue=QUEUE, **{name: value}) == expected, f"{state} {value}"
        mine = {job_id for job_id, each in seen.items() if each[0] is state}
        assert await _found(store, state=state, queue=QUEUE) == mine, f"{state} by queue"
        assert await _found(store, state=state, queue="other") == set(), f"{state} by another queue"
    assert await _found(store, reason="not needed") == {j for j, e in seen.items() if e[0] is State.CANCELLED}
    assert await _found(store, reason="unknown_task", state=State.PARKED, task="shop.ship") == {
        job_id for job_id, each in seen.items() if each[:2] == (State.PARKED, "shop.ship")
    }


async def check_pages_of_a_filter_hold_across_states(store: Store) -> None:
    ids = await insert(
        store, *(a_job(tags=("x",) if i % 2 else (), delay_s=LONG_S if i % 3 else None) for i in range(12))
    )
    wanted = [job_id for i, job_id in enumerate(ids) if i % 2][::-1]
    first = [job.id for job in await store.list_jobs(JobFilter(tag="x"), limit=4)]
    second = [job.id for job in await store.list_jobs(JobFilter(tag="x"), limit=4, before=first[-1])]
    assert first + second == wanted, f"got {first} and {second}"
