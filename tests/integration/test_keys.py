"""Idempotency keys (P4): one key, one job, also under concurrency and after an answer was lost."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast, IdempotencyConflict
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm


@scene
async def test_one_key_is_one_job_and_one_result() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def pay(amount: int) -> int:
        ran.append(amount)
        return len(ran)

    async with hf, hf.worker():
        first = await pay.options(key="order-17").enqueue(5)
        assert await first.result(timeout=PATIENCE_S) == 1
        again = await pay.options(key="order-17").enqueue(5)
        assert again.id == first.id
        assert await again.result(timeout=PATIENCE_S) == 1
        other = await pay.options(key="order-18").enqueue(5)
        assert await other.result(timeout=PATIENCE_S) == 2


@scene
async def test_the_same_key_for_another_request_is_an_error() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="pay")
    async def pay(amount: int) -> None: ...

    @hf.task(name="refund")
    async def refund(amount: int) -> None: ...

    async with hf:
        job = await pay.options(key="order-17").enqueue(5)
        for other in (pay.options(key="order-17").enqueue(6), refund.options(key="order-17").enqueue(5)):
            with pytest.raises(IdempotencyConflict) as caught:
                await other
            assert caught.value.job_id == job.id
            assert str(caught.value) == (
                f"idempotency key 'order-17' already belongs to job {job.id}, which has another task or other "
                "arguments; nothing was enqueued; use a new key for a new request"
            )
        assert [info.id for info in await hf.jobs.list()] == [job.id]


@scene
async def test_a_key_is_its_tenants_own() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def pay(amount: int) -> None: ...

    async with hf:
        acme = await pay.options(key="1", tenant="acme").enqueue(5)
        zeta = await pay.options(key="1", tenant="zeta").enqueue(6)
        assert acme.id != zeta.id
        with pytest.raises(IdempotencyConflict, match="idempotency key '1' of tenant 'zeta' already belongs"):
            await pay.options(key="1", tenant="zeta").enqueue(7)


@scene
async def test_fifty_at_once_make_one_job() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def pay(amount: int) -> None:
        ran.append(amount)

    async with hf, hf.worker():
        jobs = await asyncio.gather(*(pay.options(key="order-17").enqueue(5) for _ in range(50)))
        assert len({job.id for job in jobs}) == 1
        await asyncio.gather(*(job.result(timeout=PATIENCE_S) for job in jobs))
    assert ran == [5]


@scene
async def test_fifty_at_once_with_different_requests_have_one_winner() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def pay(amount: int) -> None: ...

    async with hf:
        answers = await asyncio.gather(
            *(pay.options(key="order-17").enqueue(n) for n in range(50)), return_exceptions=True
        )
        won = [answer for answer in answers if not isinstance(answer, BaseException)]
        lost = [answer for answer in answers if isinstance(answer, IdempotencyConflict)]
        assert (len(won), len(lost)) == (1, 49)
        assert {error.job_id for error in lost} == {won[0].id}
        assert len(await hf.jobs.list()) == 1


@scene
async def test_a_key_is_free_again_after_its_window() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock)

    @hf.task
    async def pay(amount: int) -> None: ...

    async with hf:
        keyed = pay.options(key="order-17", key_window=60)
        first = await keyed.enqueue(5)
        clock.advance(59)
        assert (await keyed.enqueue(5)).id == first.id
        clock.advance(2)
        assert (await keyed.enqueue(6)).id != first.id


@scene
async def test_many_with_keys_are_taken_whole_or_not_at_all() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def pay(amount: int) -> None: ...

    async with hf:
        held = await pay.options(key="a").enqueue(1)
        same = await hf.enqueue_many([pay.options(key=key).request(1) for key in ("b", "a", "b")])
        assert same[1].id == held.id
        assert same[0].id == same[2].id
        with pytest.raises(IdempotencyConflict, match=r"^item 1: idempotency key 'a' already belongs") as caught:
            await hf.enqueue_many([pay.options(key="c").request(1), pay.options(key="a").request(2)])
        assert caught.value.index == 1
        assert len(await hf.jobs.list()) == 2


@scene
async def test_a_lost_answer_is_asked_for_again_and_makes_no_second_job() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def pay(amount: int) -> None:
        ran.append(amount)

    async with hf, hf.worker():
        for task in (pay, pay.options(key="order-17")):
            arm("insert_jobs.committed", "fail")
            await (await task.enqueue(5)).result(timeout=PATIENCE_S)
        arm("insert_jobs.committed", "fail")
        [job] = await hf.enqueue_many([pay.request(6)])
        await job.result(timeout=PATIENCE_S)
        assert len(await hf.jobs.list()) == 3
    assert ran == [5, 5, 6]
