"""`python -m tests.campaign.soak`: a steady load with a fault every ten seconds; fails if anything grows all the time.

Every role has a process that is never struck, so that its memory and files can be watched from begin to end; the faults
strike the others, the server and the connections. What has ended is pruned after half a minute, so that the tables have
a size to stay at: with the hour that users get at least (the contract of every store has it), they would do nothing but
grow for an hour, in any soak that is short enough to be run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.campaign.app import Campaign, make_app
from tests.campaign.complaints import complaints
from tests.campaign.crew import PRODUCER, SUPERVISOR, WORKER, Crew
from tests.campaign.faults import RESTART
from tests.campaign.gauges import Gauges, tolerance_of
from tests.campaign.nemesis import Nemesis
from tests.campaign.operators import Operators
from tests.campaign.server_strikes import NetworkStrikes, ServerStrikes
from tests.campaign.strikes import ProcessStrikes
from tests.campaign.transactions import make_tables
from tests.campaign.trend import Trend, trend
from tests.campaign.where import Where
from tests.history import ClientRecorder
from tests.postgres.shared import DURABLE, chosen_binaries, make_logins_cheap, own_directory
from tests.proxies.postgres import PostgresProxy

from holdfast import Holdfast, StoreUnavailable
from holdfast.local import LocalPostgres

FAULT_EVERY_S = 10.0
SAMPLE_EVERY_S = 2.0
KEEP_S = 30.0
#: Vacuum comes as often as the soak is short.
SETTINGS = DURABLE | {"autovacuum_naptime": "5s"}
FAULTS = (
    "kill a worker",
    "kill a process under a supervisor",
    "stop a worker for a moment",
    "stop a process under a supervisor",
    "drain a worker",
    "roll a supervisor",
    "plant a job that crashes its process",
    "plant a job that does not end",
    "cancel jobs",
    "replay dead jobs",
    RESTART,
    "restart the server in fast mode",
    "end connections",
    "lose answers",
    "leave answers hanging",
    "cut connections",
    "freeze connections",
)


async def soak(
    minutes: float, *, seed: int, rate: float, directory: Path, server: LocalPostgres, say: Callable[[str], None]
) -> tuple[list[Trend], list[str]]:
    """Run it; the trends of all figures, and what went wrong beside them."""
    place, rng, lease_s = Campaign(directory), random.Random(seed), 3.0
    place.make()
    place.say_settings(keep_succeeded_s=KEEP_S, keep_cancelled_s=KEEP_S, key_window_s=KEEP_S)
    Where(url=server.url, schema="holdfast").say(directory)
    hf = make_app(place, lease_s=lease_s).hf
    await hf.migrate()
    make_tables(place.where)
    glance = place.where.glance()
    with PostgresProxy(server.url) as proxy:
        async with hf:
            crew = Crew(place, rng, lease_s=lease_s, rate=rate, armed=False, detour=proxy.url)
            processes = ProcessStrikes(crew, glance, rng, lease_s=lease_s)
            nemesis = Nemesis(
                glance,
                rng,
                processes=processes,
                operators=Operators(hf, glance, ClientRecorder(place.client), rng),
                server=ServerStrikes(server, glance, rng),
                network=NetworkStrikes(proxy, rng, lease_s=lease_s),
            )
            elders = {role: crew.hire(module) for role, module in _ROLES.items()}
            for elder in (elders["worker"], elders["producer"]):
                processes.spare(elder)
            crew.hire(WORKER)
            gauges = Gauges(glance, {role: elder.pid for role, elder in elders.items()})
            try:
                await _go_on(minutes, crew, nemesis, gauges, hf, rng, say)
                crew.look()
                incidents = [*crew.incidents, *(f"the {role} died" for role, each in elders.items() if not each.alive)]
                await nemesis.settled()
                await crew.dismiss(PRODUCER, WORKER, SUPERVISOR)
            finally:
                crew.end()
    for log in sorted(place.logs.iterdir()):
        found = complaints(log.read_text("utf-8", "replace").splitlines())
        incidents += [f"{log}: {line}" for line in list(found)[:1]]
    trends = [trend(name, values, tolerance_of(name)) for name, values in gauges.series.items()]
    return trends, incidents


_ROLES = {"worker": WORKER, "supervisor": SUPERVISOR, "producer": PRODUCER}


async def _go_on(
    minutes: float,
    crew: Crew,
    nemesis: Nemesis,
    gauges: Gauges,
    hf: Holdfast,
    rng: random.Random,
    say: Callable[[str], None],
) -> None:
    began = time.monotonic()
    ends_at, strikes = began + 60 * minutes, 0
    striking: asyncio.Task[None] | None = None
    while (now := time.monotonic()) < ends_at:
        crew.look()
        if now - began > (strikes + 1) * FAULT_EVERY_S and (striking is None or striking.done()):
            if striking is not None:
                await striking
            strikes += 1
            name = rng.choice(FAULTS)
            say(f"{now - began:6.0f} s  {name}")
            striking = asyncio.create_task(nemesis.strike(name, pause_s=0.0))
            if strikes % 3 == 0:
                with contextlib.suppress(StoreUnavailable):
                    await hf.dead.purge(everything=True)
        seen = gauges.sample()
        if strikes % 3 == 0:
            shown = {name: round(value, 1) for name, value in seen.items() if name.split()[0] in _SHOWN}
            say(f"{now - began:6.0f} s  {shown}")
        await asyncio.sleep(SAMPLE_EVERY_S)
    while striking is not None and not striking.done():
        crew.look()  # it may wait for somebody to strike
        await asyncio.sleep(0.1)


_SHOWN = ("memory", "connections", "claim:")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the faults")
    parser.add_argument("--rate", type=float, default=100.0, help="jobs per second")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
    print(f"seed {given.seed}, files in {directory}", flush=True)
    with LocalPostgres(own_directory(), settings=SETTINGS, binaries=chosen_binaries(), temporary=True) as server:
        make_logins_cheap(server)
        say = lambda line: print(line, flush=True)  # noqa: E731
        trends, incidents = asyncio.run(
            soak(given.minutes, seed=given.seed, rate=given.rate, directory=directory, server=server, say=say)
        )
    for each in sorted(trends, key=lambda each: (not each.grows, each.name)):
        print("GROWS " if each.grows else "      ", each)
    for incident in incidents:
        print("incident:", incident)
    sound = not incidents and not any(each.grows for each in trends)
    print("SOUND" if sound else f"BROKEN: repeat it with --seed {given.seed}; files in {directory}")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
