"""Where running jobs stand, as text; read from a thread beside the loop, which may be what is stuck."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from holdfast.worker.run import Run

_OURS = ("holdfast.", "asyncio", "uvloop", "threading", "functools")


def describe_runs(runs: Iterable[Run], *, now_s: float, loop_thread: int) -> Iterator[str]:
    """A line per job with its age, and below it where it stands."""
    for run in runs:
        job = run.job
        where = f"attempt {job.attempt}, for {now_s - run.started_s:.1f} s"
        yield f"  job {job.id} {job.task}: {where}{', in a thread' if run.in_thread else ''}"
        yield from (f"    {line}" for line in _stack_of(run, loop_thread))


def _stack_of(run: Run, loop_thread: int) -> Iterator[str]:
    task = run.task
    if task is None or task.done():
        return
    if run.in_thread:
        yield from _lines(reversed(list(_callers(sys._current_frames().get(run.thread)))))
        return
    coroutine: Any = task.get_coro()
    if coroutine.cr_running:  # the loop is in it: it stands where its thread stands
        yield from _lines(reversed(list(_callers(sys._current_frames().get(loop_thread)))))
        return
    yield from _lines(_awaited(coroutine))


def _awaited(awaitable: Any) -> Iterator[FrameType]:
    """The frames of a suspended coroutine, from its own to that of what it waits for."""
    while awaitable is not None:
        frame = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "gi_frame", None)
        frame = frame or getattr(awaitable, "ag_frame", None)
        if frame is None:
            return
        yield frame
        awaitable = (
            getattr(awaitable, "cr_await", None)
            or getattr(awaitable, "gi_yieldfrom", None)
            or getattr(awaitable, "ag_await", None)
            or frame.f_locals.get("coroutine")  # driven by hand, in `soft_limit`
        )


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _lines(frames: Iterable[FrameType]) -> Iterator[str]:
    """Users' frames, and what they call; those of ours that lead to them tell nobody anything."""
    users = False
    for frame in frames:
        users = users or not str(frame.f_globals.get("__name__")).startswith(_OURS)
        if users:
            entry = traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
            yield f"{entry.filename}:{entry.lineno} in {entry.name}: {entry.line}"
