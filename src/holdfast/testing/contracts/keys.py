"""Idempotency keys: one key, one job, for as long as its window lasts."""

from __future__ import annotations

import asyncio

from holdfast.core.job import KeyClaim
from holdfast.core.settlement import Bury
from holdfast.core.state import State
from holdfast.stores.base import Conflict, Existing, Inserted, Store, Withheld
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    a_job,
    apply,
    drain,
    enlist,
    finish,
    insert,
    resume,
    states,
)

KEY = KeyClaim("order-17", b"ship 17", LONG_S)
OTHER_REQUEST = KEY._replace(fingerprint=b"ship 18")


async def check_the_same_key_and_request_is_the_first_job(store: Store) -> None:
    first, second = a_job(key=KEY), a_job(key=KEY)
    await insert(store, first)
    answers = await store.insert_jobs([second])
    assert answers == [Existing(first.id)], f"got {answers}"
    assert await states(store, second.id) == [None], "the second request must not become a job"


async def check_the_same_key_with_another_request_is_a_conflict(store: Store) -> None:
    first, second = a_job(key=KEY), a_job(key=OTHER_REQUEST)
    await insert(store, first)
    answers = await store.insert_jobs([second])
    assert answers == [Conflict(first.id)], f"got {answers}"
    assert await states(store, second.id) == [None], "a conflicting request must not become a job"


async def check_other_keys_and_tenants_are_independent(store: Store) -> None:
    await insert(
        store,
        a_job(key=KEY),
        a_job(key=KEY, tenant="acme"),
        a_job(key=KEY, tenant="globex"),
        a_job(key=KEY._replace(key="order-18")),
        a_job(),
    )


async def check_repeating_a_keyed_insert_is_the_same_job(store: Store) -> None:
    job = a_job(key=KEY)
    await insert(store, job)
    [answer] = await store.insert_jobs([job])
    assert answer in (Inserted(job.id, None), Existing(job.id)), f"its own key is no conflict: {answer}"
    assert len(await drain(store, await enlist(store))) == 1, "one key is one job"


async def check_many_callers_with_one_key_make_one_job(store: Store) -> None:
    jobs = [a_job(key=KEY) for _ in range(50)]
    answers = [answer for [answer] in await asyncio.gather(*(store.insert_jobs([job]) for job in jobs))]
    winners = [answer.job_id for answer in answers if isinstance(answer, Inserted)]
    assert len(winners) == 1, f"exactly one caller inserts: {winners}"
    others = [answer for answer in answers if not isinstance(answer, Inserted)]
    assert others == [Existing(winners[0])] * 49, f"the others are told of the winner: {others}"
    assert len(await drain(store, await enlist(store))) == 1, "one key is one job"


async def check_the_same_keyed_insert_sent_by_many_at_once_is_one_job(store: Store) -> None:
    job = a_job(key=KEY)
    answers = await asyncio.gather(*(store.insert_jobs([job]) for _ in range(10)))
    found = {getattr(answer, "job_id", None) for [answer] in answers}
    assert found == {job.id}, f"every caller hears of its job: {answers}"
    assert len(await drain(store, await enlist(store))) == 1, "one key is one job"


async def check_a_key_twice_in_one_batch_is_one_job(store: Store) -> None:
    first, same, other = a_job(key=KEY), a_job(key=KEY), a_job(key=OTHER_REQUEST)
    answers = await store.insert_jobs([first, same, other])
    assert answers == [Inserted(first.id, State.READY), Existing(first.id), Conflict(first.id)], f"got {answers}"
    assert await states(store, same.id, other.id) == [None, None], "only the first is a job"


async def check_overlapping_batches_agree_on_every_key(store: Store) -> None:
    keys = [KEY._replace(key=f"k{i}") for i in range(10)]
    batches = [[a_job(key=key) for key in (keys if i % 2 else reversed(keys))] for i in range(8)]
    answers = await asyncio.gather(*(store.insert_jobs(batch) for batch in batches))
    seen: dict[str, set[object]] = {key.key: set() for key in keys}
    for batch, results in zip(batches, answers, strict=True):
        for job, result in zip(batch, results, strict=True):
            assert isinstance(result, Inserted | Existing), f"got {result}"
            assert job.key is not None
            seen[job.key.key].add(result.job_id)
    assert all(len(ids) == 1 for ids in seen.values()), f"every caller must be told the same id: {seen}"
    assert len(await drain(store, await enlist(store))) == len(keys), "one job per key"


async def check_a_key_ends_with_its_window(store: Store) -> None:
    past = KEY._replace(window_s=0.0)
    first, second = a_job(key=past), a_job(key=OTHER_REQUEST)
    await insert(store, first)
    await insert(store, second)
    answers = await store.insert_jobs([a_job(key=OTHER_REQUEST)])
    assert answers == [Existing(second.id)], f"the key belongs to the new job now: {answers}"
    assert len(await drain(store, await enlist(store))) == 2, "both jobs live"


async def check_a_key_outlives_its_jobs_ending(store: Store) -> None:
    done = KEY._replace(key="done")
    buried = KEY._replace(key="buried")
    cancelled = KEY._replace(key="cancelled")
    jobs = [a_job(key=key) for key in (done, buried, cancelled)]
    await insert(store, *jobs)
    worker = await enlist(store)
    await finish(store, await resume(store, jobs[0].id, worker=worker))
    run = await resume(store, jobs[1].id, worker=worker)
    await apply(store, worker, Bury(run.id, run.token, "permanent", ERROR))
    await store.cancel_jobs([jobs[2].id], reason="by hand")
    answers = await store.insert_jobs([a_job(key=key) for key in (done, buried, cancelled)])
    assert answers == [Existing(job.id) for job in jobs], f"a key ends only with its window: {answers}"


async def check_whole_with_a_conflict_inserts_nothing(store: Store) -> None:
    holder = a_job(key=KEY)
    await insert(store, holder)
    plain, keyed, conflict = a_job(), a_job(key=KEY._replace(key="new")), a_job(key=OTHER_REQUEST)
    answers = await store.insert_jobs([plain, keyed, conflict], whole=True)
    assert answers == [Withheld(), Withheld(), Conflict(holder.id)], f"got {answers}"
    found = await states(store, plain.id, keyed.id, conflict.id)
    assert found == [None, None, None], f"all or nothing: {found}"
    await insert(store, plain, keyed)  # not even their keys were kept


async def check_without_whole_the_others_pass_a_conflict(store: Store) -> None:
    holder = a_job(key=KEY)
    await insert(store, holder)
    plain, conflict = a_job(), a_job(key=OTHER_REQUEST)
    answers = await store.insert_jobs([conflict, plain])
    assert answers == [Conflict(holder.id), Inserted(plain.id, State.READY)], f"got {answers}"


async def check_whole_takes_an_existing_job_for_an_answer(store: Store) -> None:
    holder = a_job(key=KEY)
    await insert(store, holder)
    plain = a_job()
    answers = await store.insert_jobs([a_job(key=KEY), plain], whole=True)
    assert answers == [Existing(holder.id), Inserted(plain.id, State.READY)], f"got {answers}"
