"""An outcome that cannot be written costs the guilty job, not those whose outcomes are written with it."""

from __future__ import annotations

import asyncio

from tests.campaign.child import until as until_true
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, RetryPolicy
from holdfast.core.errors import StoreBroken
from holdfast.core.settlement import Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.failpoints import arm
from holdfast.stores.health import StoreHealth
from holdfast.stores.sqlite import SqliteStore
from holdfast.telemetry.events import JobStarted
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import enlist, info, start
from holdfast.worker.settler import Settled, Settler

CROWD = 5


@scene
async def test_of_a_batch_only_the_outcome_that_no_store_can_keep_is_buried() -> None:
    """One unstorable outcome among six in a flush killed the flusher, and all six stayed `running` for ever."""
    store, clock = SqliteStore(":memory:"), SystemClock()
    await store.open()
    worker = await enlist(store)
    runs = [await start(store, worker=worker) for _ in range(CROWD)]
    guilty = runs[CROWD // 2]
    told: list[Settled] = []
    crashes: list[Exception] = []
    settler = Settler(
        store,
        worker,
        buffer=100,
        on_settled=told.append,
        on_crash=crashes.append,
        lease_lost=lambda: False,
        clock=clock,
        health=StoreHealth(clock=clock, telemetry=Telemetry()),
    )
    for run in runs:
        result = "caf\udce9" if run is guilty else b"1"
        settlement: Settlement = Succeed(run.id, run.token, result)  # type: ignore[arg-type]
        settler.submit(settlement)
    await asyncio.wait_for(settler.close(), PATIENCE_S)
    assert crashes == []
    assert [verdict for _, verdict in told] == [Verdict.APPLIED] * CROWD
    ends = [await info(store, run.id) for run in runs]
    assert [end.state for end in ends] == [State.DEAD if run is guilty else State.SUCCEEDED for run in runs]
    assert ends[CROWD // 2].reason == "unstorable"
    await store.close()


@scene
async def test_an_error_of_an_unspeakable_module_ends_only_its_own_job() -> None:
    """The error's type came from a module with an undecodable name; its retry took the whole batch down with it."""
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)
    gate = asyncio.Event()
    unspeakable = type("Boom", (Exception,), {"__module__": "caf\udce9"})

    @hf.task(name="bad", retry=RetryPolicy(max_attempts=2, base=0))
    async def bad() -> None:
        await gate.wait()
        raise unspeakable("x")

    @hf.task(name="good")
    async def good(n: int) -> int:
        await gate.wait()
        return n

    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker():
            jobs = [await good.enqueue(n) for n in range(CROWD)]
            guilty = await bad.enqueue()
            for _ in range(CROWD + 1):
                await heard.next(JobStarted)
            gate.set()
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == list(range(CROWD))
            end = await until(guilty, State.DEAD)
            assert all([(await job.info()).attempts == () for job in jobs])
    assert end.error is not None
    assert end.error.type == "caf\\udce9.Boom"


@scene
async def test_after_one_broken_moment_of_the_store_all_jobs_end() -> None:
    """One StoreBroken ended the settler without a word: what it had in hand stayed `running`, under a living worker."""
    hf = Holdfast(":memory:", lease_s=1, poll_s=0.05)
    gate = asyncio.Event()

    @hf.task(name="good")
    async def good(n: int) -> int:
        await gate.wait()
        return n

    async with hf:
        heard = Heard(hf, JobStarted)
        async with hf.worker():
            jobs = [await good.enqueue(n) for n in range(CROWD)]
            for _ in jobs:
                await heard.next(JobStarted)
            arm("settle_jobs.inside", StoreBroken("one moment"))
            gate.set()
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == list(range(CROWD))
            causes = {attempt.cause for job in jobs for attempt in (await job.info()).attempts}
    assert causes == {"handed_back"}, "nothing is lost, it is handed back"


@scene
async def test_one_renewal_that_fails_is_not_the_last() -> None:
    """One StoreBroken ended the heartbeat without a word: the jobs ran on without a lease, and elsewhere once more."""
    hf = Holdfast(":memory:", lease_s=0.5, poll_s=0.05)
    renewals: list[int] = []
    over = asyncio.Event()

    @hf.task(name="hold")
    async def hold() -> str:
        await over.wait()
        return "held"

    def fail_the_first() -> None:
        renewals.append(1)
        if len(renewals) == 1:
            raise StoreBroken("one moment")

    async with hf, hf.worker():
        job = await hold.enqueue()
        await until(job, State.RUNNING)
        arm("renew_worker.inside", fail_the_first, times=None)
        await until_true(lambda: len(renewals) >= 4, within_s=PATIENCE_S, what="more renewals")
        over.set()
        assert await job.result(timeout=PATIENCE_S) == "held"
        assert (await job.info()).attempts == ()
