"""The events of one run: that it began, and what came of it; the same from a worker and from a test's harness."""

from __future__ import annotations

from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Settlement, Snooze, Succeed
from holdfast.telemetry.events import JobBuried, JobCrashed, JobParked, JobRetried, JobSettled, JobStarted
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.run import Run

_OUTCOMES: dict[type[Settlement], str] = {
    Succeed: "succeeded",
    Retry: "retry",
    Snooze: "snooze",
    HandBack: "handed_back",
    Crashed: "crashed",
    Park: "parked",
    Bury: "dead",
    Cancel: "cancelled",
}


def report_started(telemetry: Telemetry, run: Run) -> None:
    """A run begins."""
    if telemetry.wants(JobStarted):
        job = run.job
        telemetry.emit(JobStarted(job.id, job.task or "", job.queue, job.attempt, run.worker))


def report_settled(telemetry: Telemetry, run: Run, settlement: Settlement, *, took_s: float) -> None:
    """What came of a run is in the store."""
    job, emit, wants = run.job, telemetry.emit, telemetry.wants
    task = job.task or ""
    match settlement:
        case Succeed():
            pass
        case Retry(delay_s=delay_s, error=error) if wants(JobRetried):
            emit(JobRetried(job.id, task, job.attempt, delay_s, f"{error.type}: {error.message}", error.error_class))
        case Bury(reason=reason, error=error) if wants(JobBuried):
            emit(JobBuried(job.id, task, job.attempt, f"{error.type}: {error.message}", reason, error.error_class))
        case Crashed(why=why) if wants(JobCrashed):
            emit(JobCrashed(job.id, task, job.attempt, why))
        case Park(reason=reason, key=key) if wants(JobParked):
            emit(JobParked(job.id, task, reason, key))
        case _:
            pass
    if wants(JobSettled):
        emit(JobSettled(job.id, task, job.queue, job.attempt, _OUTCOMES[type(settlement)], took_s))
