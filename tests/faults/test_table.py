"""The table of faults: nothing is silently absent from it, and a part in which everything occurs is played here.

All of it is played by `python -m tests.faults`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.campaign.where import Where
from tests.faults.scenes.playing import SCENES, SERVER_SCENES, play
from tests.faults.struck import Stage
from tests.faults.table import failpoints
from tests.faults.table.cells import REDIS, SQLITE, STORES, Cell, fault_at
from tests.faults.table.cells import Strike as Kind
from tests.faults.table.whole import covering, table
from tests.history.postgres_audit import remove_postgres_audit
from tests.postgres.emptied import empty
from tests.postgres.shared import QUICK, chosen_binaries, own_directory

from holdfast import Holdfast
from holdfast.local import LocalPostgres

TABLE = table()
PLAYED = covering(TABLE)
ROOT = Path(__file__).parents[2]
SCHEMA = "holdfast"


@pytest.fixture(scope="module")
def server(postgres_template: Callable[[Path], Path]) -> Iterator[LocalPostgres]:
    """To be restarted by whoever plays on it."""
    binaries = chosen_binaries()
    template = postgres_template(binaries)
    with LocalPostgres(own_directory(), settings=QUICK, binaries=binaries, template=template, temporary=True) as server:
        asyncio.run(Holdfast(server.url, schema=SCHEMA).migrate())
        yield server


@pytest.fixture
def stage_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Cell], LocalPostgres | None]:
    """Makes the place of a cell ready, and gives it the server where there is one."""

    def ready(cell: Cell) -> LocalPostgres | None:
        if cell.store == SQLITE:
            return None
        server: LocalPostgres = request.getfixturevalue("server")
        url = f"{server.url}?sslmode=disable"
        remove_postgres_audit(url, SCHEMA)
        with psycopg.connect(url, autocommit=True) as connection:
            empty(connection, SCHEMA)
        Where(url=url, schema=SCHEMA).say(tmp_path)
        return server

    return ready


@pytest.mark.parametrize("cell", [pytest.param(cell, id=cell.name) for cell in PLAYED])
def test_a_cell_is_sound(cell: Cell, tmp_path: Path, stage_of: Callable[[Cell], LocalPostgres | None]) -> None:
    play(cell, tmp_path, stage_of(cell))


def test_every_failpoint_of_the_code_is_in_the_table_with_every_strike_and_store() -> None:
    with Stage() as stage:
        declared = stage.declared()
    wanted = {
        (point, fault_at(point, kind), store)
        for point in declared
        for kind in Kind
        for store in ((REDIS,) if point in failpoints.ANNOUNCING else STORES)
    }
    mine = {(cell.moment, cell.fault, cell.store) for cell in failpoints.cells() if cell.moment != "R1"}
    assert mine == wanted, f"absent: {wanted - mine}; no such moment: {mine - wanted}"


def test_every_moment_every_fault_and_every_store_is_in_what_is_played_here() -> None:
    playable = [cell for cell in TABLE if cell.scene and not cell.system]
    assert {(cell.part, cell.moment) for cell in PLAYED} == {(cell.part, cell.moment) for cell in playable}
    assert {(cell.fault, cell.store) for cell in PLAYED} == {(cell.fault, cell.store) for cell in playable}
    assert all(cell.scene in SCENES.keys() | SERVER_SCENES.keys() for cell in playable)


def test_tests_that_cells_name_are_there() -> None:
    for name in sorted({cell.test for cell in TABLE if cell.test}):
        path, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text("utf-8"), f"there is no {name}"
