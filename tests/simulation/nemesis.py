"""What strikes processes, clocks and the way to the store, and when: drawn from the seed before the world begins."""

from __future__ import annotations

from random import Random

from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.wire import Wire
from tests.simulation.worker import SimulatedWorker

KINDS = (
    *("kill", "pause", "hiccup", "block", "restart", "restart_now"),
    *("cut", "fade", "outage", "set_store_clock", "set_wall_clock"),
)


class Nemesis:
    """Most seeds have some kinds of faults only: what hides in few of them would drown in all."""

    def __init__(self, scene: Scene, *, only: str | None = None) -> None:
        """`only`: this kind of fault, again and again, and nothing else."""
        self._scene = scene
        self._world = scene.world
        self._rng = rng = Random(scene.rng.getrandbits(64))
        if only is None:
            chosen = [kind for kind in KINDS if rng.random() < 0.4]
            count = rng.choice((0, 2, 4, 8)) if chosen else 0
        else:
            chosen, count = [only], 6
            scene.weather.clear_up()
        for _ in range(count):
            self._world.after(rng.random() * scene.faults_last_s, getattr(self, rng.choice(chosen)))
        self._world.after(scene.faults_last_s, self.make_peace)

    def make_peace(self) -> None:
        """From now on nothing new breaks; a way to the store that is cut comes back in its own time."""
        self._world.say("nemesis", "peace")
        self._scene.weather.clear_up()
        for process in self._world.processes:
            for thread in process.threads:
                thread.halted_until_s = min(thread.halted_until_s, self._world.now_s)
        for worker in self._scene.workers if self._scene.deploy_ends else ():
            worker.upgrade()

    def _note(self, who: str, what: str, word: str) -> None:
        self._world.happened[word] += 1
        self._world.say("nemesis", f"{who}: {what}")

    def _victim(self) -> tuple[Process, Wire]:
        places = [*self._scene.workers, *self._scene.workers, *self._scene.producers]
        place = self._rng.choice(places)
        return place.process, place.wire

    # ------------------------------------------------------------ processes

    def kill(self) -> None:
        process, _ = self._victim()
        self._scene.killed(process, "by the nemesis")

    def pause(self) -> None:
        process, _ = self._victim()
        seconds = self._scene.config.lease_s * self._rng.random() * 2.5
        self._note(process.name, f"stopped for {seconds:.2f} s", "paused")
        process.halt(seconds)

    def hiccup(self) -> None:
        process, _ = self._victim()
        seconds = self._rng.random() * 0.2
        self._note(process.name, f"slow for {seconds:.3f} s", "hiccup")
        process.halt(seconds)

    def block(self) -> None:
        """Some code holds the event loop: its other threads go on."""
        process, _ = self._victim()
        seconds = self._scene.config.lease_s * self._rng.random() * 2
        self._note(process.name, f"its event loop is blocked for {seconds:.2f} s", "blocked")
        process.halt(seconds, [process.main])

    def restart(self) -> None:
        self._restart(self._rng.choice(self._scene.workers), now=False)

    def restart_now(self) -> None:
        self._restart(self._rng.choice(self._scene.workers), now=True)

    def _restart(self, worker: SimulatedWorker, *, now: bool) -> None:
        self._note(worker.process.name, "restarted" + " at once" * now, "restarted")
        worker.restart(now=now)

    # ------------------------------------------------------------ the way to the store

    def cut(self) -> None:
        """At times somebody also tries to stop what does not reach the store."""
        place = self._rng.choice([*self._scene.workers, *self._scene.workers, *self._scene.producers])
        seconds = self._scene.config.lease_s * self._rng.random() * 2.5
        self._note(place.process.name, f"does not reach the store for {seconds:.2f} s", "cut off")
        place.wire.cut_until_s = self._world.now_s + seconds
        if place in self._scene.workers and self._rng.random() < 0.4:
            self._world.after(self._rng.random() * seconds, lambda: self._restart(place, now=False))

    def fade(self) -> None:
        """A way that gets worse and worse: answers take long, then there are none."""
        process, wire = self._victim()
        lease_s = self._scene.config.lease_s
        self._note(process.name, "hears the store later and later, and then not at all", "faded")
        wire.late_by_s = lease_s * (0.3 + 0.5 * self._rng.random())

        def cut() -> None:
            wire.late_by_s, wire.cut_until_s = 0.0, self._world.now_s + 2 * lease_s

        self._world.after(lease_s * (0.2 + 0.8 * self._rng.random()), cut)

    def outage(self) -> None:
        seconds = self._scene.config.lease_s * self._rng.random() * 1.5
        self._note("store", f"out of reach for {seconds:.2f} s", "outage")
        self._scene.weather.outage_until_s = self._world.now_s + seconds

    # ------------------------------------------------------------ clocks

    def set_store_clock(self) -> None:
        seconds = self._rng.choice((-0.7, 0.7, -self._rng.random() * 5, self._rng.random() * 30, 3600.0))
        self._note("store", f"its clock jumps by {seconds:.2f} s", "store clock set")
        self._scene.server.ahead_s += seconds
        self._scene.clock_was_set = True

    def set_wall_clock(self) -> None:
        process, _ = self._victim()
        process.skew_s += self._rng.uniform(-4000.0, 4000.0)
        self._note(process.name, "its wall clock is set", "wall clock set")
