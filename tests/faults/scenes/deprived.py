"""A worker that the system gives no more file descriptors: it says so, does not spin, and goes on when it has some."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from signal import SIGTERM

from tests.campaign.child import Child, until
from tests.faults.scenes import market
from tests.faults.scenes.actors import WORKER
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.scenes.struck import Scene
from tests.faults.table.cells import Cell, Strike
from tests.faults.trial import PATIENCE_S
from tests.history import Report

_TICKS = os.sysconf("SC_CLK_TCK")
#: Of one processor; less is waiting.
SPINS = 0.8


async def play(cell: Cell, directory: Path) -> Report:
    with impatient_server():
        async with Cast.at(directory) as cast:
            scene = Scene(cast, cell.moment, Strike.FAIL, WORKER)
            try:
                await market.open_shop(cast)
                child = scene.start(WORKER)
                # At work: one that cannot even have its heartbeat ends, for whoever started it to start another.
                await until(lambda: " started, " in child.log.read_text(), within_s=PATIENCE_S, what="a worker")
                await _without_descriptors(scene, child)
                await scene.rest()
                child.signal(SIGTERM)
                await scene.dismissed(child)
            finally:
                scene.end()
        market.each_sold_once(cast)
        return cast.judged()


async def _without_descriptors(scene: Scene, child: Child) -> None:
    soft, hard = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (4, hard))
    try:
        await market.stock(scene.cast)
        if scene.cast.where.is_postgres:  # it needs new connections, and cannot have them
            scene.cast.glance.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast %%'"
            )
        used_s, began_s = _used_s(child), time.monotonic()
        await scene.past_the_lease()
        share = (_used_s(child) - used_s) / (time.monotonic() - began_s)
        assert share < SPINS, f"it uses {share:.0%} of a processor while it can do nothing"
    finally:
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (soft, hard))


def _used_s(child: Child) -> float:
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
