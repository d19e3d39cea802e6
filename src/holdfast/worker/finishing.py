"""`current_job().transaction()`: a run's effect and its success in one transaction (P6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from holdfast.core.errors import HoldfastError, LeaseLost
from holdfast.stores.transactions import Finish, GuestStore
from holdfast.worker.run import Interruption, Run


class Finishing:
    """What a run has said of its success inside the block, and the end of the block."""

    __slots__ = ("_encode", "_open", "_result", "_run", "_store")

    def __init__(self, run: Run, store: GuestStore, encode: Callable[[Any], bytes | None]) -> None:
        self._run = run
        self._store = store
        self._encode = encode
        self._open = False
        self._result: tuple[bytes | None] | None = None

    def finish(self, value: Any) -> None:
        """Keep the result until the end of the block."""
        if not self._open:
            raise HoldfastError(
                "finish() was called outside of `async with current_job().transaction()`; elsewhere the result of a "
                "job is what its task returns"
            )
        if self._result is not None:
            raise HoldfastError("finish() was called twice in one block: a job has one result")
        self._result = (self._encode(value),)

    def transaction(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """The block; refused at once where there can be none."""
        if self._open or self._run.finished:
            raise HoldfastError(f"job {self._run.job.id}: a run has one transaction() block, which is its end")
        return self._block(self._store.finishing())

    @contextlib.asynccontextmanager
    async def _block(self, finishing: contextlib.AbstractAsyncContextManager[Finish]) -> AsyncIterator[Any]:
        try:
            async with finishing as finish:
                self._take_result()  # of a block before this one, which failed
                self._open = True
                try:
                    yield finish.connection
                finally:
                    self._open = False
                await self._end(finish)
        except LeaseLost:  # only now: what this cancels must not be the rollback
            self._run.interrupt(Interruption.LEASE_LOST)
            raise

    async def _end(self, finish: Finish) -> None:
        result = self._take_result()
        if result is None:
            raise HoldfastError(
                "the block of current_job().transaction() ended without finish(value), and was rolled back: the block "
                "is the end of the job; for an effect that is not, use a connection of your own"
            )
        await _to_its_end(self._commit(finish, *result))

    def _take_result(self) -> tuple[bytes | None] | None:
        result, self._result = self._result, None
        return result

    async def _commit(self, finish: Finish, result: bytes | None) -> None:
        run = self._run
        await finish.commit(run.worker, run.job.id, run.job.token, result, lease_lost=self._is_lost)
        run.finished = True

    def _is_lost(self) -> bool:
        return self._run.interruption is Interruption.LEASE_LOST


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Nothing interrupts a commit half-way: whoever wants this run to stop is heard after it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at; that the run is to stop counts for more
        raise
