"""One isolate as its worker sees it: a process, a socket to it, and how it ended. Who has it when is the pool's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from holdfast.core.errors import HoldfastError
from holdfast.core.shown import shown
from holdfast.runtime.processes import told_end
from holdfast.runtime.started_process import StartedProcess
from holdfast.worker.isolation.wire import BEGUN, Message, decode, encode

#: What a process has said before its death arrives within this time, if it arrives at all.
_LAST_WORDS_S = 0.5
#: A process that ends closes its socket a moment before it can be waited for.
_GONE_WITHIN_S = 5.0


class Birth(NamedTuple):
    """How an isolate is started: its command, to which the number of its socket is added, and its first message."""

    command: Sequence[str]
    first: Message


class Died(NamedTuple):
    """The process ended in place of an answer."""

    why: str
    killed: bool
    """By us, on purpose: what ran in it is not to blame for it."""
    began: bool
    """Whether it had begun with what was asked of it: before that, none of the user's code for it has run."""


class CannotStart(HoldfastError):
    """A process was not ready to run tasks."""


class Isolate:
    """Knows one caller at a time; `kill` and `interrupt` may come meanwhile."""

    def __init__(
        self, process: StartedProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, longest: int
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._longest = longest
        self._killed = False
        self._fault: str | None = None
        self._called = False
        self.began = True
        """False from when something is asked of it until it says that it has begun with it."""
        self._ended = asyncio.ensure_future(process.wait())
        self._ended.add_done_callback(lambda _: self._hang_up())

    @classmethod
    async def start(cls, birth: Birth, *, longest: int) -> Self:
        """A process that is ready to run tasks; CannotStart with the reason where there is none.

        Called from the loop's own thread, which the process must not outlive.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=longest)
            try:
                # A session of its own: Ctrl-C on the terminal is for the worker, which then decides what becomes of it.
                command = (*birth.command, str(theirs.fileno()))
                process = StartedProcess.start(command, pass_fds=(theirs.fileno(),), start_new_session=True)
            except BaseException as error:
                writer.close()
                if isinstance(error, OSError):
                    raise CannotStart(f"{birth.command[0]} could not be started: {error}") from error
                raise
        isolate = cls(process, reader, writer, longest=longest)
        try:
            match await isolate.call(birth.first):
                case {"ready": True}:
                    return isolate
                case {"failed": why}:
                    raise CannotStart(str(why))
                case Died(why):
                    raise CannotStart(f"it {why} before it was ready")
                case other:
                    raise CannotStart(f"it said {shown(other, 200)} in place of being ready")
        except BaseException:
            await isolate.end(within_s=0)
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._ended.done() and not self._killed

    def when_dead(self, callback: Callable[[Self], None]) -> None:
        self._ended.add_done_callback(lambda _: callback(self))

    async def call(self, message: Message) -> Message | Died:
        """Send a message and wait for the answer, or for the end of the process."""
        self._called = True  # what it has said before its end is still to be read
        self.began = False
        try:
            with contextlib.suppress(ConnectionError):  # then it is dying, and that is the answer
                self._writer.write(encode(message))
                await self._writer.drain()
            answer = await self._receive()
            if answer == BEGUN:
                self.began = True
                answer = await self._receive()
            if answer is not None:
                return answer
            code = await asyncio.shield(self._ended)
            return Died(self._fault or told_end(code), self._killed, self.began)
        finally:
            self._called = False
            self._hang_up()

    def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(encode(message))

    def kill(self) -> None:
        """End it now, whatever it does."""
        if not self._ended.done():
            self._killed = True
            self._signal()

    async def end(self, *, within_s: float) -> None:
        """Ask it to end, which it may do in order; for so long only."""
        try:
            if within_s > 0 and self.alive:
                self.tell({"end": True})
                await asyncio.wait({self._ended}, timeout=within_s)
        finally:
            self.kill()
            self._writer.close()
        await asyncio.wait({self._ended})

    async def _receive(self) -> Message | None:
        """The next message; None when there will be none, because it has ended or is no isolate any more."""
        reading = asyncio.ensure_future(self._reader.readline())
        try:
            await asyncio.wait({reading, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait({reading}, timeout=_LAST_WORDS_S)
            if not reading.done():
                return None
            line = reading.result()
            if line.endswith(b"\n"):
                return decode(line)
            await asyncio.wait({self._ended}, timeout=_GONE_WITHIN_S)
            self._give_up_on("closed its connection to the worker")
        except ConnectionError:
            await asyncio.wait({self._ended}, timeout=_GONE_WITHIN_S)
            self._give_up_on("broke its connection to the worker")
        except ValueError as error:
            # What StreamReader says of a line that is too long is a ValueError, too.
            self._give_up_on(f"answered with something else than one line of JSON below {self._longest} bytes: {error}")
        finally:
            reading.cancel()
        return None

    def _hang_up(self) -> None:
        if self._ended.done() and not self._called:
            self._writer.close()

    def _give_up_on(self, fault: str) -> None:
        """Something in there does what it must not: it is the end of the process, and the task's doing."""
        if not self._ended.done() and not self._killed:
            self._fault = fault
            self._signal()

    def _signal(self) -> None:
        """To it and to what its task has started, which is in its process group: it would go on without a limit."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
