"""Runs one job in an isolate: sends it there, passes on that it is to stop, and kills what does not.

The isolate runs it as a worker would, and answers with what is to be written; the worker writes it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from holdfast.core.outcome import CancelHonoured, Interrupted, Outcome, ProcessDied, TimedOut
from holdfast.core.settlement import Settlement
from holdfast.worker.isolation.isolate import Died, Isolate
from holdfast.worker.isolation.pool import IsolatePool, NoIsolate
from holdfast.worker.isolation.wire import Unsettled, answered, failed_in, interruption_of, request_of
from holdfast.worker.run import Interruption, Run


class IsolatedRuns:
    """One serves all isolated runs of a worker.

    A run that was told to stop, or has passed its hard limit, has `kill_after_s` to end; then its process is killed.
    """

    def __init__(self, pool: IsolatePool, *, kill_after_s: float) -> None:
        self._pool = pool
        self._kill_after_s = kill_after_s

    async def execute(self, run: Run, limit_s: float | None) -> Settlement | Outcome | None:
        """What is to be written, or what happened here; None when nothing may be written any more."""
        if run.interruption is not None:
            return _stopped(run, limit_s)
        run.user_code = run.task  # whoever interrupts the run interrupts what is awaited here
        try:
            isolate = await self._borrow(run, limit_s)
            if not isinstance(isolate, Isolate):
                return isolate
            try:
                answer = await self._call(isolate, run, limit_s)
            finally:
                self._pool.take_back(isolate)
        finally:
            run.user_code = None
        match answer:
            case Died(killed=True):
                return _stopped(run, limit_s)
            case Died(why=why, began=False):
                return Interrupted(f"its process {why} before it began")
            case Died(why=why):
                return ProcessDied(f"its process {why}")
            case Unsettled.FINISHED:
                run.finished = True
                return None
            case Unsettled.LOST:
                run.interrupt(Interruption.LEASE_LOST)
                return None
            case _:
                return answer

    async def _borrow(self, run: Run, limit_s: float | None) -> Isolate | Outcome:
        """An isolate; one that does not come in time is not waited for, so that another worker can have the job."""
        loop = asyncio.get_running_loop()
        patience = None if limit_s is None else loop.call_later(limit_s, run.interrupt, Interruption.NO_THREAD)
        try:
            return await self._pool.lend()
        except NoIsolate as error:
            return Interrupted(str(error))
        except asyncio.CancelledError:
            if not _was_interrupted(run):
                raise
            return _stopped(run, limit_s)
        finally:
            if patience is not None:
                patience.cancel()

    async def _call(self, isolate: Isolate, run: Run, limit_s: float | None) -> Settlement | Unsettled | Died:
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        calling = asyncio.ensure_future(isolate.call(request_of(run)))
        try:
            with self._limited(isolate, run, limit_s):
                while not calling.done():
                    try:
                        await asyncio.wait({calling})
                    except asyncio.CancelledError:
                        if not _was_interrupted(run):
                            raise
                        if run.interruption is Interruption.LEASE_LOST:
                            isolate.kill()  # others may be running it by now
                        else:
                            assert run.interruption is not None
                            isolate.tell(interruption_of(run, run.interruption))
                            timers.append(loop.call_later(self._kill_after_s, isolate.kill))
        except BaseException:  # the event loop ends around this
            isolate.kill()
            calling.cancel()
            raise
        finally:
            for timer in timers:
                timer.cancel()
        answer = calling.result()
        if isinstance(answer, Died):
            return answer
        try:
            run.failed = failed_in(answer)
            return answered(answer, run.job)
        except ValueError as error:
            isolate.kill()
            return Died(f"answered with nonsense: {error}", killed=False, began=True)

    @contextmanager
    def _limited(self, isolate: Isolate, run: Run, limit_s: float | None) -> Iterator[None]:
        """The hard limit, from a thread: another job may block the event loop for longer than this one may run."""
        if limit_s is None:
            yield
            return
        lock = threading.Lock()
        over = False

        def kill_overdue() -> None:
            with lock:  # once it is over, the isolate may be somebody else's
                if not over:
                    run.interruption = run.interruption or Interruption.TIMEOUT
                    isolate.kill()

        timer: threading.Timer | asyncio.TimerHandle
        timer = thread = threading.Timer(limit_s + self._kill_after_s, kill_overdue)
        thread.name, thread.daemon = "holdfast-limit", True
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads: as good as it gets
            timer = asyncio.get_running_loop().call_later(limit_s + self._kill_after_s, kill_overdue)
        try:
            yield
        finally:
            with lock:
                over = True
            timer.cancel()


def _was_interrupted(run: Run) -> bool:
    """Whether a cancellation stands for an interruption of the run, which then decides; else the event loop ends."""
    if run.interruption is None or run.task is None:
        return False
    run.task.uncancel()
    return True


def _stopped(run: Run, limit_s: float | None) -> Outcome:
    """What it means for a run that it was stopped from here."""
    match run.interruption:
        case Interruption.TIMEOUT:
            return TimedOut(limit_s or 0.0)
        case Interruption.CANCEL:
            return CancelHonoured(run.cancel_reason)
        case Interruption.NO_THREAD:
            return Interrupted("no process came free for it in time")
        case Interruption.DRAIN | Interruption.LEASE_LOST | None:
            return Interrupted("the worker stopped")
        case _:
            assert_never(run.interruption)
