"""A history that is judged part by part while it is made is judged as if it were judged at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.history import broken_jobs, broken_runs, broken_transactions
from tests.history.breaking import Mutation
from tests.history.recorder import ClientRecorder, RunRecorder
from tests.history.records import Op, RunEvent, StoreRecord
from tests.history.running import LOOKS, RunningJudge
from tests.history.story import Histories, Story, sound
from tests.history.telling import tell

from holdfast.core.cause import Cause
from holdfast.core.state import State

MUTATIONS = [*broken_jobs.MUTATIONS, *broken_runs.MUTATIONS, *broken_transactions.MUTATIONS]
LAST = "~"
"""Behind every name of a job."""


class Told:
    """A source that knows a made-up history."""

    def __init__(self, store: StoreRecord) -> None:
        self.store = store

    def ids_between(self, after: str, before: str, limit: int) -> list[str]:
        return sorted(job_id for job_id in self.store.jobs if after < job_id < before)[:limit]

    def ended(self, ids: Collection[str]) -> set[str]:
        return {job_id for job_id in ids if job_id in self.store.jobs and self.store.jobs[job_id].ending}

    def record(self, ids: Sequence[str]) -> StoreRecord:
        audit = self.store.audit
        return replace(
            self.store,
            jobs={job_id: self.store.jobs[job_id] for job_id in ids if job_id in self.store.jobs},
            audit=None if audit is None else tuple(row for row in audit if row.job_id in ids),
            effects={job_id: tokens for job_id, tokens in self.store.effects.items() if job_id in ids},
            orders=frozenset(job_id for job_id in self.store.orders if job_id in ids),
        )

    def all_ids(self) -> set[str]:
        return set(self.store.jobs)


class Desk:
    """The recorders and the judge of one history."""

    def __init__(self, place: Path) -> None:
        for name in ("client", "runs"):
            (place / name).mkdir()
        self._client, self._runs = ClientRecorder(place / "client"), RunRecorder(place / "runs")
        self._written = (0, 0)
        self.source = Told(StoreRecord({}))
        self.judge = RunningJudge(self.source, client=place / "client", runs=place / "runs", chunk=3)

    def know(self, histories: Histories) -> None:
        """This is what has happened by now."""
        calls, lines = self._written
        for call in histories.calls[calls:]:
            extra = {"key": call.key, "tenant": call.tenant, "fingerprint": call.fingerprint}
            if call.op is Op.ENQUEUE:
                self._client.enqueue(call.job_id, answer=call.answer, told=call.told, **extra)  # type: ignore[arg-type]
            elif call.op is Op.CANCEL:
                self._client.cancel(call.job_id, answer=call.answer, told=call.told)
            else:
                self._client.replay(call.job_id, answer=call.answer)
        for line in histories.lines[lines:]:
            run = {"token": line.token, "attempt": line.attempt, "worker": line.worker}
            match line.event:
                case RunEvent.START:
                    self._runs.start(line.job_id, **run)
                case RunEvent.EFFECT:
                    self._runs.effect(line.job_id, **run)
                case RunEvent.END:
                    self._runs.end(line.job_id, **run, outcome=line.outcome or "")
        self._written = len(histories.calls), len(histories.lines)
        self.source.store = histories.store

    def look(self, times: int = 30) -> None:
        for _ in range(times):
            self.judge.look(before=LAST)


def without_pruned(histories: Histories) -> Histories:
    """Campaigns do not prune: a job that is gone since it was judged is lost."""
    return Histories(
        tuple(call for call in histories.calls if call.job_id != "pruned"),
        tuple(line for line in histories.lines if line.job_id != "pruned"),
        replace(histories.store, audit=tuple(row for row in histories.store.audit or () if row.job_id != "pruned")),
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_sound_history_passes_part_by_part(desk: Desk) -> None:
    histories = without_pruned(sound())
    desk.know(histories)
    desk.look()
    assert desk.judge.judged > 5
    assert not desk.judge.violations
    report, at_once = desk.judge.finish(), histories.judged()
    assert report.sound, report
    assert (report.jobs, report.runs, report.extra_runs) == (at_once.jobs, at_once.runs, at_once.extra_runs)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_history_is_rejected_part_by_part(mutation: Mutation, desk: Desk) -> None:
    broken = mutation.apply(without_pruned(sound()), lambda candidates: candidates[0] if candidates else None)
    assert broken is not None
    desk.know(broken)
    desk.look()
    assert mutation.invariant in desk.judge.finish().broken


def test_a_violation_is_found_while_the_work_goes_on_and_can_be_told(desk: Desk) -> None:
    story = Story()
    for job in ("a", "b"):
        story.enqueue(job)
        story.claim(job)
        story.run(job)
        if job == "b":
            story.run(job, RunEvent.START)  # a second time under the same token
        story.end(job, State.SUCCEEDED)
    desk.know(story.told())
    desk.look(LOOKS)
    assert [violation.invariant for violation in desk.judge.violations] == ["I5"]
    told = tell(desk.judge.joined_of("b"), "b")
    assert told.count("run     start") == 2
    assert "into succeeded, token 2" in told


def test_a_job_that_is_replayed_after_it_was_judged_is_judged_again(desk: Desk) -> None:
    story = Story()
    story.enqueue("job")
    story.claim("job")
    story.run("job", RunEvent.START, RunEvent.END, outcome="failed")
    story.end("job", State.DEAD)
    desk.know(story.told())
    desk.look()
    assert desk.judge.judged == 1
    story.replay("job")
    story.claim("job")
    story.run("job")
    story.end("job", State.SUCCEEDED)
    desk.know(story.told())
    desk.look()
    report = desk.judge.finish()
    assert report.sound, report
    assert report.extra_runs == {"replay": 1}


def test_what_goes_wrong_after_the_judgement_is_found_at_the_end(desk: Desk) -> None:
    story = Story()
    story.enqueue("job")
    story.claim("job")
    story.run("job")
    story.end("job", State.SUCCEEDED)
    desk.know(story.told())
    desk.look()
    assert desk.judge.judged == 1
    late = replace(story.lines[0], token=99)
    story.lines.append(late)  # it runs again, and nobody can say why
    desk.know(story.told())
    assert "I5" in desk.judge.finish().broken


def test_a_job_that_vanishes_after_the_judgement_is_lost(desk: Desk) -> None:
    story = Story()
    story.enqueue("job")
    story.claim("job")
    story.run("job")
    story.end("job", State.SUCCEEDED)
    desk.know(story.told())
    desk.look()
    desk.source.store = StoreRecord({}, audit=())
    report = desk.judge.finish()
    assert report.lost == 1
    assert report.broken == {"I1"}


def test_what_one_look_sees_too_early_is_no_violation(desk: Desk) -> None:
    """A run under a token that the record, read a moment before, does not have yet."""
    story = Story()
    story.enqueue("job")
    story.claim("job")
    story.run("job", RunEvent.START, RunEvent.END, outcome="failed")
    story.end("job", State.DEAD)
    early = story.told()
    story.replay("job")
    story.claim("job")
    story.run("job", RunEvent.START)
    later = story.told()
    desk.know(replace(later, store=early.store))
    desk.look(LOOKS - 1)
    story.run("job", RunEvent.EFFECT, RunEvent.END)
    story.end("job", State.SUCCEEDED)
    desk.know(story.told())
    desk.look()
    assert not desk.judge.violations
    assert desk.judge.finish().sound


def test_causes_are_counted_once_for_jobs_that_are_judged_twice(desk: Desk) -> None:
    story = Story()
    story.enqueue("job")
    story.claim("job")
    story.run("job", RunEvent.START)
    story.give_up("job", Cause.WORKER_LOST)
    story.claim("job")
    story.run("job")
    story.end("job", State.SUCCEEDED)
    desk.know(story.told())
    desk.look()
    story.lines.append(replace(story.lines[0], event=RunEvent.END, outcome="CancelledError"))  # it woke up late
    desk.know(story.told())
    report = desk.judge.finish()
    assert report.sound, report
    assert report.extra_runs == {"worker_lost": 1}
