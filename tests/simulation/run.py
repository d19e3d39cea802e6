"""One seed from beginning to end: faults for a while, then peace, rest, the end of all processes, and the judgement."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.history.report import Report
from tests.simulation.judge import judge
from tests.simulation.nemesis import Nemesis
from tests.simulation.operator import Operator
from tests.simulation.producer import SimulatedProducer
from tests.simulation.replaced import replaced
from tests.simulation.scene import Scene
from tests.simulation.worker import SimulatedWorker
from tests.simulation.world import World

#: After the last fault everything has to be done within so much virtual time, whatever happened before.
REST_WITHIN_S = 240.0
#: Many jobs that must run alone may take longer, one after the other; then there is less time for all the rest.
REST_BESIDE_LONELY_S = 100.0
REST_AT_LAST_S = 1200.0
END_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a seed; sound if nothing is broken."""

    seed: int
    broken: tuple[str, ...]
    happened: Counter[str]
    report: Report
    virtual_s: float
    to_rest_s: float
    """From the last fault to rest."""


def simulate(seed: int, *, only: str | None = None, trace: Callable[[str], None] | None = None) -> Outcome:
    """Everything that happens follows from the seed and the code. `only`: one kind of fault, again and again."""
    with replaced():
        return simulate_here(seed, only=only, trace=trace)


def simulate_here(seed: int, *, only: str | None = None, trace: Callable[[str], None] | None = None) -> Outcome:
    """`simulate` where what is to be replaced is replaced."""
    random.seed(seed)
    world = World(seed, trace=trace)
    try:
        return _play(world, only)
    finally:
        world.tear_down()


def _play(world: World, only: str | None) -> Outcome:
    scene = Scene(world)
    workers = scene.rng.choice((1, 2, 2, 3)) if only is None else 3  # somebody has to take over
    scene.workers += [SimulatedWorker(scene, number) for number in range(workers)]
    scene.producers += [SimulatedProducer(scene, number) for number in range(scene.rng.choice((1, 1, 2)))]
    Nemesis(scene, only=only)
    Operator(scene)
    world.run(lambda: False, limit_s=scene.faults_last_s)
    if not _comes_to_rest(scene):
        world.objections.append(f"no rest within {REST_WITHIN_S:g} s of virtual time: {scene.unrest()}")
    rested_s = world.now_s
    scene.is_over = True
    for worker in scene.workers:
        worker.stop()
    if not world.run(scene.has_ended, limit_s=world.now_s + END_WITHIN_S):
        left = [worker.process.name for worker in scene.workers if not worker.has_ended]
        world.objections.append(f"told to stop, still there {END_WITHIN_S:g} s later: {', '.join(left)}")
    report, broken = judge(scene)
    happened = world.happened + Counter({f"verdict {word}": count for word, count in scene.server.verdicts.items()})
    return Outcome(world.seed, tuple(broken), happened, report, world.now_s, rested_s - scene.faults_last_s)


def _comes_to_rest(scene: Scene) -> bool:
    world, since_s = scene.world, scene.faults_last_s
    limit_s = since_s + REST_WITHIN_S
    while not world.run(scene.is_at_rest, limit_s=limit_s):
        lonely_s = REST_BESIDE_LONELY_S + scene.server.alone_s(since_s)
        was_s, limit_s = limit_s, since_s + min(REST_AT_LAST_S, lonely_s)
        if limit_s <= was_s:
            return False
    return True
