"""One scene per store verb: what is in the store before it, and one call of it. Strikes nothing, judges nothing.

Ids, tokens and clocks are fixed, so that what a scene leaves behind can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from tests.campaign.where import Where

from holdfast.core.api_key import ApiKey, Scope, digest_of
from holdfast.core.breaker import BreakerFigures
from holdfast.core.cause import Cause
from holdfast.core.gates import RateGate, SlotGate
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import Bury, Cancel, HandBack, Park, Retry, Snooze, Succeed
from holdfast.core.worker import NewWorker
from holdfast.runtime.clock import ManualClock
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import ERROR, LANE, LONG_S, PLENTY, PRIORITY, QUEUE, TASK, a_call

BEGIN = 1_800_000_000.0
SHORT_S = 10.0
#: When the verb is called: short leases and delays have passed, and so has the youngest age of what is pruned.
LATER = BEGIN + 2 * LONG_S

WORKER, OTHER = UUID(int=1001), UUID(int=1002)
JOBS = tuple(UUID(int=n) for n in range(1, 8))

Play = Callable[[Store], Awaitable[Any]]


class Scene(NamedTuple):
    """What comes before the verb, and the verb. Both may run in different processes."""

    before: Play
    act: Play


SCENES: dict[str, Scene] = {}


def store_at(where: Where, now: float) -> Store:
    """Not yet open. On PostgreSQL the clock of the schema decides."""
    return where.store(clock=ManualClock(now))


def job(number: int, **more: Any) -> NewJob:
    return NewJob(JOBS[number], TASK, QUEUE, PRIORITY, a_call(number), **more)


async def enlist(store: Store, worker: UUID = WORKER, *, lease_s: float = 100 * LONG_S) -> None:
    await store.register_worker(NewWorker(worker, "host", 1, 10), lease_s=lease_s)


async def running(store: Store, count: int, *, lease_s: float = 100 * LONG_S, **more: Any) -> None:
    """`count` jobs leased to WORKER, under the tokens 1, 2, …"""
    await enlist(store, lease_s=lease_s)
    await store.insert_jobs([job(n, **more) for n in range(count)])
    # One by one: which of several gets which token is open.
    for n in range(count):
        [claimed] = (await store.claim_jobs(WORKER, {LANE: 1}, deadline_s=60)).jobs
        assert (claimed.id, claimed.token) == (JOBS[n], n + 1)


async def dead(store: Store) -> None:
    await running(store, 2)
    await store.settle_jobs(WORKER, [Bury(JOBS[n], n + 1, "permanent", ERROR) for n in range(2)])


async def nothing(store: Store) -> None:
    """An empty store."""


def verb(name: str, before: Play) -> Callable[[Play], Play]:
    def register(act: Play) -> Play:
        SCENES[name] = Scene(before, act)
        return act

    return register


# ---------------------------------------------------------------- enqueue


@verb("insert_jobs", before=nothing)
async def insert_jobs(store: Store) -> Any:
    key = KeyClaim("k", b"fingerprint", LONG_S)
    new = [job(0), job(1, delay_s=SHORT_S), job(2, key=key), job(3, waits_for=(JOBS[0],)), job(4, expires_in_s=LONG_S)]
    return await store.insert_jobs(new)


async def one_of_each_wait(store: Store) -> None:
    await running(store, 1)
    await store.insert_jobs([job(1), job(2, delay_s=LONG_S), job(3, waits_for=(JOBS[0],)), job(4, expires_in_s=1)])


@verb("cancel_jobs", before=one_of_each_wait)
async def cancel_jobs(store: Store) -> Any:
    return await store.cancel_jobs(JOBS[:5], reason="asked")


# ---------------------------------------------------------------- leases


@verb("register_worker", before=nothing)
async def register_worker(store: Store) -> Any:
    return await enlist(store)


@verb("renew_worker", before=lambda store: running(store, 2))
async def renew_worker(store: Store) -> Any:
    return await store.renew_worker(WORKER, lease_s=200 * LONG_S, held_for_s=0)


async def ready_and_limited(store: Store) -> None:
    await enlist(store)
    await store.insert_jobs([job(0), job(1, gates=(SlotGate("one", 1),)), job(2, gates=(SlotGate("one", 1),))])
    await store.insert_jobs([job(3, expires_in_s=1)])


@verb("claim_jobs", before=ready_and_limited)
async def claim_jobs(store: Store) -> Any:
    return await store.claim_jobs(WORKER, {LANE: PLENTY}, deadline_s=60)


async def running_with_a_join(store: Store) -> None:
    await running(store, 6, gates=(SlotGate("six", 6),))
    await store.insert_jobs([job(6, waits_for=(JOBS[0],))])


@verb("settle_jobs", before=running_with_a_join)
async def settle_jobs(store: Store) -> Any:
    return await store.settle_jobs(
        WORKER,
        [
            Succeed(JOBS[0], 1, b"1"),
            Retry(JOBS[1], 2, SHORT_S, ERROR),
            Snooze(JOBS[2], 3, SHORT_S, ERROR),
            HandBack(JOBS[3], 4, "drained"),
            Bury(JOBS[4], 5, "permanent", ERROR),
            Cancel(JOBS[5], 6, "asked"),
        ],
    )


@verb("record_progress", before=lambda store: running(store, 1))
async def record_progress(store: Store) -> Any:
    return await store.record_progress(WORKER, JOBS[0], 1, done=1.0, total=2.0, stage="half")


@verb("hand_back_worker", before=lambda store: running(store, 3))
async def hand_back_worker(store: Store) -> Any:
    return await store.hand_back_worker(WORKER, cause=Cause.HANDED_BACK, why="stopped")


async def parked(store: Store) -> None:
    await running(store, 3)
    await store.settle_jobs(WORKER, [Park(JOBS[n], n + 1, "unknown_task", TASK) for n in range(3)])


@verb("unpark_jobs", before=parked)
async def unpark_jobs(store: Store) -> Any:
    return await store.unpark_jobs(reason="unknown_task", keys=[TASK])


# ---------------------------------------------------------------- upkeep


async def timers(store: Store) -> None:
    await store.insert_jobs([job(n, delay_s=SHORT_S) for n in range(3)])


@verb("promote_jobs", before=timers)
async def promote_jobs(store: Store) -> Any:
    return await store.promote_jobs(limit=PLENTY)


async def deadlines(store: Store) -> None:
    await store.insert_jobs([job(0, expires_in_s=SHORT_S), job(1, expires_in_s=SHORT_S, delay_s=LONG_S), job(2)])


@verb("expire_jobs", before=deadlines)
async def expire_jobs(store: Store) -> Any:
    return await store.expire_jobs(limit=PLENTY)


async def silent_worker(store: Store) -> None:
    await running(store, 4, lease_s=SHORT_S)
    await enlist(store, OTHER)
    await store.cancel_jobs([JOBS[3]], reason="asked")


@verb("reap_workers", before=silent_worker)
async def reap_workers(store: Store) -> Any:
    return await store.reap_workers(limit=PLENTY)


async def ended(store: Store) -> None:
    await running(store, 3)
    await store.settle_jobs(
        WORKER, [Succeed(JOBS[0], 1, None), Cancel(JOBS[1], 2, "asked"), Bury(JOBS[2], 3, "permanent", ERROR)]
    )


@verb("prune_jobs", before=ended)
async def prune_jobs(store: Store) -> Any:
    return await store.prune_jobs(keep_succeeded_s=1, keep_cancelled_s=1, limit=PLENTY)


async def an_old_key(store: Store) -> None:
    await store.insert_jobs([job(0, key=KeyClaim("k", b"fingerprint", SHORT_S))])


@verb("sweep", before=an_old_key)
async def sweep(store: Store) -> Any:
    return await store.sweep(limit=PLENTY)


async def a_lead_that_ran_out(store: Store) -> None:
    await store.lead("upkeep", OTHER, lease_s=SHORT_S)


@verb("lead", before=a_lead_that_ran_out)
async def lead(store: Store) -> Any:
    return await store.lead("upkeep", WORKER, lease_s=LONG_S)


async def a_lead(store: Store) -> None:
    await store.lead("upkeep", WORKER, lease_s=100 * LONG_S)


@verb("resign", before=a_lead)
async def resign(store: Store) -> Any:
    return await store.resign("upkeep", WORKER)


# ---------------------------------------------------------------- dead letters and queues


@verb("replay_jobs", before=dead)
async def replay_jobs(store: Store) -> Any:
    return await store.replay_jobs(JOBS[:2])


@verb("edit_dead", before=dead)
async def edit_dead(store: Store) -> Any:
    return await store.edit_dead(JOBS[0], payload=a_call("mended"))


@verb("purge_dead", before=dead)
async def purge_dead(store: Store) -> Any:
    return await store.purge_dead(JOBS[:2])


@verb("set_queue", before=nothing)
async def set_queue(store: Store) -> Any:
    return await store.set_queue(QUEUE, QueueSettings(paused=True, weight=3.0))


@verb("purge_queue", before=timers)
async def purge_queue(store: Store) -> Any:
    return await store.purge_queue(QUEUE, reason="asked", limit=PLENTY)


# ---------------------------------------------------------------- flow control


async def waiting_for_a_token(store: Store) -> None:
    await enlist(store)
    await store.insert_jobs([job(n, gates=(RateGate("post", Pace(1, LONG_S, 1)),), tenant="a") for n in range(4)])
    await store.claim_jobs(WORKER, {LANE: PLENTY}, deadline_s=60)


@verb("serve_gates", before=waiting_for_a_token)
async def serve_gates(store: Store) -> Any:
    return await store.serve_gates(limit=PLENTY)


@verb("set_limit", before=waiting_for_a_token)
async def set_limit(store: Store) -> Any:
    return await store.set_limit("post", size=2, pace=Pace(2, LONG_S, 2), by="somebody")


@verb("set_paused", before=waiting_for_a_token)
async def set_paused(store: Store) -> Any:
    return await store.set_paused(tenant="a", paused=True, by="somebody")


@verb("set_breaker", before=nothing)
async def set_breaker(store: Store) -> Any:
    return await store.set_breaker("bank", closed=False, by="somebody")


@verb("set_breaker_figures", before=nothing)
async def set_breaker_figures(store: Store) -> Any:
    return await store.set_breaker_figures("bank", BreakerFigures(failures=3, window_s=60.0), by="somebody")


@verb("set_tenant_weight", before=nothing)
async def set_tenant_weight(store: Store) -> Any:
    return await store.set_tenant_weight("acme", 3.0, by="somebody")


@verb("set_route", before=nothing)
async def set_route(store: Store) -> Any:
    return await store.set_route("shop.*", queue="slow", priority=3, by="somebody")


async def waiting_in_every_way(store: Store) -> None:
    await waiting_for_a_token(store)
    await store.insert_jobs([job(4), job(5, delay_s=100 * LONG_S), job(6, waits_for=(JOBS[0],))])


@verb("move_jobs", before=waiting_in_every_way)
async def move_jobs(store: Store) -> Any:
    return await store.move_jobs(JOBS, queue="elsewhere", priority=9)


# ---------------------------------------------------------------- keys of the API

MADE_AT = datetime.fromtimestamp(BEGIN, UTC)
KEY = ApiKey("k" * 12, "the shop", frozenset({Scope.SUBMIT}), MADE_AT, digest=digest_of("first"))


async def a_key(store: Store) -> None:
    assert await store.add_api_key(KEY, by="somebody")


@verb("add_api_key", before=nothing)
async def add_api_key(store: Store) -> Any:
    return await store.add_api_key(KEY, by="somebody")


@verb("rotate_api_key", before=a_key)
async def rotate_api_key(store: Store) -> Any:
    return await store.rotate_api_key(KEY.id, digest_of("second"), grace_s=SHORT_S, by="somebody")


@verb("revoke_api_key", before=a_key)
async def revoke_api_key(store: Store) -> Any:
    return await store.revoke_api_key(KEY.id, by="somebody")


@verb("note_key_uses", before=a_key)
async def note_key_uses(store: Store) -> Any:
    return await store.note_key_uses({KEY.id: KeyUse(MADE_AT, MADE_AT)})


@verb("record_act", before=nothing)
async def record_act(store: Store) -> Any:
    return await store.record_act(by="somebody", what="purge", name="dead letters", said={"everything": True})
