"""Lines at gates: lanes take turns by their weights, tenants as they do in lanes; and nobody comes back from where he
waited before everybody who came since."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Place, RateGate, SlotGate
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.settlement import HandBack
from holdfast.core.state import State
from holdfast.core.turns import LANES_AT_ONCE
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    Run,
    a_job,
    a_worker,
    apply,
    claim,
    drain,
    enlist,
    finish,
    insert,
    lose,
    serve,
    start,
    states,
)

ONE, TWO = SlotGate("desk", 1), SlotGate("desks", 2)
BULK, CRITICAL = Lane(QUEUE, 1), Lane(QUEUE, 9)
OTHER = Lane("other", LANE.priority)


async def _wait(store: Store, worker: WorkerId, tenants: Iterable[str], *, lane: Lane = LANE) -> list[JobId]:
    """Jobs that come in this order to the limit of one, which is full."""
    jobs = [a_job(gates=(ONE,), tenant=tenant, queue=lane.queue, priority=lane.priority) for tenant in tenants]
    ids = await insert(store, *jobs)
    assert await drain(store, worker, lane) == [], "the limit is full"
    return ids


async def _one_by_one(store: Store, run: Run, count: int, *lanes: Lane) -> list[ClaimedJob]:
    """Those who run next, each of them after the one before has ended."""
    found: list[ClaimedJob] = []
    for _ in range(count):
        await finish(store, run)
        await serve(store)
        [job] = await drain(store, run.worker, *(lanes or (LANE,)))
        run = Run(run.worker, job)
        found.append(job)
    return found


def _letters(jobs: Iterable[ClaimedJob]) -> str:
    return "".join(job.tenant or "-" for job in jobs)


# ---------------------------------------------------------------- tenants


async def check_a_tenant_waits_for_one_job_of_each_other_and_slot(store: Store) -> None:
    await insert(store, *(a_job(gates=(TWO,), tenant="a") for _ in range(100)))
    worker = await enlist(store)
    runs = [Run(worker, job) for job in await drain(store, worker)]
    assert _letters(run.job for run in runs) == "aa", "all others wait at the limit"
    await insert(store, a_job(gates=(TWO,), tenant="b"))
    assert await drain(store, worker) == []
    order = ""
    while "b" not in order:
        await finish(store, runs.pop(0))
        await serve(store)
        jobs = await drain(store, worker)
        runs += [Run(worker, job) for job in jobs]
        order += _letters(jobs)
    assert len(order) <= 3, f"at most one job of the other before, for each slot: {order}"


async def check_tenants_take_turns_at_a_limit(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    await _wait(store, run.worker, "aaaaaabbbc")
    jobs = await _one_by_one(store, run, 10)
    assert _letters(jobs) == "abcababaaa", "however many of one came first"


async def check_heavier_tenants_have_more_turns(store: Store) -> None:
    await store.set_tenant_weight("a", 2.0)
    run = await start(store, gates=(ONE,), tenant="c")
    await _wait(store, run.worker, "b" * 10 + "a" * 10)
    order = _letters(await _one_by_one(store, run, 12))
    for end in range(1, len(order) + 1):
        assert abs(order[:end].count("a") - end * 2 / 3) <= 1, f"two of three, at any time: {order}"


async def check_who_comes_again_and_again_does_not_go_first(store: Store) -> None:
    """Nobody is remembered who does not wait; so nobody may gain by going away."""
    run = await start(store, gates=(ONE,), tenant="a")
    await _wait(store, run.worker, "aaaaaaaaaa")
    order = ""
    for _ in range(5):
        await _wait(store, run.worker, "b")
        jobs = await _one_by_one(store, run, 2)
        run = Run(run.worker, jobs[-1])
        order += _letters(jobs)
    assert order.count("a") == 5, f"each of them every other time: {order}"


async def check_within_a_tenant_the_first_to_come_is_the_first(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    ids = await _wait(store, run.worker, "aaabbb")
    jobs = await _one_by_one(store, run, 6)
    assert [job.id for job in jobs if job.tenant == "a"] == ids[:3]
    assert [job.id for job in jobs if job.tenant == "b"] == ids[3:]


async def check_who_comes_back_has_its_place_in_the_line_again(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    ids = await _wait(store, run.worker, "aabb")
    [first] = await _one_by_one(store, run, 1)
    assert first.id == ids[0]
    await apply(store, run.worker, HandBack(first.id, first.token, "stopping"))
    await serve(store)
    jobs = await drain(store, run.worker)
    jobs += await _one_by_one(store, Run(run.worker, jobs[0]), 3)
    order = [job.id for job in jobs]
    assert order.index(ids[0]) < order.index(ids[1]), "before those of its tenant that came later"
    assert order.index(ids[2]) < order.index(ids[3])


async def check_a_killed_run_has_its_place_in_the_line_again(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    ids = await _wait(store, run.worker, "aab")
    await lose(store, run.worker)
    await serve(store)
    worker = await enlist(store)
    [job] = await drain(store, worker)
    jobs = [job, *await _one_by_one(store, Run(worker, job), 3)]
    order = [job.id for job in jobs]
    assert order.index(run.id) < order.index(ids[1]), "before those of its tenant that came later and are still there"
    assert order.index(ids[0]) < order.index(ids[1]), order


async def check_in_whatever_order_they_come_nobody_waits_for_all_of_a_tenant(store: Store) -> None:
    """Older jobs of a tenant come to a line where younger ones wait, as after a pause: each waits for its turn."""
    run = await start(store, gates=(ONE,), tenant="z")
    await store.set_paused(task="late", paused=True, by="me")
    older = await insert(store, *(a_job(gates=(ONE,), tenant="a", task="late") for _ in range(20)))
    assert await drain(store, run.worker) == []
    younger = await _wait(store, run.worker, "aab")
    await store.set_paused(task="late", paused=False, by="me")
    await serve(store)
    jobs = await _one_by_one(store, run, 6)
    assert "b" in _letters(jobs[:2]), "the other tenant has its turn"
    assert [job.id for job in jobs if job.tenant == "a"] == older[:5], "the older ones are the first of theirs"
    await _wait(store, run.worker, "bb")
    jobs = await _one_by_one(store, Run(run.worker, jobs[-1]), 4)
    assert _letters(jobs).count("b") == 2, _letters(jobs)
    rest = await _one_by_one(store, Run(run.worker, jobs[-1]), 15)
    assert [job.id for job in rest if job.tenant == "a"] == [*older[7:], *younger[:2]]


async def check_who_goes_on_to_another_gate_leaves_its_turn_to_its_tenant(store: Store) -> None:
    full = SlotGate("full", 1)
    other = await start(store, gates=(full,), tenant="z")
    run = await start(store, worker=other.worker, gates=(ONE,), tenant="z")
    both = [a_job(gates=(ONE, full), tenant="a") for _ in range(3)]
    await insert(store, *both)
    assert await drain(store, run.worker) == []
    ids = await _wait(store, run.worker, "abbbb")
    jobs = await _one_by_one(store, run, 3)
    assert ids[0] in [job.id for job in jobs[:2]], f"three of a went on, and the fourth is the first: {_letters(jobs)}"
    await finish(store, other)


async def check_very_many_who_go_on_leave_their_turns_to_their_tenant(store: Store) -> None:
    """More than are looked at together."""
    full = SlotGate("full", 1)
    other = await start(store, gates=(full,), tenant="z")
    run = await start(store, worker=other.worker, gates=(ONE,), tenant="z")
    await insert(store, *(a_job(gates=(ONE, full), tenant="a") for _ in range(150)))
    assert await drain(store, run.worker) == []
    await _wait(store, run.worker, "aa" + "b" * 150)
    jobs = await _one_by_one(store, run, 4)
    assert _letters(jobs).count("a") == 2, f"those that are left take turns with the others: {_letters(jobs)}"


async def check_who_is_cancelled_or_moved_costs_its_tenant_nothing(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="z")
    ids = await _wait(store, run.worker, "a" * 6 + "b" * 6 + "c" * 6)
    await store.cancel_jobs(ids[:5], reason="not needed")
    assert await store.move_jobs(ids[6:11], queue=None, priority=BULK.priority) == 5
    jobs = await _one_by_one(store, run, 3)
    assert set(_letters(jobs)) == set("abc"), f"those that are left take turns with the others: {_letters(jobs)}"


async def check_the_smaller_size_of_a_queue_without_a_worker_keeps_nobody_out(store: Store) -> None:
    sizes = SlotGate("shared", 3), SlotGate("shared", 1)
    worker = a_worker(queues=(QUEUE, OTHER.queue))
    await store.register_worker(worker, lease_s=LONG_S)
    runs = [await start(store, worker=worker.id, gates=sizes[:1]) for _ in range(3)]
    await insert(store, a_job(gates=sizes[1:], queue=OTHER.queue))
    ids = await insert(store, *(a_job(gates=sizes[:1]) for _ in range(2)))
    assert await drain(store, worker.id, OTHER, LANE) == [], "the limit is full"
    await store.set_queue(OTHER.queue, QueueSettings(paused=True), only=("paused",))
    await finish(store, runs[0])
    await serve(store)
    assert await states(store, *ids) == [State.READY, State.PARKED], "nobody comes for the one that has to stay"


async def check_operators_limits_are_fair_as_well(store: Store) -> None:
    await store.set_limit(f"queue:{QUEUE}", size=1, pace=None, by="me")
    worker = await enlist(store)
    await insert(store, *(a_job(tenant=tenant) for tenant in "aaaaa"))
    [job] = await drain(store, worker)
    await insert(store, a_job(tenant="b"))
    jobs = await _one_by_one(store, Run(worker, job), 2)
    assert "b" in _letters(jobs), "after one job of the other"


async def check_rates_are_fair_as_well(store: Store) -> None:
    slow = RateGate("post", Pace(1, LONG_S, 1))
    worker = await enlist(store)
    await insert(store, *(a_job(gates=(slow,), tenant=tenant) for tenant in "aaaaaa"))
    assert len(await drain(store, worker)) == 1, "one token"
    await insert(store, a_job(gates=(slow,), tenant="b"))
    assert await drain(store, worker) == []
    await store.set_limit("post", size=None, pace=Pace(1, LONG_S, 3), by="me")
    await serve(store)
    assert _letters(sorted(await drain(store, worker), key=lambda job: job.tenant)) == "ab", "two tokens more"


# ---------------------------------------------------------------- lanes


async def check_lanes_take_turns_at_a_limit_by_their_weights(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(weights={"bulk": 1, "critical": 3}), only=("weights",))
    run = await start(store, gates=(ONE,))
    await _wait(store, run.worker, [""] * 20, lane=BULK)
    await _wait(store, run.worker, [""] * 20, lane=CRITICAL)
    jobs = await _one_by_one(store, run, 16, BULK, CRITICAL)
    served = [job.priority == CRITICAL.priority for job in jobs]
    for end in range(1, len(served) + 1):
        assert abs(sum(served[:end]) - end * 3 / 4) <= 1, f"three of four, at any time: {served}"


async def check_a_critical_job_does_not_wait_for_a_backlog_at_a_limit(store: Store) -> None:
    run = await start(store, gates=(ONE,))
    await _wait(store, run.worker, [""] * 300, lane=BULK)
    [critical] = await _wait(store, run.worker, [""], lane=CRITICAL)
    jobs = await _one_by_one(store, run, 2, BULK, CRITICAL)
    assert critical in [job.id for job in jobs], "it is let go among the next"


async def check_new_weights_hold_for_those_who_wait_already(store: Store) -> None:
    run = await start(store, gates=(ONE,))
    await _wait(store, run.worker, [""] * 12)
    await _wait(store, run.worker, [""] * 12, lane=OTHER)
    jobs = await _one_by_one(store, run, 4, LANE, OTHER)
    assert [job.queue for job in jobs].count(QUEUE) == 2, "the same weight"
    await store.set_queue(OTHER.queue, QueueSettings(weight=4.0), only=("weight",))
    jobs = await _one_by_one(store, Run(run.worker, jobs[-1]), 10, LANE, OTHER)
    assert [job.queue for job in jobs].count(QUEUE) in (1, 2, 3), "one of five"


async def check_a_lane_gains_nothing_by_waiting_alone(store: Store) -> None:
    run = await start(store, gates=(ONE,))
    await _wait(store, run.worker, [""] * 20)
    [*_, last] = await _one_by_one(store, run, 6)
    run = Run(run.worker, last)
    await _wait(store, run.worker, [""] * 8, lane=OTHER)
    jobs = await _one_by_one(store, run, 8, LANE, OTHER)
    assert [job.queue for job in jobs].count(QUEUE) in (3, 4, 5), "nor does one that comes later"


async def check_whoever_is_moved_waits_in_the_line_of_its_new_lane(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(weights={"bulk": 1, "critical": 100}), only=("weights",))
    run = await start(store, gates=(ONE,), tenant="a")
    *_, last = await _wait(store, run.worker, "bbbbbbbb", lane=BULK)
    await _wait(store, run.worker, "aaaa", lane=CRITICAL)
    assert await store.move_jobs([last], queue=None, priority=CRITICAL.priority) == 1
    jobs = await _one_by_one(store, run, 7, BULK, CRITICAL)
    assert [job.priority for job in jobs] == [CRITICAL.priority] * 5 + [BULK.priority] * 2
    assert last in [job.id for job in jobs[:2]], "beside those who waited there before"


async def check_those_who_are_moved_together_keep_their_order(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    ids = await _wait(store, run.worker, "aaaa", lane=BULK)
    await _wait(store, run.worker, "b", lane=CRITICAL)
    assert await store.move_jobs(ids[::-1], queue=None, priority=CRITICAL.priority) == 4
    jobs = await _one_by_one(store, run, 5, CRITICAL)
    assert [job.id for job in jobs if job.tenant == "a"] == ids, "in whatever order they are named"
    assert "b" in _letters(jobs[:2]), "and take turns with the others"


# ---------------------------------------------------------------- who comes anew


async def check_a_tenant_that_was_paused_comes_beside_the_others(store: Store) -> None:
    await store.set_paused(tenant="a", paused=True, by="me")
    worker = await enlist(store)
    old = await insert(store, *(a_job(tenant="a") for _ in range(20)))
    for _ in range(5):
        await insert(store, a_job(tenant="b"))
        assert len(await drain(store, worker)) == 1, "only the one who is not paused"
    await insert(store, *(a_job(tenant="b") for _ in range(20)))
    await store.set_paused(tenant="a", paused=False, by="me")
    await serve(store)
    assert set(await states(store, *old)) == {State.READY}
    order = [job for _ in range(10) for job in await claim(store, worker, 1)]
    assert 4 <= _letters(order).count("b") <= 6, f"in turns: {_letters(order)}"
    assert [job.id for job in order if job.tenant == "a"] == old[: _letters(order).count("a")], "the oldest first"


async def check_without_tenants_whoever_was_paused_has_its_old_place(store: Store) -> None:
    await store.set_paused(task=TASK, paused=True, by="me")
    worker = await enlist(store)
    [old] = await insert(store, a_job())
    assert await drain(store, worker) == []
    [new] = await insert(store, a_job(task=f"{TASK}.other"))
    await store.set_paused(task=TASK, paused=False, by="me")
    await serve(store)
    assert [job.id for job in await claim(store, worker)] == [old, new], "first in, first out"


async def check_what_is_known_of_lines_is_forgotten_with_them(store: Store) -> None:
    run = await start(store, gates=(ONE,), tenant="a")
    ids = await _wait(store, run.worker, "abab")
    ids += await _wait(store, run.worker, "ab", lane=OTHER)
    [job] = await _one_by_one(store, run, 1, LANE, OTHER)
    await store.cancel_jobs(ids, reason="not needed")
    await finish(store, Run(run.worker, job))
    await serve(store)
    await store.sweep(limit=PLENTY)
    assert await store.gates([Place(Barrier.LIMIT, ONE.key)]) == [], "nobody is left"


async def check_of_very_many_lanes_each_has_its_turn(store: Store) -> None:
    run = await start(store, gates=(ONE,))
    lanes = [Lane(f"q{number}", LANE.priority) for number in range(LANES_AT_ONCE + 20)]
    await insert(store, *(a_job(gates=(ONE,), queue=lane.queue) for lane in lanes for _ in range(4)))
    assert await drain(store, run.worker, *lanes) == [], "the limit is full"
    jobs = await _one_by_one(store, run, 2 * len(lanes), *lanes)
    assert {job.queue for job in jobs} == {lane.queue for lane in lanes}, "also those that were not looked at at first"


async def check_very_many_lanes_that_come_last_keep_nobody_waiting(store: Store) -> None:
    last = [Lane(f"a{number}", LANE.priority) for number in range(LANES_AT_ONCE + 20)]
    for number, lane in enumerate(last):
        said = QueueSettings(weight=0.0) if number % 2 else QueueSettings(weights={"normal": 0})
        await store.set_queue(lane.queue, said, only=("weight", "weights"))
    run = await start(store, gates=(ONE,))
    await _wait(store, run.worker, [""] * 9)
    await _wait(store, run.worker, [""] * 9, lane=OTHER)
    jobs = await _one_by_one(store, run, 2, LANE, OTHER)
    await insert(store, *(a_job(gates=(ONE,), queue=lane.queue) for lane in last))
    assert await drain(store, run.worker, *last) == [], "the limit is full"
    jobs = await _one_by_one(store, Run(run.worker, jobs[-1]), 16, LANE, OTHER, *last)
    assert [job.queue for job in jobs[:8]].count(QUEUE) in (3, 4, 5), "the others take turns"
    assert {job.queue for job in jobs} == {QUEUE, OTHER.queue}, "weight 0 goes when nobody else waits"


async def check_very_many_lanes_that_nobody_claims_from_keep_nobody_waiting(store: Store) -> None:
    """Nor where their first ones have to stay, as those of a smaller size."""
    sizes = SlotGate("shared", 3), SlotGate("shared", 1)
    lanes = [Lane(f"a{number}", LANE.priority) for number in range(LANES_AT_ONCE + 20)]
    worker = a_worker(queues=(QUEUE, *(lane.queue for lane in lanes)))
    await store.register_worker(worker, lease_s=LONG_S)
    runs = [await start(store, worker=worker.id, gates=sizes[:1]) for _ in range(3)]
    await insert(store, *(a_job(gates=sizes[1:], queue=lane.queue) for lane in lanes))
    [waiting] = await insert(store, a_job(gates=sizes[:1]))
    assert await drain(store, worker.id, LANE, *lanes) == [], "the limit is full"
    for lane in lanes:
        await store.set_queue(lane.queue, QueueSettings(paused=True), only=("paused",))
    await finish(store, runs[0])
    await serve(store)
    assert await states(store, waiting) == [State.READY]


async def check_a_look_at_a_few_ends_where_all_have_to_stay(store: Store) -> None:
    """Else the gate is due again at once, for ever."""
    sizes = SlotGate("shared", 2), SlotGate("shared", 1)
    lanes = [Lane(f"a{number}", LANE.priority) for number in range(3)]
    run = await start(store, gates=sizes[:1])
    await insert(store, *(a_job(gates=sizes[1:], queue=lane.queue) for lane in lanes))
    assert await drain(store, run.worker, *lanes) == []
    for lane in lanes:
        await store.set_queue(lane.queue, QueueSettings(paused=True), only=("paused",))
    await store.set_limit("other", size=9, pace=None, by="me")  # all are looked after
    found = [await store.serve_gates(limit=len(lanes)) for _ in range(5)]
    assert found[-1].next_due_in_s != 0, "nobody can go"
