"""What an isolate does: one run after the other, as its worker says, by the worker's own executor."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

from holdfast.worker.executor import Executor
from holdfast.worker.isolation.wire import (
    BEGUN,
    Message,
    Unsettled,
    answer_of,
    decode,
    encode,
    interrupt,
    requested_run,
)
from holdfast.worker.run import Run


class Link:
    """The isolate's end of the socket."""

    def __init__(self, number: int) -> None:
        os.set_inheritable(number, False)  # what tasks start must not keep it open
        self._socket = socket.socket(fileno=number)
        self._lines = self._socket.makefile("rb")

    def receive(self) -> Message | None:
        """The next message, whenever it comes; None when the worker has gone."""
        try:
            line = self._lines.readline()
        except OSError:
            return None
        return decode(line) if line.endswith(b"\n") else None

    def send(self, message: Message) -> None:
        try:
            self._socket.sendall(encode(message))
        except OSError:  # the worker has gone, or a task has closed what was not its own: no use in going on
            os._exit(1)


class Server:
    """Serves the worker at the other end. A thread listens, so that a busy event loop does not keep it from ending."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._requests: asyncio.Queue[Message | None] = asyncio.Queue()
        self._run: Run | None = None

    def listen(self) -> None:
        """From now on, this process ends when its worker does."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), name="holdfast-isolate", daemon=True).start()

    async def serve(self, executor: Executor) -> None:
        """Until the worker wants an end."""
        self._link.send({"ready": True})
        while (message := await self._requests.get()) is not None:
            run = self._run = requested_run(message)
            self._link.send(BEGUN)
            run.task = asyncio.get_running_loop().create_task(executor.execute(run))
            settlement = await run.task
            self._run = None
            unsettled = Unsettled.FINISHED if run.finished else Unsettled.LOST
            self._link.send(answer_of(settlement or unsettled, failed=run.failed))

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        while (message := self._link.receive()) is not None:
            loop.call_soon_threadsafe(self._heed, message)
        os._exit(0)  # nobody is left to whom anything of this matters

    def _heed(self, message: Message) -> None:
        match message:
            case {"interrupt": _}:
                if self._run is not None:
                    interrupt(self._run, message)
            case {"end": _}:
                self._requests.put_nowait(None)
            case _:
                self._requests.put_nowait(message)
