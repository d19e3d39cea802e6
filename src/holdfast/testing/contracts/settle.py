"""Settling: what each kind of settlement does to its job, alone and in batches."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
    Verdict,
)
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    TASK,
    Run,
    a_job,
    an_id,
    apply,
    claim,
    enlist,
    info,
    insert,
    settle,
    start,
    state,
    states,
)


def every_kind(run: Run) -> dict[State, Settlement]:
    """One settlement of each kind, by the state it leads to (snooze is told apart in its own check)."""
    job_id, token = run.id, run.token
    return {
        State.SUCCEEDED: Succeed(job_id, token, b"42"),
        State.SCHEDULED: Retry(job_id, token, LONG_S, ERROR),
        State.READY: HandBack(job_id, token, "drained"),
        State.PARKED: Park(job_id, token, UNKNOWN_TASK, TASK),
        State.DEAD: Bury(job_id, token, "permanent", ERROR),
        State.CANCELLED: Cancel(job_id, token, "asked to"),
    }


async def check_success_keeps_the_result(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Succeed(run.id, run.token, b'{"answer": 42}'))
    found = await info(store, run.id)
    assert found.state is State.SUCCEEDED, f"got {found}"
    assert found.result == {"answer": 42}, f"got {found}"
    assert found.ended_at is not None, f"got {found}"
    ending = (await store.endings([run.id]))[run.id]
    assert ending is not None, "an ended job has an ending"
    assert (ending.state, ending.result) == (State.SUCCEEDED, b'{"answer": 42}'), f"got {ending}"


async def check_success_without_a_result(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Succeed(run.id, run.token, None))
    found = await info(store, run.id)
    assert (found.state, found.result) == (State.SUCCEEDED, None), f"got {found}"


async def check_retry_waits_and_is_charged(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))
    found = await info(store, run.id)
    assert (found.state, found.attempt) == (State.SCHEDULED, 1), f"got {found}"
    assert found.run_at is not None, f"a scheduled job says when it will run: {found}"
    assert await claim(store, run.worker) == [], "nothing runs before its time"


async def check_snooze_waits_and_is_not_charged(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Snooze(run.id, run.token, LONG_S, ERROR))
    found = await info(store, run.id)
    assert (found.state, found.attempt) == (State.SCHEDULED, 0), f"got {found}"


async def check_a_dead_job_keeps_its_error_and_reason(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.DEAD, "permanent"), f"got {found}"
    assert found.error == ERROR, f"got {found.error}"
    ending = (await store.endings([run.id]))[run.id]
    assert ending is not None, "a dead job has ended"
    assert (ending.state, ending.reason) == (State.DEAD, "permanent"), f"got {ending}"
    assert (ending.error_type, ending.error_message) == (ERROR.type, ERROR.message), f"got {ending}"


async def check_a_parked_job_tells_its_reason(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, TASK))
    found = await info(store, run.id)
    assert found.state is State.PARKED, f"got {found}"
    assert found.reason is not None, f"got {found}"
    assert UNKNOWN_TASK in found.reason, f"a parked job says why: {found.reason}"
    assert await claim(store, run.worker) == [], "a parked job is not claimed"


async def check_a_cancelled_run_keeps_its_reason(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Cancel(run.id, run.token, "asked to"))
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.CANCELLED, "asked to"), f"got {found}"


async def check_a_batch_may_hold_every_kind(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(6)))
    worker = await enlist(store)
    runs = [Run(worker, job) for job in await claim(store, worker, 6)]
    wanted = list(every_kind(runs[0]))
    await apply(store, worker, *(every_kind(run)[kind] for run, kind in zip(runs, wanted, strict=True)))
    found = await states(store, *ids)
    assert found == wanted, f"got {found}, expected {wanted}"


async def check_the_answers_of_a_mixed_batch_are_in_order(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, *(a_job() for _ in range(4)))
    first, second, third, fourth = await claim(store, worker)
    await apply(store, worker, Succeed(second.id, second.token, None))
    verdicts = await settle(
        store,
        worker,
        Succeed(an_id(), 1, None),
        Succeed(first.id, first.token, None),
        Retry(third.id, third.token - 1, LONG_S, ERROR),
        Succeed(second.id, second.token, None),
        Retry(fourth.id, fourth.token, LONG_S, ERROR),
    )
    expected = [Verdict.LOST, Verdict.APPLIED, Verdict.LOST, Verdict.ALREADY, Verdict.APPLIED]
    assert verdicts == expected, f"got {verdicts}, expected {expected}"
    found = await states(store, *ids)
    assert found == [State.SUCCEEDED, State.SUCCEEDED, State.RUNNING, State.SCHEDULED], f"got {found}"


async def check_an_empty_batch_is_answered(store: Store) -> None:
    assert await settle(store, await enlist(store)) == [], "no settlements, no answers"


async def check_one_run_settled_twice_in_a_batch_counts_once(store: Store) -> None:
    run = await start(store)
    retry, success = Retry(run.id, run.token, LONG_S, ERROR), Succeed(run.id, run.token, None)
    first, other, repeated = await settle(store, run.worker, retry, success, retry)
    assert first is Verdict.APPLIED, f"the first one counts: {first}"
    assert other is not Verdict.APPLIED, f"and no other: {other}"
    assert repeated is Verdict.ALREADY, f"its repetition is told apart: {repeated}"
    assert await state(store, run.id) is State.SCHEDULED, "what came second changes nothing"


async def check_a_lost_claim_returns_uncharged(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, HandBack(run.id, run.token, "nobody ran it", Cause.CLAIM_LOST))
    found = await info(store, run.id)
    assert (found.state, found.attempt) == (State.READY, 0), f"got {found}"
    [again] = await claim(store, run.worker)
    assert (again.attempt, again.alone) == (1, False), f"a lost claim leaves no mark: {again}"
