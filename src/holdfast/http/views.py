"""What the API tells of jobs, queues and the rest: the shapes of its answers, with names that stay."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.job import AttemptInfo, ErrorInfo, JobInfo
from holdfast.core.state import State


class View(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class ErrorView(View):
    """What a run raised."""

    type: str
    error_class: str = Field(description="The row of the table of errors that decided; empty where none was asked.")
    fingerprint: str = Field(description="The same for the same failure, whatever its message holds.")
    message: str | None = Field(description="Needs the scope read-payload: it may hold arguments.")
    traceback: str | None = Field(description="Needs the scope read-payload, too.")


class AttemptView(View):
    """One run that did not succeed, or was lost."""

    number: int
    cause: str
    error: ErrorView | None
    worker: str | None
    started_at: datetime | None
    ended_at: datetime


class ProgressView(View):
    """How far a run has come."""

    done: float
    total: float | None
    fraction: float | None
    at: datetime


class PayloadView(View):
    """What callers and tasks wrote into a job."""

    args: list[Any]
    kwargs: dict[str, Any]
    result: Any
    metadata: dict[str, Any] | None


class JobView(View):
    """A job."""

    id: UUID
    task: str
    queue: str
    priority: int
    tenant: str
    state: State
    reason: str | None = Field(description="Why it is parked, cancelled or dead.")
    waits_at: str | None
    attempt: int
    max_attempts: int | None
    created_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime | None
    worker: str | None
    cancel_requested: bool
    progress: ProgressView | None
    stage: str | None = Field(description="Needs the scope read-payload: the task's own words.")
    tags: list[str]
    error: ErrorView | None
    attempts: list[AttemptView]
    payload: PayloadView | None = Field(description="Needs the scope read-payload; null without it.")


class JobPageView(View):
    """Jobs, newest first."""

    jobs: list[JobView]
    next: UUID | None = Field(description="The `before` of the next page; null: there are no more.")


def job_view(job: JobInfo, *, payloads: bool) -> JobView:
    """A job as somebody may see it who may, or may not, see payloads."""
    progress = job.progress
    return JobView.model_construct(
        id=job.id,
        task=job.task,
        queue=job.queue,
        priority=job.priority,
        tenant=job.tenant,
        state=job.state,
        reason=job.reason,
        waits_at=job.waits_at,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        created_at=job.created_at,
        run_at=job.run_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        expires_at=job.expires_at,
        worker=job.worker,
        cancel_requested=job.cancel_requested,
        progress=progress
        and ProgressView(done=progress.done, total=progress.total, fraction=progress.fraction, at=progress.at),
        stage=job.stage if payloads else None,
        tags=list(job.tags),
        error=_error(job.error, payloads=payloads),
        attempts=[_attempt(each, payloads=payloads) for each in job.attempts],
        payload=_payload(job) if payloads else None,
    )


def _payload(job: JobInfo) -> PayloadView:
    return PayloadView.model_construct(
        args=list(job.args), kwargs=job.kwargs or {}, result=job.result, metadata=job.metadata
    )


def _error(error: ErrorInfo | None, *, payloads: bool) -> ErrorView | None:
    if error is None:
        return None
    return ErrorView(
        type=error.type,
        error_class=error.error_class,
        fingerprint=error.fingerprint,
        message=error.message if payloads else None,
        traceback=error.traceback if payloads else None,
    )


def _attempt(run: AttemptInfo, *, payloads: bool) -> AttemptView:
    return AttemptView(
        number=run.number,
        cause=run.cause,
        error=_error(run.error, payloads=payloads),
        worker=run.worker,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )
