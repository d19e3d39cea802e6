"""Jobs that wait for others: released once, when the last of them has ended, by whatever ending."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core.loss import ALONE_FROM, MAX_CRASHES
from holdfast.core.settlement import Bury, Cancel, Retry, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Inserted, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    a_job,
    an_id,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    insert,
    lose,
    resume,
    settle,
    start,
    state,
    states,
)


async def _succeed(store: Store) -> None:
    run = await _member(store)
    await apply(store, run.worker, Succeed(run.id, run.token, None))


async def _bury(store: Store) -> None:
    run = await _member(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))


async def _honour_cancel(store: Store) -> None:
    run = await _member(store)
    await apply(store, run.worker, Cancel(run.id, run.token, "asked to"))


async def _cancel_on_retry(store: Store) -> None:
    run = await _member(store)
    await store.cancel_jobs([run.id], reason="race")
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))


async def _cancel_waiting(store: Store) -> None:
    run = await _member(store)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await store.cancel_jobs([run.id], reason="not needed")


async def _cancel_on_reap(store: Store) -> None:
    run = await _member(store)
    await store.cancel_jobs([run.id], reason="race")
    await lose(store, run.worker)


async def _poison(store: Store) -> None:
    run = await _member(store)
    for _ in range(ALONE_FROM + MAX_CRASHES - 1):
        await lose(store, run.worker)
        run = await resume(store, run.id)
    await lose(store, run.worker)


async def _purge(store: Store) -> None:
    run = await _member(store)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await store.purge_queue(run.job.queue, reason="emptied", limit=1)


ENDINGS: list[Callable[[Store], Awaitable[None]]] = [
    _succeed,
    _bury,
    _honour_cancel,
    _cancel_on_retry,
    _cancel_waiting,
    _cancel_on_reap,
    _poison,
    _purge,
]


async def _member(store: Store):  # type: ignore[no-untyped-def]
    raise NotImplementedError
