"""The fields of `--json`: stable names, so that scripts survive a change of the classes behind them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from holdfast.client.limits import LimitInfo
from holdfast.client.routes import RouteInfo
from holdfast.client.tasks import TaskInfo
from holdfast.core.api_key import ApiKey
from holdfast.core.explanation import Explanation, Reason
from holdfast.core.job import AttemptInfo, ErrorInfo, JobInfo
from holdfast.core.queue import QueueInfo, QueueRates
from holdfast.core.worker import WorkerInfo
from holdfast.stores.flow import BreakerInfo, SettingChange


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
        "waits_at": job.waits_at,
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


def rate_fields(rates: QueueRates) -> dict[str, Any]:
    """How quickly jobs of a queue came, began and ended lately."""
    return {name: round(value, 3) for name, value in asdict(rates).items()}


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
        "draining": settings.draining,
        "accepting": queue.accepting,
        "oldest_ready_s": queue.oldest_ready_s,
        "by_priority": {str(priority): count for priority, count in sorted(queue.by_priority.items())},
        "weight": settings.weight,
        "weights": None if settings.weights is None else dict(settings.weights),
        "high_watermark": None if marks is None else marks.high,
        "low_watermark": None if marks is None else marks.low,
        "high_age_s": None if settings.ages is None else settings.ages.high_s,
        "low_age_s": None if settings.ages is None else settings.ages.low_s,
        "options": settings.options.said,
    }


def explanation_fields(why: Explanation) -> dict[str, Any]:
    """Why a job is where it is."""
    return {
        "id": why.job_id,
        "state": why.state,
        "explanation": str(why),
        "held_by": [_reason(each) for each in why.held_by],
        "notes": [_reason(each) for each in why.notes],
        "starts_at": why.starts_at,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"kind": reason.kind, "sentence": reason.sentence, **reason.data}


def limit_fields(limit: LimitInfo) -> dict[str, Any]:
    """A concurrency limit or a rate, or one key of it."""
    return asdict(limit)


def route_fields(route: RouteInfo) -> dict[str, Any]:
    """A pattern over names of tasks, and where their jobs go."""
    return asdict(route)


def breaker_fields(breaker: BreakerInfo) -> dict[str, Any]:
    """A circuit breaker."""
    until = breaker.state.open_until
    return {
        "name": breaker.name,
        "phase": breaker.phase,
        "held": breaker.state.held,
        "open_until": None if until is None else datetime.fromtimestamp(until, UTC),
        "recent_failures": len(breaker.state.recent),
        "waiting": breaker.waiting,
        **breaker.figures._asdict(),
        "said_by": breaker.said_by,
    }


def task_fields(task: TaskInfo) -> dict[str, Any]:
    """A task."""
    return asdict(task)


def change_fields(change: SettingChange) -> dict[str, Any]:
    """Who changed what."""
    return change._asdict()


def key_fields(key: ApiKey) -> dict[str, Any]:
    """A key of the API; never its secret, nor the hash of that."""
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "queues": None if key.queues is None else sorted(key.queues),
        "tenant": key.tenant,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "used_at": key.used_at,
        "failed_at": key.failed_at,
        "rotations": key.rotations,
        "old_until": key.old_until,
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
