"""The parts of a campaign that decide what it is and what it says: faults by name, logs, figures."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.campaign.complaints import complaints
from tests.campaign.faults import KINDS, RESTART, STRIKES, a_round, parse_faults
from tests.campaign.nemesis import Nemesis
from tests.campaign.operators import Operators
from tests.campaign.plan import Outcome, Plan
from tests.campaign.recovering import Recovering
from tests.campaign.redis_strikes import RedisStrikes
from tests.campaign.reporting import write_report
from tests.campaign.samples import Sample
from tests.campaign.server_strikes import NetworkStrikes, ServerStrikes
from tests.campaign.strikes import ProcessStrikes
from tests.history.joined import Joined, Rules
from tests.history.records import RunEvent
from tests.history.report import Report
from tests.history.story import Story

from holdfast.core.cause import Cause
from holdfast.core.state import State

NOBODY: object = None


def test_faults_are_chosen_by_kind() -> None:
    assert parse_faults("kill, restart") == {"kill", "restart"}
    assert {"kill a worker", RESTART} <= set(a_round({"kill", "restart"}, postgres=True))
    assert "cancel jobs" not in a_round({"kill", "restart"}, postgres=True)
    assert RESTART not in a_round(KINDS, postgres=False)


@pytest.mark.parametrize("text", ["kil", "kill,earthquake", ""])
def test_an_unknown_kind_is_answered_with_the_list(text: str) -> None:
    with pytest.raises(ValueError, match=", ".join(KINDS)):
        parse_faults(text)


def test_every_strike_of_the_table_can_be_struck() -> None:
    rng = random.Random(1)
    parts = (
        ProcessStrikes(NOBODY, NOBODY, rng, lease_s=1.0),  # type: ignore[arg-type]
        Operators(NOBODY, NOBODY, NOBODY, rng),  # type: ignore[arg-type]
        ServerStrikes(NOBODY, NOBODY, rng),  # type: ignore[arg-type]
        NetworkStrikes(NOBODY, rng, lease_s=1.0),  # type: ignore[arg-type]
        RedisStrikes(NOBODY, rng),  # type: ignore[arg-type]
    )
    assert Counter(name for part in parts for name in part.actions()) == Counter(strike.name for strike in STRIKES)
    processes, operators, server, network, redis = parts
    nemesis = Nemesis(NOBODY, rng, processes=processes, operators=operators, server=server, network=network)  # type: ignore[arg-type]
    assert nemesis.strikes_per_round == sum(strike.on_postgres for strike in STRIKES)
    assert len(a_round({"redis"}, postgres=True, redis=True)) == sum(strike.with_redis for strike in STRIKES)
    assert redis.actions().keys() == set(a_round({"redis"}, postgres=True, redis=True))


def test_nothing_that_a_sound_program_does_not_write_is_excused() -> None:
    """Not even a driver's future: the one that once was excused came from a connection that two loops used at once."""
    lines = [
        "12 34 holdfast.worker worker started",
        "13 34 asyncio Future exception was never retrieved",
        "future: <Future finished exception=ConnectionDoesNotExistError('connection was closed')>",
        "14 34 holdfast.service service Promoter crashed: RuntimeError",
    ]
    assert list(complaints(lines)) == [lines[1], lines[3]]
    assert list(complaints([])) == []


def test_recovery_is_measured_from_a_kill_to_the_first_run_of_its_jobs() -> None:
    story = Story()
    for job in ("first", "second", "other"):
        story.enqueue(job)
        story.claim(job, "killed" if job != "other" else "living")
        story.run(job, RunEvent.START)
    killed_at = story.now
    for job in ("first", "second"):
        story.give_up(job, Cause.WORKER_LOST)
    for job in ("second", "first"):
        story.claim(job, "living")
        story.run(job)
        story.end(job, State.SUCCEEDED)
    again = min(line.at for line in story.lines if line.at > killed_at)
    histories = story.told()
    recovering = Recovering()
    recovering.saw(Joined.of(histories.calls, histories.lines, histories.store, Rules(False, 5, 3)))
    assert recovering.first_s({"killed": killed_at, "living": killed_at}) == {"killed": again - killed_at}


def test_the_report_has_every_figure_for_people_and_for_programs(tmp_path: Path) -> None:
    outcome = Outcome(
        plan=Plan(seed=17),
        directory=tmp_path,
        store="postgres",
        report=Report([], jobs=1_234_567, runs=1_300_000, extra_runs={"retry": 3}, states={"succeeded": 1_234_567}),
        causes={"retry": 4},
        strikes=Counter({"kill a worker": 5, RESTART: 2}),
        deaths=Counter({"killed": 5}),
        recovered_s={"a worker": [0.5, 2.0, 3.5]},
        samples=[Sample(5.0 * n, 1_000 * n, 900 * n, n, {"worker": 50.0 + n}) for n in range(1, 4)],
        fight_s=100.0,
        seconds=120.0,
    )
    markdown, as_json = write_report(outcome, tmp_path, command="--seed 17")
    assert markdown.name.endswith("-postgres-1m.md")
    figures = json.loads(as_json.read_text("utf-8"))
    assert (figures["seed"], figures["lost"], figures["jobs_per_second"]) == (17, 0, 12_346)
    assert figures["faults_by_kind"] == {"kill": 5, "restart": 2}
    assert figures["recovery_s"] == {"a worker": {"kills": 3, "p50": 2.0, "p99": 3.47, "max": 3.5}}
    assert figures["machine"]["cores"]
    text = markdown.read_text("utf-8")
    for shown in ("1,234,567", "stale writes accepted | 0", "a worker | 3 | 2.0", "kill | 5", "| 15 | 2,700 | 180 | 3"):
        assert shown in text, text
