"""Claims by announcement on PostgreSQL, and what the store announces: same fence, same lease, nothing invented."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.announcement import Announcement
from holdfast.core.backpressure import Watermarks
from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost, StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.gates import Gate, RateGate, SlotGate
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import HandBack
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    a_job,
    an_id,
    apply,
    claim,
    due,
    enlist,
    finish,
    info,
    insert,
    lose,
    start,
    state,
)

Story = Callable[[PostgresStore], Coroutine[Any, Any, None]]


@pytest.fixture
def play(postgres_tables: PostgresSchema) -> Callable[[Story], None]:
    async def on_a_store(story: Story) -> None:
        async with opened(postgres_tables) as store:
            await story(store)

    return lambda story: asyncio.run(on_a_store(story))


@contextlib.asynccontextmanager
async def opened(place: PostgresSchema) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def by_entries(
    store: PostgresStore, worker: WorkerId, *job_ids: JobId, queues: Sequence[str] = (QUEUE,)
) -> list[ClaimedJob]:
    return (await store.dispatch.claim_entries(worker, job_ids, queues=queues, deadline_s=60)).jobs


def test_jobs_are_claimed_in_the_order_asked_for_and_are_whole(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        job = a_job(tenant="", payload=b'{"args":[1],"kwargs":{}}', headers=b"{}")
        ids = await insert(store, a_job(), job, a_job())
        claimed = await by_entries(store, worker, ids[2], ids[1])
        assert [each.id for each in claimed] == [ids[2], ids[1]]
        assert (claimed[1].payload, claimed[1].headers, claimed[1].attempt) == (job.payload, job.headers, 1)
        assert claimed[0].token != claimed[1].token
        assert (await info(store, ids[1])).worker == str(worker)
        assert [each.id for each in await claim(store, worker)] == ids[:1], "the others have left their places"

    play(story)


def test_what_cannot_be_claimed_is_absent(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        running = await start(store)
        ended = await start(store)
        await finish(store, ended)
        [later] = await insert(store, a_job(delay_s=LONG_S))
        [waits] = await insert(store, a_job())
        answer = await by_entries(store, worker, an_id(), running.id, ended.id, later, waits, waits)
        assert [job.id for job in answer] == [waits]
        assert await by_entries(store, worker, waits) == [], "a second announcement of it finds nothing"

    play(story)


@pytest.mark.parametrize("gate", [RateGate("post", Pace(1, LONG_S, 1)), SlotGate("bank", 1)])
def test_a_job_that_was_announced_twice_is_judged_once(gate: Gate, play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        [twice] = await insert(store, a_job(gates=(gate,)))
        assert [job.id for job in await by_entries(store, worker, twice, twice)] == [twice]
        assert (await info(store, twice)).state is State.RUNNING
        [report] = await store.list_queues()
        assert (report.ready, report.parked) == (0, 0), "and does not wait for itself"

    play(story)


def test_a_queue_that_nobody_asked_for_or_that_is_paused_gives_nothing(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        [foreign, paused] = await insert(store, a_job(queue="foreign"), a_job())
        await store.set_queue(QUEUE, QueueSettings(paused=True))
        assert await by_entries(store, worker, foreign, paused) == []
        await store.set_queue(QUEUE, QueueSettings())
        assert [job.id for job in await by_entries(store, worker, foreign, paused)] == [paused]

    play(story)


def test_without_a_valid_lease_nothing_is_claimed(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        [job_id] = await insert(store, a_job())
        await store.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
        with pytest.raises(LeaseLost):
            await by_entries(store, worker, job_id)
        with pytest.raises(LeaseLost):
            await by_entries(store, worker)
        with pytest.raises(StoreUnavailable):
            await store.dispatch.claim_entries(worker, [job_id], queues=[QUEUE], deadline_s=0)
        assert await state(store, job_id) is State.READY

    play(story)


def test_two_workers_share_what_both_have_heard_of(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        first, second = await enlist(store), await enlist(store)
        ids = await insert(store, *(a_job() for _ in range(50)))
        got = await asyncio.gather(by_entries(store, first, *ids), by_entries(store, second, *reversed(ids)))
        assert sorted(job.id for jobs in got for job in jobs) == sorted(ids)

    play(story)


def test_a_reaped_run_of_it_goes_back_to_its_place(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        ids = await insert(store, a_job(), a_job())
        await by_entries(store, worker, ids[0])
        await lose(store, worker)
        other = await enlist(store)
        again = await claim(store, other)
        assert [job.id for job in again] == ids
        assert [each.cause for each in (await info(store, ids[0])).attempts] == [Cause.LEASE_EXPIRED]

    play(story)


def test_what_is_attached_is_looked_at(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        [expired, good] = await insert(store, a_job(expires_in_s=0.0), a_job(expires_in_s=LONG_S))
        assert [job.id for job in await by_entries(store, worker, expired, good)] == [good]
        assert await state(store, expired) is State.CANCELLED

    play(story)


def test_a_missing_body_is_an_ending(postgres_tables: PostgresSchema) -> None:
    async def story() -> None:
        async with opened(postgres_tables) as store:
            worker = await enlist(store)
            [lost, good] = await insert(store, a_job(), a_job())
            with psycopg.connect(postgres_tables.url, autocommit=True) as db:
                db.execute(f"DELETE FROM {postgres_tables.schema}.job WHERE id = %s", (lost,))  # type: ignore[call-overload]
            assert [job.id for job in await by_entries(store, worker, lost, good)] == [good]
            assert await state(store, lost) is State.DEAD

    asyncio.run(story())


def test_what_must_run_alone_is_left_to_who_asks_for_it(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        [job_id] = await insert(store, a_job())
        for _ in range(2):
            worker = await enlist(store)
            await by_entries(store, worker, job_id)
            await lose(store, worker)
        worker = await enlist(store)
        assert await by_entries(store, worker, job_id) == []
        assert [job.id for job in await claim(store, worker)] == [job_id]

    play(story)


def test_a_job_with_a_tag_waits_for_its_turn(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        ids = await insert(store, *(a_job(tenant="big") for _ in range(3)))
        assert await by_entries(store, worker, ids[2]) == []
        assert [job.id for job in await claim(store, worker)] == ids

    play(story)


def test_a_queue_that_was_full_opens_when_it_is_drained(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=2, low=1)))
        worker = await enlist(store)
        ids = await insert(store, a_job(), a_job())
        await store.insert_jobs([a_job()])  # refused
        heard: list[Hint] = []
        leave = store.subscribe(heard.append)
        await by_entries(store, worker, *ids)
        leave()
        assert any(Hint.OPENED in hint for hint in heard)
        assert [(each.name, each.ready) for each in await store.list_queues() if each.name == QUEUE] == [(QUEUE, 0)]

    play(story)


# ---------------------------------------------------------------- what is announced


class Heard(list[Announcement]):
    """Takes announcements, or does not."""

    takes = True

    def __call__(self, announcements: Sequence[Announcement]) -> bool:
        self.extend(announcements)
        return self.takes

    def taken(self) -> list[Announcement]:
        found = list(self)
        self.clear()
        return found


def test_every_way_into_ready_is_announced(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        store.dispatch.announce_to(heard := Heard())
        urgent = Lane(QUEUE, 9)
        ids = await insert(store, a_job(), a_job(priority=9))
        assert heard.taken() == [Announcement(LANE, ids[0]), Announcement(urgent, ids[1])]
        [expiring, later] = await insert(store, a_job(expires_in_s=LONG_S), a_job(delay_s=0.001))
        assert heard.taken() == [Announcement(LANE, expiring)], "what is scheduled is not ready"
        while not await due(store):
            await asyncio.sleep(0)
        assert heard.taken() == [Announcement(LANE, later)]
        worker = await enlist(store)
        [job] = await by_entries(store, worker, ids[0])
        await apply(store, worker, HandBack(job.id, job.token, "not now"))
        assert heard.taken() == [Announcement(LANE, ids[0])]
        await by_entries(store, worker, ids[1])
        await store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="stopped")
        assert heard.taken() == [Announcement(urgent, ids[1])]
        worker = await enlist(store)
        await by_entries(store, worker, ids[1])
        await lose(store, worker)
        assert heard.taken() == [Announcement(urgent, ids[1])]
        assert await store.move_jobs([ids[0], ids[1]], queue="other", priority=None) == 2
        assert heard.taken() == [Announcement(Lane("other", 5), ids[0]), Announcement(Lane("other", 9), ids[1])]
        assert await store.move_jobs([ids[0]], queue="other", priority=None) == 0
        assert heard.taken() == [], "it is there already"

    play(story)


def test_a_job_that_must_run_alone_is_announced_without_its_id(play: Callable[[Story], None]) -> None:
    """By its id it was claimed by nobody, and so nobody heard of it until he looked by himself."""

    async def story(store: PostgresStore) -> None:
        store.dispatch.announce_to(heard := Heard())
        [job_id] = await insert(store, a_job())
        for told in (job_id, None):
            worker = await enlist(store)
            await claim(store, worker)
            heard.clear()
            await lose(store, worker)
            assert heard.taken() == [Announcement(LANE, told)]
        await store.dispatch.announce_ready([job_id])
        assert heard.taken() == [Announcement(LANE, None)]
        assert await store.dispatch.ready_jobs(QUEUE, limit=10) == [Announcement(LANE, None)]
        await store.move_jobs([job_id], queue=None, priority=9)
        assert heard.taken() == [Announcement(Lane(QUEUE, 9), None)]

    play(story)


def test_a_job_of_a_tenant_is_announced_without_its_id(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        store.dispatch.announce_to(heard := Heard())
        await insert(store, a_job(tenant="big"), a_job(tenant="small"))
        assert heard.taken() == [Announcement(LANE, None)] * 2
        run = await start(store, tenant="big", queue="other")
        heard.clear()
        await lose(store, run.worker)
        assert heard.taken() == [Announcement(Lane("other", 5), None)]

    play(story)


def test_hints_are_given_of_what_nobody_announces(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        hints: list[Hint] = []
        leave = store.subscribe(lambda hint: None if hint is Hint.ANYTHING else hints.append(hint))
        store.dispatch.announce_to(heard := Heard())
        for takes in (True, False):
            heard.takes = takes
            hints.clear()
            await insert(store, a_job())
            await insert(store, a_job(expires_in_s=LONG_S))
            assert [hint for hint in hints if Hint.READY in hint] == [Hint.READY] * (0 if takes else 2)
        hints.clear()
        store.dispatch.hint_ready()
        assert hints == [Hint.READY]
        leave()

    play(story)


def test_ready_jobs_are_told_in_order_up_to_a_limit(play: Callable[[Story], None]) -> None:
    async def story(store: PostgresStore) -> None:
        calm = await insert(store, *(a_job() for _ in range(5)))
        urgent = await insert(store, *(a_job(priority=9) for _ in range(2)))
        await insert(store, a_job(queue="other"), a_job(delay_s=LONG_S))
        told = await store.dispatch.ready_jobs(QUEUE, limit=3)
        assert told == [Announcement(Lane(QUEUE, 9), each) for each in urgent] + [
            Announcement(LANE, each) for each in calm[:3]
        ]
        assert await store.dispatch.ready_jobs("nothing", limit=PLENTY) == []
        assert (await store.dispatch.installation()).isdecimal()

    play(story)


def test_a_task_that_is_paused_is_passed_over_also_when_it_is_announced(play: Callable[[Story], None]) -> None:
    """A rule concerns jobs that have nothing attached: they are judged as any claim judges them."""

    async def story(store: PostgresStore) -> None:
        worker = await enlist(store)
        [job_id] = await insert(store, a_job())
        await store.set_paused(task=TASK, paused=True, by="a test")
        assert await by_entries(store, worker, job_id) == []
        assert await state(store, job_id) is State.PARKED

    play(story)
