"""Finds the scene of a cell, plays it within its time, and says what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.faults.scenes import (
    announced,
    deprived,
    in_user_code,
    migrating,
    struck,
    struck_cluster,
    struck_redis,
    struck_server,
)
from tests.faults.table.cells import Cell
from tests.history import Report

from holdfast.local import LocalPostgres

#: Twice what any single wait in a scene may take.
LIMIT_S = 60.0

SCENES: dict[str, Callable[[Cell, Path], Awaitable[Report]]] = {
    "struck": struck.play,
    "announced": announced.play,
    "struck_redis": struck_redis.play,
    "struck_cluster": struck_cluster.play,
    "in_user_code": in_user_code.play,
    "migrating": migrating.play,
    "deprived": deprived.play,
}
#: Those that need to have the server itself in hand.
SERVER_SCENES: dict[str, Callable[[Cell, Path, LocalPostgres], Awaitable[Report]]] = {
    "struck_server": struck_server.play,
}


def play(cell: Cell, directory: Path, server: LocalPostgres | None = None) -> Report:
    """In a directory of its own, whose store is empty; an AssertionError says what did not come about."""

    async def within_its_time() -> Report:
        async with asyncio.timeout(LIMIT_S):
            if cell.scene in SCENES:
                return await SCENES[cell.scene](cell, directory)
            assert server is not None
            return await SERVER_SCENES[cell.scene](cell, directory, server)

    report = asyncio.run(within_its_time())
    assert report.sound, report
    assert report.jobs, "a scene without a job proves nothing"
    return report
