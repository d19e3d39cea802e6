"""A process that was started is collected, however it ends and whatever the system does not have to give."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from holdfast.runtime.started_process import UNKNOWN_CODE, StartedProcess

PATIENCE_S = 30.0
FOR_EVER = "import signal; signal.pause()"

Play = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Play:
    def run(scene: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scene, PATIENCE_S))

    return run


@pytest.fixture(params=[True, False], ids=["told", "asking"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that tells of the end of a process, or another."""
    if not request.param:
        monkeypatch.delattr(os, "pidfd_open")


def start(code: str) -> StartedProcess:
    return StartedProcess.start([sys.executable, "-S", "-c", code], pass_fds=())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("_kernel")
def test_it_says_how_it_ended_and_is_gone(play: Play) -> None:
    async def scene() -> None:
        before = descriptors()
        process = start("raise SystemExit(3)")
        assert await process.wait() == 3
        assert await process.wait() == 3, "as often as it is asked for"
        assert not is_there(process.pid)
        assert descriptors() == before

    play(scene())


@pytest.mark.usefixtures("_kernel")
def test_who_stops_waiting_stops_nothing_else(play: Play) -> None:
    async def scene() -> None:
        process = start(FOR_EVER)
        waiting = asyncio.ensure_future(process.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        os.kill(process.pid, signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL

    play(scene())


@pytest.mark.usefixtures("_kernel")
def test_it_is_collected_without_being_waited_for(play: Play) -> None:
    async def scene() -> None:
        pid = start("").pid
        while is_there(pid):
            await asyncio.sleep(0.01)

    play(scene())


def test_it_needs_no_thread(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scene() -> None:
        assert await start("").wait() == 0

    monkeypatch.setattr(threading.Thread, "start", none_left)
    play(scene())


@pytest.mark.usefixtures("_kernel")
def test_of_what_others_have_collected_the_end_is_unknown(play: Play) -> None:
    async def scene() -> None:
        process = start("import signal; signal.pause()")  # one that has ended may have been collected already
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
        assert await process.wait() == UNKNOWN_CODE

    play(scene())


def test_what_cannot_be_started_says_why(play: Play) -> None:
    async def scene() -> None:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            StartedProcess.start(["/nowhere/python"], pass_fds=())

    play(scene())
