"""Calls that a type checker must refuse, each on its line; `# E: code` is what mypy has to say there.

Never run. Every line with such a comment is one case of `test_typing`.
"""

from __future__ import annotations

from typing import Annotated

from holdfast import PROVIDED, Holdfast, JobHandle, Limit, Provide, TaskDefaults, current_job

hf = Holdfast(":memory:")


@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b


@hf.task(queue="loud")
def shout(text: str, *, times: int = 1) -> str:
    return text.upper() * times


@hf.task
async def store(number: int, into: Annotated[list[int], Provide(list)] = PROVIDED) -> None: ...


async def arguments() -> None:
    await add.enqueue("1")  # E: arg-type
    await add.enqueue()  # E: call-arg
    await add.enqueue(1, 2, 3)  # E: call-arg
    await add.enqueue(1, c=2)  # E: call-arg
    await add.enqueue(1, b="2")  # E: arg-type
    await shout.enqueue(5)  # E: arg-type
    await shout.enqueue("a", 2)  # E: call-arg
    await shout.enqueue("a", times="2")  # E: arg-type
    add.request("1")  # E: arg-type
    shout.request("a", tmes=2)  # E: call-arg
    await add.options(delay=5).enqueue("1")  # E: arg-type
    add.options(delay=5).request()  # E: call-arg
    await add("1")  # E: arg-type
    add.sync.enqueue("1")  # E: arg-type
    shout.sync.enqueue("a", 2)  # E: call-arg
    shout("a", times=None)  # E: arg-type


async def options() -> None:
    add.options(dely=5)  # E: call-arg
    add.options(delay="5")  # E: arg-type
    add.options(run_at="noon")  # E: arg-type
    add.options(expires="noon")  # E: arg-type
    add.options(priority=None)  # E: arg-type
    add.options(queue=5)  # E: arg-type
    add.options(tags=5)  # E: arg-type
    add.options(metadata=[1])  # E: arg-type
    add.options(retry=3)  # E: arg-type
    add.options(key=17)  # E: arg-type
    add.options(timeout="30")  # E: arg-type
    add.options(5)  # E: call-arg


def decorators() -> None:
    hf.task(retry=3)  # E: call-overload
    hf.task(queue=None)  # E: call-overload
    hf.task(timeout="30")  # E: call-overload
    hf.task(retries=3)  # E: call-overload
    hf.task("name")  # E: call-overload
    hf.task(base="mail")  # E: call-overload
    TaskDefaults(retry=3)  # E: arg-type
    TaskDefaults(timout=3)  # E: call-arg
    TaskDefaults("mail")  # E: call-arg
    Holdfast(":memory:", defaults={"timeout": 3})  # E: arg-type
    Provide(5)  # E: arg-type
    Provide(list, scope="app")  # E: arg-type
    hf.on_startup(5)  # E: type-var
    hf.middleware(5)  # E: type-var
    hf.override(list)  # E: call-arg


async def provided() -> None:
    await store.enqueue("1")  # E: arg-type
    await store.enqueue(1, into="here")  # E: arg-type
    await store(1, into={1})  # E: arg-type


async def results() -> None:
    job = await add.enqueue(1)
    text: str = await job.result()  # E: assignment
    number: int = await (await shout.enqueue("a")).result()  # E: assignment
    handle: JobHandle[str] = await add.enqueue(1)  # E: assignment
    length = len(await add(1))  # E: arg-type
    plain: int = shout("a")  # E: assignment
    unawaited: int = add(1)  # E: assignment
    await job.result(timeout="5")  # E: arg-type
    print(text, number, handle, length, plain, unawaited)


async def operate() -> None:
    await hf.enqueue_many([add])  # E: list-item
    await hf.enqueue_many(add.request(1))  # E: arg-type
    await hf.jobs.get(17)  # E: arg-type
    await hf.jobs.list(limit="5")  # E: arg-type
    await hf.queues.set_weights("mail", priorities=[1])  # E: arg-type
    await hf.queues.set_watermarks("mail", high=10)  # E: call-overload
    await hf.queues.set_watermarks("mail", high_age_s=60)  # E: call-overload
    await hf.queues.set_options("mail", concurrency="5")  # E: arg-type
    await hf.breakers.set("bank", on=[OSError])  # E: call-arg
    await current_job().progress("1")  # E: arg-type
    await current_job().progress(1, stage=2)  # E: arg-type
    await hf.limits.set("x", size="5")  # E: arg-type
    await hf.jobs.move({"queue": "mail"}, prioritty=5)  # E: call-arg
    add.options(unique=5)  # E: arg-type
    Limit(5, when_full="drop")  # E: arg-type
    Limit("5")  # E: arg-type
    TaskDefaults(rate=5)  # E: arg-type
    hf.task(concurency=5)  # E: call-overload
