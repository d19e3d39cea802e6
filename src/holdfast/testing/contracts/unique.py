"""Unique keys: one job at a time has one; whoever calls meanwhile is refused, told of it, or goes instead of it."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.core.backpressure import Watermarks
from holdfast.core.gates import SlotGate
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Bury, Retry, Snooze
from holdfast.core.state import ENDINGS, LIVE, State
from holdfast.core.unique import EVER, WAITING_FOR_A_TIME, UniqueClaim, WhenTaken
from holdfast.stores.base import Conflict, Existing, Full, Inserted, Store, Taken, Withheld
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    QUEUE,
    a_job,
    apply,
    drain,
    finish,
    info,
    insert,
    resume,
    start,
    state,
    states,
)

REJECT, EXISTING, REPLACE = WhenTaken.REJECT, WhenTaken.EXISTING, WhenTaken.REPLACE


def one(when_taken: WhenTaken, *, key: str = "k", job: dict[str, Any] | None = None, **claim: Any) -> NewJob:
    """A job with a unique key."""
    return a_job(unique=UniqueClaim(key, when_taken=when_taken, **claim), **(job or {}))


async def ask(store: Store, job: NewJob) -> object:
    [answer] = await store.insert_jobs([job])
    return answer


async def check_a_second_call_is_refused_or_told(store: Store) -> None:
    [holder] = await insert(store, one(REJECT))
    refused, told = one(REJECT), one(EXISTING)
    assert await ask(store, refused) == Taken(holder)
    assert await ask(store, told) == Existing(holder)
    assert await states(store, refused.id, told.id) == [None, None], "neither is in the store"
    await insert(store, one(REJECT, key="another"), a_job())


async def check_a_repeated_call_hears_of_its_own_job(store: Store) -> None:
    for when_taken in WhenTaken:
        job = one(when_taken, key=when_taken)
        await insert(store, job)
        assert await ask(store, job) == Inserted(job.id, None), f"{when_taken}: the first answer was lost"
        assert await state(store, job.id) is State.READY, f"{when_taken}: and nothing has changed"
    replaced, newer = one(REPLACE, key="r"), one(REPLACE, key="r")
    await insert(store, replaced)
    await insert(store, newer)
    assert await ask(store, replaced) == Inserted(replaced.id, None), "also if it was replaced since"
    assert await states(store, replaced.id, newer.id) == [State.CANCELLED, State.READY], "which stays as it is"


async def check_a_waiting_job_is_replaced(store: Store) -> None:
    for number, more in enumerate(({}, {"delay_s": LONG_S})):
        older, newer = one(REPLACE, key=f"{number}", job=more), one(REPLACE, key=f"{number}")
        await insert(store, older)
        [after] = await insert(store, a_job(waits_for=(older.id,), queue="after"))
        await insert(store, newer)
        found = await info(store, older.id)
        assert (found.state, found.reason) == (State.CANCELLED, f"replaced by {newer.id}"), f"got {found}"
        assert await states(store, newer.id, after) == [State.READY] * 2, "it goes instead; others hear of the ending"
        assert await ask(store, one(REJECT, key=f"{number}")) == Taken(newer.id), "and has the key"


async def check_a_running_job_is_asked_to_stop_and_replaced(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k", when_taken=REPLACE))
    newer, newest = one(REPLACE), one(REPLACE)
    await insert(store, newer)
    [request] = await store.cancel_requests(run.worker)
    assert (request.job_id, request.reason) == (run.id, f"replaced by {newer.id}"), f"got {request}"
    assert await ask(store, one(EXISTING)) == Existing(newer.id), "the newer one has the key now"
    await finish(store, run)
    assert await ask(store, one(EXISTING)) == Existing(newer.id), "which the end of the older one does not change"
    await insert(store, newest)
    assert await states(store, run.id, newer.id, newest.id) == [State.SUCCEEDED, State.CANCELLED, State.READY]


async def check_a_parked_holder_is_replaced(store: Store) -> None:
    gate = SlotGate("printer", 1)
    holding = await start(store, gates=(gate,))
    older, newer = one(REPLACE, job={"gates": (gate,)}), one(REPLACE, job={"gates": (gate,)})
    await insert(store, older)
    await drain(store, holding.worker)
    assert await state(store, older.id) is State.PARKED
    await insert(store, newer)
    assert await state(store, older.id) is State.CANCELLED, "wherever it waits"


async def check_the_key_is_free_when_its_job_has_ended(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k"))
    assert await ask(store, one(REJECT)) == Taken(run.id), "while it runs"
    await finish(store, run)
    [cancelled] = await insert(store, one(REJECT))
    await store.cancel_jobs([cancelled], reason="not needed")
    [dying] = await insert(store, one(REJECT))
    dead = await resume(store, dying)
    await apply(store, dead.worker, Bury(dead.id, dead.token, "it failed", ERROR))
    await insert(store, one(REJECT))


async def check_the_caller_says_which_states_count(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k"))
    waiting = LIVE - {State.RUNNING}
    assert await ask(store, one(REJECT, states=LIVE)) == Taken(run.id), "it is alive"
    await finish(store, run)
    for states_that_count in (EVER, ENDINGS, frozenset({State.SUCCEEDED})):
        assert await ask(store, one(REJECT, states=states_that_count)) == Taken(run.id), f"{states_that_count}"
    other = await start(store, unique=UniqueClaim("other"))
    [beside] = await insert(store, one(REJECT, key="other", states=waiting))
    assert await state(store, other.id) is State.RUNNING, "what runs does not count, so there are two"
    assert await ask(store, one(REJECT, key="other")) == Taken(beside), "and the newer one has the key"


async def check_an_ended_holder_is_only_passed_over_by_who_replaces_it(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k"))
    await finish(store, run)
    newer = one(REPLACE, states=EVER)
    await insert(store, newer)
    assert await states(store, run.id, newer.id) == [State.SUCCEEDED, State.READY], "what has ended stays as it is"
    assert await ask(store, one(REJECT, states=EVER)) == Taken(newer.id)


async def check_a_window_is_counted_from_the_holders_enqueueing(store: Store) -> None:
    [holder] = await insert(store, one(REJECT))
    assert await ask(store, one(REJECT, for_s=LONG_S)) == Taken(holder), "the hour has not passed"
    [second] = await insert(store, one(REJECT, for_s=0.0))
    assert await states(store, holder, second) == [State.READY] * 2, "the moment has, and nobody is replaced"
    assert await ask(store, one(EXISTING, for_s=LONG_S)) == Existing(second), "who came last has the key"


async def check_a_window_outlasts_the_job(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k"))
    await finish(store, run)
    assert await ask(store, one(EXISTING, states=EVER, for_s=LONG_S)) == Existing(run.id), "once an hour"
    await insert(store, one(EXISTING, states=EVER, for_s=0.0))


async def check_a_job_that_is_no_more_holds_nothing(store: Store) -> None:
    dead = await start(store, unique=UniqueClaim("k"))
    await apply(store, dead.worker, Bury(dead.id, dead.token, "it failed", ERROR))
    assert await ask(store, one(REJECT, states=EVER)) == Taken(dead.id)
    await store.purge_dead([dead.id])
    await insert(store, one(REJECT, states=EVER))


# ---------------------------------------------------------------- debouncing


async def check_putting_off_ends_at_the_longest_wait(store: Store) -> None:
    calls = [one(REPLACE, longest_s=LONG_S, job={"delay_s": 2 * LONG_S}) for _ in range(4)]
    for call in calls:
        await insert(store, call)
    assert await states(store, *(call.id for call in calls)) == [State.CANCELLED] * 3 + [State.SCHEDULED]
    first, last = await info(store, calls[0].id), await info(store, calls[-1].id)
    assert last.run_at is not None, f"got {last}"
    waited_s = (last.run_at - first.created_at).total_seconds()
    assert abs(waited_s - LONG_S) < 1e-4, f"so long after the first of them: {waited_s} s"
    now = one(REPLACE, longest_s=0.0, job={"delay_s": LONG_S})
    await insert(store, now)
    await store.promote_jobs(limit=10)
    assert await state(store, now.id) is State.READY, "it was put off for long enough"


async def check_the_wait_is_not_made_longer(store: Store) -> None:
    await insert(store, one(REPLACE, job={"delay_s": LONG_S}))
    newer = one(REPLACE, longest_s=10 * LONG_S, job={"delay_s": LONG_S})
    await insert(store, newer)
    found = await info(store, newer.id)
    assert found.run_at is not None, f"got {found}"
    waits_s = (found.run_at - found.created_at).total_seconds()
    assert abs(waits_s - LONG_S) < 1e-4, f"its own delay, which is shorter: {waits_s} s"


async def check_putting_off_begins_anew_after_a_run(store: Store) -> None:
    await start(store, unique=UniqueClaim("k"))
    newer = one(REPLACE, longest_s=LONG_S, job={"delay_s": 2 * LONG_S})
    await insert(store, newer)
    found = await info(store, newer.id)
    assert found.run_at is not None, f"got {found}"
    waits_s = (found.run_at - found.created_at).total_seconds()
    assert abs(waits_s - LONG_S) < 1e-4, f"the one that runs is not put off any more: {waits_s} s"


async def check_who_waits_for_another_run_is_not_put_off(store: Store) -> None:
    kinds: tuple[type[Retry] | type[Snooze], ...] = (Retry, Snooze)
    for number, again in enumerate(kinds):
        call = one(REPLACE, key=f"{number}", states=WAITING_FOR_A_TIME, longest_s=LONG_S)
        run = await start(store, unique=call.unique)
        await apply(store, run.worker, again(run.id, run.token, LONG_S, ERROR))
        newer = call._replace(id=a_job().id, delay_s=2 * LONG_S)
        await insert(store, newer)
        assert await states(store, run.id, newer.id) == [State.SCHEDULED] * 2, f"{again}: it has begun, and goes on"
        newest = newer._replace(id=a_job().id)
        await insert(store, newest)
        found = await states(store, run.id, newer.id, newest.id)
        assert found == [State.SCHEDULED, State.CANCELLED, State.SCHEDULED], f"{again}: which one alone is put off"
        first, last = await info(store, newer.id), await info(store, newest.id)
        assert last.run_at is not None, f"got {last}"
        waited_s = (last.run_at - first.created_at).total_seconds()
        assert abs(waited_s - LONG_S) < 1e-4, f"{again}: counted from the first that has not begun: {waited_s} s"


async def check_putting_off_begins_anew_after_a_run_that_is_to_be_repeated(store: Store) -> None:
    run = await start(store, unique=UniqueClaim("k"))
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))
    newer = one(REPLACE, longest_s=LONG_S, job={"delay_s": 2 * LONG_S})
    await insert(store, newer)
    assert await states(store, run.id, newer.id) == [State.CANCELLED, State.SCHEDULED], "it waits for its time as well"
    found = await info(store, newer.id)
    assert found.run_at is not None, f"got {found}"
    waits_s = (found.run_at - found.created_at).total_seconds()
    assert abs(waits_s - LONG_S) < 1e-4, f"what was put off before has had its run: {waits_s} s"


# ---------------------------------------------------------------- batches, other refusals, crowds


async def check_a_batch_is_judged_in_order(store: Store) -> None:
    jobs = [one(REJECT), one(EXISTING), one(REJECT), a_job()]
    answers = await store.insert_jobs(jobs)
    ready = State.READY
    expected = [Inserted(jobs[0].id, ready), Existing(jobs[0].id), Taken(jobs[0].id), Inserted(jobs[3].id, ready)]
    assert answers == expected, f"got {answers}"
    older, newer, newest = (one(REPLACE, key="r") for _ in range(3))
    answers = await store.insert_jobs([older, newer, newest])
    assert [type(answer) for answer in answers] == [Inserted] * 3, f"got {answers}"
    found = await states(store, older.id, newer.id, newest.id)
    assert found == [State.CANCELLED, State.CANCELLED, State.READY], f"the last one wins: {found}"
    assert (await info(store, older.id)).reason == f"replaced by {newer.id}"


async def check_all_or_nothing_replaces_nobody_in_vain(store: Store) -> None:
    holder, waiting = one(REJECT), one(REPLACE, key="r")
    await insert(store, holder, waiting)
    batch = [one(REPLACE, key="r"), one(REJECT), a_job()]
    answers = await store.insert_jobs(batch, whole=True)
    assert answers == [Withheld(), Taken(holder.id), Withheld()], f"got {answers}"
    assert await states(store, *(job.id for job in batch)) == [None] * 3, "nothing"
    assert await state(store, waiting.id) is State.READY, "and nobody was replaced for it"
    assert await ask(store, one(REJECT, key="r")) == Taken(waiting.id), "nor lost the key"
    told = [a_job(), one(EXISTING)]
    answers = await store.insert_jobs(told, whole=True)
    assert answers == [Inserted(told[0].id, State.READY), Existing(holder.id)], f"to be told is no refusal: {answers}"


async def check_a_full_queue_replaces_nobody(store: Store) -> None:
    waiting = one(REPLACE)
    await insert(store, waiting)
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=1, low=0)), by="me")
    assert isinstance(await ask(store, one(REPLACE)), Full), "there is no room"
    assert await state(store, waiting.id) is State.READY, "so it stays"
    elsewhere = one(REJECT, job={"queue": "elsewhere"})
    assert await ask(store, elsewhere) == Taken(waiting.id), "and keeps the key"


async def check_an_idempotency_key_is_judged_first(store: Store) -> None:
    key = KeyClaim("i", b"same", LONG_S)
    keyed = a_job(key=key)
    unique = one(REJECT)
    await insert(store, keyed, unique)
    assert await ask(store, one(REJECT, job={"key": key})) == Existing(keyed.id)
    other = KeyClaim("i", b"other", LONG_S)
    assert await ask(store, one(REPLACE, job={"key": other})) == Conflict(keyed.id)
    assert await state(store, unique.id) is State.READY, "a refused call replaces nobody"
    assert await ask(store, one(REJECT, key="free", job={"key": key})) == Existing(keyed.id)
    await insert(store, one(REJECT, key="free"))  # nor did the one that was told take the key


async def check_a_refused_call_takes_no_idempotency_key(store: Store) -> None:
    [holder] = await insert(store, one(REJECT))
    assert await ask(store, one(REJECT, job={"key": KeyClaim("i", b"one", LONG_S)})) == Taken(holder)
    assert await ask(store, one(EXISTING, job={"key": KeyClaim("j", b"one", LONG_S)})) == Existing(holder)
    await insert(store, a_job(key=KeyClaim("i", b"another", LONG_S)), a_job(key=KeyClaim("j", b"another", LONG_S)))


async def check_of_a_crowd_one_has_the_key(store: Store) -> None:
    for when_taken, refusal in ((REJECT, Taken), (EXISTING, Existing)):
        crowd = [one(when_taken, key=when_taken) for _ in range(12)]
        answers = [answer for [answer] in await asyncio.gather(*(store.insert_jobs([job]) for job in crowd))]
        [winner] = [answer.job_id for answer in answers if isinstance(answer, Inserted)]
        told = [answer for answer in answers if not isinstance(answer, Inserted)]
        assert told == [refusal(winner)] * 11, f"all are told of the same one: {answers}"


async def check_of_a_crowd_that_replaces_one_is_left(store: Store) -> None:
    crowd = [one(REPLACE) for _ in range(12)]
    await asyncio.gather(*(insert(store, job) for job in crowd))
    found = await states(store, *(job.id for job in crowd))
    assert sorted(filter(None, found)) == [State.CANCELLED] * 11 + [State.READY], f"the last one: {found}"
    [left] = [job.id for job, at in zip(crowd, found, strict=True) if at is State.READY]
    assert await ask(store, one(EXISTING)) == Existing(left), "which has the key"
