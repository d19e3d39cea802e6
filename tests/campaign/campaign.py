"""One campaign from begin to judgement: set up, produce under fire, come to rest, judge. Prints nothing itself."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.app import Campaign, make_app
from tests.campaign.crew import PRODUCER, WORKER, Crew
from tests.campaign.nemesis import RESTART, STRIKES_PER_ROUND, Nemesis
from tests.campaign.record import Glance
from tests.campaign.where import Where
from tests.history import ClientRecorder, Report, check, load_client, load_runs

from holdfast.local import LocalPostgres

LOOK_EVERY_S = 0.05
SAY_EVERY_S = 1.0
_COMPLAINTS = ("Traceback", "was never retrieved", "was never awaited", "crashed")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign is to be."""

    seed: int
    jobs: int = 2_000
    seconds: float = 15.0
    workers: int = 3
    producers: int = 2
    lease_s: float = 1.5
    quiet_within_s: float = 120.0
    kills: int = 0
    """Of workers, at least."""
    restarts: int = 0
    """Of the server, at least, where there is one."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    plan: Plan
    directory: Path
    report: Report
    causes: Counter[str]
    """Of all runs that are on record with one, also of those that never came to user code."""
    strikes: Counter[str]
    deaths: Counter[str]
    seconds: float
    incidents: list[str] = field(default_factory=list)
    """What no history shows: a process that crashed or hung, complaints in the logs, a damaged file."""

    @property
    def sound(self) -> bool:
        return self.report.sound and not self.incidents

    @property
    def kills(self) -> int:
        return self.deaths["killed"] + self.deaths["killed at a failpoint"]

    @property
    def killed_workers(self) -> int:
        return self.deaths["workers killed"]

    @property
    def restarts(self) -> int:
        return self.strikes[RESTART]

    @property
    def stops_past_lease(self) -> int:
        return self.strikes["stop a worker past its lease"]

    def __str__(self) -> str:
        lines = [
            f"seed {self.plan.seed}, {self.seconds:.0f} s, files in {self.directory}",
            "strikes: " + ", ".join(f"{count} × {name}" for name, count in sorted(self.strikes.items())),
            "processes: " + ", ".join(f"{count} {how}" for how, count in sorted(self.deaths.items())),
            str(self.report),
            "causes on record: " + ", ".join(f"{count} {cause}" for cause, count in sorted(self.causes.items())),
        ]
        return "\n".join([*lines, *(f"incident: {incident}" for incident in self.incidents)])


async def run_campaign(
    plan: Plan, directory: Path, *, say: Callable[[str], None], server: LocalPostgres | None = None
) -> Outcome:
    """Run a campaign in an empty directory; every process that it starts has ended when it returns.

    On a file there; with a `server`, on PostgreSQL, and then the server is struck as well.
    """
    place = Campaign(directory)
    place.make()
    if server is not None:
        Where(url=server.url, schema="holdfast").say(directory)
    rng = random.Random(plan.seed)
    began = time.monotonic()
    operator = make_app(place, lease_s=plan.lease_s).hf
    client = ClientRecorder(place.client)
    crew = Crew(place, rng, lease_s=plan.lease_s, rate=1.5 * plan.jobs / plan.seconds / plan.producers)
    if server is not None:
        await operator.migrate()
    async with operator:
        place.where.install_audit()
        glance = place.where.glance()
        nemesis = Nemesis(crew, glance, operator, client, rng, lease_s=plan.lease_s, server=server)
        try:
            await _fight(plan, crew, nemesis, glance, say)
            await _come_to_rest(plan, crew, glance, say)
        finally:
            crew.end()
    client.close()
    return _judge(plan, place, crew, nemesis, time.monotonic() - began)


async def _fight(plan: Plan, crew: Crew, nemesis: Nemesis, glance: Glance, say: Callable[[str], None]) -> None:
    for module, count in ((WORKER, plan.workers), (PRODUCER, plan.producers)):
        for _ in range(count):
            crew.hire(module)
    ends_at = time.monotonic() + plan.seconds
    pause_s, between = min(0.4, plan.seconds / 30), 0
    if nemesis.strikes_server:  # most strikes are kills there: they are spread over the jobs
        pause_s, between = 0.1, plan.jobs // (3 * STRIKES_PER_ROUND)

    def is_enough() -> bool:
        done = crew.deaths["workers killed"] >= plan.kills and nemesis.strikes[RESTART] >= plan.restarts
        return done and time.monotonic() > ends_at

    raging = asyncio.create_task(nemesis.rage(pause_s=pause_s, between=between, enough=is_enough))
    await _watch(crew, glance, nemesis, say, until_done=raging.done)
    await raging
    deadline = time.monotonic() + plan.quiet_within_s
    enough = lambda: glance.counts()["job"] >= plan.jobs  # noqa: E731
    await _watch(crew, glance, nemesis, say, until_done=enough, deadline=deadline)


async def _come_to_rest(plan: Plan, crew: Crew, glance: Glance, say: Callable[[str], None]) -> None:
    """No more jobs, no more strikes: the living must bring all that there is to an end."""
    crew.armed = False
    await crew.dismiss(PRODUCER)
    deadline = time.monotonic() + plan.quiet_within_s

    def is_over() -> bool:
        return not glance.live() and all(glance.identity(worker.pid) for worker in crew.of(WORKER))

    await _watch(crew, glance, None, say, until_done=is_over, deadline=deadline)
    await crew.dismiss(WORKER)


async def _watch(
    crew: Crew,
    glance: Glance,
    nemesis: Nemesis | None,
    say: Callable[[str], None],
    *,
    until_done: Callable[[], bool],
    deadline: float = float("inf"),
) -> None:
    began = said = time.monotonic()
    while not until_done():
        crew.look()
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"waited in vain; the store has {glance.counts()}")
        if now - said >= SAY_EVERY_S:
            said = now
            counts = ", ".join(f"{count} {table}" for table, count in glance.counts().items() if count)
            doing = "coming to rest" if nemesis is None else f"{nemesis.strikes.total()} strikes"
            say(f"{now - began:6.1f} s  {doing}; {counts}; {sum(crew.deaths.values())} processes replaced")
        await asyncio.sleep(LOOK_EVERY_S)


def _judge(plan: Plan, place: Campaign, crew: Crew, nemesis: Nemesis, seconds: float) -> Outcome:
    record = place.where.record()
    report = check(load_client(place.client), load_runs(place.runs), record)
    causes = Counter(row.cause for job in record.jobs.values() for row in job.attempts)
    incidents = list(crew.incidents)
    integrity = place.where.glance().integrity()
    if integrity != "ok":
        incidents.append(f"integrity_check: {integrity}")
    for log in sorted(place.logs.iterdir()):
        lines = log.read_text("utf-8", "replace").splitlines()
        if found := next(_complaints(lines), None):
            incidents.append(f"{log}: {found}")
    return Outcome(plan, place.directory, report, causes, nemesis.strikes, crew.deaths, seconds, incidents)


def _complaints(lines: list[str]) -> Iterator[str]:
    """Lines that a sound program does not write.

    Not counted is one of the driver's: when a server is restarted at the moment in which a command is given up, asyncpg
    leaves a future behind that has the end of the connection in it, and that it never looks at.
    """
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        drivers = "was never retrieved" in line and "exception=ConnectionDoesNotExistError(" in following
        if any(word in line for word in _COMPLAINTS) and not drivers:
            yield line
