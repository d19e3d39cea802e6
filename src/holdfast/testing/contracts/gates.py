"""Gates: a run passes all of its job's, takes what it needs of each at once, and holds nothing while it waits."""

from __future__ import annotations

from holdfast.core.breaker import BreakerGate
from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Gate, Place, RateGate, SlotGate
from holdfast.core.job import JobId
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.stores.base import Store, Swept
from holdfast.stores.flow import GateInfo
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    TASK,
    Run,
    a_job,
    claim,
    drain,
    enlist,
    finish,
    info,
    insert,
    lose,
    serve,
    start,
    state,
    states,
)

PRINTER, SCANNER = SlotGate("printer", 1), SlotGate("scanner", 1)
AT_PRINTER, AT_SCANNER = Place(Barrier.LIMIT, PRINTER.key), Place(Barrier.LIMIT, SCANNER.key)
SLOW = RateGate("post", Pace(1, LONG_S, 1))
AT_SLOW = Place(Barrier.RATE, SLOW.key)
ELSEWHERE = Lane("elsewhere", LANE.priority)


async def use(store: Store, place: Place) -> tuple[int, int]:
    """Slots held of a gate, and jobs that wait at it."""
    found = await store.gates([place])
    assert len(found) <= 1, f"one gate was asked for: {found}"
    return (found[0].held, found[0].waiting) if found else (0, 0)


async def nothing_is_left(store: Store) -> None:
    """Insist that the gates have forgotten everything, after the sweep has been there."""
    await serve(store)
    swept = await store.sweep(limit=PLENTY)
    assert swept == Swept(0, 0, 0, 0, 0), f"there was nothing to put right: {swept}"
    left = await store.gates()
    assert left == [], f"nobody runs or waits, so no gate is in use: {left}"


async def check_a_run_takes_a_slot_of_each_of_its_limits(store: Store) -> None:
    both = await start(store, gates=(PRINTER, SCANNER))
    assert await use(store, AT_PRINTER) == await use(store, AT_SCANNER) == (1, 0), await store.gates()
    ids = await insert(store, a_job(gates=(PRINTER,)), a_job(gates=(SCANNER,)))
    assert await drain(store, both.worker) == [], "both limits are reached"
    assert await use(store, AT_PRINTER) == await use(store, AT_SCANNER) == (1, 1), await store.gates()
    await finish(store, both)
    await serve(store)
    got = [job.id for job in await drain(store, both.worker)]
    assert got == ids, f"both slots are free again: {got}"
    assert await use(store, AT_PRINTER) == await use(store, AT_SCANNER) == (1, 0), await store.gates()


async def check_whoever_waits_at_one_gate_holds_nothing_of_another(store: Store) -> None:
    scanning = await start(store, gates=(SCANNER,))
    [waiting] = await insert(store, a_job(gates=(PRINTER, SCANNER)))
    assert await drain(store, scanning.worker) == [], "the scanner is in use"
    found = await info(store, waiting)
    assert (found.state, found.reason, found.attempt, found.attempts) == (State.PARKED, "limit", 0, ()), f"got {found}"
    assert await use(store, AT_SCANNER) == (1, 1), "it waits for what it lacks"
    assert await use(store, AT_PRINTER) == (0, 0), "and holds nothing of the rest"
    printing = await start(store, worker=scanning.worker, gates=(PRINTER,))
    await finish(store, printing)
    await finish(store, scanning)
    await serve(store)
    [job] = await drain(store, scanning.worker)
    assert (job.id, job.attempt) == (waiting, 1), f"waiting is no attempt: {job}"
    await finish(store, Run(scanning.worker, job))
    await nothing_is_left(store)


async def check_a_waiter_goes_on_to_the_next_gate_that_is_full(store: Store) -> None:
    printing = await start(store, gates=(PRINTER,))
    scanning = await start(store, worker=printing.worker, gates=(SCANNER,))
    [both] = await insert(store, a_job(gates=(PRINTER, SCANNER)))
    await drain(store, printing.worker)
    assert await use(store, AT_PRINTER) == (1, 1), "it waits at the first that is full"
    await finish(store, printing)
    await serve(store)
    assert await state(store, both) is State.PARKED, "the other one is full as well"
    assert await use(store, AT_PRINTER) == (0, 0), "it does not block what it cannot use"
    assert await use(store, AT_SCANNER) == (1, 1), "it waits there now"
    await finish(store, scanning)
    await serve(store)
    assert await state(store, both) is State.READY, "nothing holds it back"
    assert await use(store, AT_PRINTER) == await use(store, AT_SCANNER) == (1, 0), "and both are kept for it"
    await insert(store, a_job(gates=(SCANNER,)), a_job(gates=(PRINTER,)))
    got = [job.id for job in await drain(store, printing.worker)]
    assert got == [both], f"the older goes first: {got}"


async def check_a_waiter_in_two_lines_is_not_overtaken_in_the_second(store: Store) -> None:
    printing = await start(store, gates=(PRINTER,))
    worker = printing.worker
    scanning = await start(store, worker=worker, gates=(SCANNER,))
    [older] = await insert(store, a_job(gates=(PRINTER, SCANNER)))
    await drain(store, worker)
    [younger] = await insert(store, a_job(gates=(SCANNER,)))
    await drain(store, worker)
    await finish(store, printing)
    await serve(store)
    await finish(store, scanning)
    await serve(store)
    found = await states(store, older, younger)
    assert found == [State.READY, State.PARKED], f"the line is by age, whoever joined it last: {found}"


async def check_a_job_keeps_its_place_while_it_waits(store: Store) -> None:
    run = await start(store, gates=(PRINTER,))
    first, second = await insert(store, a_job(gates=(PRINTER,)), a_job())
    [job] = await claim(store, run.worker, 2)
    assert job.id == second, "the first is parked"
    [third] = await insert(store, a_job())
    await finish(store, run)
    await serve(store)
    got = [job.id for job in await claim(store, run.worker, 2)]
    assert got == [first, third], f"it was there before: {got}"


async def _kept_for_it(store: Store, *more: Gate) -> tuple[Run, JobId]:
    """A job that is ready with a slot of the printer kept for it, while others may wait for that."""
    run = await start(store, gates=(PRINTER,))
    [kept] = await insert(store, a_job(gates=(PRINTER, *more)))
    assert await drain(store, run.worker) == [], "it is parked"
    await finish(store, run)
    await serve(store)
    assert await state(store, kept) is State.READY, "its turn has come"
    assert await use(store, AT_PRINTER) == (1, 0), "the slot is kept for it"
    return run, kept


async def check_a_slot_is_given_up_by_whoever_is_held_back_elsewhere(store: Store) -> None:
    run, kept = await _kept_for_it(store, BreakerGate("bank", 1, LONG_S, LONG_S))
    [next_one] = await insert(store, a_job(gates=(PRINTER,), queue=ELSEWHERE.queue))
    await store.set_breaker("bank", closed=False, by="me")
    assert await drain(store, run.worker, ELSEWHERE) == [], "the slot is kept for another"
    assert await use(store, AT_PRINTER) == (1, 1), "so this one waits"
    assert await drain(store, run.worker) == [], "whom the bank does not let pass"
    assert (await info(store, kept)).reason == "breaker"
    await serve(store)
    assert [job.id for job in await drain(store, run.worker, ELSEWHERE)] == [next_one], "without keeping the slot"


async def check_a_pause_takes_a_kept_slot_away_at_the_claim(store: Store) -> None:
    run, kept = await _kept_for_it(store)
    await store.set_paused(task=TASK, paused=True, by="me")
    assert await drain(store, run.worker) == [], "its task is paused"
    assert (await info(store, kept)).reason == "paused", "which it waits for"
    await serve(store)
    other = await start(store, task="another", gates=(PRINTER,))
    assert await use(store, AT_PRINTER) == (1, 0), "and the slot is another's"
    await store.set_paused(task=TASK, paused=False, by="me")
    await serve(store)
    assert await drain(store, run.worker) == [], "until that has ended"
    await finish(store, other)
    await serve(store)
    assert [job.id for job in await drain(store, run.worker)] == [kept], "then it has its turn"


async def check_a_job_that_must_run_alone_passes_its_gates_as_well(store: Store) -> None:
    [job_id] = await insert(store, a_job(gates=(PRINTER,)))
    for _ in range(2):
        worker = await enlist(store)
        assert [job.id for job in await claim(store, worker, 1)] == [job_id], "it is taken, and lost"
        await lose(store, worker)
        await serve(store)
    run = await start(store, gates=(PRINTER,), queue=ELSEWHERE.queue)
    assert await drain(store, run.worker) == [], "alone or not, the limit holds"
    assert (await info(store, job_id)).reason == "limit", "it waits as all do"
    await finish(store, run)
    await serve(store)
    [job] = await drain(store, run.worker)
    assert (job.id, job.alone) == (job_id, True), f"and is not forgotten: {job}"


async def check_the_same_limit_twice_is_one_slot(store: Store) -> None:
    run = await start(store, gates=(PRINTER, PRINTER))
    assert await use(store, AT_PRINTER) == (1, 0), "it never waits for itself"
    await finish(store, run)
    await nothing_is_left(store)


async def check_gates_are_reported_by_place_and_bounded(store: Store) -> None:
    gates = [SlotGate(f"key {number}", 1) for number in range(5)]
    await insert(store, *(a_job(gates=(gate,)) for gate in gates for _ in range(number_of(gate))))
    worker = await enlist(store)
    await drain(store, worker)
    places = [Place(Barrier.LIMIT, gate.key) for gate in gates]
    found = sorted(await store.gates([*places, Place(Barrier.LIMIT, "unknown")]))
    expected = [GateInfo(place, 1, number_of(gate) - 1) for place, gate in zip(places, gates, strict=True)]
    assert found == expected, f"those in use among these: {found}"
    assert sorted(await store.gates()) == expected, "and without a choice all of them"
    assert len(await store.gates(limit=2)) == 2, "up to a limit"
    assert await store.gates([]) == [], "none asked for, none told"


def number_of(gate: SlotGate) -> int:
    return 1 + int(gate.key[-1])


async def check_serving_is_bounded_and_tells_of_the_rest(store: Store) -> None:
    [first, *rest] = await insert(store, *(a_job(gates=(PRINTER,)) for _ in range(6)))
    worker = await enlist(store)
    assert [job.id for job in await drain(store, worker)] == [first]
    await store.set_limit(PRINTER.key, size=6, pace=None, by="me")
    let_go = 0
    while let_go < len(rest):
        found = await store.serve_gates(limit=2)
        assert 0 < found.unparked <= 2, f"so many at once and no more: {found}"
        let_go += found.unparked
        states_now = await states(store, *rest)
        assert states_now == [State.READY] * let_go + [State.PARKED] * (5 - let_go), f"oldest first: {states_now}"
        if let_go < len(rest):
            assert found.next_due_in_s is not None, f"more are due: {found}"
            assert found.next_due_in_s <= 0, f"and now: {found}"
    await serve(store)
    assert [job.id for job in await drain(store, worker)] == rest, "all had their turn"


async def check_nobody_waits_and_nothing_is_due_in_an_empty_store(store: Store) -> None:
    found = await store.serve_gates(limit=PLENTY)
    assert tuple(found) == (0, 0, None), f"got {found}"
    await insert(store, a_job(), a_job(gates=(PRINTER,)))
    assert tuple(await store.serve_gates(limit=PLENTY)) == (0, 0, None), "a ready job waits at no gate"
    assert await store.gates() == [], "nor is its gate in use"
