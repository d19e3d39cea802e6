"""The fields of `--json`: stable names, so that scripts survive a change of the classes behind them."""

from __future__ import annotations

from typing import Any

from holdfast.core.job import AttemptInfo, ErrorInfo, JobInfo
from holdfast.core.queue import QueueInfo
from holdfast.core.worker import WorkerInfo


def job_fields(job: JobInfo) -> dict[str, Any]:
    """A job, whole."""
    progress = job.progress
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "tenant": job.tenant,
        "state": job.state,
        "reason": job.reason,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "args": list(job.args),
        "kwargs": job.kwargs,
        "result": job.result,
        "error": _error(job.error),
        "progress": None
        if progress is None
        else {"done": progress.done, "total": progress.total, "fraction": progress.fraction, "at": progress.at},
        "stage": job.stage,
        "worker": job.worker,
        "cancel_requested": job.cancel_requested,
        "created_at": job.created_at,
        "run_at": job.run_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "expires_at": job.expires_at,
        "tags": list(job.tags),
        "metadata": job.metadata,
        "attempts": [_attempt(run) for run in job.attempts],
    }


def queue_fields(queue: QueueInfo) -> dict[str, Any]:
    """A queue with its depths and settings."""
    settings = queue.settings
    marks = settings.watermarks
    return {
        "name": queue.name,
        "ready": queue.ready,
        "scheduled": queue.scheduled,
        "blocked": queue.blocked,
        "parked": queue.parked,
        "running": queue.running,
        "dead": queue.dead,
        "paused": settings.paused,
        "accepting": queue.accepting,
        "oldest_ready_s": queue.oldest_ready_s,
        "by_priority": {str(priority): count for priority, count in sorted(queue.by_priority.items())},
        "weight": settings.weight,
        "weights": None if settings.weights is None else dict(settings.weights),
        "high_watermark": None if marks is None else marks.high,
        "low_watermark": None if marks is None else marks.low,
        "high_age_s": None if settings.ages is None else settings.ages.high_s,
        "low_age_s": None if settings.ages is None else settings.ages.low_s,
    }


def worker_fields(worker: WorkerInfo) -> dict[str, Any]:
    """A registered worker."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "concurrency": worker.concurrency,
        "running": worker.running,
        "queues": list(worker.queues),
        "started_at": worker.started_at,
        "lease_until": worker.lease_until,
        "lag_s": worker.lag_s,
    }


def _error(error: ErrorInfo | None) -> dict[str, str] | None:
    if error is None:
        return None
    return {
        "type": error.type,
        "message": error.message,
        "class": error.error_class,
        "fingerprint": error.fingerprint,
        "traceback": error.traceback,
    }


def _attempt(run: AttemptInfo) -> dict[str, Any]:
    return {
        "number": run.number,
        "token": run.token,
        "cause": run.cause,
        "error": _error(run.error),
        "worker": run.worker,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }
