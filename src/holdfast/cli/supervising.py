"""`holdfast worker`: a supervisor in this process, which never imports the app, and what its worker processes run."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.app import Holdfast
from holdfast.app.backends import from_anywhere, make_store, open_transport
from holdfast.app.working import work
from holdfast.cli.exits import Exit, Refused
from holdfast.observability.crew import CrewWatch
from holdfast.observability.metrics import Metrics
from holdfast.observability.tally import Tally
from holdfast.runtime.loop import run_loop
from holdfast.runtime.processes import die_with_parent
from holdfast.runtime.signals import stop_signals
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.logs import attach_logs
from holdfast.telemetry.process_events import ProcessTold
from holdfast.worker.supervision.board import Board
from holdfast.worker.supervision.line import Word
from holdfast.worker.supervision.post import Post
from holdfast.worker.supervision.recovery import Recovery
from holdfast.worker.supervision.supervisor import Supervisor

#: Codes of a worker process that would end the same way if it were started again: a person has to act.
_HOPELESS = (Exit.USAGE, Exit.STORE)


async def supervise(words: Sequence[str]) -> int:
    """Run the command `words` in worker processes, until a signal; the exit code."""
    telemetry = Telemetry()
    attach_logs(telemetry)
    recovery = Recovery(make_store, telemetry=telemetry, open_transport=open_transport)
    watch = CrewWatch(lambda: supervisor.children, recovery=recovery, telemetry=telemetry)
    supervisor = Supervisor(
        lambda line, board: _command(words, line, board),
        recovery=recovery,
        telemetry=telemetry,
        cut_short_code=Exit.HANDED_BACK,
        hopeless_codes=_HOPELESS,
        on_settings=watch.take,
        on_gone=watch.bury,
    )

    def tell() -> None:
        for line in supervisor.tell():
            telemetry.emit(ProcessTold(line))

    async with stop_signals(*_stops()) as signals:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, tell)
        if not sys.stderr.isatty():
            loop.add_signal_handler(signal.SIGHUP, supervisor.reload)
        try:
            return await supervisor.run(signals)
        finally:
            await watch.close()


def _stops() -> Sequence[signal.Signals]:
    """A terminal that closes sends SIGHUP to what runs on it, which then has to end."""
    return (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if sys.stderr.isatty() else ()))


def _command(words: Sequence[str], line: int, board: int) -> list[str]:
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, *bytecode, "-m", "holdfast", *words, "--post", f"{line},{board},{os.getpid()}"]


def take_post(text: str) -> Post:
    """In a worker process: its place under the supervisor that started it; ends with it from here on."""
    try:
        line, board, parent = (int(part) for part in text.split(","))
        for fd in (line, board):
            os.set_inheritable(fd, False)
    except (ValueError, OverflowError, OSError):
        raise Refused(f"--post {text!r} was not written by a supervisor", hint="leave it out") from None
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever presses Ctrl-C means the supervisor
    return Post(socket.socket(fileno=line), Board(board))


def work_at(post: Post, hf: Holdfast, settings: Mapping[str, Any], *, prepare: Callable[[], None]) -> int:
    """In a worker process: do as the supervisor says; the exit code."""
    hf.config = hf.config.with_arguments(**settings)
    metrics = Metrics(hf, tally=Tally(post.board.margin)) if hf.config.metrics_listen else None
    prepare()
    # The app may have changed the directory; the supervisor has not.
    post.say(Word.LOADED, settings=from_anywhere(hf.config).values())
    log = logging.getLogger("holdfast")
    log.debug("process %d stands by", os.getpid())

    async def work_watched() -> int:
        if metrics is not None:
            metrics.watch_loop()
        return await work(hf, {}, post=post)

    return Exit.HANDED_BACK if run_loop(work_watched()) else Exit.OK
