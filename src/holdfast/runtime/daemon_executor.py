"""An executor whose threads do not keep the process alive; for the default executor of an event loop.

A task may have left a blocking call in `asyncio.to_thread`. With the standard executor a process that has drained and
closed everything would wait for it, perhaps for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(ThreadPoolExecutor):
    """Bounded like its base, but with daemonic threads, and nobody waits for them at the end.

    It is a ThreadPoolExecutor in name only, because an event loop accepts nothing else.
    """

    def __init__(self, max_workers: int = 32) -> None:
        super().__init__(max_workers)
        self._most = max_workers
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._made = 0
        self._idle = 0
        self._over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._guard:
            if self._over:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._idle:
                self._idle -= 1  # one of them is taken by this call, whenever it wakes
            elif self._made < self._most:
                threading.Thread(target=self._work, name=f"holdfast-default-{self._made + 1}", daemon=True).start()
                self._made += 1
            self._calls.put(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let idle threads go; what runs is left to itself."""
        with self._guard:
            if not self._over:
                self._over = True
                for _ in range(self._made):
                    self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # an idle thread keeps nothing alive
            with self._guard:
                if self._calls.empty():  # else the next call was counted for a thread that was busy
                    self._idle += 1
