"""Idempotency keys: what the same request is, and who hears of which job."""

from __future__ import annotations

import pytest
from tests.integration.scene import scene

from holdfast import Holdfast, IdempotencyConflict
from holdfast.core.errors import StoreUnavailable
from holdfast.core.job import KeyClaim
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm
from holdfast.stores.base import Inserted
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import a_job, states


@scene
async def test_a_repeat_after_its_window_hears_of_its_own_job() -> None:
    """Its answer was lost, its window passed, another took the key: the repeat heard Conflict, though it was in."""
    clock = ManualClock()
    store = SqliteStore(":memory:", clock=clock)
    await store.open()
    first = a_job(key=KeyClaim("k", b"1", 1.0))
    second = a_job(key=KeyClaim("k", b"2", 1.0))
    arm("insert_jobs.committed", "fail")
    with pytest.raises(StoreUnavailable):
        await store.insert_jobs([first])
    clock.advance(2)
    for job in (second, first):
        [answer] = await store.insert_jobs([job])
        assert isinstance(answer, Inserted)
        assert answer.job_id == job.id
    assert await states(store, first.id, second.id) == [State.READY, State.READY]
    await store.close()


@scene
async def test_a_set_in_any_order_is_the_same_request() -> None:
    """A set was fingerprinted in its order, which is another one in each process: a retry was a conflict."""
    hf = Holdfast(":memory:")

    @hf.task(name="mark")
    async def mark(numbers: set[int], more: dict[str, frozenset[int]]) -> None: ...

    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other), "equal sets that are walked in different orders"
    async with hf:
        call = mark.options(key="k")
        first = await call.enqueue(one, {"a": frozenset(one)})
        assert (await call.enqueue(other, {"a": frozenset(other)})).id == first.id
        with pytest.raises(IdempotencyConflict):
            await call.enqueue(other, {"a": frozenset({8})})


@scene
async def test_an_argument_by_name_and_by_position_is_the_same_request() -> None:
    """Calls were compared as they were written: f(1, 2) against f(1, b=2) was a conflict."""
    hf = Holdfast(":memory:")

    @hf.task(name="add")
    async def add(a: int, b: int) -> None: ...

    async with hf:
        call = add.options(key="k")
        ids = {
            (await call.enqueue(1, 2)).id,
            (await call.enqueue(1, b=2)).id,
            (await call.enqueue(b=2, a=1)).id,
        }
        assert len(ids) == 1
        with pytest.raises(IdempotencyConflict):
            await call.enqueue(2, b=1)
