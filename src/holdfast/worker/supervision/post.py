"""A worker process's place under its supervisor: it hears orders, stands by, and ends when the supervisor has gone.

Orders are heard by a thread, so that they arrive while the event loop is blocked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from holdfast.worker.fetcher import Solitude
from holdfast.worker.supervision.board import Board
from holdfast.worker.supervision.line import LONGEST_LINE, Order, Word, line_of, parse_line

#: How a worker process ends whose supervisor has gone without a word.
ORPHANED: Final = 75

_STOPS: Final = (Order.RETIRE, Order.DRAIN, Order.NOW)


class Post:
    """Made before the app is imported: the supervisor may go at any time."""

    def __init__(self, line: socket.socket, board: Board) -> None:
        self.board = board
        self._line = line
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._called = asyncio.Event()
        self._solitude = Solitude.NEVER
        self._on_stop: Callable[[Order], None] = lambda order: os._exit(0)  # it has not begun: nothing is lost
        self._on_tell: Callable[[], None] = lambda: None
        threading.Thread(target=self._hear, name="holdfast-orders", daemon=True).start()

    def say(self, word: Word, **details: Any) -> None:
        """Tell the supervisor; one that has gone hears nothing."""
        with contextlib.suppress(OSError):
            self._line.sendall(line_of(word, **details))

    def take_up(self, *, on_stop: Callable[[Order], None], on_tell: Callable[[], None]) -> None:
        """From now on stops go to `on_stop`, on the running loop; `on_tell` is called in the thread that hears."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._on_stop, self._on_tell = on_stop, on_tell

    async def stand_by(self, stopping: asyncio.Event) -> Solitude:
        """Wait to be called to work, or for the end."""
        self.say(Word.READY)
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._called, stopping)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        return self._solitude

    def working(self) -> None:
        """It has a lease and claims."""
        self.say(Word.WORKING)

    def _hear(self) -> None:
        heard = b""
        while chunk := self._receive():
            *lines, heard = (heard + chunk).split(b"\n")
            for line in lines:
                self._take(parse_line(line)[0])
        os._exit(ORPHANED)

    def _receive(self) -> bytes:
        try:
            return self._line.recv(LONGEST_LINE)
        except OSError:
            return b""

    def _take(self, order: str) -> None:
        with self._lock:
            loop, on_stop = self._loop, self._on_stop
        if order == Order.TELL:
            self._on_tell()
        elif order in _STOPS and loop is None:
            on_stop(Order(order))
        elif loop is not None and order in tuple(Order):
            with contextlib.suppress(RuntimeError):  # the loop has closed: the process is ending
                loop.call_soon_threadsafe(self._obey, Order(order))

    def _obey(self, order: Order) -> None:
        if order in _STOPS:
            self._on_stop(order)
            return
        self._solitude = Solitude.ALWAYS if order is Order.WORK_ALONE else Solitude.NEVER
        self._called.set()
