"""Plays a failpoint's cells where jobs are announced by a Redis: the same scenes, with a server of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.campaign.where import Where
from tests.faults.scenes import struck
from tests.faults.table.cells import Cell
from tests.history import Report
from tests.postgres.shared import own_directory
from tests.redis.fixtures import QUICK, chosen_server

from holdfast.local import LocalRedis


async def play(cell: Cell, directory: Path) -> Report:
    with LocalRedis(own_directory(), settings=QUICK, binary=chosen_server(), temporary=True) as redis:
        replace(Where.of(directory), redis=redis.url).say(directory)
        return await struck.play(cell, directory)
