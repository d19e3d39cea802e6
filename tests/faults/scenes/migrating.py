"""M5: whoever makes the tables is struck at some step of it; others make the rest, and then jobs run."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from signal import SIGCONT, SIGKILL

import psycopg
from psycopg import sql
from tests.campaign.child import tail_of, until
from tests.campaign.where import Where
from tests.faults.scenes import market
from tests.faults.scenes.actors import MIGRATOR, migrate
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.scenes.struck import Scene, no_complaints, working
from tests.faults.table.cells import Cell, Strike
from tests.faults.trial import PATIENCE_S
from tests.history import Report

from holdfast.runtime.failpoints import arm, disarm, hits, release

#: The step at which it is struck: in the middle.
STEP = 3


async def play(cell: Cell, directory: Path) -> Report:
    given = Where.of(directory)
    if given.is_postgres:  # a schema in which there is nothing yet
        Where(url=given.url, schema=f"hf_{secrets.token_hex(6)}").say(directory)
    cast = Cast.at(directory)
    scene = Scene(cast, cell.moment, Strike(cell.strike), MIGRATOR)
    try:
        with impatient_server():
            await _STRIKES[scene.strike](scene)
            await migrate(cast)
            async with cast:
                await market.open_shop(cast)
                await market.stock(cast)
                async with working(cast):
                    await scene.rest()
            market.each_sold_once(cast)
            no_complaints(scene)
            return cast.judged()
    finally:
        disarm(scene.point)
        scene.end()
        if given.is_postgres:
            with psycopg.connect(given.url, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(cast.where.schema)))
                connection.execute(sql.SQL(f"DROP TABLE IF EXISTS {cast.sales}"))  # type: ignore[arg-type]


async def _fail(scene: Scene) -> None:
    arm(scene.point, "fail", skip=STEP - 1)
    await migrate(scene.cast)
    assert hits(scene.point) >= STEP


async def _hang(scene: Scene) -> None:
    arm(scene.point, "hang", skip=STEP - 1)
    mine = asyncio.create_task(migrate(scene.cast))
    await until(lambda: hits(scene.point) >= STEP, within_s=PATIENCE_S, what="the step")
    other = scene.start(MIGRATOR)
    await scene.past_the_lease()
    release(scene.point)
    await asyncio.wait_for(mine, PATIENCE_S)
    await scene.dismissed(other)


async def _kill(scene: Scene) -> None:
    child = scene.start(MIGRATOR, f"{scene.point}=kill9@{STEP}")
    assert await child.ended(within_s=PATIENCE_S) == -SIGKILL, tail_of(child.log)


async def _stop(scene: Scene) -> None:
    child = scene.start(MIGRATOR, f"{scene.point}=stop@{STEP}")
    await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop", log=child.log)
    mine = asyncio.create_task(migrate(scene.cast))
    await scene.past_the_lease()
    child.signal(SIGCONT)
    await asyncio.wait_for(mine, PATIENCE_S)
    await scene.dismissed(child)


_STRIKES = {Strike.FAIL: _fail, Strike.HANG: _hang, Strike.KILL: _kill, Strike.STOP: _stop}
