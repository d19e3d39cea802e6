"""The sweep, the net under everything; and limits, one by one, each in a transaction of its own (rule 7)."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from holdfast.core.errors import StoreUnavailable
from holdfast.stores.base import Swept
from holdfast.stores.postgres.end import (
    UNPARKED_AT_ONCE,
    count_arrivals,
    lock_limit,
    release,
    try_lock_limit,
    unpark_waiters,
)
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine

#: Ready jobs of a queue that the sweep counts to compare.
_COMPARED = 10_000


async def sweep(tx: Tx, *, limit: int) -> Swept:
    """Put right what nothing else did; every count but that of old keys is zero on a healthy store. Not the limits."""
    keys = await tx.fetch("sweep.drop_keys", tx.now, limit)
    arrived = Counter(row[0] for row in await tx.fetch("sweep.uncounted", limit))
    await count_arrivals(tx, arrived)
    released = await release(tx, [row[0] for row in await tx.fetch("sweep.releasable", limit)])
    return Swept(released, 0, 0, len(keys), await fix_depths(tx))


async def sweep_limits(engine: Engine, *, limit: int) -> tuple[int, int]:
    """Slots freed, waiters made ready. One limit at a time, and none that somebody has in hand, who may be frozen."""
    slots = unparked = 0
    for key in await engine.snapshot(partial(_to_sweep, limit=limit)):
        ready = UNPARKED_AT_ONCE
        while ready == UNPARKED_AT_ONCE:  # behind very many that nobody serves there may be one that somebody does
            (freed, ready), _ = await engine.transact("sweep", engine.verbs, partial(_sweep_limit, key=key))
            slots, unparked = slots + freed, unparked + ready
    return slots, unparked


async def _to_sweep(tx: Tx, *, limit: int) -> list[str]:
    """Limits with slots that nobody uses, or with waiters although there is room."""
    stale = {row[0] for row in await tx.fetch("sweep.stale_limits", limit)}
    return sorted(stale | {row[0] for row in await tx.fetch("sweep.waiting_keys", limit)})


async def _sweep_limit(tx: Tx, *, key: str) -> tuple[int, int]:
    return await _mend(tx, key) if await try_lock_limit(tx, key) else (0, 0)


async def mend_limits(engine: Engine, keys: Collection[str]) -> None:
    """The same for whoever has just freed slots, or made them useless, and waits a moment; the next sweep does not."""
    for key in keys:
        with contextlib.suppress(StoreUnavailable):
            await engine.transact("sweep", engine.verbs, partial(_mend_limit, key=key))


async def _mend_limit(tx: Tx, *, key: str) -> None:
    await tx.value("insert_jobs.set_lock_timeout")
    await lock_limit(tx, key)
    await _mend(tx, key)


async def _mend(tx: Tx, key: str) -> tuple[int, int]:
    slots = len(await tx.fetch("sweep.drop_stale_slots", key))
    return slots, await unpark_waiters(tx, key)


async def fix_depths(tx: Tx) -> int:
    """Compare with what is there, in a single look; what this verb itself has moved is written first.

    A deep queue is compared up to a bound, so that this costs the same however deep it is; when it has drained below,
    it is compared exactly. One sweep at a time: two would correct the same mistake twice.
    """
    await tx.close_verb()
    if not await tx.value("sweep.alone"):
        return 0
    wrong: list[tuple[str, int]] = []
    for queue, change in await tx.fetch("sweep.wrong_depths", _COMPARED):
        [fixed] = [(queue, change)] if change is not None else await tx.fetch("sweep.recount", queue)
        wrong.append(tuple(fixed))
    await tx.many("transaction.change_depth", wrong)
    return len(wrong)
