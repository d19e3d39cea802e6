"""One campaign from begin to judgement: set up, produce under fire, come to rest, judge. Prints nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.campaign.app import Campaign, make_app
from tests.campaign.complaints import complaints
from tests.campaign.crew import PRODUCER, SUPERVISOR, WORKER, Crew
from tests.campaign.faults import FAILPOINTS, RESTART
from tests.campaign.judge import Judge, Tally
from tests.campaign.nemesis import Nemesis
from tests.campaign.operators import Operators
from tests.campaign.plan import Outcome, Plan
from tests.campaign.processes import children_of
from tests.campaign.record import Glance
from tests.campaign.redis_strikes import Probes, RedisStrikes, shown
from tests.campaign.samples import Samples
from tests.campaign.server_strikes import NetworkStrikes, ServerStrikes
from tests.campaign.strikes import Killed, ProcessStrikes
from tests.campaign.transactions import make_tables
from tests.campaign.where import Where
from tests.history import ClientRecorder
from tests.proxies.postgres import PostgresProxy
from tests.proxies.redis import RedisProxy

from holdfast.local import LocalPostgres, LocalRedis

__all__ = ["Outcome", "Plan", "run_campaign"]

LOOK_EVERY_S = 0.1
SAY_EVERY_S = 1.0
JUDGE_EVERY_S = 2.0
_ROWS_PER_JOB = 6


class Stopped(Exception):
    """The judge has found a violation: nothing that comes after it counts."""


async def run_campaign(
    plan: Plan,
    directory: Path,
    *,
    say: Callable[[str], None],
    server: LocalPostgres | None = None,
    redis: LocalRedis | None = None,
    broken_off: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a campaign in an empty directory; every process that it starts has ended when it returns.

    Once it is `broken_off`, it strikes no more, comes to rest and is judged.

    On a file there; with a `server`, on PostgreSQL, and then the server and the way to it are struck as well; so is a
    `redis` beside it.
    """
    with contextlib.ExitStack() as stack:
        beside = None if redis is None else stack.enter_context(RedisProxy(redis))
        return await _run(plan, directory, say, server, beside, broken_off)


async def _run(
    plan: Plan,
    directory: Path,
    say: Callable[[str], None],
    server: LocalPostgres | None,
    beside: RedisProxy | None,
    broken_off: Callable[[], bool],
) -> Outcome:
    place = Campaign(directory)
    place.make()
    if server is not None:
        Where(url=server.url, schema="holdfast", redis="" if beside is None else beside.url).say(directory)
    operator = make_app(place, lease_s=plan.lease_s).hf
    if server is not None:
        await operator.migrate()
    with _proxy(server) as proxy:
        async with operator:
            if server is not None:
                make_tables(place.where)
            place.where.install_audit()
            course = _Course(plan, place, say, broken_off)
            crew = Crew(
                place,
                course.rng,
                lease_s=plan.lease_s,
                rate=1.5 * plan.jobs / plan.seconds / plan.producers,
                armed=FAILPOINTS in plan.faults,
                detour="" if proxy is None else proxy.url,
            )
            client = ClientRecorder(place.client)
            processes = ProcessStrikes(crew, course.glance, course.rng, lease_s=plan.lease_s)
            network = None if proxy is None else NetworkStrikes(proxy, course.rng, lease_s=plan.lease_s)
            operators = Operators(operator, course.glance, client, course.rng)
            strikes = None if beside is None else RedisStrikes(beside, course.rng)
            probes = Probes(operator, operators.ledger)
            nemesis = Nemesis(
                course.glance,
                course.rng,
                processes=processes,
                operators=operators,
                redis=strikes,
                server=None if server is None else ServerStrikes(server, course.glance, course.rng),
                network=network,
                kinds=plan.faults,
            )
            try:
                if strikes is not None:
                    probes.start()
                await course.run(crew, nemesis, before_rest=probes.stop)
            finally:
                crew.end()
            waits = "" if strikes is None else shown(await probes.waits(strikes.outages))
        client.close()
        outcome = await course.judge(crew, nemesis, processes.killed)
        outcome.pickups = waits
    outcome.network_losses = 0 if network is None else network.sprung
    return outcome


@contextlib.contextmanager
def _proxy(server: LocalPostgres | None) -> Iterator[PostgresProxy | None]:
    if server is None:
        yield None
    else:
        with PostgresProxy(server.url) as proxy:
            yield proxy


async def _nothing() -> None:
    pass


class _Course:
    """How it goes, from the first process to the last."""

    def __init__(self, plan: Plan, place: Campaign, say: Callable[[str], None], broken_off: Callable[[], bool]) -> None:
        self._broken_off = broken_off
        self._plan = plan
        self._place = place
        self._say = say
        self._began = time.monotonic()
        self._fight_s = 0.0
        self._judge = Judge(place.directory)
        self._tally = Tally(jobs=0, judged=0)
        self._samples = Samples(self._judge.pid)
        self.rng = random.Random(plan.seed)
        self.glance: Glance = place.where.glance()

    async def run(self, crew: Crew, nemesis: Nemesis, *, before_rest: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Until all is quiet, or until the judge objects."""
        judging = asyncio.create_task(self._keep_judging())
        try:
            await self._fight(crew, nemesis, judging)
            await before_rest()
            self._fight_s = time.monotonic() - self._began
            await self._come_to_rest(crew, nemesis, judging)
        except Stopped:
            self._fight_s = self._fight_s or time.monotonic() - self._began
        finally:
            await before_rest()
            judging.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await judging

    async def _keep_judging(self) -> None:
        while True:
            self._tally = await asyncio.shield(self._judge.look())
            if not self._tally.more:
                await asyncio.sleep(JUDGE_EVERY_S)

    async def _fight(self, crew: Crew, nemesis: Nemesis, judging: asyncio.Task[None]) -> None:
        plan = self._plan
        crews = ((WORKER, plan.workers), (SUPERVISOR, plan.supervisors), (PRODUCER, plan.producers))
        for module, count in crews:
            for _ in range(count):
                crew.hire(module)
        ends_at = time.monotonic() + plan.seconds
        between = min(plan.jobs // (3 * nemesis.strikes_per_round), 1_000) * _ROWS_PER_JOB

        def is_enough() -> bool:
            done = crew.deaths["workers killed"] >= plan.kills and nemesis.strikes[RESTART] >= plan.restarts
            return done and time.monotonic() > ends_at and self._tally.jobs >= plan.jobs

        raging = asyncio.create_task(
            nemesis.rage(pause_s=plan.pause_s, between=between, enough=is_enough, broken_off=self._broken_off)
        )
        try:
            await self._watch(crew, nemesis, judging, until_done=raging.done)
            await raging
        finally:
            raging.cancel()

    async def _come_to_rest(self, crew: Crew, nemesis: Nemesis, judging: asyncio.Task[None]) -> None:
        """No more jobs, no more strikes: the living must bring all that there is to an end."""
        crew.armed = False
        await crew.dismiss(PRODUCER)
        deadline = time.monotonic() + self._plan.quiet_within_s

        def is_over() -> bool:
            return not self.glance.live() and all(
                any(self.glance.identity(pid) for pid in (child.pid, *children_of(child.pid)))
                for child in (*crew.of(WORKER), *crew.of(SUPERVISOR))
            )

        await self._watch(crew, nemesis, judging, until_done=is_over, deadline=deadline)
        await crew.dismiss(WORKER, SUPERVISOR)

    async def _watch(
        self,
        crew: Crew,
        nemesis: Nemesis,
        judging: asyncio.Task[None],
        *,
        until_done: Callable[[], bool],
        deadline: float = float("inf"),
    ) -> None:
        said = time.monotonic()
        while not until_done():
            crew.look()
            if judging.done():
                judging.result()  # a campaign without its judge is none: this raises what ended him
            if self._tally.violations:
                raise Stopped
            now = time.monotonic()
            if now > deadline:
                raise AssertionError(f"waited in vain; the store has {self.glance.counts()}")
            if now - said >= SAY_EVERY_S:
                said = now
                self._report_progress(crew, nemesis, now - self._began)
            await asyncio.sleep(LOOK_EVERY_S)

    def _report_progress(self, crew: Crew, nemesis: Nemesis, at_s: float) -> None:
        counts = self.glance.live_counts()
        live = sum(counts.values()) - counts["worker"]
        tally = self._tally
        self._samples.take(crew, jobs=tally.jobs, live=live, strikes=nemesis.strikes)
        shown = ", ".join(f"{count} {table}" for table, count in counts.items() if count)
        self._say(
            f"{at_s:6.1f} s  {tally.jobs} jobs, {tally.judged} judged, {len(tally.violations)} violations; {shown}; "
            f"{nemesis.strikes.total()} strikes, {crew.replaced} processes replaced"
        )

    async def judge(self, crew: Crew, nemesis: Nemesis, killed: list[Killed]) -> Outcome:
        """The judgement on all that has happened; with stories and logs where something is wrong."""
        verdict = await self._judge.finish({each.worker: each.at_s for each in killed})
        self._judge.close()
        recovered: dict[str, list[float]] = defaultdict(list)
        for each in killed:
            if (seconds := verdict.recovered_s.get(each.worker)) is not None:
                recovered[each.how].append(seconds)
        incidents = list(crew.incidents)
        integrity = self.glance.integrity()
        if integrity != "ok":
            incidents.append(f"integrity_check: {integrity}")
        for log in sorted(self._place.logs.iterdir()):
            lines = log.read_text("utf-8", "replace").splitlines()
            if found := next(complaints(lines), None):
                incidents.append(f"{log}: {found}")
        for job_id, story in verdict.tally.stories.items():
            logs = ", ".join(sorted({crew.logs[pid] for pid in verdict.tally.pids if pid in crew.logs}))
            (self._place.directory / f"violation-{job_id}.txt").write_text(f"{story}\nlogs: {logs}\n", "utf-8")
        return Outcome(
            plan=self._plan,
            directory=self._place.directory,
            store="postgres" if self._place.where.is_postgres else "sqlite",
            report=verdict.report,
            causes=verdict.causes,
            strikes=nemesis.strikes,
            deaths=crew.deaths,
            recovered_s={how: sorted(seconds) for how, seconds in recovered.items()},
            samples=self._samples.all,
            fight_s=self._fight_s,
            seconds=time.monotonic() - self._began,
            incidents=incidents,
        )
