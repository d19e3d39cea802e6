"""What goes over the wire comes out as it went in, and nothing else comes out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.cause import Cause
from holdfast.core.job import ClaimedJob, ErrorInfo
from holdfast.core.settlement import (
    LONGEST_S,
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
)
from holdfast.worker.isolation.wire import (
    Unsettled,
    answer_of,
    answered,
    decode,
    encode,
    failed_in,
    interrupt,
    interruption_of,
    longest,
    request_of,
    requested_run,
)
from holdfast.worker.run import Interruption, Run

JOB, TOKEN, WORKER = UUID(int=17), 4, UUID(int=5)
texts = st.text(max_size=50)
errors = st.builds(ErrorInfo, texts, texts, texts)
delays = st.floats(0, LONGEST_S)
json_texts = st.none() | st.binary(max_size=50) | texts.map(lambda text: text.encode("utf-8", "surrogatepass"))
jobs = st.builds(
    ClaimedJob,
    id=st.just(JOB),
    token=st.just(TOKEN),
    attempt=st.integers(1, 9),
    task=st.none() | texts,
    queue=texts,
    priority=st.integers(0, 9),
    payload=json_texts,
    options=json_texts,
    max_attempts=st.none() | st.integers(1, 9),
    tenant=texts,
    alone=st.booleans(),
    headers=json_texts,
)
endings: st.SearchStrategy[Settlement | Unsettled] = st.one_of(
    st.builds(Succeed, st.just(JOB), st.just(TOKEN), json_texts),
    st.builds(Retry, st.just(JOB), st.just(TOKEN), delays, errors),
    st.builds(Snooze, st.just(JOB), st.just(TOKEN), delays, errors),
    st.builds(HandBack, st.just(JOB), st.just(TOKEN), texts, st.sampled_from(Cause)),
    st.builds(Crashed, st.just(JOB), st.just(TOKEN), texts),
    st.builds(Park, st.just(JOB), st.just(TOKEN), texts, texts),
    st.builds(Bury, st.just(JOB), st.just(TOKEN), texts, errors),
    st.builds(Cancel, st.just(JOB), st.just(TOKEN), texts),
    st.sampled_from(Unsettled),
)


def sent(message: Any) -> Any:
    line = encode(message)
    assert line.count(b"\n") == 1
    return decode(line)


@given(jobs)
def test_a_run_arrives_as_it_was_sent(job: ClaimedJob) -> None:
    run = requested_run(sent(request_of(Run(job, WORKER))))
    assert (run.job, run.worker) == (job, WORKER)


@given(endings, jobs)
def test_an_ending_arrives_as_it_was_sent(ending: Settlement | Unsettled, job: ClaimedJob) -> None:
    assert answered(sent(answer_of(ending)), job) == ending


@given(endings, jobs)
def test_an_answer_is_taken_for_the_run_that_was_asked_for_and_no_other(
    ending: Settlement | Unsettled, job: ClaimedJob
) -> None:
    other = answered(sent(answer_of(ending)), job._replace(id=UUID(int=99), token=98))
    assert isinstance(other, Unsettled) or (other.job_id, other.token) == (UUID(int=99), 98)


@given(json_texts, jobs)
def test_no_answer_is_longer_than_it_may_be(text: bytes | None, job: ClaimedJob) -> None:
    long = Succeed(job.id, job.token, (text or b"") * 1000)
    assert len(encode(answer_of(long))) <= longest(len(long.result or b""))


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"ended": "well"},
        {"ended": "succeed"},
        {"ended": "succeed", "result": 5},
        {"ended": "retry", "delay_s": "soon", "error": {"type": "", "message": "", "traceback": ""}},
        {"ended": "retry", "delay_s": 1, "error": {"type": ""}},
        {"ended": "hand_back", "why": "", "cause": "boredom"},
        {"ready": True},
    ],
)
@given(job=jobs)
def test_what_is_no_answer_is_refused(message: dict[str, Any], job: ClaimedJob) -> None:
    with pytest.raises(ValueError, match=r"not an|boredom"):
        answered(message, job)


@pytest.mark.parametrize("line", [b"\n", b"no JSON\n", b"[]\n", b"\xff\n", b'"text"\n'])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)


@given(jobs, st.sampled_from(Interruption), texts)
def test_an_interruption_reaches_its_run_and_no_other(job: ClaimedJob, why: Interruption, reason: str) -> None:
    here, there, next_one = Run(job, WORKER), Run(job, WORKER), Run(job._replace(token=TOKEN + 1), WORKER)
    here.cancel_reason = reason
    message = sent(interruption_of(here, why))
    interrupt(there, message)
    interrupt(next_one, message)
    assert (there.interruption, there.cancel_reason) == (why, reason)
    assert next_one.interruption is None


@pytest.mark.parametrize("failed", [None, True, False])
def test_an_answer_tells_what_the_run_says_about_its_breaker(failed: bool | None) -> None:
    message = sent(answer_of(Unsettled.FINISHED, failed=failed))
    assert failed_in(message) is failed
    assert failed_in({"ended": "lost", "failed": "nonsense"}) is None
