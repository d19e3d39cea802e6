"""What each outcome is turned into, by which policy."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import HardTimeout, PermanentError, RetryLater, SoftTimeout
from holdfast.core.outcome import (
    CancelHonoured,
    Failed,
    Interrupted,
    Outcome,
    ProcessDied,
    Rejected,
    Succeeded,
    TimedOut,
    Unknown,
    describe,
)
from holdfast.core.retry import RetryPolicy
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
    decide,
)

JOB, TOKEN = UUID(int=7), 42
FIXED = RetryPolicy(max_attempts=3, base=2.0, backoff="fixed", jitter="none")


def settle(outcome: Outcome, *, attempt: int = 1, policy: RetryPolicy = FIXED) -> Settlement:
    return decide(outcome, job_id=JOB, token=TOKEN, attempt=attempt, policy=policy, rng=lambda: 0.5)


def test_a_return_succeeds() -> None:
    assert settle(Succeeded(b"42")) == Succeed(JOB, TOKEN, b"42")
    assert settle(Succeeded(None), attempt=3) == Succeed(JOB, TOKEN, None)


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_failure_within_the_budget_is_retried(attempt: int) -> None:
    error = ValueError("no")
    assert settle(Failed(error), attempt=attempt) == Retry(JOB, TOKEN, 2.0, describe(error, error_class="other"))


@pytest.mark.parametrize("attempt", [3, 4])
def test_a_failure_of_the_last_attempt_is_buried_as_exhausted(attempt: int) -> None:
    error = ValueError("no")
    assert settle(Failed(error), attempt=attempt) == Bury(JOB, TOKEN, "exhausted", describe(error, error_class="other"))


def test_the_jitter_comes_from_the_given_source() -> None:
    policy = RetryPolicy(base=10.0, backoff="fixed", jitter="full")
    settlement = settle(Failed(ValueError()), policy=policy)
    assert isinstance(settlement, Retry)
    assert settlement.delay_s == 5.0


@pytest.mark.parametrize(
    "policy",
    [RetryPolicy(give_up_on=[ValueError]), RetryPolicy(retry_on=[KeyError]), RetryPolicy(retry_on=[])],
)
def test_what_the_policy_does_not_retry_is_buried_as_such(policy: RetryPolicy) -> None:
    settlement = settle(Failed(ValueError("no")), policy=policy)
    assert isinstance(settlement, Bury)
    assert settlement.reason == "not_retried"


@pytest.mark.parametrize("attempt", [1, 3, 99])
@pytest.mark.parametrize("policy", [FIXED, RetryPolicy(max_attempts=1), RetryPolicy(give_up_on=[Exception])])
def test_retry_later_snoozes_whatever_the_policy_says(attempt: int, policy: RetryPolicy) -> None:
    later = RetryLater(after=30)
    assert settle(Failed(later), attempt=attempt, policy=policy) == Snooze(JOB, TOKEN, 30.0, describe(later))


@pytest.mark.parametrize("policy", [FIXED, RetryPolicy(retry_on=[PermanentError], delays={PermanentError: 1.0})])
def test_a_permanent_error_is_buried_at_once(policy: RetryPolicy) -> None:
    error = PermanentError("bad address")
    assert settle(Failed(error), policy=policy) == Bury(JOB, TOKEN, "permanent", describe(error))


def test_a_subclass_of_the_special_errors_is_as_special() -> None:
    class BadAddress(PermanentError):
        pass

    class Busy(RetryLater):
        pass

    assert isinstance(settle(Failed(BadAddress())), Bury)
    assert isinstance(settle(Failed(Busy(after=1))), Snooze)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), SoftTimeout()])
def test_every_exception_fails_the_attempt_alone(error: BaseException) -> None:
    assert isinstance(settle(Failed(error)), Retry)


def test_the_hard_limit_fails_the_attempt() -> None:
    settlement = settle(TimedOut(1.5))
    assert isinstance(settlement, Retry)
    assert settlement.error.type == "holdfast.HardTimeout"
    assert "1.5 s" in settlement.error.message
    last = settle(TimedOut(1.5), attempt=3)
    assert isinstance(last, Bury)
    assert last.reason == "exhausted"


def test_the_policy_may_name_the_hard_limit() -> None:
    settlement = settle(TimedOut(1), policy=RetryPolicy(give_up_on=[HardTimeout]))
    assert isinstance(settlement, Bury)
    assert settlement.reason == "not_retried"


@pytest.mark.parametrize("attempt", [1, 3])
def test_what_can_never_run_is_buried_with_its_reason(attempt: int) -> None:
    error = TypeError("unexpected keyword")
    settlement = settle(Rejected("invalid_arguments", error), attempt=attempt)
    assert settlement == Bury(JOB, TOKEN, "invalid_arguments", describe(error))


def test_an_unknown_task_is_parked_under_its_name() -> None:
    assert settle(Unknown("shop.ship"), attempt=3) == Park(JOB, TOKEN, UNKNOWN_TASK, "shop.ship")


def test_an_honoured_cancellation_cancels() -> None:
    assert settle(CancelHonoured("not needed"), attempt=3) == Cancel(JOB, TOKEN, "not needed")


def test_an_interrupted_run_is_handed_back() -> None:
    assert settle(Interrupted("draining"), attempt=3) == HandBack(JOB, TOKEN, "draining")


def test_a_death_of_its_own_process_is_for_the_store_to_count() -> None:
    assert settle(ProcessDied("exited with code 3"), attempt=3) == Crashed(JOB, TOKEN, "exited with code 3")


outcomes = st.one_of(
    st.builds(Succeeded, st.none() | st.binary(max_size=4)),
    st.builds(Failed, st.sampled_from([ValueError("x"), OSError(), PermanentError("x"), RetryLater(after=3)])),
    st.builds(TimedOut, st.floats(0.001, 1e6)),
    st.builds(Rejected, st.just("invalid_arguments"), st.just(TypeError("x"))),
    st.builds(Unknown, st.just("a.b")),
    st.builds(CancelHonoured, st.just("why")),
    st.builds(Interrupted, st.just("why")),
    st.builds(ProcessDied, st.just("why")),
)
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 10),
    retry_on=st.none() | st.lists(st.sampled_from([ValueError, OSError])),
    give_up_on=st.lists(st.sampled_from([ValueError, OSError, HardTimeout])),
)


@given(outcome=outcomes, policy=policies, attempt=st.integers(1, 12), draw=st.floats(0, 1))
def test_every_outcome_has_one_settlement_and_no_budget_is_overrun(
    outcome: Outcome, policy: RetryPolicy, attempt: int, draw: float
) -> None:
    settlement = decide(outcome, job_id=JOB, token=TOKEN, attempt=attempt, policy=policy, rng=lambda: draw)
    assert (settlement.job_id, settlement.token) == (JOB, TOKEN)
    if isinstance(settlement, Retry):
        assert attempt < policy.max_attempts
        assert settlement.delay_s >= 0
    if isinstance(outcome, Failed | TimedOut | Rejected):
        assert isinstance(settlement, Retry | Snooze | Bury)
