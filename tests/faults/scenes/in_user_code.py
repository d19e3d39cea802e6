"""R1: a task strikes its own process, in the middle of the user's code."""

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

_CAUSES = {
    Strike.FAIL: Cause.RETRY,
    Strike.HANG: Cause.RETRY,
    Strike.KILL: Cause.LEASE_EXPIRED,
    Strike.STOP: Cause.LEASE_EXPIRED,
}


async def play(cell: Cell, directory: Path) -> Report:
    strike = Strike(cell.strike)
    with impatient_server():
        async with Cast.at(directory) as cast:
            scene = Scene(cast, "R1", strike, WORKER)
            handle = await cast.strike.enqueue(strike)
            cast.accepted(handle)
            try:
                await _struck(scene)
            finally:
                scene.end()
            assert await cast.causes(handle.id) == [_CAUSES[strike]]
        no_complaints(scene)
        return cast.judged()


async def _struck(scene: Scene) -> None:
    child = scene.start(WORKER)
    match scene.strike:
        case Strike.KILL:
            assert await child.ended(within_s=PATIENCE_S) == -SIGKILL
            async with working(scene.cast):
                await scene.rest()
        case Strike.STOP:
            await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop", log=child.log)
            async with working(scene.cast):
                await scene.rest()
                child.signal(SIGCONT)
                child.signal(SIGTERM)
                await scene.dismissed(child)
        case Strike.FAIL | Strike.HANG:
            await scene.rest()
            child.signal(SIGTERM)
            await scene.dismissed(child)
