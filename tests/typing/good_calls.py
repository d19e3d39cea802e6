"""Calls that a type checker must accept; never run, only read by mypy --strict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, assert_type

from holdfast import (
    PROVIDED,
    Breaker,
    CallNext,
    CurrentJob,
    Debounce,
    Explanation,
    Holdfast,
    JobHandle,
    JobInfo,
    Limit,
    LimitInfo,
    Provide,
    Rate,
    Replayed,
    RetryPolicy,
    State,
    SyncJobHandle,
    TaskDefaults,
    Throttle,
    Unique,
    current_job,
)
from holdfast.client.request import Request
from holdfast.client.task import AsyncTask, SyncTask
from holdfast.stores.base import JobPage

hf = Holdfast(":memory:", concurrency=5)


@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b


@hf.task
def shout(text: str, *, times: int = 1) -> str:
    return text.upper() * times


@hf.task(
    name="mail",
    queue="mail",
    priority="high",
    retry=RetryPolicy(max_attempts=3, delays={ConnectionError: 5}),
    timeout=30,
    soft_timeout=timedelta(seconds=25),
)
async def mail(to: str, *cc: str, **headers: str) -> None:
    job = current_job()
    await job.progress(1, 2, "half")


@hf.task(queue="sums", timeout=None)
def total(*numbers: float) -> float:
    return sum(numbers)


async def calls() -> None:
    assert_type(await add(1, 2), int)
    pending: Coroutine[Any, Any, int] = add(1)
    await pending
    assert_type(shout("a", times=2), str)
    assert_type(total(1, 2.5), float)


async def enqueues() -> None:
    job = await add.enqueue(1, b=2)
    assert_type(job, JobHandle[int])
    assert_type(await job.result(timeout=5), int)
    assert_type(await job.result(timedelta(seconds=5)), int)
    assert_type(await job.info(), JobInfo)
    assert_type(await (await shout.enqueue("a", times=2)).result(), str)
    assert_type(await (await mail.enqueue("a", "b", subject="c")).result(), None)
    assert_type(await (await total.enqueue(1, 2)).result(), float)
    async for info in job.events():
        assert_type(info, JobInfo)


async def options() -> None:
    later = add.options(delay=5, priority=9, key="k", tags=["a"], metadata={"a": 1}, retry=RetryPolicy(), wait=0)
    assert_type(await later.enqueue(1), JobHandle[int])
    await add.options(delay=timedelta(minutes=1), expires=datetime.now(UTC), timeout=None, soft_timeout=1.5).enqueue(1)
    await shout.options(run_at=datetime.now(UTC), tenant="acme", queue="loud", key_window=60).enqueue("a")


async def many() -> None:
    requests = [add.request(1), shout.options(priority="low").request("a", times=3)]
    assert_type(requests, list[Request])
    assert_type(await hf.enqueue_many(requests), list[JobHandle[Any]])


async def by_name() -> None:
    assert_type(await hf.enqueue("shop.tasks.send", 1, x="y"), JobHandle[Any])
    await hf.named("shop.tasks.send").options(queue="mail").enqueue(1, x="y")


async def operate() -> None:
    async with hf, hf.worker(concurrency=2):
        assert_type(await hf.jobs.list(state="ready", limit=5), JobPage)
        await hf.jobs.cancel("01890a5d-ac96-774b-bcce-b302099a8057", reason="no")
        assert_type(await hf.dead.replay(task="mail"), Replayed)
        await hf.dead.edit("01890a5d-ac96-774b-bcce-b302099a8057", 1, b=2)
        await hf.queues.set_weights("mail", weight=2, priorities={"bulk": 5})
        await hf.queues.set_watermarks("mail", high=10, low=1)
        await hf.queues.set_watermarks("mail", high_age_s=60, low_age_s=10)
        await hf.queues.set_watermarks("mail", high=10, low=1, high_age_s=None, low_age_s=None)
        await hf.queues.clear_watermarks("mail", by="ada")
        await hf.queues.set_options("mail", concurrency=5, retry_budget=None, bypass_priority="high", by="ada")
        await hf.queues.clear_options("mail")
        await hf.breakers.set("bank", failures=5, window=timedelta(minutes=1), open_for=None)
        assert_type(await hf.breakers.clear("bank", by="ada"), bool)
        assert_type(await hf.queues.purge("mail", reason="wrong file", by="ada"), int)


def without_a_loop() -> None:
    job = add.options(delay=5).sync.enqueue(1, b=2)
    assert_type(job, SyncJobHandle[int])
    assert_type(job.result(timeout=5), int)
    assert_type(job.info(), JobInfo)
    for info in job.events():
        assert_type(info, JobInfo)
    assert_type(shout.sync.enqueue("a", times=2).result(), str)
    assert_type(hf.sync.enqueue_many([add.request(1)]), list[SyncJobHandle[Any]])
    assert_type(hf.sync.run(lambda client: client.jobs.list(state="dead")), JobPage)


def kinds() -> None:
    assert_type(add, AsyncTask[[int, int], int])  # type: ignore[assert-type]  # names and defaults are kept, too
    one: AsyncTask[..., int] = add
    other: SyncTask[..., float] = total
    assert one
    assert other


class Pool:
    name: str = ""


async def make_pool() -> Pool:
    return Pool()


Db = Annotated[Pool, Provide(make_pool)]
quick = TaskDefaults(queue="quick", timeout=5, retry=RetryPolicy(max_attempts=2))


async def lifespan(app: Holdfast) -> AsyncIterator[Pool]:
    yield Pool()


shop = Holdfast(":memory:", defaults=TaskDefaults(priority="high"), queue_defaults={"a": quick}, lifespan=lifespan)


@shop.task(base=quick, timeout=None)
async def order(
    number: int, db: Db = PROVIDED, *, log: Annotated[Pool, Provide(make_pool, scope="job")] = PROVIDED
) -> str:
    return f"{number} {db.name} {log.name}"


@shop.on_startup
async def begin() -> None: ...


@shop.on_shutdown
def end() -> None: ...


@shop.middleware
async def timed(job: CurrentJob, call_next: CallNext) -> Any:
    return await call_next()


@shop.middleware
def counted(job: CurrentJob) -> Generator[None, Any, None]:
    yield


async def provided() -> None:
    assert_type(await (await order.enqueue(1)).result(), str)
    assert_type(await order(1, Pool(), log=Pool()), str)
    with shop.override(make_pool, Pool):
        await begin()
        end()


@hf.task(
    concurrency=[Limit(5, key=lambda account, **_: account), 3],
    rate="100/m",
    breaker=Breaker("bank", on=[ConnectionError, "stripe.Down"]),
    unique=Unique(for_=60, by=("account",), states=[*State], when_taken="existing"),
)
async def limited(account: str) -> int:
    return 1


async def flow() -> None:
    job = await limited.options(unique=None, throttle=Throttle(5)).enqueue("acme")
    await limited.options(debounce=Debounce(5, longest=10)).enqueue("acme")
    assert_type(await job.result(), int)
    assert_type(await hf.jobs.explain(job.id), Explanation)
    assert_type(await hf.limits.list(), list[LimitInfo])
    assert_type(await hf.jobs.move({"queue": "mail"}, priority="high", by="ada"), int)
    await hf.limits.set("stripe", rate="5/s", burst=2, by="ada")
    await hf.tasks.pause("charge")
    TaskDefaults(concurrency=5, rate=[Rate("1/s", name="slow")], breaker="bank")
