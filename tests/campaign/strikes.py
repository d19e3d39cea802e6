"""What is done to the processes of the crew: kills, stops, drains, rolls."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from signal import SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM
from typing import NamedTuple

from tests.campaign.child import Child
from tests.campaign.crew import DRAIN_DEADLINE_S, PRODUCER, SUPERVISOR, WORKER, Crew
from tests.campaign.faults import STOP_PAST_LEASE
from tests.campaign.processes import children_of, seen
from tests.campaign.record import Glance


class Killed(NamedTuple):
    """A worker, by its identity in the store."""

    how: str
    worker: str
    at_s: float


class ProcessStrikes:
    """Slow ones go on in the background; meanwhile nobody else strikes the same process."""

    def __init__(self, crew: Crew, glance: Glance, rng: random.Random, *, lease_s: float) -> None:
        self._crew = crew
        self._glance = glance
        self._rng = rng
        self._lease_s = lease_s
        self._slow: set[asyncio.Task[None]] = set()
        self._busy: set[int] = set()
        self.killed: list[Killed] = []

    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        slow = self._strike_slowly
        return {
            "kill a worker": self._kill_worker,
            "kill a producer": self._kill_producer,
            "kill a process under a supervisor": self._kill_supervised,
            "kill a supervisor": lambda: self._kill_supervisor(with_processes=False),
            "kill a supervisor with its processes": lambda: self._kill_supervisor(with_processes=True),
            STOP_PAST_LEASE: lambda: slow(WORKER, self._hold_past_lease),
            "stop a worker for a moment": lambda: slow(WORKER, self._hold_for_a_moment),
            "stop a process under a supervisor": self._stop_supervised,
            "stop a supervisor past its lease": lambda: slow(SUPERVISOR, self._hold_past_lease),
            "drain a worker": lambda: slow(WORKER, lambda child: self._see_off(child, 1)),
            "drain a worker in a hurry": lambda: slow(WORKER, lambda child: self._see_off(child, 2)),
            "drain a supervisor": lambda: slow(SUPERVISOR, lambda child: self._see_off(child, 1)),
            "drain a supervisor in a hurry": lambda: slow(SUPERVISOR, lambda child: self._see_off(child, 2)),
            "roll a supervisor": self._roll,
        }

    def spare(self, child: Child) -> None:
        """Nobody strikes it."""
        self._busy.add(child.pid)

    async def settled(self) -> None:
        """Until the slow ones are over."""
        await asyncio.gather(*self._slow)

    # ------------------------------------------------------------ whom

    def _at_work(self, child: Child) -> bool:
        """It has a worker in the store: itself, or one of the processes under it."""
        if child.module == SUPERVISOR:
            return any(self._glance.identity(pid) for pid in children_of(child.pid))
        return child.module == PRODUCER or self._glance.identity(child.pid) is not None

    async def _victim(self, module: str) -> Child:
        """Somebody whom nobody else deals with; never one that is not yet at work."""
        while True:
            free = [child for child in self._crew.of(module) if child.pid not in self._busy and self._at_work(child)]
            if free:
                return self._rng.choice(free)
            await asyncio.sleep(0.05)

    async def _supervised(self) -> int:
        """A process that works under a supervisor."""
        while True:
            supervisor = await self._victim(SUPERVISOR)
            if at_work := [pid for pid in children_of(supervisor.pid) if self._glance.identity(pid)]:
                return self._rng.choice(at_work)
            await asyncio.sleep(0.05)

    # ------------------------------------------------------------ kills

    async def _kill_worker(self) -> None:
        child = await self._victim(WORKER)
        self._note("a worker", child.pid)
        child.kill()

    async def _kill_producer(self) -> None:
        (await self._victim(PRODUCER)).kill()

    async def _kill_supervised(self) -> None:
        pid = await self._supervised()
        self._note("a process under a living supervisor", pid)
        self._send(pid, SIGKILL)
        self._crew.deaths["workers killed"] += 1
        self._crew.deaths["killed under a supervisor"] += 1

    async def _kill_supervisor(self, *, with_processes: bool) -> None:
        supervisor = await self._victim(SUPERVISOR)
        under = children_of(supervisor.pid)
        how = "a supervisor with its processes" if with_processes else "a supervisor, so that its processes end"
        for pid in under:
            self._note(how, pid)
        self._crew.leave_orphans(under)
        if with_processes:
            supervisor.signal(SIGSTOP)  # it must not have the time to replace any
            for pid in under:
                self._send(pid, SIGKILL)
        supervisor.kill()
        self._crew.deaths["workers killed"] += len(under)

    def _note(self, how: str, pid: int) -> None:
        if identity := self._glance.identity(pid):
            self.killed.append(Killed(how, str(identity), time.monotonic()))

    @staticmethod
    def _send(pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    # ------------------------------------------------------------ slow ones

    async def _strike_slowly(self, module: str, strike: Callable[[Child], Awaitable[None]]) -> None:
        child = await self._victim(module)

        async def run() -> None:
            self._busy.add(child.pid)
            try:
                await strike(child)
            finally:
                self._busy.discard(child.pid)

        self._in_background(run())

    def _in_background(self, strike: Awaitable[None]) -> None:
        task = asyncio.ensure_future(strike)
        self._slow.add(task)
        task.add_done_callback(self._slow.discard)

    async def _hold_past_lease(self, child: Child) -> None:
        """Until the others have declared it dead; whoever is stopped with the file locked is never reaped."""
        identity = self._glance.identity(child.pid)
        child.signal(SIGSTOP)
        await self._until_reaped(str(identity or ""))
        child.signal(SIGCONT)

    async def _stop_supervised(self) -> None:
        """Its supervisor may kill it meanwhile, and shall, if its beat stops for long."""
        pid = await self._supervised()
        process, identity = seen(pid), self._glance.identity(pid)

        async def hold() -> None:
            self._send(pid, SIGSTOP)
            await self._until_reaped(str(identity or ""))
            if seen(pid) == process:
                self._send(pid, SIGCONT)

        self._in_background(hold())

    async def _until_reaped(self, identity: str) -> None:
        began = time.monotonic()
        while time.monotonic() < began + 1.2 * self._lease_s or (
            identity and self._glance.is_registered(identity) and time.monotonic() < began + 2 * self._lease_s
        ):
            await asyncio.sleep(0.05)
        await asyncio.sleep(self._rng.random() * self._lease_s / 2)  # time for the others to run its jobs

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

    async def _roll(self) -> None:
        (await self._victim(SUPERVISOR)).signal(SIGHUP)
