"""`holdfast worker --reload`: a process that never imports the app, and has another one run the worker.

When a source file changes, it drains that process and starts another; one that cannot start, because the new code is
wrong, is tried again after the next change.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from watchfiles import awatch

from holdfast.cli.exits import Exit, Refused
from holdfast.cli.sources import Sources, shortly
from holdfast.config import child_environment
from holdfast.runtime.signals import StopSignals, stop_signals


async def work_reloading(
    words: Sequence[str],
    sources: Sources,
    *,
    say: Callable[[str], None],
    settings: Mapping[str, str] = MappingProxyType({}),
    what: str = "worker",
) -> int:
    """Run the command `words`, anew after every change of the sources, until a signal; the exit code.

    `settings` go to it by its environment.
    """
    async with stop_signals() as signals, _watching(sources) as changes:
        with _lifeline() as pipe:
            asked = asyncio.create_task(signals.wait())
            if what == "worker":  # beside another one it need not be said twice
                say(f"reload: watching {sources}")
            while not asked.done():
                child = await _start(words, pipe, child_environment(**settings))
                ended = asyncio.create_task(child.wait())
                await _first(ended, changes.next, asked)
                alive = not ended.done()
                if not alive:
                    say(f"reload: the {what} ended with {_told(ended.result())}; the next change starts it again")
                    await _first(changes.next, asked)
                if not asked.done():
                    then = "draining, then restarting" if alive else "starting"
                    say(f"reload: changed: {shortly(changes.taken())}; {then}")
                if alive:
                    await _drain(child, ended, signals)
            return _code(ended.result()) if alive else Exit.OK


@contextlib.asynccontextmanager
async def beside(words: Sequence[str], settings: Mapping[str, str]) -> AsyncIterator[None]:
    """The command `words` in a process of its own, for as long as the block lasts, or this process does."""
    with _lifeline() as pipe:
        child = await _start(words, pipe, child_environment(**settings))
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
            await child.wait()


class _Changes:
    """What has changed since it was last taken; nothing is missed in between."""

    def __init__(self, found: AsyncIterator[set[tuple[Any, str]]]) -> None:
        self._found = found
        self.next = asyncio.create_task(self._next())

    async def _next(self) -> set[str]:
        async for changes in self._found:
            return {path for _, path in changes}
        return set()

    def taken(self) -> set[str]:
        paths = self.next.result()
        self.next = asyncio.create_task(self._next())
        return paths


@contextlib.asynccontextmanager
async def _watching(sources: Sources) -> AsyncIterator[_Changes]:
    over = asyncio.Event()
    found = awatch(*sources.directories, watch_filter=sources.match, stop_event=over, ignore_permission_denied=True)
    changes = _Changes(found)
    await asyncio.sleep(0)  # its first step sets up the watch: from here on, no change is missed
    if changes.next.done() and (error := changes.next.exception()):
        raise Refused(f"{sources} cannot be watched: {error}", hint="name less with `--reload-dir`") from error
    try:
        yield changes
    finally:
        over.set()
        await asyncio.wait({changes.next})
        await found.aclose()


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """The end of a pipe for the children; the other end closes with this process, however that ends."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


async def _start(words: Sequence[str], pipe: int, environment: Mapping[str, str]) -> Process:
    """The worker in a process of its own.

    In a process group of its own, too: Ctrl-C on the terminal reaches us alone, and is passed on once. A second signal
    would tell the worker not to wait for what runs. And without bytecode (-B): that goes by the second in which a file
    was changed, and two changes may well be in one.
    """
    command = (sys.executable, "-B", "-m", "holdfast.cli.reloaded", str(pipe), *words)
    return await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, pass_fds=(pipe,), process_group=0, env=environment
    )


async def _drain(child: Process, ended: asyncio.Task[int], signals: StopSignals) -> None:
    """Ask it to stop, and wait; whoever presses Ctrl-C again hurries it, and whoever does so once more kills it."""
    for number, until in ((signal.SIGTERM, 2), (signal.SIGTERM, 3), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)
        if until is not None:
            more = asyncio.create_task(signals.wait(until))
            await _first(ended, more)
            more.cancel()
        if ended.done():
            return
    await ended


async def _first(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def _told(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _code(code: int) -> int:
    """Of a worker that was asked to stop: one that had not got as far as to hear of it has nothing to drain."""
    return Exit.OK if code == -signal.SIGTERM else Exit.INTERRUPTED if code < 0 else code
