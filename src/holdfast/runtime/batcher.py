"""Group commit: many callers, few writes; knows neither what an item is nor where it is written."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from holdfast.core.errors import NotOpen

T = TypeVar("T")
R = TypeVar("R")


class Batcher(Generic[T, R]):
    """Gathers the items of concurrent callers and flushes them together.

    1. No timer: the first item is flushed on the next tick of the loop, together with all that came
       until then; while a flush is in flight the next batch gathers. Exactly one flush at a time, of at
       most `max_batch` items, in the order of their coming.
    2. Every caller gets its own item's result, or its own error. An `Exception` among the results is
       raised for that item alone. A data error of the flush bisects the batch until the guilty items
       stand alone; any other error goes to every item of that batch.
    3. A caller that is cancelled withdraws nothing and cancels nobody's flush; its result is dropped.
    4. Bounded: `put` waits while `max_pending` items are gathered or in flight, first come first
       served. `submit` never waits: whoever uses it awaits `room` first, so the bound is soft by one
       item per such caller.
    5. `close` flushes what is pending; from its call on new items are refused.

    Belongs to one event loop. The flush runs in the context (contextvars) in which the batcher was made,
    not in that of whichever caller came first. The flush must leave the list that it is given alone.
    """

    __slots__ = (
        "_called",
        "_closed",
        "_context",
        "_drainer",
        "_flush",
        "_futures",
        "_in_flight",
        "_is_data_error",
        "_items",
        "_max_batch",
        "_max_pending",
        "_waiters",
    )

    def __init__(
        self,
        flush: Callable[[list[T]], Awaitable[Sequence[R | Exception]]],
        *,
        is_data_error: Callable[[BaseException], bool],
        max_batch: int = 1000,
        max_pending: int = 10_000,
    ) -> None:
        if max_batch < 1 or max_pending < 1:
            raise ValueError(f"max_batch={max_batch}, max_pending={max_pending}: both need to be at least 1")
        self._flush = flush
        self._is_data_error = is_data_error
        self._max_batch = max_batch
        self._max_pending = max_pending
        # Two lists side by side instead of one of pairs: nothing is allocated per item but its future.
        self._items: list[T] = []
        self._futures: list[asyncio.Future[R]] = []
        self._in_flight = 0
        self._called = 0  # waiters told that there is room, and not yet running again
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._drainer: asyncio.Task[None] | None = None
        self._context = contextvars.copy_context()
        self._closed = False

    @property
    def pending(self) -> int:
        """Items gathered or in flight."""
        return len(self._items) + self._in_flight

    def submit(self, item: T) -> asyncio.Future[R]:
        """Hand in an item; the future may be awaited, cancelled or forgotten without harm to the item."""
        if self._closed:
            raise NotOpen("this batcher is closed and takes no new items; hand them in before close()")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._items.append(item)
        self._futures.append(future)
        if self._drainer is None:
            self._drainer = loop.create_task(self._drain(), name="batcher", context=self._context)
        return future

    async def put(self, item: T) -> R:
        """Wait for room, hand in the item and wait for its result."""
        # `_is_full`, spelt out: this line is passed by every enqueue.
        if len(self._items) + self._in_flight + self._called >= self._max_pending:
            await self.room()
        # No shield needed: a future's cancellation reaches neither the item nor the flush.
        return await self.submit(item)

    async def room(self) -> None:
        """Wait until fewer than `max_pending` items are pending (or the batcher is closed)."""
        if self._closed or not self._is_full():
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if not waiter.cancelled():
                self._called -= 1
                # It may not use its place, or have been cancelled just after it was called: pass it on.
                loop.call_soon(self._admit)

    async def close(self) -> None:
        """Flush what is pending and refuse what comes after; may be called more than once."""
        self._closed = True
        self._admit()
        while self._drainer is not None and not self._drainer.done():
            await asyncio.wait((self._drainer,))
        self._abandon()

    def _is_full(self) -> bool:
        # Newcomers leave their places to those already called.
        return self.pending + self._called >= self._max_pending

    def _admit(self) -> None:
        """Call as many waiters as there is room for; once closed, all of them."""
        while self._waiters and (self._closed or self.pending + self._called < self._max_pending):
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._called += 1

    async def _drain(self) -> None:
        futures: list[asyncio.Future[R]] = []
        try:
            while self._items:
                items, futures = self._take()
                self._in_flight = len(items)
                await self._settle(items, futures)
                futures = []
                self._in_flight = 0
                if self._waiters:
                    self._admit()
                # One tick for the callers just served: what they hand in next joins this batch, instead
                # of two half-sized generations of callers waiting for each other's flushes.
                await asyncio.sleep(0)
        finally:
            self._futures += futures
            self._abandon()
            self._drainer = None
            self._admit()

    def _abandon(self) -> None:
        # Nothing is left here, unless the flushing task was cancelled because the loop is shutting down.
        for future in self._futures:
            future.cancel()
        self._items, self._futures = [], []
        self._in_flight = 0

    def _take(self) -> tuple[list[T], list[asyncio.Future[R]]]:
        items, futures = self._items, self._futures
        if len(items) <= self._max_batch:
            self._items, self._futures = [], []
        else:
            self._items, self._futures = items[self._max_batch :], futures[self._max_batch :]
            del items[self._max_batch :], futures[self._max_batch :]
        return items, futures

    async def _settle(self, items: list[T], futures: list[asyncio.Future[R]]) -> None:
        """Flush these items and give every future its result; raises only when the task is cancelled."""
        try:
            results = await self._flush(items)
            if not isinstance(results, Sequence) or len(results) != len(items):
                raise RuntimeError(_miscounted(results, len(items)))
            is_guilt_among_them = False
        except asyncio.CancelledError as exc:
            if _is_being_cancelled():
                raise
            _fail(futures, _wrapped(exc))
            return
        except Exception as exc:
            try:
                is_guilt_among_them = len(items) > 1 and self._is_data_error(exc)
            except Exception as broken:
                exc = broken
                is_guilt_among_them = False
            if not is_guilt_among_them:
                _fail(futures, exc)
                return
        # Outside the handlers, so that the errors of the halves are not chained to that of the whole.
        if is_guilt_among_them:
            middle = len(items) // 2
            await self._settle(items[:middle], futures[:middle])
            await self._settle(items[middle:], futures[middle:])
            return
        for future, result in zip(futures, results, strict=True):
            if isinstance(result, Exception):
                _fail((future,), result)
            elif not future.done():
                future.set_result(result)


def _fail(futures: Sequence[asyncio.Future[R]], exc: Exception) -> None:
    if isinstance(exc, StopIteration):
        exc = _wrapped(exc)  # a future refuses it
    for future in futures:
        if not future.done():
            future.set_exception(exc)
            # Marks it as seen: a caller that has gone is no reason to log "never retrieved".
            future.exception()


def _wrapped(exc: BaseException) -> Exception:
    wrapped = RuntimeError(f"the flush ended with {type(exc).__name__}, which cannot be passed on as it is")
    wrapped.__cause__ = exc
    return wrapped


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _miscounted(results: object, wanted: int) -> str:
    got = f"{len(results)} results" if isinstance(results, Sequence) else f"a {type(results).__name__}"
    return f"the flush returned {got} for {wanted} items: it must return one result per item, in order"
