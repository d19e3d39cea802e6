"""What is in the store when a scene begins: something for every verb to do, all of which comes to an end by itself."""

from __future__ import annotations

from uuid import UUID

from tests.campaign.where import Where
from tests.faults.scenes.cast import Cast
from tests.history import Answer

from holdfast.core.fairness import Lane
from holdfast.core.gates import RateGate
from holdfast.core.job import NewJob
from holdfast.core.rate import Pace
from holdfast.core.settlement import UNKNOWN_TASK, Bury, Park
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import ERROR, LONG_S, a_call, a_job, enlist

#: Of jobs that are put into the store by the side door, so that nobody else claims them.
SIDE = "side"
#: Of what operators purge; no worker finds anything to claim there.
LEFTOVER = "leftover"
_ORPHANED_AFTER_S = 0.4
LONG_AGO_S = 30 * 86_400
_TURNSTILE = RateGate("turnstile", Pace(1, 0.3, 1))


async def open_shop(cast: Cast) -> None:
    """The table of the user's own, where there is a server."""
    if cast.where.is_postgres:
        cast.glance.query(f"DROP TABLE IF EXISTS {cast.sales}")
        cast.glance.query(f"CREATE TABLE {cast.sales} (job uuid)")


async def stock(cast: Cast) -> None:
    """Work of every kind. A worker that serves all queues has something to do for each of its verbs."""
    for n in range(4):
        await cast.enqueue(cast.work.options(key=f"key-{n}") if n % 2 else cast.work, n)
    await cast.enqueue(cast.fail_once, 4)
    await cast.enqueue(cast.report, 5)
    await cast.enqueue(cast.hold_in_thread, 6)
    await cast.enqueue(cast.work.options(delay=0.2), 7)
    await cast.enqueue(cast.work.options(delay=LONG_S, expires=0.3), 8)
    if cast.where.is_postgres:
        await cast.enqueue(cast.sell, 9)
    store = cast.hf._open_store()
    await _park(cast, store)
    await _orphan(cast, store)
    for n in (13, 14):  # the second of them waits for its token
        await _insert(cast, store, a_job(task="work", payload=a_call(n), gates=(_TURNSTILE,)))


async def _insert(cast: Cast, store: Store, job: NewJob) -> None:
    await store.insert_jobs([job])
    cast.client.enqueue(job.id, answer=Answer.OK)


async def _park(cast: Cast, store: Store) -> None:
    """As by a worker that does not know the task."""
    worker = await enlist(store)
    job = a_job(task="work", queue=SIDE, payload=a_call(10))
    await _insert(cast, store, job)
    [claimed] = (await store.claim_jobs(worker, {Lane(SIDE, job.priority): 1}, deadline_s=60)).jobs
    await store.settle_jobs(worker, [Park(claimed.id, claimed.token, UNKNOWN_TASK, "work")])


async def _orphan(cast: Cast, store: Store) -> None:
    """Leased to a worker that is dead, with a follower that waits for its end."""
    worker = await enlist(store, lease_s=_ORPHANED_AFTER_S)
    job = a_job(task="work", queue=SIDE, payload=a_call(11))
    await _insert(cast, store, job)
    assert (await store.claim_jobs(worker, {Lane(SIDE, job.priority): 1}, deadline_s=60)).jobs
    await _insert(cast, store, a_job(task="work", queue=SIDE, payload=a_call(12), waits_for=(job.id,)))


async def bury(cast: Cast, count: int) -> list[UUID]:
    """Dead letters, each with the run that it died of on record."""
    store = cast.hf._open_store()
    worker = await enlist(store)
    buried = []
    for n in range(count):
        job = a_job(task="work", queue=SIDE, payload=a_call(20 + n))
        await _insert(cast, store, job)
        [claimed] = (await store.claim_jobs(worker, {Lane(SIDE, job.priority): 1}, deadline_s=60)).jobs
        run = {"token": claimed.token, "attempt": claimed.attempt, "worker": worker}
        cast.recorder.start(job.id, **run)
        cast.recorder.end(job.id, **run, outcome="PermanentError")
        await store.settle_jobs(worker, [Bury(job.id, claimed.token, "permanent", ERROR)])
        buried.append(job.id)
    return buried


async def set_aside(cast: Cast, count: int, *, queue: str = LEFTOVER) -> list[UUID]:
    """Jobs whose time has not come: nothing ends them but an operator."""
    handles = [await cast.enqueue(cast.work.options(delay=LONG_S, queue=queue), 30 + n) for n in range(count)]
    return [handle.id for handle in handles]


async def line_up(cast: Cast, count: int) -> list[UUID]:
    """Jobs that may run, wherever an operator moves them."""
    return [(await cast.enqueue(cast.work, 40 + n)).id for n in range(count)]


async def age(cast: Cast) -> UUID:
    """A job that was cancelled long ago, for the pruner."""
    [job_id] = await set_aside(cast, 1)
    await cast.hf.jobs.cancel(job_id)
    shift = f"ended_at - interval '{LONG_AGO_S} s'" if cast.where.is_postgres else f"ended_at - {LONG_AGO_S}"
    cast.glance.query(f"UPDATE done SET ended_at = {shift} WHERE job_id = ?", job_id)
    return job_id


def is_there(where: Where, job_id: UUID) -> bool:
    return bool(where.glance().query("SELECT 1 FROM job WHERE id = ?", job_id))


def each_sold_once(cast: Cast) -> None:
    """P6: the effect that a run finished inside its transaction is there exactly once."""
    if cast.where.is_postgres:
        sold = cast.glance.query(f"SELECT job FROM {cast.sales}")
        assert len(sold) == len(set(sold)), f"sold more than once: {sold}"
        found = cast.glance.query("SELECT id FROM job WHERE task = 'sell'")
        assert set(sold) == set(found), f"sold: {sold}, and to be sold: {found}"
