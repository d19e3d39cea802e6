"""The budgets of one worker: whose runs are counted, what is written for a retry that may not begin, what is told."""

from __future__ import annotations

from uuid import uuid4

from holdfast.core.job import ClaimedJob, ErrorInfo
from holdfast.core.retry_budget import FREE, LONGEST_S
from holdfast.core.settlement import Retry, Snooze, Succeed
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.events import Event, QueueRetriesEased, QueueRetriesStretched
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.retry_budgets import RetryBudgets


def claimed(queue: str, attempt: int) -> ClaimedJob:
    return ClaimedJob(uuid4(), 1, attempt, "charge", queue, 5, b"", None, None, "", alone=False)


def test_a_retry_above_the_budget_is_put_off_and_looked_at_again_and_it_is_told() -> None:
    clock, telemetry, heard = ManualClock(), Telemetry(), list[Event]()
    telemetry.attach(heard.append)
    budgets = RetryBudgets(clock=clock, telemetry=telemetry)
    budgets.set_shares({"bank": 0.1})
    put_off = None
    while put_off is None:
        put_off = budgets.put_off(job := claimed("bank", 2))
    assert isinstance(put_off, Snooze)
    assert (put_off.job_id, put_off.token) == (job.id, job.token)
    assert "retry budget of queue bank" in put_off.error.message
    assert not put_off.error.type
    assert heard == [QueueRetriesStretched("bank", 10)]
    assert budgets.put_off(claimed("bank", 1)) is None, "what has not failed begins at once"
    assert budgets.put_off(claimed("other", 2)) is None, "and so does everything where there is no budget"
    clock.advance(60.0)
    assert budgets.put_off(job) is None, "when enough has come in"
    clock.advance(2 * LONGEST_S)
    assert budgets.put_off(claimed("bank", 1)) is None
    assert heard[1:] == [QueueRetriesEased("bank", 1)]


def test_a_failed_run_comes_after_those_that_wait_and_other_ends_are_let_be() -> None:
    clock = ManualClock()
    budgets = RetryBudgets(clock=clock, telemetry=Telemetry())
    budgets.set_shares({"bank": 0.1})
    retry, success = Retry(uuid4(), 1, 0.5, ErrorInfo("E", "")), Succeed(uuid4(), 2, None)
    assert budgets.applied("bank", retry) is retry
    for _ in range(2 * FREE):
        budgets.put_off(claimed("bank", 2))
    later = budgets.applied("bank", retry)
    assert isinstance(later, Retry)
    assert later.delay_s > 0.5
    assert budgets.applied("other", retry) is retry
    assert budgets.applied("bank", success) is success
    assert budgets.applied("bank", None) is None


def test_shares_are_changed_while_runs_go_on() -> None:
    clock, telemetry, heard = ManualClock(), Telemetry(), list[Event]()
    telemetry.attach(heard.append)
    budgets = RetryBudgets(clock=clock, telemetry=telemetry)
    assert not budgets.in_use, "nobody has to ask"
    budgets.set_shares({"bank": 0.1})
    assert budgets.in_use
    while budgets.put_off(claimed("bank", 2)) is None:
        pass
    budgets.set_shares({"bank": 0.9, "mail": 0.1})
    assert budgets.put_off(claimed("bank", 2)) is not None, "it keeps its balance"
    begun = 0
    while budgets.put_off(claimed("mail", 2)) is None:
        begun += 1
    assert FREE <= begun <= FREE + 1, "a new one begins with the free ones, and with no more"
    for _ in range(2):
        assert budgets.put_off(claimed("bank", 1)) is None
    assert budgets.put_off(claimed("bank", 2)) is None, "two runs pay for nearly two retries by the new share"
    heard.clear()
    budgets.set_shares({"mail": 0.1})
    assert [type(event) for event in heard] == [QueueRetriesEased], "it is over for the bank"
    assert all(budgets.put_off(claimed("bank", 2)) is None for _ in range(5 * FREE)), "everything begins"
    retry = Retry(uuid4(), 1, 0.5, ErrorInfo("E", ""))
    assert budgets.applied("bank", retry) is retry
    budgets.set_shares({})
    assert not budgets.in_use
