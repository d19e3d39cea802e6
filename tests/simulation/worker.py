"""A simulated worker: the real `Worker` with the real upkeep, and a supervisor that replaces it when it has died."""

from __future__ import annotations

from typing import NoReturn

from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.tasks import NEW, OLD
from tests.simulation.wire import Wire

from holdfast.core.cause import Cause
from holdfast.core.errors import StoreUnavailable
from holdfast.core.job import WorkerId
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import Event, ServiceCrashed
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.crew import make_crew
from holdfast.worker.lifecycle import Hooks
from holdfast.worker.worker import Worker


class SimulatedWorker:
    """A place that is always filled: by one process after the other."""

    def __init__(self, scene: Scene, number: int, *, newer: bool | None = None) -> None:
        self._scene = scene
        self._number = number
        self._lives = 0
        self._rng = scene.rng
        self.is_newer = (number == 0 or scene.rng.random() < 0.7) if newer is None else newer
        """The first one is, unless it is said: so there is always somebody who knows every task."""
        self.is_supervised = scene.rng.random() < 0.5
        """Whether somebody hands back what a dead process held, instead of its lease running out."""
        self.has_ended = False
        self._restarts = False
        self.start()

    def start(self) -> None:
        if self._scene.is_over:
            self.has_ended = True
            return
        self._lives += 1
        self._restarts = False
        scene, world = self._scene, self._scene.world
        self.process = process = world.new_process(f"worker{self._number}.{self._lives}")
        self.wire = Wire(process, scene.network)
        self.has_ended = False
        process.begin(self._live(process, self.wire), on_end=self._note_end)

    async def _live(self, process: Process, wire: Wire) -> None:
        config, telemetry = self._scene.config, Telemetry()
        telemetry.attach(self._note_crash, only=ServiceCrashed)
        if self._scene.world.trace is not None:
            telemetry.attach(self._trace)
        shared = {"clock": process, "telemetry": telemetry, "health": StoreHealth(clock=process, telemetry=telemetry)}
        registry = NEW if self.is_newer else OLD
        crew = make_crew(wire, registry, config, **shared)  # type: ignore[arg-type]
        self.worker = Worker(wire, registry, config, upkeep=crew, hooks=Hooks(), birth=_no_isolates, **shared)  # type: ignore[arg-type]
        await self.worker.start()
        await self.worker.wait_ended()

    def _note_end(self) -> None:
        self.has_ended = True
        self._scene.world.say(self.process.name, "ended")
        left = [task.get_coro().__qualname__ for thread in self.process.threads for task in thread.unfinished()]
        if left:
            self._scene.world.object_to(self.process, f"it has ended, but left tasks behind: {', '.join(left)}")
        self.process.kill()
        if self._restarts:
            self._scene.world.after(self._rng.random(), self.start)

    def _note_crash(self, event: Event) -> None:
        self._scene.world.object_to(self.process, f"a service crashed: {event}")

    def _trace(self, event: Event) -> None:
        self._scene.world.say(self.process.name, f"{event.name} {event!s:.150}")

    # ------------------------------------------------------------ the end of a process

    def stop(self, *, now: bool = False) -> None:
        """As by one SIGTERM, or by two."""
        if not self.process.is_dead and hasattr(self, "worker"):
            self._scene.world.say(self.process.name, "is told to stop" + " now" * now)
            self.process.main.call_soon_threadsafe(self.worker.stop_now if now else self.worker.ask_stop)

    def restart(self, *, now: bool) -> None:
        """As in a deploy: it stops, and another comes in its place."""
        if not self.process.is_dead:
            self._restarts = True
            self.stop(now=now)

    def upgrade(self) -> None:
        """The deploy is over."""
        if not self.is_newer:
            self.is_newer = True
            self.restart(now=False)

    def mourn(self) -> None:
        """Its process was killed."""
        world = self._scene.world
        session = getattr(self.worker, "session", None) if hasattr(self, "worker") else None
        suspects = self._scene.story.unfinished(self.process)
        if self.is_supervised and session is not None:
            world.after(self._rng.random() * 0.3, lambda: self._hand_back(session.id, suspects))
        world.after(self._rng.random() * 2.0, self.start)

    def _hand_back(self, worker: WorkerId, suspects: list[int]) -> None:
        supervisor = self._scene.world.new_process(f"super{self._number}")
        wire = Wire(supervisor, self._scene.network)

        async def apply() -> None:
            await retry_transient(
                lambda: wire.hand_back_worker(worker, cause=Cause.WORKER_LOST, why="killed", suspects=suspects),
                is_transient=lambda error: isinstance(error, StoreUnavailable),
                give_up_after_s=2 * self._scene.config.lease_s,
                backoff=Backoff(0.02, 1.0),
                clock=supervisor,
            )

        async def try_to() -> None:
            try:
                await apply()
            except StoreUnavailable:
                return  # the lease runs out

        supervisor.begin(try_to())


def _no_isolates() -> NoReturn:
    raise AssertionError("no simulated task is isolated")
