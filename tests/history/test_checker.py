"""The judge is judged: sound histories pass, and every broken one is rejected under the right name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.history import broken_gates, broken_jobs, broken_runs, broken_transactions
from tests.history.breaking import Mutation
from tests.history.records import Answer, Op, RunEvent
from tests.history.report import Report
from tests.history.story import Histories, Story, sound

from holdfast.core.cause import Cause
from holdfast.core.state import State

MUTATIONS = [
    *broken_jobs.MUTATIONS,
    *broken_runs.MUTATIONS,
    *broken_gates.MUTATIONS,
    *broken_transactions.MUTATIONS,
]


def test_a_sound_history_passes() -> None:
    report = sound().judged()
    assert report.sound, report
    assert (report.lost, report.unexplained_duplicates, report.stale_writes_accepted) == (0, 0, 0)
    assert report.extra_runs == {"retry": 1, "lease_expired": 1, "replay": 1}
    pruned = 1
    ended_by_a_run = report.states["succeeded"] + report.states["dead"] + pruned
    assert report.runs - ended_by_a_run == sum(report.extra_runs.values())


def test_a_sound_history_passes_without_a_trail() -> None:
    histories = sound()
    kept = tuple(call for call in histories.calls if call.job_id != "pruned")  # only the trail can excuse that
    lines = tuple(line for line in histories.lines if line.job_id != "pruned")
    report = replace(histories, calls=kept, lines=lines).without_audit().judged()
    assert report.sound, report


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_history_is_rejected(mutation: Mutation) -> None:
    broken = mutation.apply(sound(), lambda candidates: candidates[0] if candidates else None)
    assert broken is not None, "the sound history has nothing that this could break"
    report = broken.judged()
    assert mutation.invariant in report.broken, report


def test_what_operators_changed_is_not_judged_by_what_jobs_carry() -> None:
    for mutation in broken_gates.MUTATIONS:
        broken = mutation.apply(sound(), lambda candidates: candidates[0])
        assert broken is not None
        ruled = frozenset({"one at a time", "three at once", "two at once"})
        report = replace(broken, store=replace(broken.store, ruled=ruled)).judged()
        assert not any("limit" in each.sentence or "rate" in each.sentence for each in report.violations), report


def test_every_invariant_has_a_history_that_breaks_it() -> None:
    names = {f"I{n}" for n in (*range(1, 12), 14, 15)} | {"P6"}
    assert {mutation.invariant for mutation in MUTATIONS} == names


def test_the_counts_name_what_was_broken() -> None:
    by_name: dict[str, Mutation] = {mutation.apply.__name__: mutation for mutation in MUTATIONS}

    def report_of(name: str) -> Report:
        broken: Histories | None = by_name[name].apply(sound(), lambda candidates: candidates[0])
        assert broken is not None
        return broken.judged()

    assert report_of("lost_job").lost == 1
    assert report_of("run_repeated_under_one_token").unexplained_duplicates == 1
    assert report_of("ending_by_another_worker").stale_writes_accepted == 1
    assert "I1 plain: was accepted, but is not in the store" in str(report_of("lost_job"))


def test_work_in_progress_is_no_violation_before_quiescence() -> None:
    story = Story()
    story.enqueue("waits")
    story.enqueue("runs")
    story.claim("runs")
    story.run("runs", RunEvent.START)
    histories = story.told()
    assert histories.judged(quiescent=False).sound
    assert histories.judged().broken == {"I14"}


def test_overlapping_user_code_is_counted_but_no_violation() -> None:
    story = Story()
    story.enqueue("job")
    story.claim("job", "stopped")
    story.run("job", RunEvent.START)
    [first] = story.lines
    story.give_up("job", Cause.LEASE_EXPIRED)
    story.claim("job", "other")
    story.run("job")
    story.end("job", State.SUCCEEDED)
    story.lines.append(replace(first, event=RunEvent.END, at=story.now + 1, outcome="ok"))
    report = story.told().judged()
    assert report.sound, report
    assert report.overlapping_runs == 1


def test_a_call_cut_off_after_a_refusal_may_have_had_its_effect() -> None:
    story = Story()
    for answer in (Answer.ASKED, Answer.FAIL):
        story.ask(Op.ENQUEUE, "job", answer)
    story.insert("job", State.SCHEDULED, due_at=5e9)
    assert story.told().judged().broken == {"I2"}
    story.ask(Op.ENQUEUE, "job", Answer.ASKED)
    assert story.told().judged().sound


# ---------------------------------------------------------------- random histories

_GIVE_UPS = st.sampled_from(
    [Cause.RETRY, Cause.SNOOZE, Cause.LEASE_EXPIRED, Cause.WORKER_LOST, Cause.HANDED_BACK, Cause.CLAIM_LOST]
)
_LIVES = st.tuples(
    st.lists(_GIVE_UPS, max_size=4),
    st.sampled_from(["succeeded", "dead", "cancelled", "replayed", "parked", "waiting cancelled"]),
    st.booleans(),
)


def _life(story: Story, job: str, causes: list[Cause], fate: str, keyed: bool) -> Iterator[None]:
    """One job's life; yields between verbs, so that lives can be interleaved."""
    if keyed:
        story.enqueue_keyed(job, f"{job}-again", key=f"key of {job}")
    else:
        story.enqueue(job)
    for n, cause in enumerate(causes):
        yield
        story.claim(job, f"{job}-w{n}")
        yield
        if cause is not Cause.CLAIM_LOST:
            failed = cause in (Cause.RETRY, Cause.SNOOZE)
            story.run(job, RunEvent.START, *([RunEvent.END] if failed else []), outcome="failed")
        yield
        story.give_up(job, cause)
        yield
        if story.jobs[job].places[0].state is State.SCHEDULED:
            story.make_ready(job)
    yield
    if fate == "waiting cancelled":
        story.ask(Op.CANCEL, job, told="cancelled")
        story.end(job, State.CANCELLED)
        return
    story.claim(job)
    yield
    match fate:
        case "parked":
            story.park(job, "unknown_task")
            return
        case "dead" | "cancelled" | "replayed":
            story.run(job, RunEvent.START, RunEvent.END, outcome="failed")
            yield
            story.end(job, State.CANCELLED if fate == "cancelled" else State.DEAD)
    if fate == "replayed":
        yield
        story.replay(job)
        yield
        story.claim(job)
    if fate in ("succeeded", "replayed"):
        story.run(job)
        yield
        story.end(job, State.SUCCEEDED)


@st.composite
def _histories(draw: st.DrawFn) -> Histories:
    story = Story()
    drawn = draw(st.lists(_LIVES, min_size=1, max_size=5))
    lives = [_life(story, f"job-{n}", *life) for n, life in enumerate(drawn)]
    turn = draw(st.randoms(use_true_random=False))
    while lives:
        life = turn.choice(lives)
        if next(life, "over") == "over":
            lives.remove(life)
    return story.told()


@given(_histories())
def test_random_sound_histories_pass(histories: Histories) -> None:
    report = histories.judged()
    assert report.sound, report
    assert histories.without_audit().judged().sound


@given(_histories(), st.sampled_from(MUTATIONS), st.integers())
def test_any_single_mutation_of_a_random_history_is_caught(histories: Histories, mutation: Mutation, seed: int) -> None:
    choice = random.Random(seed)
    broken = mutation.apply(histories, lambda candidates: choice.choice(candidates) if candidates else None)
    assume(broken is not None)
    assert broken is not None
    report = broken.judged()
    assert mutation.invariant in report.broken, f"{mutation}: {report}"
