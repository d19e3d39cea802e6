"""Process signals as something a coroutine can wait for; what a signal means is decided elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator
from types import FrameType


class StopSignals:
    """Counts the signals that came: the first may mean "drain", the second "now"."""

    def __init__(self) -> None:
        self.count = 0
        self.last: signal.Signals | None = None
        self._came = asyncio.Event()

    async def wait(self, n: int = 1) -> None:
        """Wait until `n` signals have come in all."""
        while self.count < n:
            self._came.clear()
            await self._came.wait()

    def note(self, number: int) -> None:
        """One more came, as a signal or in place of one."""
        self.count += 1
        self.last = signal.Signals(number)
        self._came.set()


@contextlib.asynccontextmanager
async def stop_signals(*signals: signal.Signals) -> AsyncIterator[StopSignals]:
    """Catch `signals` (SIGINT and SIGTERM by default) on the running loop; puts the old handlers back.

    Outside the main thread, where Python allows no handlers, nothing is caught and `wait` waits for ever.
    """
    caught = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    loop = asyncio.get_running_loop()

    # Not loop.add_signal_handler: that one forgets what was there before, so blocks could not be nested.
    def on_signal(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(caught.note, number)

    with contextlib.ExitStack() as handlers:
        for number in signals or (signal.SIGINT, signal.SIGTERM):
            old = signal.signal(number, on_signal)
            # None: the old handler was not installed from Python and cannot be put back from here.
            handlers.callback(signal.signal, number, signal.SIG_DFL if old is None else old)
        yield caught
