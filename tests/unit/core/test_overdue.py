"""What becomes of a run that is killed at its hard limit is what would have become of it by an ordinary time-out."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.core.outcome import TimedOut
from holdfast.core.overdue import Verdicts, settlement
from holdfast.core.retry import RetryPolicy
from holdfast.core.settlement import Bury, Retry, decide

JOB = UUID(int=1)

POLICIES = [
    RetryPolicy(),
    RetryPolicy(max_attempts=1),
    RetryPolicy(jitter="none", base=3.0),
    RetryPolicy(backoff=[0.0, 5.0]),
    RetryPolicy(give_up_on=["HardTimeout"]),
    RetryPolicy(retry_on=["ConnectionError"]),
    RetryPolicy(delays={"HardTimeout": 7.0}),
    RetryPolicy(base=0.0, cap=0.0),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("attempt", [1, 2, 5])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_it_is_as_by_an_ordinary_timeout(policy: RetryPolicy, attempt: int, share: float) -> None:
    usual = decide(TimedOut(30.0), job_id=JOB, token=9, attempt=attempt, policy=policy, rng=lambda: share)
    verdicts = Verdicts(policy)
    for _ in range(2):  # the second time from memory
        found = settlement(verdicts.of(attempt), JOB, 9, limit_s=30.0, rng=lambda: share)
        match usual, found:
            case Retry(), Retry():
                assert found.delay_s == pytest.approx(usual.delay_s)
            case Bury(), Bury():
                assert found.reason == usual.reason
            case _:
                pytest.fail(f"{found} is not of the same kind as {usual}")
        assert found.error.type == usual.error.type == "holdfast.HardTimeout"
        assert "did not end at its hard limit of 30 s" in found.error.message
