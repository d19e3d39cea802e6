"""The machine that everything runs on: virtual time, which jumps to the next event, and the seed's choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Protocol

from tests.simulation.loop import ThreadLoop, go_on_in
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.scene import Scene


class Due(Protocol):
    """Something that has a time."""

    is_cancelled: bool

    def come_due(self) -> None: ...


class Event:
    """Something that happens to the world, outside of all processes."""

    __slots__ = ("_act", "is_cancelled")

    def __init__(self, act: Callable[[], object]) -> None:
        self.is_cancelled = False
        self._act = act

    def come_due(self) -> None:
        self._act()


class World:
    """One for each seed. Nothing here depends on real time, on hashes of texts, or on the order of sets."""

    scene: Scene

    def __init__(self, seed: int, *, trace: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now_s = 0.0
        self.runnable: list[ThreadLoop] = []
        self.processes: list[Process] = []
        self.happened: Counter[str] = Counter()
        """Faults and what came of them, to see how hard a seed is."""
        self.objections: list[str] = []
        """What must not happen, whatever the histories say."""
        self.trace = trace
        self._due: list[tuple[float, float, int, Due]] = []
        self._numbers = count()
        self._chance = self.rng.random

    def new_process(self, name: str) -> Process:
        process = Process(self, name, Random(self.rng.getrandbits(64)))
        self.processes.append(process)
        return process

    def say(self, who: str, what: str) -> None:
        """For whoever reads the trace."""
        if self.trace is not None:
            self.trace(f"{self.now_s:9.4f}  {who:<10}  {what}")

    def object_to(self, process: Process, what: str) -> None:
        self.say(process.name, f"OBJECTION {what}")
        self.objections.append(f"{process.name}: {what}")

    # ------------------------------------------------------------ time

    def at(self, when_s: float, due: Due) -> None:
        """Of two at the same time, the seed decides which is first."""
        heappush(self._due, (when_s, self._chance(), next(self._numbers), due))

    def after(self, seconds: float, act: Callable[[], object]) -> Event:
        event = Event(act)
        self.at(self.now_s + seconds, event)
        return event

    def run(self, until: Callable[[], bool], *, limit_s: float) -> bool:
        """Let things happen until that is so; False when it was not so by then, or nothing can happen any more."""
        try:
            return self._run(until, limit_s)
        finally:
            go_on_in(None)

    def _run(self, until: Callable[[], bool], limit_s: float) -> bool:
        while not until():
            if self.runnable:
                self._run_a_thread()
                continue
            while self._due and self._due[0][3].is_cancelled:
                heappop(self._due)
            if not self._due or self._due[0][0] > limit_s:
                return False
            when_s, _, _, due = heappop(self._due)
            self.now_s = max(self.now_s, when_s)
            due.come_due()
        return True

    def _run_a_thread(self) -> None:
        runnable = self.runnable
        if len(runnable) == 1:
            thread = runnable.pop()
        else:
            index = int(self._chance() * len(runnable))
            thread, runnable[index] = runnable[index], runnable[-1]
            runnable.pop()
        if thread.process.is_dead:
            return
        if thread.halted_until_s > self.now_s:
            self.after(thread.halted_until_s - self.now_s, lambda: self._go_on(thread))
        else:
            thread.run_ready()

    def _go_on(self, thread: ThreadLoop) -> None:
        if self.rng.random() < 0.5:
            thread.answers_first()
        self.runnable.append(thread)

    def tear_down(self) -> None:
        """Let go of everything, so that nothing of this world is heard in the next."""
        self._due.clear()
        for process in self.processes:
            process.is_dead = True
        for process in self.processes:
            for thread in process.threads:
                thread.tear_down()
