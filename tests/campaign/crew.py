"""The processes of the campaign: started, watched, and replaced as soon as they are gone."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from signal import SIGKILL, SIGTERM
from typing import Any

from tests.campaign.app import Campaign
from tests.campaign.child import Child, end_all, tail_of
from tests.campaign.processes import Seen, children_of, seen

WORKER, SUPERVISOR, PRODUCER = "tests.campaign.worker", "tests.campaign.supervisor", "tests.campaign.producer"
#: A worker that was asked to end is gone by then: its grace period is 30 s.
DRAIN_DEADLINE_S = 40.0
#: Processes end with their supervisor; by then, on a busy machine, too.
ORPHAN_DEADLINE_S = 10.0
_HANDED_BACK = 6

#: What a process may be born with: answers that get lost, and deaths at the moments that matter.
FAILPOINTS = {
    WORKER: (
        "claim_jobs.committed=fail@2",
        "settle_jobs.committed=fail@3",
        "renew_worker.begin=fail@2;renew_worker.committed=fail@4",
        "settle_jobs.inside=kill9@9",
        "settle_jobs.committed=kill9@9",
        "claim_jobs.inside=kill9@7",
        "claim_jobs.committed=kill9@7",
        "reap_workers.inside=kill9@9",
        "promote_jobs.inside=kill9@9",
        "C4=kill9@40",
        "R2=kill9@40",
    ),
    # Every process under it is born with them: deaths come late enough for some work to be done in between.
    SUPERVISOR: (
        "claim_jobs.committed=fail@2",
        "settle_jobs.committed=fail@3",
        "settle_jobs.committed=kill9@400",
        "claim_jobs.committed=kill9@300",
    ),
    PRODUCER: (
        "insert_jobs.begin=fail@3",
        "insert_jobs.committed=fail@3",
        "insert_jobs.inside=kill9@20",
        "insert_jobs.committed=kill9@20",
    ),
}


class Crew:
    """Its places are filled all the time: whoever is gone is replaced by the next look."""

    def __init__(
        self, place: Campaign, rng: random.Random, *, lease_s: float, rate: float, armed: bool = True, detour: str = ""
    ) -> None:
        """`armed`: whether newcomers may carry failpoints. `detour`: another way to the store, which some take."""
        self._place = place
        self._rng = rng
        self._lease_s = lease_s
        self._rate = rate
        self._detour = detour
        self._number = 0
        self._orphans: list[tuple[float, Seen]] = []
        self.replaced = 0
        self.members: list[Child] = []
        self.deaths: Counter[str] = Counter()
        self.incidents: list[str] = []
        self.armed = armed
        self.logs: dict[int, str] = {}
        """By pid, also of those that are gone."""

    def of(self, module: str) -> list[Child]:
        return [child for child in self.members if child.module == module and child.alive]

    def hire(self, module: str) -> Child:
        self._number += 1
        failpoints = ""
        if self.armed and self._rng.random() < 0.5:
            failpoints = self._rng.choice(FAILPOINTS[module])
        role = module.rpartition(".")[2]
        log = self._place.logs / f"{self._number:04}-{role}.log"
        settings: tuple[Any, ...] = (self._lease_s,)
        if module == PRODUCER:
            settings = (self._rng.random(), self._rate)
        url = self._detour if self._detour and self._rng.random() < 0.35 else ""
        child = Child(module, self._place.directory, *settings, url, log=log, failpoints=failpoints)
        self.members.append(child)
        self.logs[child.pid] = log.name
        return child

    def look(self) -> None:
        """Bury the dead, and hire a replacement for each."""
        for child in [child for child in self.members if not child.alive]:
            self._bury(child)
            self.hire(child.module)
            self.replaced += 1
        self._see_to_orphans()

    def leave_orphans(self, pids: list[int]) -> None:
        """These have lost their supervisor, and must be gone soon."""
        deadline = time.monotonic() + ORPHAN_DEADLINE_S
        self._orphans += [(deadline, process) for pid in pids if (process := seen(pid))]

    async def dismiss(self, *modules: str) -> None:
        """Ask them to end, and see them off; they are not replaced any more."""
        leaving = [child for child in self.members if child.module in modules]
        for child in leaving:
            child.expected_end = True
            child.signal(SIGTERM)
        for child in leaving:
            await child.ended(within_s=DRAIN_DEADLINE_S)
            self._bury(child)

    def _bury(self, child: Child) -> None:
        self.members.remove(child)
        drained = (0, _HANDED_BACK) if child.module == SUPERVISOR else (0,)
        if child.code == -SIGKILL:
            self.deaths["killed" if child.expected_end else "killed at a failpoint"] += 1
            self.deaths["workers killed"] += child.module == WORKER
        elif child.code in drained and child.expected_end:
            self.deaths["drained"] += 1
        elif child.code == -SIGTERM and child.expected_end and (child.hurried or child.module == PRODUCER):
            self.deaths["drained"] += 1  # the signal came before it caught signals, or when it had done its duty
        else:
            self.incidents.append(f"{child} ended by itself with {child.code}:\n{tail_of(child.log)}")
        if child.code == -SIGKILL and not child.expected_end and "kill9" not in child.failpoints:
            self.incidents.append(f"{child} was killed, and not by us")

    def _see_to_orphans(self) -> None:
        waiting = [(deadline, process) for deadline, process in self._orphans if seen(process.pid) == process]
        for deadline, process in waiting:
            if time.monotonic() > deadline:
                self.incidents.append(f"process {process.pid} lives on {ORPHAN_DEADLINE_S:g} s after its supervisor")
                os.kill(process.pid, SIGKILL)
                self._orphans = [each for each in waiting if each[1] != process]
                return
        self._orphans = waiting

    def end(self) -> None:
        under = [pid for child in self.of(SUPERVISOR) for pid in children_of(child.pid)]
        self.leave_orphans(under)
        end_all(self.members)
