from __future__ import annotations

import asyncio
from typing import Annotated

from holdfast import PROVIDED, CallNext, CurrentJob, Holdfast, Provide
from holdfast.testing import harness


def make_pool() -> str:
    raise AssertionError("the real pool is not for tests")


hf = Holdfast(":memory:")
heard: list[str] = []


@hf.on_startup
async def begin() -> None:
    heard.append("startup")


@hf.on_shutdown
def end() -> None:
    heard.append("shutdown")


@hf.middleware
async def around(job: CurrentJob, call_next: CallNext) -> object:
    heard.append(f"around {job.task.rpartition('.')[2]}")
    return await call_next()


@hf.task
async def ask(question: str, pool: Annotated[str, Provide(make_pool)] = PROVIDED) -> str:
    return f"{pool}: {question}"


def test_jobs_in_a_harness_have_their_hooks_middleware_and_overridden_providers() -> None:
    async def scene() -> None:
        heard.clear()
        with hf.override(make_pool, lambda: "fake pool"):
            async with harness(hf) as t:
                job = await ask.enqueue("what?")
                await t.run_due()
                assert await job.result() == "fake pool: what?"
                await t.run_due()
        assert heard == ["startup", "around ask", "shutdown"]

    asyncio.run(scene())


def test_what_no_job_needs_is_not_made() -> None:
    async def scene() -> None:
        async with harness(hf) as t:
            await t.run_due()

    asyncio.run(scene())
