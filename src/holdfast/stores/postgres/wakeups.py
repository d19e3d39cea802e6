"""Hints: told at once in this process, and to others by NOTIFY, gathered and off the writers' transactions.

A notification takes a lock on the whole server while its transaction commits, so writers never send one. One
connection listens, from when somebody here wants to hear, and, a few milliseconds apart at most, says what has happened
here. Hints may be lost: whoever waits for them also looks by itself now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.runtime.backoff import Backoff
from holdfast.stores.base import Hint

if TYPE_CHECKING:
    from asyncpg import Connection

    from holdfast.stores.postgres.connections import Doorway

#: Between two notifications: of new work, which idle workers wait for, and of everything else.
_APART_S, _REST_APART_S = 0.005, 0.05
_URGENT = (Hint.READY | Hint.TIMER | Hint.CANCEL | Hint.OPENED).value
#: How long nothing is heard before the connection is tried, and how long it then has.
PROBE_S = 15.0
PROBE_ANSWER_S = 5.0
_LAST_WORD_S = 1.0
#: Beside the hints: jobs came back to old places, so that floors have to fall.
RETURNED = 1 << 16
_MOST_DIGITS = 9


class Wakeups:
    """Who is told what, in this process and in others."""

    def __init__(self, doorway: Doorway, *, channel: str, notify: bool, on_returned: Callable[[], None]) -> None:
        self._doorway = doorway
        self._channel = channel
        self._notify = notify
        self._on_returned = on_returned
        self._me = secrets.token_hex(4)
        self._listeners: dict[asyncio.AbstractEventLoop, list[Callable[[Hint], None]]] = {}
        self._lock = threading.Lock()
        self._unsaid = 0
        self._stirred = asyncio.Event()
        self._wanted = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen and to speak, on this loop."""
        self._loop = asyncio.get_running_loop()
        if self._notify:
            self._task = self._loop.create_task(self._stay_connected(), name="holdfast-wakeups")

    async def close(self) -> None:
        """Say what is left to say, and end: whoever enqueues one job and goes has not yet been heard."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        if self._unsaid:
            with contextlib.suppress(Exception):  # a hint may be lost
                async with asyncio.timeout(_LAST_WORD_S):
                    await self._say_last()

    async def _say_last(self) -> None:
        connection = await self._doorway.open("wakeups")
        try:
            await self._say(connection)
        finally:
            connection.terminate()

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._listeners.setdefault(loop, []).append(callback)
        self._want_to_hear()

        def leave() -> None:
            with self._lock:
                callbacks = self._listeners.get(loop, [])
                if callback in callbacks:
                    callbacks.remove(callback)
                if not callbacks:
                    self._listeners.pop(loop, None)

        return leave

    def _want_to_hear(self) -> None:
        """From now on: a process in which nobody wants to is not woken by what others do."""
        if not self._wanted:
            self._wanted = True
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and the store with it
                    self._loop.call_soon_threadsafe(self._stirred.set)

    def tell(self, hint: Hint, *, returned: bool = False) -> None:
        """Something has happened here, and is committed; on the loop that opened the store."""
        if not hint:
            return
        self._spread(hint)
        if self._task is not None:
            self._unsaid |= hint.value | (RETURNED if returned else 0)
            self._stirred.set()

    def _spread(self, hint: Hint) -> None:
        with self._lock:
            listeners = {loop: tuple(callbacks) for loop, callbacks in self._listeners.items()}
        here = asyncio.get_running_loop()
        for loop, callbacks in listeners.items():
            if loop is here:
                _call(callbacks, hint)
            else:
                with contextlib.suppress(RuntimeError):  # that loop is closed: nobody is left to be told
                    loop.call_soon_threadsafe(_call, callbacks, hint)

    # ------------------------------------------------------------ the connection

    async def _stay_connected(self) -> None:
        backoff = Backoff(0.1, 5.0)
        while True:
            connection: Connection[Any] | None = None
            try:
                connection = await self._doorway.open("wakeups")
                await self._converse(connection, backoff)
            except Exception:  # whatever is wrong with it: hints may be lost, and another connection may be better
                await asyncio.sleep(backoff.next())
            finally:
                if connection is not None:
                    connection.terminate()

    async def _converse(self, connection: Connection[Any], backoff: Backoff) -> None:
        """Say what has happened, and make sure now and then that we would hear; ends with an error."""
        clock = asyncio.get_running_loop().time
        listening = False
        while True:
            if self._wanted and not listening:
                await connection.add_listener(self._channel, self._on_notification)
                listening = True
                backoff.reset()
                self._spread(Hint.ANYTHING)  # whatever was said while nobody listened
                self._on_returned()
            while not self._unsaid and listening is self._wanted:
                if not await self._stirs(PROBE_S):
                    await connection.fetchval("SELECT 1", timeout=PROBE_ANSWER_S)
            if not self._unsaid:
                continue
            await self._say(connection)
            backoff.reset()
            said_at_s = clock()
            await asyncio.sleep(_APART_S)
            while not self._unsaid & _URGENT and listening is self._wanted:
                if (left_s := said_at_s + _REST_APART_S - clock()) <= 0:
                    break
                await self._stirs(left_s)

    async def _say(self, connection: Connection[Any]) -> None:
        said, self._unsaid = self._unsaid, 0
        await connection.execute(
            "SELECT pg_notify($1, $2)", self._channel, f"{self._me} {said}", timeout=PROBE_ANSWER_S
        )

    async def _stirs(self, at_most_s: float) -> bool:
        """Wait for something to say; False when there was nothing."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._stirred.wait()
        except TimeoutError:
            return False
        self._stirred.clear()
        return True

    def _on_notification(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        sender, _, bits = str(payload).partition(" ")
        if sender == self._me or not (bits.isascii() and bits.isdecimal() and len(bits) <= _MOST_DIGITS):
            return
        if int(bits) & RETURNED:
            self._on_returned()
        self._spread(Hint(int(bits) & Hint.ANYTHING.value))


def _call(callbacks: tuple[Callable[[Hint], None], ...], hint: Hint) -> None:
    for callback in callbacks:
        callback(hint)
