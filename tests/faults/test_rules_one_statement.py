"""The rules for a settlement that is one statement: it waits for whoever has its run in hand, and sees what he did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.cause import Cause
from holdfast.core.gates import SlotGate
from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Settlement, Snooze, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    Run,
    a_job,
    claim,
    enlist,
    finish,
    info,
    insert,
    resume,
    start,
    state,
)

KINDS: dict[str, Callable[[Run], Settlement]] = {
    "retry": lambda run: Retry(run.id, run.token, LONG_S, ERROR),
    "snooze": lambda run: Snooze(run.id, run.token, LONG_S, ERROR),
    "hand back": lambda run: HandBack(run.id, run.token, "drained"),
    "crashed": lambda run: Crashed(run.id, run.token, "killed"),
    "park": lambda run: Park(run.id, run.token, "unknown_task", "t"),
    "bury": lambda run: Bury(run.id, run.token, "permanent", ERROR),
    "cancel": lambda run: Cancel(run.id, run.token, "asked"),
}
ANY = pytest.mark.parametrize("kind", KINDS)
GOING_ON = pytest.mark.parametrize("kind", ["retry", "snooze", "hand back", "crashed", "park"])
ENDING = pytest.mark.parametrize("kind", ["bury", "cancel"])


def _in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


async def _waits(stores: Pair, waiting: asyncio.Future[list[Verdict]]) -> None:
    asked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    is_over = lambda: waiting.done() or stores.where.glance().query(asked)  # noqa: E731
    await until(is_over, within_s=PATIENCE_S, what="the settlement to wait for the run's row")
    assert not waiting.done(), "it waits for whoever has the row"


async def _while_inside(
    stores: Pair, verb: str, act: Awaitable[object], settling: Callable[[], Awaitable[list[Verdict]]]
) -> list[Verdict]:
    """Settle while another verb has done its work and has not committed."""
    arm(f"{verb}.inside", "hang")
    acting = asyncio.ensure_future(act)
    await wait_hit(f"{verb}.inside")
    waiting = asyncio.ensure_future(settling())
    await _waits(stores, waiting)
    release(f"{verb}.inside")
    await acting
    return await waiting


@ANY
def test_rule_1_a_run_that_is_just_being_reaped_settles_nothing(kind: str, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        await other.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
        reaping = other.reap_workers(limit=PLENTY)
        flush = [KINDS[kind](run)]
        told = await _while_inside(stores, "reap_workers", reaping, lambda: one.settle_jobs(run.worker, flush))
        assert told == [Verdict.LOST]
        found = await info(one, run.id)
        assert (found.state, [each.cause for each in found.attempts]) == (State.READY, [Cause.LEASE_EXPIRED])
        await finish(other, await resume(other, run.id))

    _in_a_pair(postgres_place, play)


@ANY
def test_rule_1_a_run_that_is_just_being_settled_is_not_reaped_as_well(kind: str, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker = await enlist(one)
        run, beside = await start(one, worker=worker), await start(one, worker=worker)
        arm("settle_jobs.inside", "hang")
        settling = asyncio.ensure_future(one.settle_jobs(worker, [KINDS[kind](run)]))
        await wait_hit("settle_jobs.inside")
        await other.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
        reaped = await asyncio.wait_for(other.reap_workers(limit=PLENTY), PATIENCE_S)  # waits for nobody
        assert (reaped.workers, reaped.returned) == ((worker,), 1)
        release("settle_jobs.inside")
        assert await settling == [Verdict.APPLIED]
        assert (await other.reap_workers(limit=PLENTY)).returned == 0
        assert len((await info(one, run.id)).attempts) == 1
        assert await one.settle_jobs(worker, [KINDS[kind](run)]) == [Verdict.ALREADY]
        assert await state(one, beside.id) is State.READY

    _in_a_pair(postgres_place, play)


@GOING_ON
def test_rule_5_a_request_to_cancel_that_is_just_being_made_is_seen(kind: str, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        cancelling = other.cancel_jobs([run.id], reason="enough")
        flush = [KINDS[kind](run)]
        told = await _while_inside(stores, "cancel_jobs", cancelling, lambda: one.settle_jobs(run.worker, flush))
        assert told == [Verdict.APPLIED]
        found = await info(one, run.id)
        assert (found.state, found.reason) == (State.CANCELLED, "enough")
        assert len(found.attempts) == 1, "the run has its cause on record"
        assert await claim(other, await enlist(other)) == []

    _in_a_pair(postgres_place, play)


@ENDING
def test_rule_4_a_job_that_somebody_just_begins_to_wait_for_releases_him(kind: str, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run, beside = await start(one), await start(one)
        follower = a_job(waits_for=(run.id,), queue="after")
        flush = [KINDS[kind](run)]
        inserting = insert(other, follower)
        told = await _while_inside(stores, "insert_jobs", inserting, lambda: one.settle_jobs(run.worker, flush))
        assert told == [Verdict.APPLIED]
        assert await state(one, follower.id) is State.READY
        assert await state(one, beside.id) is State.RUNNING

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize("kind", ["succeed", "bury"])
def test_rule_4_also_when_the_job_holds_a_slot_of_a_limit(kind: str, postgres_place: Path) -> None:
    """Then the run is one that something hangs on already, and only fresh eyes see what was added."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=(SlotGate("printer", 1),))
        [waiting] = await insert(one, a_job(gates=(SlotGate("printer", 1),)))
        assert await claim(one, run.worker) == []
        follower = a_job(waits_for=(run.id,), queue="after")
        succeeded = Succeed(run.id, run.token, None)
        flush: list[Settlement] = [succeeded if kind == "succeed" else KINDS[kind](run)]
        inserting = insert(other, follower)
        told = await _while_inside(stores, "insert_jobs", inserting, lambda: one.settle_jobs(run.worker, flush))
        assert told == [Verdict.APPLIED]
        assert await state(one, follower.id) is State.READY
        assert await state(one, waiting) is State.READY, "and the slot goes on"

    _in_a_pair(postgres_place, play)


def test_rule_3_a_mixed_flush_is_answered_per_run(postgres_place: Path) -> None:
    """Fresh, repeated, of a run before, of another worker, and waited for, in one flush."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, thief = await enlist(one), await enlist(other)
        fresh, repeated, before, awaited = [await start(one, worker=worker) for _ in range(4)]
        theirs = await start(other, worker=thief)
        await one.settle_jobs(worker, [KINDS["bury"](repeated), KINDS["hand back"](before)])
        now = await resume(one, before.id, worker=worker)
        [follower] = await insert(other, a_job(waits_for=(awaited.id,), queue="after"))
        flush = [KINDS["retry"](fresh), KINDS["bury"](repeated), KINDS["retry"](before), KINDS["bury"](awaited),
                 KINDS["retry"](theirs)]  # fmt: skip
        applied, already, lost = Verdict.APPLIED, Verdict.ALREADY, Verdict.LOST
        assert await one.settle_jobs(worker, flush) == [applied, already, lost, applied, lost]
        assert await state(one, follower) is State.READY
        await finish(one, now)
        await finish(other, theirs)

    _in_a_pair(postgres_place, play)


def test_a_job_that_crashes_once_too_often_ends_as_poison_by_the_longer_way(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        run = await start(one)
        for _ in range(2):
            assert await one.settle_jobs(run.worker, [KINDS["crashed"](run)]) == [Verdict.APPLIED]
            run = await resume(one, run.id, worker=run.worker)
        assert await one.settle_jobs(run.worker, [KINDS["crashed"](run)]) == [Verdict.APPLIED]
        found = await info(one, run.id)
        assert (found.state, found.reason, len(found.attempts)) == (State.DEAD, "poison", 3)

    _in_a_pair(postgres_place, play)
