"""Waits for jobs to end: all waiters of a process share one question to the store."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from holdfast.core.errors import JobNotFound, NotOpen, StoreError
from holdfast.core.job import JobId
from holdfast.runtime.service import Service
from holdfast.stores.base import Ended, Hint, Store

_REST_FACTOR = 4
_CHUNK = 500
#: Whoever waited may soon wait again, so hints are listened to for so long after the last one.
_LISTEN_ON_S = 1.0
_NEVER_S = 3600.0
#: Whoever closes an app waits no longer for an answer.
_STOP_WITHIN_S = 2.0


class Endings(Service):
    """Asks on every hint that something ended, and every `poll_s`; rests in proportion to what asking took."""

    def __init__(self, store: Store, *, poll_s: float) -> None:
        super().__init__(name="endings", stop_timeout_s=_STOP_WITHIN_S)
        self._store = store
        self._poll_s = poll_s
        self._waiting: defaultdict[JobId, list[asyncio.Future[Ended]]] = defaultdict(list)
        self._leave: Callable[[], None] | None = None

    async def wait(self, job_id: JobId, *, timeout: float | None) -> Ended:
        """The job's ending; TimeoutError, JobNotFound, NotOpen once the app is closed."""
        if self.stopping.is_set():
            raise self.failure or NotOpen(f"the app is not open: job {job_id} can be awaited inside `async with hf:`")
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting[job_id].append(future)
        if self._leave is None:  # before the first look: what ends after that is heard of
            self._leave = self._store.subscribe(self._on_hint)
        self.wake()
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            raise TimeoutError(f"job {job_id} has not ended within {timeout:g} s") from None
        finally:
            waiters = self._waiting.get(job_id, [])
            if future in waiters:
                waiters.remove(future)
            if not waiters:
                self._waiting.pop(job_id, None)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while await self.pause(self._patience_s()):
                if not self._waiting:
                    self._stop_listening()
                    continue
                began = loop.time()
                await self._look()
                await asyncio.sleep(min(0.1, (loop.time() - began) * _REST_FACTOR))
        except Exception as error:
            broken = error
            self._give_up(lambda _: broken)
            raise
        finally:
            self._stop_listening()
            self._give_up(lambda job_id: NotOpen(f"the app was closed while job {job_id} was awaited"))

    def _patience_s(self) -> float:
        if self._waiting:
            return self._poll_s
        return _NEVER_S if self._leave is None else _LISTEN_ON_S

    def _stop_listening(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def _give_up(self, why: Callable[[JobId], Exception]) -> None:
        """Nobody asks the store any more: whoever still waits hears why."""
        for job_id, waiters in self._waiting.items():
            for future in waiters:
                if not future.done():
                    future.set_exception(why(job_id))

    def _on_hint(self, hint: Hint) -> None:
        if hint & Hint.ENDED and self._waiting:
            self.wake()

    async def _look(self) -> None:
        ids = list(self._waiting)
        for start in range(0, len(ids), _CHUNK):
            try:
                found = await self._store.endings(ids[start : start + _CHUNK])
            except StoreError:
                return  # it is asked again; the waiters have deadlines of their own
            for job_id, ended in found.items():
                for future in self._waiting.pop(job_id, []):
                    if future.done():
                        continue
                    if ended is None:
                        future.set_exception(JobNotFound(job_id))
                    else:
                        future.set_result(ended)
