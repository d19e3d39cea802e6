"""Rule 11 for those who wait: what operators say while their gates are served, and who frees what others judge by."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.campaign.child import until
from tests.faults.pair import Pair
from tests.faults.racing import in_a_pair, waits_or_is_done
from tests.faults.trial import PATIENCE_S

from holdfast.core.breaker import BreakerGate, BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Retry, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.postgres import engine, passing
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    PRIORITY,
    QUEUE,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    drain,
    enlist,
    finish,
    insert,
    lose,
    serve,
    start,
    state,
    states,
)

ONE = (SlotGate("k", 1),)
BESIDE = Lane("beside", PRIORITY)
BREAKER = BreakerGate("b", 1, 60.0, 10.0)


async def _said_while_gates_are_served(stores: Pair, serving: asyncio.Future[Any], saying: asyncio.Future[Any]) -> None:
    """Both at once, as far as they do not wait for each other."""
    await waits_or_is_done(stores, saying)
    release("serve_gates.inside")
    await serving
    await saying


def test_a_limit_that_is_raised_while_its_gate_is_served_lets_those_go_who_wait(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)
        waiting = await insert(one, *(a_job(gates=ONE) for _ in range(3)))
        assert await claim(one, run.worker) == []
        await other.set_limit("k", size=1, pace=None, by="me")  # which makes its gate due
        stores.by_hand("UPDATE gate SET due_at = 'epoch'")
        arm("serve_gates.inside", "hang")
        serving = asyncio.ensure_future(one.serve_gates(limit=PLENTY))
        await wait_hit("serve_gates.inside")
        saying = asyncio.ensure_future(other.set_limit("k", size=4, pace=None, by="me"))
        await _said_while_gates_are_served(stores, serving, saying)
        await serve(one)
        assert [job.id for job in await claim(one, run.worker)] == waiting

    in_a_pair(postgres_place, play)


def test_a_pause_that_is_taken_back_while_its_gate_is_served_keeps_nobody(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE, task="another.task")
        [waiting] = await insert(one, a_job(gates=ONE))
        assert await claim(one, run.worker) == []
        await other.set_paused(task=TASK, paused=True, by="me")
        stores.by_hand("UPDATE gate SET due_at = 'epoch'")
        arm("serve_gates.inside", "hang")
        serving = asyncio.ensure_future(one.serve_gates(limit=PLENTY))
        await wait_hit("serve_gates.inside")
        saying = asyncio.ensure_future(other.set_paused(task=TASK, paused=False, by="me"))
        await _said_while_gates_are_served(stores, serving, saying)
        await finish(one, run)
        await serve(one)
        assert [job.id for job in await claim(one, run.worker)] == [waiting]

    in_a_pair(postgres_place, play)


def test_a_slot_that_is_kept_while_its_queue_is_paused_goes_to_the_next(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)
        await insert(one, a_job(gates=ONE))
        assert await claim(one, run.worker) == []
        [next_one] = await insert(one, a_job(gates=ONE, queue=BESIDE.queue))
        assert await claim(one, run.worker, lane=BESIDE) == []
        arm("serve_gates.inside", "hang")
        finishing = asyncio.ensure_future(finish(one, run))
        await wait_hit("serve_gates.inside")
        saying = asyncio.ensure_future(other.set_queue(QUEUE, QueueSettings(paused=True), by="me"))
        await _said_while_gates_are_served(stores, finishing, saying)
        await serve(one)
        assert [job.id for job in await claim(one, run.worker, lane=BESIDE)] == [next_one]

    in_a_pair(postgres_place, play)


def test_who_begins_to_wait_for_a_probe_sees_how_it_ends(postgres_place: Path) -> None:
    """Nobody waits at the breaker any more when the slot of a lost probe is looked after, and the next probe runs."""

    async def play(stores: Pair) -> None:
        one, other, clock, _ = stores
        broken = await start(one, gates=(BREAKER,))
        mark = BreakerMark(broken.token, True, BREAKER, 0.0)
        retry = Retry(broken.id, broken.token, LONG_S, ERROR)
        assert await one.settle_jobs(broken.worker, [retry], marks=[mark]) == [Verdict.APPLIED]
        clock.advance(BREAKER.open_for_s + 1)
        worker, another = await enlist(one), await enlist(other)
        ids = await insert(one, a_job(gates=(BREAKER,)), a_job(gates=(BREAKER,)))
        [_] = await claim(one, worker, 1)
        await one.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
        arm("reap_workers.committed", "hang")
        reaping = asyncio.ensure_future(one.reap_workers(limit=PLENTY))
        await wait_hit("reap_workers.committed")
        [probe] = await claim(other, another, 1)
        release("reap_workers.committed")
        await reaping
        [late] = set(ids) - {probe.id}
        arm("claim_jobs.inside", "hang", skip=2)  # passed over, then the short way: both have done nothing
        claiming = asyncio.ensure_future(claim(one, await enlist(one)))
        await wait_hit("claim_jobs.inside")
        well = BreakerMark(probe.token, False, BREAKER, 0.01)
        success = Succeed(probe.id, probe.token, None)
        settling = asyncio.ensure_future(other.settle_jobs(another, [success], marks=[well]))
        await waits_or_is_done(stores, settling)
        release("claim_jobs.inside")
        assert await settling == [Verdict.APPLIED]
        found = await claiming
        await serve(other)
        assert [job.id for job in found or await claim(other, another)] == [late], "the breaker is closed"

    in_a_pair(postgres_place, play)


@pytest.mark.parametrize("way", ["settled", "handed back", "reaped"])
def test_slots_are_freed_before_joins_are_locked(
    way: str, postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever claims does both, in that order: one that begins to wait, beside one that expires."""

    async def play(stores: Pair) -> None:
        one, other, clock, _ = stores
        first, limited, expiring = a_job(), a_job(gates=ONE), a_job(queue=BESIDE.queue, expires_in_s=1.0)
        await insert(one, first, limited, expiring)
        [join] = await insert(one, a_job(waits_for=(first.id, limited.id, expiring.id), queue="after"))
        worker, another = await enlist(one), await enlist(other)
        ends, goes_on = sorted(await claim(one, worker), key=lambda job: job.id != first.id)
        await insert(one, a_job(gates=ONE, queue=BESIDE.queue))
        if way != "settled":
            await one.cancel_jobs([first.id], reason="enough")
        clock.advance(2.0)
        troubles, is_rolled_back = list[str](), engine.is_rolled_back

        def noted(error: BaseException) -> bool:
            troubles.append(str(getattr(error, "sqlstate", "")))
            return is_rolled_back(error)

        monkeypatch.setattr(engine, "is_rolled_back", noted)
        write, has_slots, may_go_on = passing._write, asyncio.Event(), asyncio.Event()

        async def slowly(tx: Tx, *args: object) -> object:
            monkeypatch.setattr(passing, "_write", write)
            has_slots.set()
            await may_go_on.wait()
            return await write(tx, *args)  # type: ignore[arg-type]  # a schema's name is in it

        monkeypatch.setattr(passing, "_write", slowly)
        claiming = asyncio.ensure_future(claim(other, another, lane=BESIDE))
        await has_slots.wait()
        ending = asyncio.ensure_future(_end(stores, Run(worker, ends), Run(worker, goes_on), way))
        await waits_or_is_done(stores, ending)
        may_go_on.set()
        await claiming
        await ending
        assert "40P01" not in troubles, "nobody waits in a circle"
        assert await states(one, first.id, expiring.id) == [
            State.SUCCEEDED if way == "settled" else State.CANCELLED,
            State.CANCELLED,
        ]
        assert await state(one, join) is State.BLOCKED

    in_a_pair(postgres_place, play)


async def _end(stores: Pair, ends: Run, goes_on: Run, way: str) -> None:
    """One of them ends, which is told to whoever waits for it; the other one frees its slot."""
    if way == "settled":
        success = Succeed(ends.id, ends.token, None)
        await apply(stores.one, ends.worker, success, Retry(goes_on.id, goes_on.token, LONG_S, ERROR))
    elif way == "reaped":
        await lose(stores.one, ends.worker)
    else:
        suspects = {goes_on.token}
        handing = stores.one.hand_back_worker(ends.worker, cause=Cause.WORKER_LOST, why="gone", suspects=suspects)
        assert await handing == 2


def test_one_gate_in_a_slow_hand_makes_nobody_forget_the_others(
    postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots of two limits are freed at once, both gates are in somebody's hand: one for longer than anybody waits."""

    async def play(stores: Pair) -> None:
        one, other, _, where = stores
        keys = ["held for long", "other"]
        worker, another = await enlist(one), await enlist(other)
        await insert(one, *(a_job(gates=(SlotGate(key, 1),)) for key in keys))
        assert len(await claim(one, worker)) == 2
        waiting = await insert(one, *(a_job(gates=(SlotGate(key, 1),)) for key in keys))
        assert await drain(other, another) == []
        query = one._engine.query  # type: ignore[attr-defined]

        async def in_order(statement: str, *args: object, **kwargs: object) -> Any:
            rows = await query(statement, *args, **kwargs)
            return sorted(rows) if statement == "serving.exist" else rows

        monkeypatch.setattr(one._engine, "query", in_order)  # type: ignore[attr-defined]
        hold = f"SELECT 1 FROM {where.schema}.gate WHERE key = %s FOR NO KEY UPDATE"
        with psycopg.connect(where.url) as slow, psycopg.connect(where.url) as quick:
            slow.execute(hold, [keys[0]])  # type: ignore[call-overload]  # a schema's name is in it
            quick.execute(hold, [keys[1]])  # type: ignore[call-overload]  # a schema's name is in it
            pid = slow.info.backend_pid
            handing = asyncio.ensure_future(one.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="stop"))
            waits = f"SELECT 1 FROM pg_stat_activity WHERE {pid} = ANY (pg_blocking_pids(pid))"
            waits_for_it = lambda: handing.done() or where.glance().query(waits)  # noqa: E731
            await until(waits_for_it, within_s=PATIENCE_S, what="somebody to wait for the slow one")
            assert not handing.done()
            quick.rollback()
            assert await handing == 2
            slow.rollback()
        await serve(other)
        assert waiting[1] in {job.id for job in await claim(other, another, lane=LANE)}, "its slot was free"

    in_a_pair(postgres_place, play)
