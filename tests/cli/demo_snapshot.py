"""A moment of the demonstration with something in every part: for the tests of its picture, and for the README."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.cli.demo.watching import News, Snapshot, Tally
from holdfast.core.job import AttemptInfo, ErrorInfo, JobInfo, Progress
from holdfast.core.queue import QueueInfo
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def job(task: str, end: str, state: State, **more: Any) -> JobInfo:
    """A job whose id ends so."""
    fields: dict[str, Any] = {"attempt": 1, "max_attempts": 5, "created_at": NOW} | more
    return JobInfo(UUID(f"01985f3e-6f0a-7a51-8d8e-2f4f8f1f{end}"), task, "default", 5, "", state, **fields)


def failed(cause: str, kind: str, message: str) -> AttemptInfo:
    """A run that failed, or was lost."""
    return AttemptInfo(1, 1, cause, ErrorInfo(kind, message), None, NOW, NOW)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def slow(end: str, done: float, stage: str, **more: Any) -> JobInfo:
    """A running job with progress."""
    return job("import_rows", end, State.RUNNING, progress=Progress(done, 100, NOW), stage=stage, **more)


_REFUSED = "the post office does not answer"
_RECOVERED = (failed("lease_expired", "holdfast.LeaseLost", ""),)

SNAPSHOT = Snapshot(
    at_s=19.0,
    now=NOW.timestamp(),
    url="sqlite:////tmp/holdfast-demo-k2v8/demo.db",
    queues=(
        QueueInfo("imports", 0, 0, 0, 0, 3, 0, True, None),
        QueueInfo("mail", 16, 2, 0, 0, 2, 0, True, 0.2, {9: 11, 5: 4, 2: 1}),
        QueueInfo("media", 62, 0, 0, 0, 3, 0, True, 1.0, {5: 2, 0: 60}),
        QueueInfo("payments", 1, 2, 0, 0, 2, 3, True, 0.1, {7: 1}),
    ),
    running=(
        slow("9f3a", 71, "writing", attempts=_RECOVERED),
        slow("b1c2", 58, "writing", attempts=_RECOVERED),
        slow("07ca", 24, "reading"),
        job("call_partner", "c31f", State.RUNNING, attempt=2, max_attempts=4, started_at=ago(0.2),
            attempts=(failed("retry", "ConnectionError", _REFUSED),)),
        job("charge", "4904", State.RUNNING, started_at=ago(0.1)),
        job("send_mail", "2a75", State.RUNNING, started_at=ago(0.1)),
        job("send_mail", "9dcf", State.RUNNING, started_at=ago(0.0)),
        job("write_invoice", "7633", State.RUNNING, started_at=ago(0.5)),
        job("resize_image", "ae52", State.RUNNING, started_at=ago(0.1)),
        job("resize_image", "2bb7", State.RUNNING, started_at=ago(0.0)),
    ),
    retrying=(
        job("call_partner", "77aa", State.SCHEDULED, attempt=1, max_attempts=4, run_at=ago(-0.6),
            attempts=(failed("retry", "ConnectionError", "the bank does not answer"),)),
        job("call_partner", "e9d4", State.SCHEDULED, attempt=3, max_attempts=4, run_at=ago(-2.8),
            attempts=(failed("retry", "ConnectionError", _REFUSED),)),
    ),
    dead=(
        job("call_partner", "cb85", State.DEAD, reason="exhausted", error=ErrorInfo("ConnectionError", _REFUSED)),
        job("charge", "67f7", State.DEAD, reason="permanent",
            error=ErrorInfo("holdfast.PermanentError", "-700 cents cannot be charged")),
        job("charge", "8fcd", State.DEAD, reason="permanent",
            error=ErrorInfo("holdfast.PermanentError", "-500 cents cannot be charged")),
    ),
    workers=(
        WorkerInfo(UUID(int=1), "shop", 4711, 8, ("mail", "media", "payments"), ago(19), NOW, 7),
        WorkerInfo(UUID(int=2), "shop", 4711, 4, ("imports",), ago(14), NOW, 3),
    ),
    per_second=(21, 24, 25, 60, 58, 55, 61, 52, 49, 31, 24, 26, 55, 59, 62, 57, 60, 38, 41),
    tally=Tally(enqueued=843, succeeded=749, retried=14, dead=3, recovered=2),
    news=(
        News(1, 0.1, "demo.second", "a second worker, in process 4720, will serve imports", {}),
        News(2, 4.2, "job.retried", "call_partner e9d4 failed in attempt 1", {}),
        News(3, 4.6, "demo.killed", "process 4720 was killed with 2 running jobs; its lease ends in 3 s", {}),
        News(4, 4.6, "worker.started", "a worker serves imports: up to 4 jobs at once", {}),
        News(5, 7.9, "worker.reaped", "a silent worker was declared dead: 2 jobs recovered, to be run again", {}),
    ),
)  # fmt: skip
