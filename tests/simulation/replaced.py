"""The five things that Holdfast takes from the machine it runs on, replaced by a simulated process's own.

Everything else of it is handed in where it is made (stores, clocks), or is drawn from `random`, which is seeded.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import UUID

from tests.simulation.loop import ThreadLoop, running_loop, running_loop_or_none
from tests.simulation.process import Process

from holdfast.client import request
from holdfast.client.arguments import Signature
from holdfast.core.errors import NotOpen
from holdfast.core.task import TaskDefinition
from holdfast.upkeep import leader
from holdfast.worker import executor, heartbeat, loop_watch, session

_signatures: dict[str, Signature] = {}


def signature_of(task: TaskDefinition) -> Signature:
    """Compiled once for all seeds: it depends on the task alone, and takes longer than a job's whole life."""
    if task.name not in _signatures:
        _signatures[task.name] = Signature(task)
    return _signatures[task.name]


def current_process() -> Process:
    return running_loop().process


@contextmanager
def replaced() -> Iterator[None]:
    """For the length of a block, whoever asks the machine asks the simulated process that it runs in."""
    state = random.getstate()
    was_collecting = gc.isenabled()
    with (
        mock.patch.object(session, "uuid4", _new_uuid),
        mock.patch.object(leader, "uuid4", _new_uuid),
        mock.patch.object(request, "new_job_id", _new_job_id),
        mock.patch.object(loop_watch, "time", _Time),
        mock.patch.object(heartbeat, "LoopThread", ThreadBeside),
        mock.patch.object(heartbeat, "in_new_thread", _awaited),
        mock.patch.object(executor, "Signature", signature_of),
        mock.patch.object(asyncio, "get_running_loop", running_loop),
        mock.patch.object(asyncio, "_get_running_loop", running_loop_or_none),
        mock.patch.object(asyncio.events, "get_running_loop", running_loop),
        mock.patch.object(asyncio.events, "_get_running_loop", running_loop_or_none),
    ):
        gc.disable()  # between seeds only: what is left of a world must not be tidied up in the next
        try:
            yield
        finally:
            random.setstate(state)
            if was_collecting:
                gc.enable()


class ThreadBeside:
    """`runtime.threads.LoopThread` on simulated threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = current_process()
        self._loop: ThreadLoop | None = None
        self._stopped = False

    def start(self) -> None:
        if not self._stopped and self._loop is None:
            self._loop = self._process.new_thread(self._name.removeprefix("holdfast-"))

    def submit(self, coro: Coroutine[Any, Any, Any]) -> None:
        if self._loop is None or self._stopped:
            coro.close()
            raise NotOpen(f"loop thread {self._name!r} is not running")
        self._loop.call_soon_threadsafe(self._loop.create_task, coro)

    async def stop(self) -> None:
        if not self._stopped and self._loop is not None:
            self._stopped = True
            await self._loop.end()


class _Time:
    @staticmethod
    def monotonic() -> float:
        return current_process().monotonic()


async def _awaited(fn: Callable[[], Awaitable[Any]]) -> None:
    await fn()


def _new_uuid() -> UUID:
    return current_process().new_uuid()


def _new_job_id() -> UUID:
    return current_process().new_job_id()
