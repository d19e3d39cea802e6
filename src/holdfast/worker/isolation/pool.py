"""The isolates of one worker: starts, keeps warm, lends and replaces them. What runs in them is not its business."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from holdfast.core.errors import HoldfastError
from holdfast.runtime.backoff import Backoff
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.process_events import IsolateNotStarted
from holdfast.worker.isolation.isolate import Birth, Isolate

#: One that nobody has needed for so long ends, but for the last.
_IDLE_S = 60.0
#: What users want done when an isolate ends has so long.
_END_WITHIN_S = 5.0


class NoIsolate(HoldfastError):
    """No process could be started for a task."""


class IsolatePool:
    """Lends isolates, at most `most` at once.

    1. One is kept warm from `warm` on: it is started before it is needed, and again when it has died.
    2. Further ones are started when all are lent, and end when they have been idle for a while.
    3. Whoever finds none waits in line. When none can be started and there is none to wait for, those in line hear why;
       the next start comes after a pause that grows from time to time.
    """

    def __init__(
        self, birth: Callable[[], Birth], *, most: int, longest: int, telemetry: Telemetry, idle_s: float = _IDLE_S
    ) -> None:
        self._birth = birth
        self._most = most
        self._longest = longest
        self._telemetry = telemetry
        self._idle_s = idle_s
        self._isolates: set[Isolate] = set()
        self._idle: dict[Isolate, asyncio.TimerHandle] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._line: deque[asyncio.Future[Isolate]] = deque()
        self._backoff = Backoff(0.5, 30.0)
        self._pause_s = 0.0
        self._is_warm = False
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The processes that are ready or at work."""
        return [isolate.pid for isolate in self._isolates]

    def warm(self) -> None:
        """Start the first one, in the background; ConfigError where it is known already that none can be."""
        self._birth()
        self._is_warm = True
        self._start_wanted()

    async def lend(self) -> Isolate:
        """An isolate for one run, to be given to `take_back` after it; NoIsolate says why there is none."""
        if self._closed:
            raise NoIsolate("the worker is stopping")
        if self._idle:
            isolate, timer = self._idle.popitem()  # the one that was used last: its caches are the warmest
            timer.cancel()
            return isolate
        place: asyncio.Future[Isolate] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        self._start_wanted()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.take_back(place.result())
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._line.remove(place)

    def take_back(self, isolate: Isolate) -> None:
        """The run is over, whatever became of the isolate."""
        if not isolate.alive or self._closed:
            return  # what is dead is replaced when its death is heard of
        self._backoff.reset()
        self._offer(isolate)

    async def close(self) -> None:
        """End all of them; nobody may be running anything by now."""
        self._closed = True
        self._refuse("the worker is stopping")
        for task in self._starting:
            task.cancel()
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        ending = [asyncio.ensure_future(isolate.end(within_s=_END_WITHIN_S)) for isolate in self._isolates]
        tasks = {*ending, *self._starting, *self._ending}
        if tasks:
            await asyncio.wait(tasks)

    # ------------------------------------------------------------ starting

    def _start_wanted(self) -> None:
        """As many as there are waiting, and one to be kept warm; one at a time while starting fails."""
        if self._closed:
            return
        wanted = max(len(self._line), int(self._is_warm and not self._isolates))
        wanted = min(wanted, self._most - len(self._isolates), 1 if self._pause_s else self._most)
        while len(self._starting) < wanted:
            task = asyncio.get_running_loop().create_task(self._start(self._pause_s), name="isolate")
            self._starting.add(task)

    async def _start(self, pause_s: float) -> None:
        me = asyncio.current_task()
        assert me is not None
        try:
            await asyncio.sleep(pause_s)
            isolate = await Isolate.start(self._birth(), longest=self._longest)
        except Exception as error:  # whatever it is: those in line must hear of it
            self._starting.discard(me)
            self._pause_s = self._backoff.next()
            why = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
            self._telemetry.emit(IsolateNotStarted(why, self._pause_s))
            if not self._isolates:
                self._refuse(f"no process could be started for it: {why}")
            self._start_wanted()
        else:
            self._starting.discard(me)
            self._pause_s = 0.0
            self._isolates.add(isolate)
            isolate.when_dead(self._forget)
            self._offer(isolate)
        finally:
            self._starting.discard(me)

    def _refuse(self, why: str) -> None:
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_exception(NoIsolate(why))

    # ------------------------------------------------------------ keeping

    def _offer(self, isolate: Isolate) -> None:
        """To the first in line, else to whoever comes."""
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(isolate)
                return
        self._idle[isolate] = asyncio.get_running_loop().call_later(self._idle_s, self._let_go, isolate)

    def _let_go(self, isolate: Isolate) -> None:
        """It has been idle for long; the last one stays."""
        if len(self._isolates) > 1:
            del self._idle[isolate]
            self._isolates.discard(isolate)
            task = asyncio.get_running_loop().create_task(isolate.end(within_s=_END_WITHIN_S))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _forget(self, isolate: Isolate) -> None:
        """It has died; whoever had it hears so from it."""
        timer = self._idle.pop(isolate, None)
        if timer is not None:
            timer.cancel()
        if timer is not None or not isolate.began:
            self._pause_s = self._backoff.next()  # it died of itself, and the next one may do so, too: no hot loop
        self._isolates.discard(isolate)
        self._start_wanted()
