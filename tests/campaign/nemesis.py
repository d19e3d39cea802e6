"""What is done to the processes: kills, stops, drains; and what operators do meanwhile: cancels and replays."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from signal import SIGCONT, SIGSTOP, SIGTERM
from uuid import UUID

from tests.campaign.child import Child
from tests.campaign.crew import DRAIN_DEADLINE_S, PRODUCER, WORKER, Crew
from tests.campaign.record import Glance
from tests.history import Answer, ClientRecorder

from holdfast import Holdfast, JobNotFound, StoreUnavailable
from holdfast.local import LocalPostgres

#: One round, shuffled; after whole rounds only, so that the proportions hold.
ROUND = (
    ("kill a worker", 5),
    ("kill a producer", 3),
    ("stop a worker past its lease", 2),
    ("stop a worker for a moment", 2),
    ("drain a worker", 1),
    ("drain a worker in a hurry", 1),
    ("cancel jobs", 4),
    ("replay dead jobs", 3),
)
_STANDSTILL_S = 3.0
RESTART = "restart the server in immediate mode"
#: The same where there is a server to be struck, too: two of these are thirty killed workers.
SERVER_ROUND = (
    *((name, 15 if name == "kill a worker" else (count + 1) // 2) for name, count in ROUND),
    (RESTART, 1),
    ("end connections", 3),
)
STRIKES_PER_ROUND = sum(count for _, count in SERVER_ROUND)


class Nemesis:
    """Seeded: the same seed strikes in the same order; when exactly, the machine decides."""

    def __init__(
        self,
        crew: Crew,
        glance: Glance,
        hf: Holdfast,
        client: ClientRecorder,
        rng: random.Random,
        *,
        lease_s: float,
        server: LocalPostgres | None = None,
    ) -> None:
        self._server = server
        self._crew = crew
        self._glance = glance
        self._hf = hf
        self._client = client
        self._rng = rng
        self._lease_s = lease_s
        self._slow: set[asyncio.Task[None]] = set()
        self._busy: set[int] = set()
        self.strikes: Counter[str] = Counter()
        self.rounds = 0

    @property
    def strikes_server(self) -> bool:
        return self._server is not None

    async def rage(self, *, pause_s: float, between: int, enough: Callable[[], bool]) -> None:
        """Whole rounds until it is enough; `between` two strikes so many jobs come to an end, if they can."""
        actions: dict[str, Callable[[], Awaitable[None]]] = {
            "kill a worker": lambda: self._kill(WORKER),
            "kill a producer": lambda: self._kill(PRODUCER),
            "stop a worker past its lease": self._stop_past_lease,
            "stop a worker for a moment": self._stop_for_a_moment,
            "drain a worker": lambda: self._drain(signals=1),
            "drain a worker in a hurry": lambda: self._drain(signals=2),
            "cancel jobs": self._cancel,
            "replay dead jobs": self._replay,
            RESTART: self._restart,
            "end connections": self._end_connections,
        }
        while not (self.rounds and enough()):
            strikes = [name for name, count in (SERVER_ROUND if self._server else ROUND) for _ in range(count)]
            self._rng.shuffle(strikes)
            for name in strikes:
                await asyncio.sleep(self._rng.uniform(0.5, 1.5) * pause_s)
                await self._let_work(between)
                await actions[name]()
                self.strikes[name] += 1
            await asyncio.gather(*self._slow)
            self.rounds += 1

    async def _let_work(self, jobs: int) -> None:
        """On a slow machine, too, it is busy workers that are struck."""
        deadline = time.monotonic() + _STANDSTILL_S
        wanted = self._glance.ended() + jobs
        while jobs and self._glance.ended() < wanted and time.monotonic() < deadline:
            await asyncio.sleep(0.05)

    # ------------------------------------------------------------ processes

    def _victim(self, module: str) -> Child | None:
        """Somebody whom nobody else deals with; never the last worker that is awake and at work."""
        free = [child for child in self._crew.of(module) if child.pid not in self._busy]
        if module == WORKER:
            free = [child for child in free if self._glance.identity(child.pid)]
        return self._rng.choice(free) if free else None

    async def _some_victim(self, module: str) -> Child:
        while (child := self._victim(module)) is None:
            await asyncio.sleep(0.05)
        return child

    async def _kill(self, module: str) -> None:
        (await self._some_victim(module)).kill()

    async def _stop_past_lease(self) -> None:
        self._in_background(await self._some_victim(WORKER), self._hold_past_lease)

    async def _stop_for_a_moment(self) -> None:
        self._in_background(await self._some_victim(WORKER), self._hold_for_a_moment)

    async def _drain(self, *, signals: int) -> None:
        self._in_background(await self._some_victim(WORKER), lambda child: self._see_off(child, signals))

    def _in_background(self, child: Child, strike: Callable[[Child], Awaitable[None]]) -> None:
        """Strikes that take their time; meanwhile nobody else strikes the same process."""

        async def run() -> None:
            self._busy.add(child.pid)
            try:
                await strike(child)
            finally:
                self._busy.discard(child.pid)

        task = asyncio.create_task(run())
        self._slow.add(task)
        task.add_done_callback(self._slow.discard)

    async def _hold_past_lease(self, child: Child) -> None:
        """Until the others have declared it dead; whoever is stopped with the file locked is never reaped."""
        identity = self._glance.identity(child.pid)
        child.signal(SIGSTOP)
        began = time.monotonic()
        while time.monotonic() < began + 1.2 * self._lease_s or (
            identity and self._glance.is_registered(identity) and time.monotonic() < began + 2 * self._lease_s
        ):
            await asyncio.sleep(0.05)
        await asyncio.sleep(self._rng.random() * self._lease_s / 2)  # time for the others to run its jobs
        child.signal(SIGCONT)

    async def _hold_for_a_moment(self, child: Child) -> None:
        child.signal(SIGSTOP)
        await asyncio.sleep(0.3 * self._lease_s)
        child.signal(SIGCONT)

    async def _see_off(self, child: Child, signals: int) -> None:
        child.expected_end, child.hurried = True, signals > 1
        for _ in range(signals):
            child.signal(SIGTERM)
            await asyncio.sleep(0.05)
        deadline = time.monotonic() + DRAIN_DEADLINE_S
        while child.alive:
            if time.monotonic() > deadline:
                self._crew.incidents.append(f"{child} did not end within {DRAIN_DEADLINE_S:g} s of SIGTERM")
                child.kill()
            await asyncio.sleep(0.05)

    # ------------------------------------------------------------ the server

    async def _restart(self) -> None:
        assert self._server is not None
        await asyncio.to_thread(self._server.restart, "immediate")

    async def _end_connections(self) -> None:
        """Of whatever purpose, of whichever process."""
        self._glance.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'holdfast %%' AND random() < ?",
            self._rng.choice((0.1, 0.5, 1.0)),
        )

    # ------------------------------------------------------------ operators

    async def _cancel(self) -> None:
        for table in ("active", "ready", "timer"):
            for job_id in self._glance.some(table, 2):
                self._client.cancel(job_id, answer=Answer.ASKED)
                try:
                    told = await self._hf.jobs.cancel(job_id, reason="the nemesis wants it")
                    self._client.cancel(job_id, answer=Answer.OK, told=told)
                except (JobNotFound, StoreUnavailable) as error:
                    self._client.cancel(job_id, answer=_refusal(error))

    async def _replay(self) -> None:
        for job_id in self._glance.some("dead", 5):
            await self._replay_one(job_id)

    async def _replay_one(self, job_id: UUID) -> None:
        self._client.replay(job_id, answer=Answer.ASKED)
        try:
            count = await self._hf.dead.replay(job_id)
            self._client.replay(job_id, answer=Answer.OK if count else Answer.FAIL)
        except StoreUnavailable as error:
            self._client.replay(job_id, answer=_refusal(error))


def _refusal(error: Exception) -> Answer:
    return Answer.UNKNOWN if isinstance(error, StoreUnavailable) and error.unknown else Answer.FAIL
