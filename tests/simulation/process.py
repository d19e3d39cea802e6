"""A simulated process: threads, clocks, an identity; it can be halted, killed, and have its wall clock set."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.loop import ThreadLoop

from holdfast.core.ids import IdFactory

if TYPE_CHECKING:
    from tests.simulation.world import World

#: When the world begins, by a wall clock that is right.
EPOCH_S = 1_700_000_000.0


class Process:
    """Also its clock: `holdfast.runtime.clock.Clock`."""

    def __init__(self, world: World, name: str, rng: Random) -> None:
        self.world = world
        self.name = name
        self.rng = rng
        self.is_dead = False
        self.died_s = float("inf")
        self.uptime_s = rng.uniform(0.0, 1e5)
        """What its monotonic clock said when the world began."""
        self.skew_s = rng.choice((0.0, 0.0, rng.uniform(-5.0, 5.0), rng.uniform(-4000.0, 4000.0)))
        """By how much its wall clock is ahead."""
        self.excused: list[tuple[float, float]] = []
        """When it could not run, so that it could not stop anything, either."""
        self.threads: list[ThreadLoop] = []
        self.new_job_id = IdFactory(lambda: int(self.now() * 1000), rng.getrandbits)
        self.main = self.new_thread("main")

    # ------------------------------------------------------------ the clock

    def now(self) -> float:
        return EPOCH_S + self.world.now_s + self.skew_s

    def monotonic(self) -> float:
        return self.world.now_s + self.uptime_s

    # ------------------------------------------------------------ what it is made of

    def new_thread(self, name: str) -> ThreadLoop:
        thread = ThreadLoop(self, name)
        self.threads.append(thread)
        return thread

    def new_uuid(self) -> UUID:
        return UUID(int=self.rng.getrandbits(128), version=4)

    def begin(self, main: Coroutine[Any, Any, None], on_end: Callable[[], None] | None = None) -> None:
        """Run its program; whatever that raises is a fault of the program."""
        task = self.main.create_task(main, name=self.name)

        def ended(_: object) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.world.object_to(self, f"its program ended with {error!r}")
            elif on_end is not None:
                on_end()

        task.add_done_callback(ended)

    # ------------------------------------------------------------ what can happen to it

    def halt(self, seconds: float, threads: list[ThreadLoop] | None = None) -> None:
        """It does not go on for so long; the world does. Without `threads` all of it, as by SIGSTOP."""
        until_s = self.world.now_s + seconds
        self.excused.append((self.world.now_s, until_s))
        for thread in threads or self.threads:
            thread.halted_until_s = max(thread.halted_until_s, until_s)

    def kill(self) -> None:
        """Nothing of it runs any more, no clean-up either; what it has sent is on its way."""
        self.is_dead = True
        self.died_s = self.world.now_s
