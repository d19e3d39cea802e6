"""One worker process, as its supervisor sees it: started, spoken to, watched, killed. What is decided is elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any

from holdfast.config import Config
from holdfast.runtime.started_process import StartedProcess
from holdfast.worker.supervision.board import Board, RunSeen
from holdfast.worker.supervision.line import LONGEST_LINE, Order, line_of, parse_line

_MEGABYTE = 1024 * 1024


class Role(Enum):
    """What a worker process is there for."""

    SPARE = auto()
    """It stands by, or is on its way there."""
    WORKER = auto()
    SOLITARY = auto()
    """It runs only jobs that must run alone, one at a time."""


class Child:
    """See the module's sentence. `on_word` and `on_end` are called on the loop, the latter once."""

    def __init__(self, process: StartedProcess, line: socket.socket, board: Board, *, generation: int) -> None:
        self.process = process
        self.pid = process.pid
        self.board = board
        self.generation = generation
        self.role = Role.SPARE
        self.started_s = time.monotonic()
        self.working_since_s = 0.0
        self.is_ready = False
        self.config: Config | None = None
        """Its settings, once it has said them; another process's may differ, after new code was loaded."""
        self.leaving: str | None = None
        """Why it was told to end, if it was."""
        self.leaving_since_s = 0.0
        self.killed: str | None = None
        """Why it was killed by us, if it was."""
        self.culprits: list[RunSeen] = []
        """The runs for which it was killed."""
        self.outdated: str | None = None
        """Why another one is to take its place, if so."""
        self._line = line
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def start(cls, command: Callable[[int, int], Sequence[str]], *, generation: int) -> Child:
        """A new process; `command` gets the descriptors of its end of the line and of its board.

        In a process group of its own: Ctrl-C on a terminal reaches the supervisor alone, which passes it on. OSError
        when the system gives no process or descriptors.
        """
        with contextlib.ExitStack() as undo:
            board = Board.make()
            undo.callback(board.close)
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                fds = (theirs.fileno(), board.fd)
                process = StartedProcess.start(command(*fds), pass_fds=fds, process_group=0)
            ours.setblocking(False)
            undo.pop_all()
        return cls(process, ours, board, generation=generation)

    def follow(
        self, *, on_word: Callable[[Child, str, dict[str, Any]], None], on_end: Callable[[Child, int], None]
    ) -> None:
        """Begin to listen."""
        self._ending = asyncio.create_task(self._follow(on_word, on_end), name=f"process {self.pid}")

    async def _follow(
        self, on_word: Callable[[Child, str, dict[str, Any]], None], on_end: Callable[[Child, int], None]
    ) -> None:
        hearing = asyncio.create_task(self._hear(on_word))
        code = await self.process.wait()
        hearing.cancel()
        self._line.close()
        on_end(self, code)

    async def _hear(self, on_word: Callable[[Child, str, dict[str, Any]], None]) -> None:
        loop = asyncio.get_running_loop()
        heard = b""
        with contextlib.suppress(OSError):
            while chunk := await loop.sock_recv(self._line, LONGEST_LINE):
                *lines, heard = (heard + chunk).split(b"\n")
                heard = heard[:LONGEST_LINE]  # whatever writes there without an end: it costs no memory here
                for line in lines:
                    on_word(self, *parse_line(line))

    def order(self, order: Order) -> None:
        """Tell it; one that has gone hears nothing. Orders are few and short: the line has room for them."""
        with contextlib.suppress(OSError):
            self._line.send(line_of(order))

    def kill(self, why: str, culprits: Sequence[RunSeen] = ()) -> None:
        """End it now, whatever it does."""
        self.killed = why
        self.culprits = list(culprits)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def memory_mb(self) -> float:
        """What it has in memory; 0 where the system does not say."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1])
        except (OSError, IndexError, ValueError):
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE
