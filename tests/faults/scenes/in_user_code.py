"""R1: a task strikes its own process, or takes what it should not, in the middle of the user's code."""

from __future__ import annotations

from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM

from tests.campaign.child import until
from tests.faults.scenes.actors import WORKER
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.scenes.struck import Scene, no_complaints, working
from tests.faults.table.cells import Cell, Strike
from tests.faults.trial import PATIENCE_S
from tests.history import Report

from holdfast.core.cause import Cause

#: Why it had to run again.
_CAUSES = {
    "fail": [Cause.RETRY],
    "hang": [Cause.RETRY],
    "kill9": [Cause.LEASE_EXPIRED],
    "stop": [Cause.LEASE_EXPIRED],
    "memory": [Cause.RETRY],
    "block": [],
}


async def play(cell: Cell, directory: Path) -> Report:
    with impatient_server():
        async with Cast.at(directory) as cast:
            scene = Scene(cast, "R1", Strike.FAIL, WORKER)
            handle = await cast.strike.enqueue(cell.strike)
            cast.accepted(handle)
            try:
                await _struck(scene, cell.strike)
            finally:
                scene.end()
            assert await cast.causes(handle.id) == _CAUSES[cell.strike]
        no_complaints(scene)
        return cast.judged()


async def _struck(scene: Scene, how: str) -> None:
    child = scene.start(WORKER)
    match how:
        case "kill9":
            assert await child.ended(within_s=PATIENCE_S) == -SIGKILL
            async with working(scene.cast):
                await scene.rest()
        case "stop":
            await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop", log=child.log)
            async with working(scene.cast):
                await scene.rest()
                child.signal(SIGCONT)
                child.signal(SIGTERM)
                await scene.dismissed(child)
        case _:
            await scene.rest()
            child.signal(SIGTERM)
            await scene.dismissed(child)
