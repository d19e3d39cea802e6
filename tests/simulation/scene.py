"""One seed's cast: the store, the workers and producers, and what the seed chose for them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.simulation.process import Process
from tests.simulation.server import Server
from tests.simulation.story import Story
from tests.simulation.weather import Weather
from tests.simulation.wire import Network
from tests.simulation.world import World

from holdfast.config import Config

if TYPE_CHECKING:
    from tests.simulation.producer import SimulatedProducer
    from tests.simulation.worker import SimulatedWorker


class Scene:
    """See the module's sentence."""

    def __init__(self, world: World) -> None:
        world.scene = self
        self.world = world
        self.rng = rng = Random(world.rng.getrandbits(64))
        lease_s = rng.choice((2.0, 4.0, 10.0))
        self.config = Config(
            lease_s=lease_s,
            concurrency=rng.choice((2, 25, 25, 40)),  # with fewer slots than lanes a worker asks many times
            grace_s=rng.choice((0.0, 1.0, lease_s)),
            poll_s=rng.choice((0.5, 1.0)),
            queues=rng.choice((("work",), ("work",), ())),
            wait_s=rng.choice((0.5, 5.0)),
            unknown_after_s=rng.choice((2.0, 300.0)),
        )
        self.server = Server(world, lanes_at_once=rng.random() < 0.5)
        self.weather = Weather.drawn(Random(rng.getrandbits(64)), lease_s)
        self.network = Network(self.server, self.weather)
        self.story = Story(world)
        self.workers: list[SimulatedWorker] = []
        self.producers: list[SimulatedProducer] = []
        self.faults_last_s = lease_s * rng.choice((2.0, 3.0))
        """When the faults stop."""
        self.deploy_ends = world.seed % 2 == 0
        """Whether all workers know all tasks in the end; if not, old and new ones stay side by side."""
        self.clock_was_set = False
        self.narrowed = False
        """An operator has set a limit otherwise than its task does."""
        self.is_over = False
        """No process is started any more."""

    def is_at_rest(self) -> bool:
        """All jobs have ended, but for those that nobody can run; and nobody asks for more."""
        if self.server.live or self.network.requests_under_way:
            return False
        return all(each.has_ended or each.process.is_dead for each in self.producers)

    def unrest(self) -> str:
        jobs = [
            f"{self.server.name_of(job_id)} {job.new.task} is {job.state}"
            for job_id, job in self.server.model.jobs.items()
            if not job.state.ended
        ]
        clients = [each.process.name for each in self.producers if not each.has_ended and not each.process.is_dead]
        return "; ".join([*jobs, *(f"{name} still waits" for name in clients)])

    def has_ended(self) -> bool:
        return all(worker.has_ended for worker in self.workers)

    def killed(self, process: Process, how: str) -> None:
        """A process is gone; whoever looks after it notices."""
        if process.is_dead:
            return
        self.world.say(process.name, f"killed {how}")
        self.world.happened["killed " + how] += 1
        process.kill()
        for worker in self.workers:
            if worker.process is process:
                worker.mourn()
