"""Plays a failpoint's cells: somebody is struck at the moment, the others bring everything to an end, the judge looks.

Who fails or hangs does so in this process, where the moment is seen and can be let go; who is killed or stopped is a
process of its own. Nothing may be left alive at the end, and nobody who was asked to end in order may end otherwise.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM
from uuid import UUID

from tests.campaign.child import Child, end_all, tail_of, until
from tests.faults.scenes import market
from tests.faults.scenes.actors import DEEDS, PRODUCER, WORKER, act
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.table.cells import Cell, Strike
from tests.faults.trial import PATIENCE_S
from tests.history import Report

from holdfast.runtime.failpoints import armed, disarm, hits, release

_ACTORS = "tests.faults.scenes.actors"
#: What a worker does when it ends, and not before.
_LAST_DEEDS = ("hand_back_worker", "resign")
_COMPLAINTS = ("Traceback", "was never retrieved", "was never awaited", "crashed")
_SESSIONS = (
    "SELECT pid, application_name, state, wait_event, left(query, 80) FROM pg_stat_activity "
    "WHERE application_name LIKE 'holdfast%%' AND (state <> 'idle' OR wait_event_type = 'Lock')"
)
#: By then a lease has run out that nobody has renewed, and others have acted on it.
PAST = 1.5


@dataclass(slots=True)
class Scene:
    """One cell in play."""

    cast: Cast
    point: str
    strike: Strike
    role: str
    jobs: Sequence[UUID] = ()
    """What an operator deals with."""
    aged: UUID | None = None
    """What the pruner is to forget."""
    children: list[Child] = field(default_factory=list)

    @property
    def is_last_deed(self) -> bool:
        return self.point.partition(".")[0] in _LAST_DEEDS

    @property
    def locks_everybody_out(self) -> bool:
        """On a file there is one lock for all who write, and it is held inside of every verb."""
        return self.point.endswith(".inside") and not self.cast.where.is_postgres

    def is_locked_out_by(self, stopped: Child) -> bool:
        """By chance: its other thread was writing to the file when it was stopped."""
        if self.cast.where.is_postgres or self.locks_everybody_out:
            return self.locks_everybody_out
        assert stopped.is_stopped
        with closing(sqlite3.connect(self.cast.where.path, isolation_level=None, timeout=5)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            db.execute("ROLLBACK")
            return False

    def start(self, role: str, failpoints: str = "") -> Child:
        log = self.cast.place.logs / f"{len(self.children)}-{role}.log"
        child = Child(_ACTORS, self.cast.place.directory, role, *self.jobs, log=log, failpoints=failpoints)
        self.children.append(child)
        return child

    async def rest(self) -> None:
        """Until nothing is alive that a worker could bring to an end."""

        def is_over() -> bool:
            if self.aged is not None and market.is_there(self.cast.where, self.aged):
                return False
            return not self.cast.glance.live()

        try:
            await until(is_over, within_s=PATIENCE_S, what="the end of all jobs")
        except AssertionError as vain:
            raise AssertionError(f"{vain}: {self.cast.glance.counts()}{self._sessions()}{self._logs()}") from None

    def _sessions(self) -> str:
        """What the server is at, where there is one."""
        return str(self.cast.glance.query(_SESSIONS)) if self.cast.where.is_postgres else ""

    def _logs(self) -> str:
        return "".join(f"\n{child} {child.code}: {tail_of(child.log, 8)}" for child in self.children)

    async def past_the_lease(self) -> None:
        await asyncio.sleep(PAST * self.cast.lease_s)

    def end(self) -> None:
        """Whatever has happened: nobody outlives the scene."""
        end_all(self.children)

    async def dismissed(self, child: Child) -> None:
        """It was asked to end, and does, in order."""
        code = await child.ended(within_s=PATIENCE_S)
        assert code == 0, f"ended with {code}:\n{tail_of(child.log)}"


async def play(cell: Cell, directory: Path) -> Report:
    """The judge's report; an AssertionError where something did not come about that had to."""
    with impatient_server():
        async with Cast.at(directory) as cast:
            verb = cell.moment.partition(".")[0]
            scene = Scene(cast, cell.moment, Strike(cell.strike), _role_of(verb))
            try:
                await _set(scene, verb)
                await _STRIKES[scene.strike](scene)
            finally:
                disarm(scene.point)
                scene.end()
        no_complaints(scene)
        market.each_sold_once(cast)
        return cast.judged()


def _role_of(verb: str) -> str:
    if verb in ("insert_jobs", "publish"):
        return PRODUCER
    return verb if verb in DEEDS else WORKER


async def _set(scene: Scene, verb: str) -> None:
    cast = scene.cast
    await market.open_shop(cast)
    await market.stock(cast)
    match verb:
        case "replay_jobs" | "purge_dead" | "edit_dead":
            scene.jobs = await market.bury(cast, 2)
        case "cancel_jobs" | "purge_queue":
            scene.jobs = await market.set_aside(cast, 2)
        case "move_jobs":
            scene.jobs = await market.line_up(cast, 2)
        case "prune_jobs":
            scene.aged = await market.age(cast)


# ---------------------------------------------------------------- the strikes


async def _fail(scene: Scene) -> None:
    cast = scene.cast
    with armed(scene.point, "fail"):
        if scene.role == WORKER:
            async with cast.hf.worker():
                await scene.rest()
                if not scene.is_last_deed:
                    await _hit(scene)
            await _hit(scene)
        else:
            await act(cast, scene.role, scene.jobs)
            await _hit(scene)
    async with cast.hf.worker():
        await scene.rest()


async def _hang(scene: Scene) -> None:
    """It is held up past its lease while others work, and then let go."""
    cast = scene.cast
    with armed(scene.point, "hang"):
        async with _at_work(scene) as ending:
            await _hit(scene)
            other = scene.start(WORKER)
            if scene.role == WORKER and not scene.locks_everybody_out:
                await until(lambda: cast.glance.identity(other.pid), within_s=PATIENCE_S, what="somebody else")
            await scene.past_the_lease()
            release(scene.point)
            await asyncio.wait_for(ending.wait(), PATIENCE_S)
            await scene.rest()
        other.signal(SIGTERM)
        await scene.dismissed(other)


@asynccontextmanager
async def _at_work(scene: Scene) -> AsyncIterator[asyncio.Event]:
    """In this process, in the background: every step of it may be the one that hangs. Set when it has gone on."""
    gone_on = asyncio.Event()

    async def work() -> None:
        if scene.role != WORKER:
            await act(scene.cast, scene.role, scene.jobs)
            return gone_on.set()
        worker = scene.cast.hf.worker()
        starting = asyncio.create_task(worker.start())
        try:
            if scene.is_last_deed:
                await starting
                await scene.rest()
            else:
                gone_on.set()
                await over.wait()
        finally:
            await worker.stop()
            gone_on.set()
            await starting

    over = asyncio.Event()
    working = asyncio.create_task(work())
    try:
        yield gone_on
    finally:
        over.set()
        await asyncio.wait_for(working, PATIENCE_S)


async def _kill(scene: Scene) -> None:
    child = scene.start(scene.role, f"{scene.point}=kill9")
    if scene.is_last_deed:
        await scene.rest()
        child.signal(SIGTERM)
    assert await child.ended(within_s=PATIENCE_S) == -SIGKILL, tail_of(child.log)
    await _others_go_on(scene)


async def _others_go_on(scene: Scene) -> None:
    """Whoever has to ask again asks again; then the work is done."""
    if scene.role != WORKER:
        await scene.dismissed(scene.start(scene.role))
    async with scene.cast.hf.worker():
        await scene.rest()


async def _stop(scene: Scene) -> None:
    child = scene.start(scene.role, f"{scene.point}=stop")
    if scene.is_last_deed:
        await scene.rest()
        child.signal(SIGTERM)
    await until(lambda: child.is_stopped, within_s=PATIENCE_S, what="the stop", log=child.log)
    zombie = scene.cast.glance.identity(child.pid)
    locked_out = scene.is_locked_out_by(child)
    async with working(scene.cast):
        await scene.past_the_lease()
        if scene.role == WORKER and not locked_out:
            await scene.rest()  # without it
        child.signal(SIGCONT)
        if scene.role == WORKER and not scene.is_last_deed:  # which follows on such a signal: a second may kill it
            await _awake(scene, child, zombie, locked_out)
            child.signal(SIGTERM)
        await scene.dismissed(child)
        await scene.rest()


@asynccontextmanager
async def working(cast: Cast) -> AsyncIterator[None]:
    """A worker, which may have to wait for the store before it can begin."""
    worker = cast.hf.worker()
    starting = asyncio.create_task(worker.start())
    try:
        yield
    finally:
        await worker.stop()
        await starting


async def _awake(scene: Scene, child: Child, zombie: UUID | None, locked_out: bool) -> None:
    """It works under a name that counts: its own, where nobody could take that away, or a new one."""

    def is_somebody() -> bool:
        now = scene.cast.glance.identity(child.pid)
        return now is not None and (now != zombie or locked_out)

    await until(is_somebody, within_s=PATIENCE_S, what="a name that counts", log=child.log)


_STRIKES = {Strike.FAIL: _fail, Strike.HANG: _hang, Strike.KILL: _kill, Strike.STOP: _stop}


async def _hit(scene: Scene) -> None:
    await until(lambda: hits(scene.point), within_s=PATIENCE_S, what=f"somebody to pass {scene.point}")


def no_complaints(scene: Scene) -> None:
    """In no log. Nothing is excused as a driver's: it was once the trace of a connection that two event loops used."""
    for child in scene.children:
        for line in child.log.read_text("utf-8", "replace").splitlines():
            found = [complaint for complaint in _COMPLAINTS if complaint in line]
            assert not found, f"{child} complains of {found}:\n{tail_of(child.log)}"
