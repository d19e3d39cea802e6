"""The columns of lists of jobs, and how far a job has come in a few letters."""

from __future__ import annotations

from holdfast.cli.output import Column, age
from holdfast.core.job import JobInfo


def attempt(job: JobInfo) -> str:
    """`2/5`: the second of five."""
    return f"{job.attempt}/{job.max_attempts}" if job.max_attempts else str(job.attempt)


def progress(job: JobInfo) -> str:
    """`40%`, or how much is done where no total is known."""
    if job.progress is None:
        return "-"
    fraction = job.progress.fraction
    return f"{job.progress.done:g}" if fraction is None else f"{fraction:.0%}"


def error(job: JobInfo) -> str:
    """The error that counts."""
    return "-" if job.error is None else f"{job.error.type}: {job.error.message}"


JOBS = (
    Column[JobInfo]("id", lambda job: job.id),
    Column[JobInfo]("state", lambda job: job.state.value),
    Column[JobInfo]("task", lambda job: job.task, rank=1),
    Column[JobInfo]("queue", lambda job: job.queue, rank=2),
    Column[JobInfo]("priority", lambda job: job.priority, rank=3),
    Column[JobInfo]("attempt", attempt, rank=4),
    Column[JobInfo]("progress", progress, rank=5),
    Column[JobInfo]("age", lambda job: age(job.created_at), rank=6),
)

DEAD = (
    Column[JobInfo]("id", lambda job: job.id),
    Column[JobInfo]("reason", lambda job: job.reason),
    Column[JobInfo]("task", lambda job: job.task, rank=2),
    Column[JobInfo]("queue", lambda job: job.queue, rank=3),
    Column[JobInfo]("attempt", attempt, rank=5),
    Column[JobInfo]("age", lambda job: age(job.ended_at), rank=4),
    Column[JobInfo]("error", error, rank=1, room=40),
)
