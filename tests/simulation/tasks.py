"""What the simulated jobs do: quick and slow, failing in every way, reporting, stubborn, deadly, unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.simulation.flow_tasks import FLOWING, failing, flowing
from tests.simulation.replaced import current_process
from tests.simulation.scene import Scene

from holdfast.core.errors import LeaseLost, PermanentError, RetryLater, SoftTimeout
from holdfast.core.options import TaskOptions
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import Registry, TaskDefinition, define
from holdfast.worker.context import current_job

SOON = RetryPolicy(max_attempts=3, base=0.3, cap=2.0)
DEFINED: dict[str, TaskDefinition] = {}


def _task(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        given = {"queue": "work", "retry": SOON, **options}
        DEFINED[function.__name__] = define(function, name=function.__name__, options=TaskOptions(**given))
        return function

    return keep


def _scene() -> Scene:
    return current_process().world.scene


@_task()
async def quick(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        scene.story.effect(job)
        return n


@_task()
async def slow(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        await asyncio.sleep(n % 17 / 6 * scene.config.lease_s)
        scene.story.effect(job)
        return n


@_task(queue="errands")
async def flaky(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        await asyncio.sleep(n % 3 * 0.1)
        if job.attempt <= n % 4:
            raise ValueError("not yet")
        scene.story.effect(job)
        return n


@_task(queue="errands")
async def doomed(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        if job.token % 4:  # a replay has another token, so it may get through
            raise PermanentError("not under this token")
        scene.story.effect(job)
        return n


@_task(queue="errands")
async def snoozing(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        if scene.story.runs_of[job.id] <= n % 3:
            raise RetryLater(after=n % 5 * 0.5)
        scene.story.effect(job)
        return n


@_task()
async def reporting(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        for step in range(3):
            await asyncio.sleep(n % 7 / 10 * scene.config.lease_s)
            try:
                await job.progress(step, 3, "counting")
            except LeaseLost:
                raise
            except Exception as error:
                raise RuntimeError("no report") from error
        scene.story.effect(job)
        return n


@_task(soft_timeout_s=1.0, timeout_s=4.0)
async def soft(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        try:
            await asyncio.sleep(n % 4 * 0.7)
        except SoftTimeout:
            if n % 2:
                raise
            await asyncio.sleep(0.2)
        scene.story.effect(job)
        return n


@_task(timeout_s=1.5)
async def hard(n: int) -> int:
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        await asyncio.sleep((n % 4) / job.attempt)
        scene.story.effect(job)
        return n


@_task(queue="errands")
async def stubborn(n: int) -> int:
    """Does not stop at once when it is told to, and sometimes not at all."""
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process(), lingers=True):
        try:
            await asyncio.sleep(n % 11 / 10 * scene.config.lease_s)
        except asyncio.CancelledError:
            await asyncio.sleep(n % 5 * 0.4)
            if n % 3:
                raise
        scene.story.effect(job)
        return n


@_task(queue="errands")
async def deadly(n: int) -> int:
    """Kills its process, every time."""
    scene, job, process = _scene(), current_job(), current_process()
    with scene.story.told(job, process):
        await asyncio.sleep(n % 3 * 0.2)
        scene.killed(process, "by a job")
        await asyncio.get_running_loop().create_future()
    return n


@_task()
async def novel(n: int) -> int:
    """Known to newer workers only."""
    scene, job = _scene(), current_job()
    with scene.story.told(job, current_process()):
        scene.story.effect(job)
        return n


def _flowing(name: str) -> None:
    async def body(n: int) -> int:
        return await (failing if name == "banking" else flowing)(_scene(), n)

    body.__name__ = body.__qualname__ = name
    _task(**FLOWING[name])(body)


for _name in FLOWING:
    _flowing(_name)


def registry(*, newer: bool) -> Registry:
    made = Registry()
    for task in DEFINED.values():
        if newer or task.name != "novel":
            made.add(task)
    return made


OLD, NEW = registry(newer=False), registry(newer=True)
