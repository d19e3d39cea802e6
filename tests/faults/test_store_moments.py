"""Every store verb × {asked for, executed, committed} × {its answer fails, its process is killed}.

A verb happens as a whole or not at all: what is in the file afterwards is what was there before, or what the
undisturbed verb leaves, down to the last row. Its caller repeats it, and then it has happened once.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

import pytest
from tests.campaign.where import Where
from tests.faults.rows import TOLD_TWICE, Rows, difference, rows_of, told_once_more
from tests.faults.scenarios import BEGIN, LATER, SCENES, Play, store_at
from tests.faults.struck import Stage
from tests.faults.table.failpoints import ANNOUNCING

from holdfast.core.errors import StoreDataError, StoreUnavailable
from holdfast.runtime.failpoints import armed
from holdfast.stores.moments import VERBS

MOMENTS = ("begin", "inside", "committed")
#: Cells beside `fail` and `kill9` of store verbs, with the test that has them.
WORKER_CELLS = {
    ("C4", "kill9"): "test_worker_moments",
    ("C4", "stop"): "test_worker_moments",
    ("R2", "kill9"): "test_worker_moments",
    ("R2", "stop"): "test_worker_moments",
    **{
        (f"finish.{moment}", strike): "tests/transactions, on PostgreSQL, which alone has it"
        for moment in MOMENTS
        for strike in ("fail", "kill9")
    },
    ("finish.begin", "stop"): "tests/transactions",
    **{
        (f"migrate.{moment}", strike): "scenes/migrating, by the table of test_table"
        for moment in MOMENTS
        for strike in ("fail", "kill9", "stop")
    },
    **{
        (point, strike): "scenes/announced, by the table of test_table, where there is a Redis"
        for point in ANNOUNCING
        for strike in ("fail", "kill9", "stop")
    },
}
#: What is left out, and why.
NOT_MEANINGFUL = {
    ("C4", "fail"): "between claim and user code there is nothing that could fail and leave the process alive",
    ("R2", "fail"): "between user code and its outcome there is nothing that could fail and leave the process alive",
    **{
        (f"{verb}.{moment}", "stop"): "a process stopped inside a verb holds the file's lock (test_locked_store has "
        "that) or nothing at all (test_worker_moments, the campaign)"
        for verb in VERBS
        for moment in MOMENTS
    },
    ("finish.inside", "stop"): "the server ends the transaction of a process that is stopped there, as by a kill",
    ("finish.committed", "stop"): "nothing is held there, and nothing is left to be written",
}
#: Verbs whose repetition is refused: the caller makes a new identity instead.
REFUSED_TWICE = {"register_worker": StoreDataError}


class Scenery(NamedTuple):
    """The file that a verb finds, what is in it, and what it leaves there."""

    database: Path
    before: Rows
    after: Rows


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture(scope="module")
def sceneries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenery]:
    directory = tmp_path_factory.mktemp("sceneries")
    return {verb: _prepare(directory, verb) for verb in VERBS}


@pytest.fixture
def scenery(request: pytest.FixtureRequest, sceneries: dict[str, Scenery], tmp_path: Path) -> Scenery:
    """A copy of the verb's file, to be struck."""
    prepared = sceneries[request.getfixturevalue("verb")]
    return prepared._replace(database=_copy(prepared.database, tmp_path / "struck.db"))


def _prepare(directory: Path, verb: str) -> Scenery:
    database = directory / f"{verb}.db"
    scene = SCENES[verb]
    asyncio.run(_play(database, scene.before, BEGIN))
    before = rows_of(database)
    undisturbed = _copy(database, directory / f"{verb}-after.db")
    asyncio.run(_play(undisturbed, scene.act, LATER))
    after = rows_of(undisturbed)
    assert before != after, f"the scene of {verb} changes nothing: it would prove nothing"
    return Scenery(database, before, after)


def _copy(database: Path, target: Path) -> Path:
    return Path(shutil.copy(database, target))


async def _play(database: Path, play: Play, now: float) -> object:
    store = store_at(Where(path=str(database)), now)
    await store.open()
    try:
        return await play(store)
    finally:
        await store.close()


def _assert_rows(database: Path, expected: Rows) -> None:
    found = rows_of(database)
    assert found == expected, difference(found, expected)


def _repeat(verb: str, scenery: Scenery, *, has_happened: bool) -> None:
    """What the caller does next, and what must have come of it."""
    if has_happened and verb in REFUSED_TWICE:
        with pytest.raises(REFUSED_TWICE[verb]):
            asyncio.run(_play(scenery.database, SCENES[verb].act, LATER))
    else:
        asyncio.run(_play(scenery.database, SCENES[verb].act, LATER))
    if has_happened and verb in TOLD_TWICE:
        found = rows_of(scenery.database)
        assert told_once_more(found, scenery.after), difference(found, scenery.after)
    else:
        _assert_rows(scenery.database, scenery.after)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_fails_happens_as_a_whole_or_not_at_all(verb: str, moment: str, scenery: Scenery) -> None:
    async def act_struck() -> None:
        with armed(f"{verb}.{moment}", "fail"):
            await _play(scenery.database, SCENES[verb].act, LATER)

    with pytest.raises(StoreUnavailable) as raised:
        asyncio.run(act_struck())
    has_happened = moment == "committed"
    assert raised.value.unknown is has_happened
    _assert_rows(scenery.database, scenery.after if has_happened else scenery.before)
    _repeat(verb, scenery, has_happened=has_happened)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_process_leaves_a_verb_done_or_undone(verb: str, moment: str, scenery: Scenery, stage: Stage) -> None:
    code = stage.play(verb, Where(path=str(scenery.database)), f"{verb}.{moment}=kill9")
    assert code == -SIGKILL
    has_happened = moment == "committed"
    _assert_rows(scenery.database, scenery.after if has_happened else scenery.before)
    _repeat(verb, scenery, has_happened=has_happened)


def test_every_failpoint_has_its_cells(stage: Stage) -> None:
    cells = {(f"{verb}.{moment}", strike) for verb in VERBS for moment in MOMENTS for strike in ("fail", "kill9")}
    cells |= WORKER_CELLS.keys() | NOT_MEANINGFUL.keys()
    wanted = {(point, strike) for point in stage.declared() for strike in ("fail", "kill9", "stop")}
    assert cells == wanted, f"without a cell or a reason: {wanted - cells}; no such moment: {cells - wanted}"
    assert SCENES.keys() == set(VERBS)
