"""Breakers: failures open them for all processes, single probes try, and a success closes them again."""

from __future__ import annotations

import asyncio

from holdfast.core.breaker import BreakerGate, BreakerMark, Phase
from holdfast.core.gates import Barrier, Place
from holdfast.core.settlement import Bury, HandBack, Retry, Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    TASK,
    Run,
    a_job,
    claim,
    drain,
    enlist,
    info,
    insert,
    lose,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import nothing_is_left, use

BANK = BreakerGate("bank", failures=2, window_s=LONG_S, open_for_s=LONG_S)
BRIEF = BANK._replace(open_for_s=0.0)
"""Half open as soon as it has opened."""
AT_BANK = Place(Barrier.BREAKER, BANK.name)


async def _phase(store: Store, name: str = BANK.name) -> Phase:
    found = {each.name: each.phase for each in await store.breakers()}
    return found.get(name, Phase.CLOSED)


async def _fail(store: Store, run: Run, gate: BreakerGate = BANK) -> list[Verdict]:
    mark = BreakerMark(run.token, failed=True, breaker=gate)
    return await store.settle_jobs(run.worker, [Bury(run.id, run.token, "it failed", ERROR)], marks=[mark])


async def _succeed(store: Store, run: Run, gate: BreakerGate = BANK) -> list[Verdict]:
    mark = BreakerMark(run.token, failed=False, breaker=gate)
    return await store.settle_jobs(run.worker, [Succeed(run.id, run.token, None)], marks=[mark])


async def _opened(store: Store, gate: BreakerGate = BANK) -> None:
    runs = [await start(store, gates=(gate,)) for _ in range(gate.failures)]
    for run in runs:
        assert await _phase(store) is Phase.CLOSED, "so far it has not failed often enough"
        assert await _fail(store, run, gate) == [Verdict.APPLIED]


async def check_failures_open_it_and_jobs_wait(store: Store) -> None:
    await _opened(store)
    assert await _phase(store) is Phase.OPEN
    [waiting] = await insert(store, a_job(gates=(BANK,)))
    [other] = await insert(store, a_job(gates=(BANK._replace(name="another bank"),)))
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == [other], f"another breaker is another matter: {got}"
    found = await info(store, waiting)
    assert (found.state, found.reason, found.attempt, found.attempts) == (State.PARKED, "breaker", 0, ()), f"{found}"
    [told] = await store.breakers()
    assert (told.name, told.phase, told.waiting) == ("bank", Phase.OPEN, 1), f"it is to be seen: {told}"
    found_due = await store.serve_gates(limit=PLENTY)
    assert found_due.next_due_in_s is not None, f"somebody waits: {found_due}"
    assert LONG_S / 2 < found_due.next_due_in_s <= LONG_S, f"until it is half open: {found_due}"
    assert await state(store, waiting) is State.PARKED, "and no sooner"


async def check_a_breaker_that_never_failed_is_not_on_record(store: Store) -> None:
    for _ in range(3):
        await _succeed(store, await start(store, gates=(BANK,)))
    assert await store.breakers() == [], "a success is nothing to write down"


async def check_only_failures_within_the_window_count(store: Store) -> None:
    brisk = BANK._replace(window_s=0.0)
    for _ in range(5):
        await _fail(store, await start(store, gates=(brisk,)), brisk)
        assert await _phase(store) is Phase.CLOSED, "what failed before is out of the window"


async def check_a_success_between_failures_does_not_hide_them(store: Store) -> None:
    await _fail(store, await start(store, gates=(BANK,)))
    await _succeed(store, await start(store, gates=(BANK,)))
    assert await _phase(store) is Phase.CLOSED
    await _fail(store, await start(store, gates=(BANK,)))
    assert await _phase(store) is Phase.OPEN, "two within the window"


async def check_marks_of_one_batch_count_one_by_one(store: Store) -> None:
    worker = await enlist(store)
    runs = [await start(store, worker=worker, gates=(BANK,)) for _ in range(3)]
    settlements: list[Settlement] = [Retry(run.id, run.token, LONG_S, ERROR) for run in runs]
    marks = [BreakerMark(run.token, number > 0, BANK) for number, run in enumerate(runs)]
    await store.settle_jobs(worker, settlements, marks=marks)
    assert await _phase(store) is Phase.OPEN, "two of three failed"


async def check_one_batch_may_tell_of_several_breakers(store: Store) -> None:
    worker = await enlist(store)
    other = BANK._replace(name="another bank", failures=1)
    runs = [await start(store, worker=worker, gates=(gate,)) for gate in (other, BANK)]
    settlements = [Bury(run.id, run.token, "it failed", ERROR) for run in runs]
    marks = [BreakerMark(run.token, True, gate) for run, gate in zip(runs, (other, BANK), strict=True)]
    await store.settle_jobs(worker, settlements, marks=marks)
    assert await _phase(store, other.name) is Phase.OPEN
    assert await _phase(store) is Phase.CLOSED


async def check_half_open_it_hears_of_its_probe_alone(store: Store) -> None:
    old = [await start(store, gates=(BRIEF,)) for _ in range(2)]
    await _opened(store, BRIEF)
    probe = await start(store, gates=(BRIEF,))
    for run, settled, failed in (
        (old[0], Succeed(old[0].id, old[0].token, None), False),
        (old[1], Bury(old[1].id, old[1].token, "it failed", ERROR), True),
    ):
        mark = BreakerMark(run.token, failed, BRIEF, ran_s=LONG_S)
        assert await store.settle_jobs(run.worker, [settled], marks=[mark]) == [Verdict.APPLIED]
        assert await _phase(store) is Phase.HALF_OPEN, "that run began before the breaker opened"
    await _succeed(store, probe, BRIEF)
    assert await _phase(store) is Phase.CLOSED


async def check_half_open_lets_one_through_at_a_time(store: Store) -> None:
    await _opened(store, BRIEF)
    assert await _phase(store) is Phase.HALF_OPEN, "its time is over"
    ids = await insert(store, *(a_job(gates=(BRIEF,)) for _ in range(4)))
    workers = [await enlist(store) for _ in range(3)]
    claims = await asyncio.gather(*(claim(store, worker, 2) for worker in workers))
    runs = [Run(worker, job) for worker, jobs in zip(workers, claims, strict=True) for job in jobs]
    assert len(runs) == 1, f"one probe, whoever asks: {runs}"
    assert runs[0].id in ids
    for worker in workers:
        await serve(store)
        assert await drain(store, worker) == [], "and no other while it runs"
    assert await use(store, AT_BANK) == (1, 3), "it holds the place of the probe"
    await _succeed(store, runs[0], BRIEF)
    assert await _phase(store) is Phase.CLOSED, "the probe has shown that all is well"
    await serve(store)
    got = await drain(store, workers[0])
    assert len(got) == 3, f"so all others go: {got}"
    await store.settle_jobs(workers[0], [Succeed(job.id, job.token, None) for job in got])
    await nothing_is_left(store)


async def check_a_probe_that_fails_opens_it_again(store: Store) -> None:
    await _opened(store, BRIEF)
    probe = await start(store, gates=(BANK,))
    [waiting] = await insert(store, a_job(gates=(BANK,)))
    assert await drain(store, probe.worker) == [], "there is a probe"
    await _fail(store, probe, BANK)
    assert await _phase(store) is Phase.OPEN, "as before"
    await serve(store)
    assert await drain(store, probe.worker) == []
    assert await state(store, waiting) is State.PARKED, "whoever waited goes on waiting"
    assert await use(store, AT_BANK) == (0, 1), "the probe's place is free for the next one"


async def check_a_probe_that_is_lost_makes_room_for_another(store: Store) -> None:
    await _opened(store, BRIEF)
    probe = await start(store, gates=(BRIEF,))
    [waiting] = await insert(store, a_job(gates=(BRIEF,)))
    await drain(store, probe.worker)
    await lose(store, probe.worker)
    await serve(store)
    worker = await enlist(store)
    [job] = await drain(store, worker)
    assert job.id == probe.id, "the one that was lost is the oldest"
    assert await use(store, AT_BANK) == (1, 1), "one probe again"
    await store.settle_jobs(worker, [HandBack(job.id, job.token, "drained")])
    await serve(store)
    [job] = await drain(store, worker)
    assert await use(store, AT_BANK) == (1, 1), "what is handed back says nothing, and is a probe no more"
    await store.settle_jobs(worker, [Bury(job.id, job.token, "without a mark", ERROR)])
    await serve(store)
    [job] = await drain(store, worker)
    assert job.id == waiting, "nor does an ending that says nothing block the next"
    await _succeed(store, Run(worker, job), BRIEF)
    assert await _phase(store) is Phase.CLOSED


async def check_whoever_is_not_claimed_as_a_probe_does_not_block_the_next(store: Store) -> None:
    await _opened(store, BRIEF)
    probe = await start(store, gates=(BRIEF,))
    first, second = await insert(store, a_job(gates=(BRIEF,)), a_job(gates=(BRIEF,)))
    assert await drain(store, probe.worker) == [], "there is a probe"
    await store.settle_jobs(probe.worker, [Bury(probe.id, probe.token, "without a mark", ERROR)])
    await serve(store)
    assert await states(store, first, second) == [State.READY, State.PARKED], "one is let go"
    await store.cancel_jobs([first], reason="not needed")
    found = await store.serve_gates(limit=PLENTY)
    if await state(store, second) is State.PARKED:
        assert found.next_due_in_s is not None, f"nothing was freed, so somebody has to look by himself: {found}"
        assert found.next_due_in_s <= 60, f"before long: {found}"


async def check_nor_does_he_block_whoever_comes_there_from_another_gate(store: Store) -> None:
    await _opened(store, BRIEF)
    first, second = await insert(store, a_job(gates=(BRIEF,)), a_job(gates=(BRIEF,)))
    await store.set_paused(task=TASK, paused=True, by="somebody")
    assert await drain(store, await enlist(store)) == [], "it is paused"
    await store.set_paused(task=TASK, paused=False, by="somebody")
    await serve(store)
    assert await states(store, first, second) == [State.READY, State.PARKED], "one is let go"
    assert await use(store, AT_BANK) == (0, 1), "the other waits at the breaker now"
    await store.cancel_jobs([first], reason="not needed")
    found = await store.serve_gates(limit=PLENTY)
    if await state(store, second) is State.PARKED:
        assert found.next_due_in_s is not None, f"nothing was freed, so somebody has to look by himself: {found}"


async def check_a_run_from_before_that_succeeds_closes_it_for_all_who_wait(store: Store) -> None:
    before = await start(store, gates=(BRIEF,))
    await _opened(store, BRIEF)
    probe = await start(store, gates=(BRIEF,))
    waiting = await insert(store, a_job(gates=(BRIEF,)), a_job(gates=(BRIEF,)))
    assert await drain(store, probe.worker) == [], "there is a probe"
    await _succeed(store, before, BRIEF)
    assert await _phase(store) is Phase.CLOSED, "the other side is well, whoever says so"
    await serve(store)
    assert await states(store, *waiting) == [State.READY] * 2, "nobody waits for the probe any more"


async def check_only_what_is_applied_is_marked(store: Store) -> None:
    run = await start(store, gates=(BANK,))
    assert await _fail(store, run) == [Verdict.APPLIED]
    assert await _fail(store, run) == [Verdict.ALREADY]
    assert await _phase(store) is Phase.CLOSED, "a repeated report is no second failure"
    lost = await start(store, gates=(BANK,))
    await lose(store, lost.worker)
    assert await _fail(store, lost) == [Verdict.LOST]
    assert await _phase(store) is Phase.CLOSED, "nor is that of a run that was taken away"
    worker = await enlist(store)
    stranger = BreakerMark(987_654_321, failed=True, breaker=BANK)
    await store.settle_jobs(worker, [], marks=[stranger])
    assert await _phase(store) is Phase.CLOSED, "nor what nobody ran"


async def check_a_late_success_does_not_close_it(store: Store) -> None:
    lost = await start(store, gates=(BRIEF,))
    await lose(store, lost.worker)
    await store.cancel_jobs([lost.id], reason="out of the way")
    await _opened(store, BRIEF)
    assert await _succeed(store, lost, BRIEF) == [Verdict.LOST]
    assert await _phase(store) is Phase.HALF_OPEN, "its lease had passed on"


async def check_what_began_before_it_opened_says_nothing(store: Store) -> None:
    early = await start(store, gates=(BANK,))
    await _opened(store)
    await _succeed(store, early)
    assert await _phase(store) is Phase.OPEN


async def check_an_operator_closes_it(store: Store) -> None:
    await _opened(store)
    ids = await insert(store, *(a_job(gates=(BANK,)) for _ in range(3)))
    worker = await enlist(store)
    await drain(store, worker)
    await store.set_breaker(BANK.name, closed=True, by="me")
    assert await _phase(store) is Phase.CLOSED
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == ids, "all go, in their order"
    again = await start(store, gates=(BANK,))
    await _fail(store, again)
    assert await _phase(store) is Phase.CLOSED, "what failed before is forgotten"


async def check_an_operator_holds_it_open(store: Store) -> None:
    running = await start(store, gates=(BRIEF,))
    await store.set_breaker(BANK.name, closed=False, by="me")
    assert await _phase(store) is Phase.OPEN
    [waiting] = await insert(store, a_job(gates=(BRIEF,)))
    assert await drain(store, running.worker) == []
    assert (await info(store, waiting)).reason == "breaker"
    await _succeed(store, running, BRIEF)
    found = await store.serve_gates(limit=PLENTY)
    assert found.next_due_in_s is None, f"nobody knows until when: {found}"
    assert await _phase(store) is Phase.OPEN, "no success closes it"
    await store.set_breaker(BANK.name, closed=True, by="me")
    await serve(store)
    assert [job.id for job in await drain(store, running.worker)] == [waiting]


async def check_waiters_go_to_their_old_places(store: Store) -> None:
    await store.set_breaker(BANK.name, closed=False, by="me")
    ids = await insert(store, *(a_job(gates=(BANK,)) for _ in range(2)))
    worker = await enlist(store)
    await drain(store, worker)
    [plain] = await insert(store, a_job())
    await store.set_breaker(BANK.name, closed=True, by="me")
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == [*ids, plain]
    assert await states(store, *ids) == [State.RUNNING] * 2
