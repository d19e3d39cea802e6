"""Threads beside an event loop: for functions that block, and for what must go on while it is blocked."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from holdfast.core.errors import NotOpen
from holdfast.runtime.thread_interrupts import ThreadCall

T = TypeVar("T")


class ThreadPool:
    """Runs blocking functions off the loop.

    1. At most `max_threads` functions at once; further calls wait their turn, in order. Threads are
       made when first needed and reused.
    2. Threads are daemons: one that is stuck blocks neither `close` nor the end of the interpreter.
    3. Whatever a function raises, also SystemExit or KeyboardInterrupt, is raised to its awaiter and
       leaves the thread alive. (StopIteration comes as the cause of a RuntimeError: no coroutine may
       raise it.)
    4. Cancelling the awaiter does not stop a function that has begun: its place is free again only when
       it returns. One that has not begun never will.
    5. A function sees a copy of its caller's contextvars.
    6. A function that is given as a `ThreadCall` can be interrupted while it runs; its thread lives on.
    """

    def __init__(self, max_threads: int, *, name: str = "pool") -> None:
        if max_threads < 1:
            raise ValueError(f"max_threads={max_threads}: a pool needs at least 1 thread")
        self._max_threads = max_threads
        self._name = name
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # Guards the counters and a call's two flags; held for a few instructions only.
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0
        self._waiting = 0
        self._closed = False

    @property
    def busy(self) -> int:
        """Functions running now, also those whose awaiter has gone."""
        return self._busy

    @property
    def waiting(self) -> int:
        """Calls that have not begun."""
        return self._waiting

    async def run(self, fn: Callable[[], T] | ThreadCall[T], *, lingers: Callable[[], bool] = lambda: False) -> T:
        """Run `fn` in a thread and return what it returns.

        `lingers` is asked when the awaiter is cancelled while the function runs: True to wait on until that has ended.
        """
        loop = asyncio.get_running_loop()
        work = fn if isinstance(fn, ThreadCall) else ThreadCall(fn)
        call = _Call(work, contextvars.copy_context(), loop, loop.create_future())
        with self._lock:
            if self._closed:
                raise NotOpen(f"thread pool {self._name!r} is closed and runs nothing any more")
            if self._waiting >= self._threads - self._busy and self._threads < self._max_threads:
                self._add_thread()
            self._waiting += 1
            self._calls.put(call)
        while True:
            try:
                result, error = await call.future
                break
            except asyncio.CancelledError:
                with self._lock:
                    if not call.begun and not call.withdrawn:
                        call.withdrawn = True
                        self._waiting -= 1
                if call.withdrawn or not lingers():
                    raise
                if call.future.cancelled():  # else the answer came together with the cancellation
                    call.future = loop.create_future()
        if error is None:
            return cast(T, result)
        try:
            raise error  # a StopIteration is turned into a RuntimeError by the language, as in any coroutine
        finally:
            del call, error  # its traceback refers to this frame: no cycle for the garbage collector

    def close(self) -> None:
        """Refuse new calls and let the threads go; what was accepted still runs. Does not wait."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for _ in range(self._threads):
                self._calls.put(None)

    def _add_thread(self) -> None:
        name = f"{self._name}-{self._threads + 1}"
        try:
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError:
            if self._threads == 0:
                raise
            return  # the system gives no more threads: those that exist do the work
        self._threads += 1

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            with self._lock:
                if call.withdrawn:
                    continue
                call.begun = True
                self._waiting -= 1
                self._busy += 1
            result: object = None
            error: BaseException | None = None
            try:
                result, error = call.work.carry_out(call.context)
            except BaseException as exc:
                error = exc
            with self._lock:
                self._busy -= 1
            call.deliver(result, error)
            # An idle thread must not keep alive what the last function used.
            del call, result, error


async def in_new_thread(fn: Callable[[], T]) -> T:
    """Run `fn` in a thread of its own: users' calls may have filled the loop's default executor for good."""
    pool = ThreadPool(1, name="once")
    try:
        return await pool.run(fn)
    finally:
        pool.close()


class _Call:
    """One function on its way to a thread and back."""

    __slots__ = ("begun", "context", "future", "loop", "withdrawn", "work")

    def __init__(
        self,
        work: ThreadCall[Any],
        context: contextvars.Context,
        loop: asyncio.AbstractEventLoop,
        future: asyncio.Future[tuple[object, BaseException | None]],
    ) -> None:
        self.work = work
        self.context = context
        self.loop = loop
        self.future = future
        self.begun = False
        self.withdrawn = False

    def deliver(self, result: object, error: BaseException | None) -> None:
        # The loop may have closed: then nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._resolve, (result, error))

    def _resolve(self, outcome: tuple[object, BaseException | None]) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class LoopThread:
    """A daemon thread with an event loop of its own, for what must go on while the main loop is blocked.

    1. `submit` may be called from any thread, and before the loop has taken its first turn.
    2. `stop` cancels what runs there, waits for it and joins the thread. It may be called more than once
       and from any thread (from its own it cannot join). It blocks its caller for that long.
    3. Lives once: `start` after `stop` does nothing.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False

    def start(self) -> None:
        with self._lock:
            if self._stopped or self._thread is not None:
                return
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=self._main, args=(loop,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                loop.close()
                raise
            self._loop, self._thread = loop, thread

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def submit(self, coro: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine over there."""
        # Under the lock: everything accepted is queued before the order to stop, and so is cancelled by it.
        with self._lock:
            if self._loop is None or self._stopped:
                coro.close()
                raise NotOpen(f"loop thread {self._name!r} is not running: call start() first, and not after stop()")
            return asyncio.run_coroutine_threadsafe(coro, self._loop)

    def stop(self) -> None:
        with self._lock:
            if not self._stopped and self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._stopped = True
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    @staticmethod
    def _main(loop: asyncio.AbstractEventLoop) -> None:
        # The runner's exit cancels the tasks that are left, waits for them and closes the loop.
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()
