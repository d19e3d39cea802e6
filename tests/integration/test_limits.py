"""Concurrency limits of tasks, queues and keys: never exceeded, others are not held up, and operators change them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, InvalidArguments, InvalidOptions, JobCancelled, JobHandle, Limit, Rate, TaskDefaults
from holdfast.client.request import build_job
from holdfast.core.gates import RateGate, SlotGate, WhenFull
from holdfast.core.rate import Pace
from holdfast.core.state import State


class Gatekeeper:
    """Runs stay until they are let go, and are counted by a word."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()

    async def stay(self, word: str) -> None:
        self.running[word] = self.running.get(word, 0) + 1
        self.most[word] = max(self.most.get(word, 0), self.running[word])
        self.began.set()
        try:
            await self.go_on.wait()
        finally:
            self.running[word] -= 1


def gates_of(hf: Holdfast, request: Any) -> Any:
    return build_job(request, hf.config).gates


@scene
async def test_no_more_than_its_size_run_at_once_and_others_go_on_beside_it() -> None:
    hf = Holdfast(":memory:")
    keeper = Gatekeeper()

    @hf.task(concurrency=Limit(2, key=lambda account, **_: account))
    async def sync_account(account: str) -> None:
        await keeper.stay(account)

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=10):
        ours = [await sync_account.enqueue("acme") for _ in range(5)]
        theirs = await sync_account.enqueue("initech")
        await until(ours[4], State.PARKED)
        await until(theirs, State.RUNNING)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        waiting = await ours[4].info()
        assert (waiting.reason, waiting.waits_at, waiting.attempt) == (
            "limit",
            f"task:{sync_account.name}/acme",
            0,
        )
        found = {each.key: each for each in await hf.limits.list()}
        acme = found[f"task:{sync_account.name}/acme"]
        assert (acme.kind, acme.size, acme.held, acme.waiting, acme.said_by) == ("concurrency", 2, 2, 3, "code")
        keeper.go_on.set()
        for job in (*ours, theirs):
            await job.result(timeout=PATIENCE_S)
    assert keeper.most == {"acme": 2, "initech": 1}


@scene
async def test_operators_change_a_limit_for_what_waits_already() -> None:
    hf = Holdfast(":memory:")
    keeper = Gatekeeper()

    @hf.task(name="work", concurrency=1)
    async def work(number: int) -> None:
        await keeper.stay("all")

    async with hf, hf.worker(concurrency=10):
        jobs = [await work.enqueue(number) for number in range(4)]
        await until(jobs[3], State.PARKED)
        await hf.limits.set("task:work", size=3, by="ada")
        await until(jobs[2], State.RUNNING)
        assert (await jobs[3].info()).state is State.PARKED
        [limit] = await hf.limits.list()
        assert (limit.name, limit.size, limit.said_by, limit.held, limit.waiting) == ("task:work", 3, "operator", 3, 1)
        assert await hf.limits.clear("task:work")
        assert not await hf.limits.clear("task:work")
        [limit] = await hf.limits.list()
        assert (limit.size, limit.said_by) == (1, "code")
        keeper.go_on.set()
        for job in jobs:
            await job.result(timeout=PATIENCE_S)
    assert keeper.most == {"all": 3}


@scene
async def test_a_whole_queue_is_limited_by_its_defaults_or_by_an_operator() -> None:
    hf = Holdfast(":memory:", queue_defaults={"mail": TaskDefaults(concurrency=2)})
    keeper = Gatekeeper()

    @hf.task(queue="mail")
    async def one() -> None:
        await keeper.stay("mail")

    @hf.task(queue="mail", concurrency=5)
    async def other() -> None:
        await keeper.stay("mail")

    @hf.task(queue="free")
    async def free() -> None:
        await keeper.stay("free")

    async with hf, hf.worker(concurrency=10):
        await hf.limits.set("queue:free", size=1)
        jobs: list[JobHandle[None]] = [await task.enqueue() for task in (one, other, one, free, free)]
        await until(jobs[2], State.PARKED)
        await until(jobs[4], State.PARKED)
        assert (await jobs[2].info()).waits_at == "queue:mail"
        assert (await jobs[4].info()).waits_at == "queue:free"
        keeper.go_on.set()
        for job in jobs:
            await job.result(timeout=PATIENCE_S)
    assert keeper.most == {"mail": 2, "free": 1}


@scene
async def test_a_singleton_skips_or_replaces() -> None:
    hf = Holdfast(":memory:")
    began: asyncio.Queue[int] = asyncio.Queue()

    @hf.task(concurrency=Limit(1, name="skipping", when_full="skip"))
    async def skips(number: int) -> int:
        began.put_nowait(number)
        await asyncio.Event().wait()
        return number

    @hf.task(concurrency=Limit(1, name="replacing", when_full="replace"))
    async def replaces(number: int, stay: bool = True) -> int:
        began.put_nowait(number)
        if stay:
            await asyncio.Event().wait()
        return number

    async with hf, hf.worker(concurrency=10):
        first = await skips.enqueue(1)
        assert await began.get() == 1
        with pytest.raises(JobCancelled, match="skipped: limit skipping is full"):
            await (await skips.enqueue(2)).result(timeout=PATIENCE_S)
        await first.cancel()

        old = await replaces.enqueue(3)
        assert await began.get() == 3
        new = await replaces.enqueue(4, stay=False)
        with pytest.raises(JobCancelled, match=f"replaced by {new.id}"):
            await old.result(timeout=PATIENCE_S)
        assert await new.result(timeout=PATIENCE_S) == 4


@scene
async def test_the_slot_of_a_worker_that_went_away_is_free_again() -> None:
    hf = Holdfast(":memory:")
    began = asyncio.Event()

    @hf.task(concurrency=1)
    async def work(stay: bool) -> str:
        began.set()
        if stay:
            await asyncio.Event().wait()
        return "done"

    async with hf:
        async with hf.worker(concurrency=2, grace_s=0):
            first = await work.enqueue(True)
            await began.wait()
            second = await work.enqueue(False)
            await until(second, State.PARKED)
        async with hf.worker(concurrency=2):
            await first.cancel()
            assert await second.result(timeout=PATIENCE_S) == "done"


def test_names_and_keys_of_gates() -> None:
    hf = Holdfast(":memory:", queue_defaults={"q": TaskDefaults(concurrency=Limit(9), rate="5/s")})

    @hf.task(
        name="t",
        queue="q",
        concurrency=[3, Limit(1, name="own", key=lambda who, **_: who, when_full="skip")],
        rate=Rate("100/m", burst=7, key=lambda when, **_: [when, None]),
        breaker="stripe",
    )
    async def task(who: str, when: int = 5) -> None: ...

    breaker, *gates = gates_of(hf, task.request("ada"))
    assert breaker.name == "stripe"
    assert gates == [
        SlotGate("task:t", 3, "task:t"),
        SlotGate("own/ada", 1, "own", WhenFull.SKIP),
        SlotGate("queue:q", 9, "queue:q"),
        RateGate("task:t/[5, null]", Pace(100, 60, 7), "task:t"),
        RateGate("queue:q", Pace(5, 1, 5), "queue:q"),
    ]
    assert gates_of(hf, hf.named("unknown").request(1)) == ()


@pytest.mark.parametrize("key", ["x" * 500, "nul\x00", "lone \ud800", "ü" * 300])
def test_a_key_that_is_too_long_or_cannot_be_stored_is_kept_as_a_digest(key: str) -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="t", concurrency=Limit(1, key=lambda **_: key))
    async def task() -> None: ...

    [gate] = gates_of(hf, task.request())
    assert gate == gates_of(hf, task.request())[0]
    assert gate.key.startswith("task:t/")
    assert len(gate.key) < 150
    assert gate.key.encode().decode().isprintable()


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (lambda **_: None, "t: key= of concurrency='task:t' said None: which one it is has to be told"),
        (lambda **_: object(), "which cannot be written as JSON"),
        (lambda to, **_: to / 2, "t: key= of concurrency='task:t' raised TypeError: "),
    ],
)
@scene
async def test_a_key_that_cannot_be_told_is_an_error_and_nothing_is_stored(key: Any, sentence: str) -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="t", concurrency=Limit(1, key=key))
    async def task(to: str, subject: str = "hi") -> None: ...

    async with hf:
        with pytest.raises(InvalidArguments) as caught:
            await task.enqueue("ada")
        assert sentence in str(caught.value)
        assert str(caught.value).endswith("; nothing was enqueued")
        assert not await hf.jobs.list()


def test_the_same_from_code_without_an_event_loop() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work", concurrency=Limit(4, key=lambda n: n), rate="10/s")
    async def work(n: int) -> None: ...

    with hf.sync:
        hf.sync.limits.set("task:work", size=2, rate="5/s", burst=1, by="ada")
        concurrency, rate = hf.sync.limits.list()
        assert (concurrency.kind, concurrency.key, concurrency.size) == ("concurrency", None, 2)
        assert (rate.kind, rate.key, rate.rate, rate.burst) == ("rate", "task:work", "5/s", 1)
        hf.sync.limits.set("task:work", size=3)
        assert [each.size or each.rate for each in hf.sync.limits.list()] == [3, "5/s"]


@scene
async def test_what_would_hold_for_nothing_is_refused_and_never_shown_as_in_force() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="charge", concurrency=[Limit(5, name="stripe"), Limit(1, name="both")], rate=Rate("9/s", name="both"))
    async def charge() -> None: ...

    @hf.task(name="locate", rate=Rate("5/s", name="maps"))
    async def locate() -> None: ...

    async with hf:
        for sizes in ({}, {"size": 1}):
            with pytest.raises(InvalidOptions, match=r"^'stripe' is a concurrency limit: give size=, and no rate=$"):
                await hf.limits.set("stripe", rate="1/h", **sizes)
        with pytest.raises(InvalidOptions, match=r"^'maps' is a rate: give rate=, and no size=$"):
            await hf.limits.set("maps", size=1)
        assert await hf.audit.list() == []
        await hf.limits.set("both", size=2, rate="1/s")
        await hf.limits.set("task:charge", rate="1/s")
        await hf.limits.set("new", size=1)
        # As another program, or an earlier version, could say it:
        await hf._open_store().set_limit("stripe", size=None, pace=Pace(1, 3600, 1), by="me")
        found = {(each.name, each.kind): (each.said_by, each.in_force) for each in await hf.limits.list()}
        assert found == {
            ("both", "concurrency"): ("operator", True),
            ("both", "rate"): ("operator", True),
            ("maps", "rate"): ("code", True),
            ("new", "concurrency"): ("operator", True),
            ("stripe", "concurrency"): ("code", True),
            ("stripe", "rate"): ("operator", False),
            ("task:charge", "rate"): ("operator", True),
        }
        assert await hf.limits.clear("stripe"), "it can be taken back"
