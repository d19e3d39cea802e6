"""Raises `SoftTimeout` inside a running coroutine, at the await where it stands.

asyncio can only cancel. So the task is cancelled, which takes down whatever it awaits (children of `gather` and
TaskGroup included), and on its way into the coroutine the `CancelledError` is exchanged for an exception that is
both: the task's code sees a `SoftTimeout` and may catch it as such, asyncio's own code sees a cancellation and
tidies up as for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from holdfast.core.errors import SoftTimeout


class SoftTimeoutCancel(SoftTimeout, asyncio.CancelledError):
    """What is really raised; users know it as `SoftTimeout`, and so it is called in what is kept of a run."""


SoftTimeoutCancel.__module__ = SoftTimeout.__module__
SoftTimeoutCancel.__qualname__ = SoftTimeoutCancel.__name__ = SoftTimeout.__name__


def message_of(limit_s: float) -> str:
    """What a `SoftTimeout` says."""
    return f"the soft limit of {limit_s:g} s has passed"


class SoftLimited:
    """Awaits a coroutine, and can interrupt it once with a `SoftTimeout`."""

    __slots__ = ("_coroutine", "_outranked", "_pending", "_task")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], task: asyncio.Task[Any], *, outranked: Callable[[], bool]
    ) -> None:
        self._coroutine = coroutine
        self._task = task
        self._outranked = outranked
        """Whether somebody outside wants the whole run to stop."""
        self._pending: SoftTimeoutCancel | None = None

    def strike(self, limit_s: float) -> None:
        """Interrupt it at its current await."""
        self._pending = SoftTimeoutCancel(message_of(limit_s))
        self._task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        # PEP 380 by hand: the one thing that `await` does not let us do is to exchange what is thrown in.
        coroutine = self._coroutine
        try:
            awaited = coroutine.send(None)
            while True:
                try:
                    answer = yield awaited
                except asyncio.CancelledError as cancelled:
                    awaited = coroutine.throw(self._exchange(cancelled))
                except BaseException as error:
                    awaited = coroutine.throw(error)
                else:
                    awaited = coroutine.send(answer)
        except StopIteration as stop:
            return stop.value
        finally:
            self._pending = None
            coroutine.close()

    def _exchange(self, cancelled: asyncio.CancelledError) -> BaseException:
        pending, self._pending = self._pending, None
        if pending is None:
            return cancelled
        if not self._task.uncancel():
            return pending  # it was ours, and is delivered now
        # Somebody else has cancelled as well, which counts for more. Where that was a timeout or a group inside the
        # task, which goes on after it, ours is still to come.
        if not self._outranked():
            self._pending = pending
            asyncio.get_running_loop().call_soon(self._strike_again, pending)
        return cancelled

    def _strike_again(self, pending: SoftTimeoutCancel) -> None:
        if self._pending is not pending:
            return  # the coroutine has ended
        if self._outranked():
            self._pending = None
        else:
            self._task.cancel()
