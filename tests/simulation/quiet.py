"""A world without faults, for tests that measure: the workers and the jobs that they say, on virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.simulation.replaced import replaced
from tests.simulation.scene import Scene
from tests.simulation.tasks import DEFINED
from tests.simulation.worker import SimulatedWorker
from tests.simulation.world import World

from holdfast.core.state import State
from holdfast.testing.contracts.arrange import a_job


class QuietWorld:
    """The seed still decides the order of what happens at the same time, and how long calls are under way."""

    def __init__(self, world: World, settings: dict[str, Any]) -> None:
        self.world = world
        self.scene = Scene(world)
        self.scene.config = replace(self.scene.config, **settings)
        self.scene.weather.clear_up()
        self.model = self.scene.server.model

    def add_worker(self, *, newer: bool = True) -> None:
        worker = SimulatedWorker(self.scene, len(self.scene.workers), newer=newer)
        self.scene.workers.append(worker)

    def enqueue(self, task: str, n: int, *, losses: int = 0) -> None:
        """As if `losses` workers had died with it."""
        server = self.scene.server
        server.tick()
        job = a_job(task=task, queue=DEFINED[task].options.queue, payload=b'{"args":[%d],"kwargs":{}}' % n)
        server.insert_jobs([job], whole=False, admit=True)
        self.model.jobs[job.id].losses = losses
        self.scene.network.tell(server.note_moves())

    def rest_within(self, seconds: float) -> bool:
        return self.world.run(self.scene.is_at_rest, limit_s=self.world.now_s + seconds)

    def running(self) -> int:
        return sum(job.state is State.RUNNING for job in self.model.jobs.values())

    def states(self) -> set[State]:
        return {job.state for job in self.model.jobs.values()}


@contextmanager
def quiet_world(seed: int, **settings: Any) -> Iterator[QuietWorld]:
    """`settings`: of the workers."""
    with replaced():
        world = World(seed)
        try:
            yield QuietWorld(world, settings)
        finally:
            world.tear_down()
