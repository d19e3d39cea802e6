"""Fencing: only the run that holds the lease writes; a repeated settlement is told apart from a stale one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from holdfast.core.cause import Cause
from holdfast.core.settlement import HandBack, Park, Retry, Settlement, Snooze, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    Run,
    apply,
    drain,
    due,
    enlist,
    finish,
    info,
    lose,
    resume,
    settle,
    start,
    state,
)
from holdfast.testing.contracts.settle import every_kind


def _kinds(run: Run) -> list[Settlement]:
    return [*every_kind(run).values(), Snooze(run.id, run.token, LONG_S, ERROR)]


async def check_a_repeated_settlement_of_any_kind_is_already_on_record(store: Store) -> None:
    worker = await enlist(store)
    for kind in range(7):
        run = await start(store, worker=worker, queue=f"q{kind}")
        settlement = _kinds(run)[kind]
        await apply(store, worker, settlement)
        before = await info(store, run.id)
        verdicts = await settle(store, worker, settlement)
        assert verdicts == [Verdict.ALREADY], f"repeating {settlement}: {verdicts}"
        assert await info(store, run.id) == before, f"repeating {settlement} must change nothing"


async def check_a_settlement_with_an_older_token_is_lost(store: Store) -> None:
    worker = await enlist(store)
    for kind in range(7):
        old = await start(store, worker=worker)
        await lose(store, worker)
        worker = await enlist(store)
        new = await resume(store, old.id, worker=worker)
        before = await info(store, old.id)
        verdicts = await settle(store, worker, _kinds(old)[kind])
        assert verdicts == [Verdict.LOST], f"a stale token must be refused: {_kinds(old)[kind]}: {verdicts}"
        assert await info(store, old.id) == before, f"{_kinds(old)[kind]} must change nothing"
        await finish(store, new)


async def check_a_settlement_by_another_worker_is_lost(store: Store) -> None:
    run = await start(store)
    intruder = await enlist(store)
    before = await info(store, run.id)
    for settlement in _kinds(run):
        for worker in (intruder, uuid4()):
            verdicts = await settle(store, worker, settlement)
            assert verdicts == [Verdict.LOST], f"not its lease: {settlement}: {verdicts}"
    assert await info(store, run.id) == before, "a refused settlement changes nothing"
    await finish(store, run)


async def check_a_guessed_token_is_lost(store: Store) -> None:
    run = await start(store)
    for token in (run.token + 1, run.token - 1, 0, -1):
        verdicts = await settle(store, run.worker, Succeed(run.id, token, None))
        assert verdicts == [Verdict.LOST], f"token {token} is not {run.token}: {verdicts}"
    assert await state(store, run.id) is State.RUNNING, "a refused settlement changes nothing"


async def _remove(store: Store, run: Run) -> None:
    await store.hand_back_worker(run.worker, cause=Cause.HANDED_BACK, why="drained")


async def _report_lost(store: Store, run: Run) -> None:
    await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why="killed")


async def _expire(store: Store, run: Run) -> None:
    await lose(store, run.worker)


TAKEN_AWAY: list[Callable[[Store, Run], Awaitable[None]]] = [_remove, _report_lost, _expire]


async def check_a_worker_that_lost_its_leases_changes_nothing(store: Store) -> None:
    for take_away in TAKEN_AWAY:
        run = await start(store)
        await take_away(store, run)
        before = await info(store, run.id)
        for settlement in _kinds(run):
            verdicts = await settle(store, run.worker, settlement)
            # `already` would be a lie, but for those who only want the job to go back, which it did.
            harmless = isinstance(settlement, HandBack | Park) and verdicts == [Verdict.ALREADY]
            assert harmless or verdicts == [Verdict.LOST], f"after {take_away.__name__}: {settlement}: {verdicts}"
        written = await store.record_progress(run.worker, run.id, run.token, done=1, total=2, stage="x")
        assert written is False, f"after {take_away.__name__} progress must be refused"
        assert await info(store, run.id) == before, f"after {take_away.__name__} nothing may change"
        await drain(store, await enlist(store))


async def check_a_woken_worker_does_not_touch_its_successors_run(store: Store) -> None:
    for take_away in TAKEN_AWAY:
        old = await start(store)
        await take_away(store, old)
        new = await resume(store, old.id)
        verdicts = await settle(store, old.worker, Succeed(old.id, old.token, b'"zombie"'))
        assert verdicts == [Verdict.LOST], f"after {take_away.__name__}: {verdicts}"
        await finish(store, new, b'"good"')
        verdicts = await settle(store, old.worker, Succeed(old.id, old.token, b'"zombie"'))
        assert verdicts == [Verdict.LOST], f"after {take_away.__name__} and the ending: {verdicts}"
        found = await info(store, old.id)
        assert (found.state, found.result) == (State.SUCCEEDED, "good"), f"got {found}"


async def check_a_late_repeat_does_not_touch_the_next_run(store: Store) -> None:
    old = await start(store)
    hand_back = HandBack(old.id, old.token, "drained")
    await apply(store, old.worker, hand_back)
    new = await resume(store, old.id, worker=old.worker)
    verdicts = await settle(store, old.worker, hand_back)
    assert verdicts == [Verdict.ALREADY], f"the first answer was lost, no more: {verdicts}"
    retry = Retry(new.id, new.token, 0, ERROR)
    await apply(store, new.worker, retry)
    await due(store)
    third = await resume(store, old.id, worker=old.worker)
    verdicts = await settle(store, old.worker, retry)
    assert verdicts == [Verdict.ALREADY], f"got {verdicts}"
    assert await state(store, old.id) is State.RUNNING, "the next run goes on"
    await finish(store, third)


async def check_of_many_settlements_at_once_one_counts(store: Store) -> None:
    for _ in range(10):
        run = await start(store)
        kinds = _kinds(run) * 2
        verdicts = [v for [v] in await asyncio.gather(*(settle(store, run.worker, kind) for kind in kinds))]
        assert verdicts.count(Verdict.APPLIED) == 1, f"exactly one settlement counts: {verdicts}"
        first = kinds[verdicts.index(Verdict.APPLIED)]
        twins = {verdict for kind, verdict in zip(kinds, verdicts, strict=True) if kind == first}
        assert twins == {Verdict.APPLIED, Verdict.ALREADY}, f"its repetition is told apart: {verdicts}"
        await store.cancel_jobs([run.id], reason="out of the way")


async def check_progress_is_fenced(store: Store) -> None:
    run = await start(store)
    written = await store.record_progress(run.worker, run.id, run.token, done=3, total=10, stage="uploading")
    assert written is True, "the run that holds the lease may write"
    stale = [(run.worker, run.token - 1), (run.worker, run.token + 1), (await enlist(store), run.token)]
    for worker, token in stale:
        refused = await store.record_progress(worker, run.id, token, done=9, total=9, stage="wrong")
        assert refused is False, "only the run that holds the lease may write"
    found = await info(store, run.id)
    assert found.progress is not None, f"got {found}"
    assert (found.progress.done, found.progress.total, found.stage) == (3, 10, "uploading"), f"got {found}"
    await finish(store, run)
    late = await store.record_progress(run.worker, run.id, run.token, done=9, total=9, stage="wrong")
    assert late is False, "an ended job makes no progress"
    found = await info(store, run.id)
    assert found.progress is not None, "the last progress is kept"
    assert (found.progress.done, found.stage) == (3, "uploading"), f"got {found}"
