"""The record of runs: every run that did not end its job well is kept, with its cause; only failures are charged."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.settlement import UNKNOWN_TASK, Bury, HandBack, Park, Retry, Snooze
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    TASK,
    Run,
    apply,
    due,
    enlist,
    finish,
    info,
    lose,
    resume,
    start,
)


async def check_a_first_success_leaves_no_record(store: Store) -> None:
    run = await start(store)
    assert (await info(store, run.id)).attempt == 1, "a running job counts its run"
    await finish(store, run)
    found = await info(store, run.id)
    assert found.attempts == (), f"got {found.attempts}"
    assert found.attempt == 1, f"got {found}"


async def check_every_lost_or_failed_run_has_its_cause(store: Store) -> None:
    run = await start(store)
    tokens = [run.token]
    await apply(store, run.worker, Snooze(run.id, run.token, 0, ERROR))
    await due(store)
    run = await resume(store, run.id, worker=run.worker)
    tokens.append(run.token)
    await apply(store, run.worker, HandBack(run.id, run.token, "drained"))
    run = await resume(store, run.id, worker=run.worker)
    tokens.append(run.token)
    await apply(store, run.worker, HandBack(run.id, run.token, "nobody ran it", Cause.CLAIM_LOST))
    run = await resume(store, run.id, worker=run.worker)
    tokens.append(run.token)
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, TASK))
    await store.unpark_jobs(reason=UNKNOWN_TASK, keys=[TASK])
    run = await resume(store, run.id, worker=run.worker)
    tokens.append(run.token)
    await lose(store, run.worker)
    run = await resume(store, run.id)
    tokens.append(run.token)
    await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why="killed")
    run = await resume(store, run.id)
    tokens.append(run.token)
    assert run.job.attempt == 1, f"nothing was charged so far: {run.job}"
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    run = await resume(store, run.id)
    assert run.job.attempt == 2, f"a failure is charged: {run.job}"
    await finish(store, run)
    record = (await info(store, run.id)).attempts
    causes = [Cause(attempt.cause) for attempt in record]
    assert causes == [
        Cause.SNOOZE,
        Cause.HANDED_BACK,
        Cause.CLAIM_LOST,
        Cause.HANDED_BACK,
        Cause.LEASE_EXPIRED,
        Cause.WORKER_LOST,
        Cause.RETRY,
    ], f"got {causes}"
    assert [attempt.token for attempt in record] == tokens, "each record carries the token of its run, in order"


async def check_a_failure_is_recorded_with_its_error(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    [attempt] = (await info(store, run.id)).attempts
    assert (attempt.number, attempt.token, attempt.cause) == (1, run.token, Cause.RETRY), f"got {attempt}"
    assert attempt.error == ERROR, f"got {attempt.error}"
    assert attempt.worker == str(run.worker), f"got {attempt}"


async def check_attempts_count_up_to_the_grave(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, max_attempts=3)
    for attempt in (1, 2):
        assert run.job.attempt == attempt, f"got {run.job}"
        await apply(store, worker, Retry(run.id, run.token, 0, ERROR))
        await due(store)
        run = await resume(store, run.id, worker=worker)
    assert (run.job.attempt, run.job.max_attempts) == (3, 3), f"got {run.job}"
    await apply(store, worker, Bury(run.id, run.token, "exhausted", ERROR))
    found = await info(store, run.id)
    assert (found.state, found.attempt) == (State.DEAD, 3), f"got {found}"
    causes = [attempt.cause for attempt in found.attempts]
    assert causes == [Cause.RETRY, Cause.RETRY, Cause.DEAD], f"got {causes}"


async def check_a_long_text_of_an_error_is_kept(store: Store) -> None:
    run: Run = await start(store)
    long = ERROR.__class__("shop.Böse", "☃ " * 2_000, "line\n" * 6_000)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", long))
    assert (await info(store, run.id)).error == long, "the error is kept as it was told"
