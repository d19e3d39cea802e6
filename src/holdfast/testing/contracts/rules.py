"""Rules: what operators say about tasks, tenants and limits holds at once, also for jobs that were there before."""

from __future__ import annotations

from holdfast.core.fairness import Lane
from holdfast.core.gates import NO_RULES, Barrier, Place, Rules, SlotGate
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LONG_S,
    PRIORITY,
    QUEUE,
    TASK,
    Run,
    a_job,
    drain,
    enlist,
    finish,
    info,
    insert,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import nothing_is_left, use

ME = "somebody@example.com"
OTHER = Lane("other", PRIORITY)
WHOLE_QUEUE, WHOLE_TASK = f"queue:{QUEUE}", f"task:{TASK}"


async def check_rules_are_what_was_said_last(store: Store) -> None:
    assert await store.rules() == NO_RULES, "nobody has said anything"
    pace = Pace(100, 60.0, 5)
    await store.set_paused(task="a", paused=True, by=ME)
    await store.set_paused(tenant="t", paused=True, by=ME)
    await store.set_limit("api", size=3, pace=None, by=ME)
    await store.set_limit("post", size=None, pace=pace, by=ME)
    await store.set_limit("both", size=2, pace=pace, by=ME)
    sizes, paces = {"api": 3, "both": 2}, {"post": pace, "both": pace}
    found = await store.rules()
    assert found == Rules(frozenset("a"), frozenset("t"), sizes, paces), f"got {found}"
    await store.set_limit("both", size=None, pace=pace._replace(burst=7), by=ME)
    await store.set_limit("api", size=None, pace=None, by=ME)
    await store.set_paused(task="a", paused=False, by=ME)
    await store.set_paused(task="never paused", paused=False, by=ME)
    found = await store.rules()
    paces = {"post": pace, "both": pace._replace(burst=7)}
    assert found == Rules(frozenset(), frozenset("t"), {}, paces), f"the whole of what is said is replaced: {found}"


async def check_nothing_of_a_paused_task_is_started(store: Store) -> None:
    ids = await insert(store, a_job(), a_job(task="another"), a_job(), a_job(gates=(SlotGate("api", 1),)))
    await store.set_paused(task=TASK, paused=True, by=ME)
    ids += await insert(store, a_job())
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == [ids[1]], f"only the other task runs: {got}"
    found = await info(store, ids[0])
    assert (found.state, found.reason, found.attempt, found.attempts) == (State.PARKED, "paused", 0, ()), f"{found}"
    await serve(store)
    assert await drain(store, worker) == [], "nothing lets it go by itself"
    await store.set_paused(task=TASK, paused=False, by=ME)
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == [ids[0], *ids[2:]], f"all go on, in their order: {got}"


async def check_what_runs_is_not_touched_by_a_pause(store: Store) -> None:
    run = await start(store)
    await store.set_paused(task=TASK, paused=True, by=ME)
    await finish(store, run)
    assert await state(store, run.id) is State.SUCCEEDED


async def check_nothing_of_a_paused_tenant_is_started(store: Store) -> None:
    ids = await insert(store, *(a_job(tenant=tenant) for tenant in ("a", "b", "a", "")))
    await store.set_paused(tenant="a", paused=True, by=ME)
    worker = await enlist(store)
    got = {job.id for job in await drain(store, worker)}
    assert got == {ids[1], ids[3]}, f"others, and nobody's, go on: {got}"
    assert await states(store, ids[0], ids[2]) == [State.PARKED] * 2
    await store.set_paused(tenant="a", paused=False, by=ME)
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == [ids[0], ids[2]], "in their order"


async def check_whoever_is_paused_twice_waits_for_both(store: Store) -> None:
    [job_id] = await insert(store, a_job(tenant="a"))
    worker = await enlist(store)
    await store.set_paused(task=TASK, paused=True, by=ME)
    await store.set_paused(tenant="a", paused=True, by=ME)
    assert await drain(store, worker) == []
    for lifted in ({"task": TASK}, {"tenant": "a"}):
        assert await state(store, job_id) is State.PARKED
        await store.set_paused(**lifted, paused=False, by=ME)
        await serve(store)
    assert [job.id for job in await drain(store, worker)] == [job_id], "nothing holds it back"


async def check_a_paused_job_can_be_cancelled(store: Store) -> None:
    [job_id] = await insert(store, a_job())
    await store.set_paused(task=TASK, paused=True, by=ME)
    await drain(store, await enlist(store))
    await store.cancel_jobs([job_id], reason="not needed")
    assert await state(store, job_id) is State.CANCELLED
    await store.set_paused(task=TASK, paused=False, by=ME)
    await nothing_is_left(store)


async def _whole(store: Store, name: str, lane: Lane) -> None:
    """Put a limit on all jobs of a queue or task that are there and have none, and lift it again."""
    ids = await insert(store, *(a_job() for _ in range(3)))
    await store.set_limit(name, size=2, pace=None, by=ME)
    ids += await insert(store, a_job())
    unlike = await insert(store, a_job(task="another", queue=lane.queue))
    worker = await enlist(store)
    got = [job.id for job in await drain(store, worker, Lane(QUEUE, PRIORITY), lane)]
    assert got == [*ids[:2], *unlike], f"two of these, and what is not meant: {got}"
    assert await use(store, Place(Barrier.LIMIT, name)) == (2, 2), await store.gates()
    assert (await info(store, ids[3])).reason == "limit"
    await store.set_limit(name, size=3, pace=None, by=ME)
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[2:3], f"one more: {got}"
    await store.set_limit(name, size=None, pace=None, by=ME)
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[3:], f"nothing is said any more: {got}"
    for found in await store.job_infos([*ids, *unlike]):
        assert found is not None
        assert found.state is State.RUNNING, f"got {found}"
    await store.cancel_jobs([*ids, *unlike], reason="enough")
    await store.renew_worker(worker, lease_s=0, held_for_s=0)
    await store.reap_workers(limit=100)
    await nothing_is_left(store)


async def check_a_limit_is_put_on_a_queue_at_run_time(store: Store) -> None:
    await _whole(store, WHOLE_QUEUE, OTHER)


async def check_a_limit_is_put_on_a_task_at_run_time(store: Store) -> None:
    await _whole(store, WHOLE_TASK, OTHER)


async def check_a_pace_is_put_on_a_queue_at_run_time(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(4)))
    await store.set_limit(WHOLE_QUEUE, size=None, pace=Pace(1, LONG_S, 2), by=ME)
    worker = await enlist(store)
    assert [job.id for job in await drain(store, worker)] == ids[:2], "a burst"
    assert (await info(store, ids[3])).reason == "rate"
    assert len(await drain(store, worker, OTHER)) == 0
    await start(store, worker=worker, queue=OTHER.queue)  # another queue is not meant
    await store.set_limit(WHOLE_QUEUE, size=None, pace=None, by=ME)
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == ids[2:]


async def check_a_limit_of_a_task_can_be_set_otherwise(store: Store) -> None:
    gate = SlotGate("api:42", 2, "api")
    ids = await insert(store, *(a_job(gates=(gate,)) for _ in range(6)))
    worker = await enlist(store)
    runs = [Run(worker, job) for job in await drain(store, worker)]
    assert len(runs) == 2, "as the task has it"
    await store.set_limit("api", size=1, pace=None, by=ME)
    await finish(store, runs[0])
    await serve(store)
    assert await drain(store, worker) == [], "one still runs, and one is allowed"
    await finish(store, runs[1])
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[2:3], f"one at a time: {got}"
    await store.set_limit("api", size=3, pace=None, by=ME)
    await serve(store)
    got = [job.id for job in await drain(store, worker)]
    assert got == ids[3:5], f"two more have room: {got}"
    await store.set_limit("api", size=None, pace=None, by=ME)
    await serve(store)
    assert await drain(store, worker) == [], "and then it is two again, which are exceeded already"


async def check_a_limit_of_nobody_stops_all(store: Store) -> None:
    gate = SlotGate("api", 2)
    [job_id] = await insert(store, a_job(gates=(gate,)))
    await store.set_limit("api", size=0, pace=None, by=ME)
    worker = await enlist(store)
    assert await drain(store, worker) == [], "no run is allowed"
    await store.set_limit("api", size=None, pace=None, by=ME)
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == [job_id]


async def check_a_rule_about_another_concerns_nobody(store: Store) -> None:
    ids = await insert(store, *(a_job(tenant="a") for _ in range(3)))
    await store.set_paused(task="unknown", paused=True, by=ME)
    await store.set_paused(tenant="unknown", paused=True, by=ME)
    await store.set_limit("queue:unknown", size=0, pace=None, by=ME)
    await store.set_limit("task:unknown", size=0, pace=None, by=ME)
    await store.set_limit("unknown", size=0, pace=None, by=ME)
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == ids, f"got {got}"


async def check_a_part_of_a_limit_is_said_without_the_other(store: Store) -> None:
    """Two operators at once: neither takes back what the other says, and both find in the record what was before."""
    pace = Pace(5, 1.0, 5)
    assert await store.set_limit("bank", size=3, pace=None, by="ada", only=("size",)) == (3, None)
    assert await store.set_limit("bank", size=None, pace=pace, by="eve", only=("pace",)) == (3, pace), "what holds now"
    assert await store.set_limit("bank", size=4, pace=None, by="ada", only=("size",)) == (4, pace)
    rules = await store.rules()
    assert (rules.sizes, rules.paces) == ({"bank": 4}, {"bank": pace}), f"got {rules}"
    changes = await store.setting_changes(limit=3)
    assert [change.before for change in changes[:-1]] == [change.after for change in changes[1:]], "one after the other"
    assert [change.by for change in changes] == ["ada", "eve", "ada"]
