"""A short campaign as an ordinary test; `make campaign` runs long ones."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest
from tests.campaign.campaign import Plan, run_campaign
from tests.campaign.faults import STRIKES
from tests.postgres.fixtures import StartPostgres
from tests.postgres.shared import DURABLE, make_logins_cheap

#: Only against one that hangs, and nothing is judged by it: the campaign has deadlines of its own for what may not take
#: long. On two cores that a dozen other processes wanted all the time, these took 104 s and 135 s; the suite runs four
#: tests at a time.
pytestmark = pytest.mark.timeout(400)


def test_no_promise_is_broken_while_processes_are_killed_and_stopped(tmp_path: Path) -> None:
    plan = Plan(seed=secrets.randbelow(1_000_000), jobs=1_500, seconds=10.0, pause_s=0.15)
    # Said before anything can go wrong, so that also a crash of the campaign itself can be repeated.
    print(f"python -m tests.campaign --jobs {plan.jobs} --seconds {plan.seconds:g} --seed {plan.seed}; {tmp_path}")
    outcome = asyncio.run(run_campaign(plan, tmp_path, say=print))
    assert outcome.sound, f"seed {plan.seed}, files kept in {tmp_path}\n{outcome}"
    assert outcome.report.jobs >= 1_500
    assert outcome.kills >= 8
    assert outcome.stops_past_lease >= 2
    assert outcome.strikes_by_kind.keys() >= {"kill", "stop", "drain", "poison", "operators"}
    assert outcome.report.lost == 0
    assert outcome.report.unexplained_duplicates == 0
    assert outcome.report.stale_writes_accepted == 0


def test_no_promise_is_broken_on_postgres_while_also_the_server_is_struck(
    start_postgres: StartPostgres, tmp_path: Path
) -> None:
    seed = secrets.randbelow(1_000_000)
    # One round has every strike, about twenty-five kills of workers and two restarts; longer ones: `make campaign`.
    plan = Plan(seed=seed, jobs=5_000, seconds=20.0, lease_s=2.0, pause_s=0.05, kills=20, restarts=2)
    print(f"python -m tests.campaign --store postgres --jobs {plan.jobs} --seconds 20 --seed {plan.seed}; {tmp_path}")
    server = start_postgres(settings=DURABLE)
    make_logins_cheap(server)
    outcome = asyncio.run(run_campaign(plan, tmp_path, say=print, server=server))
    assert outcome.sound, f"seed {plan.seed}, files kept in {tmp_path}\n{outcome}"
    assert outcome.report.jobs >= plan.jobs
    assert outcome.killed_workers >= plan.kills
    assert outcome.restarts >= 2
    assert outcome.strikes_by_kind.keys() == {strike.kind for strike in STRIKES if strike.on_postgres}
    assert outcome.network_losses > 0
    assert outcome.report.lost == 0
    assert outcome.report.unexplained_duplicates == 0
    assert outcome.report.stale_writes_accepted == 0
