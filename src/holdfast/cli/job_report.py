"""One job for a person to read: what matters first, then every attempt; `--json` has its own form in `fields`."""

from __future__ import annotations

from typing import Any

from holdfast.cli.columns import attempt, progress
from holdfast.cli.fields import job_fields
from holdfast.cli.output import Output
from holdfast.core.job import CLASS_LINE, AttemptInfo, JobInfo
from holdfast.core.state import State


def report_job(out: Output, job: JobInfo, why: str) -> None:
    """All that is known of it; `why` says in a sentence why it is where it is."""
    if out.as_json:
        out.document(job_fields(job) | {"explanation": why})
        return
    fields: dict[str, Any] = {
        "id": job.id,
        "state": job.state.value,
        "why": why,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "attempt": attempt(job),
        "args": list(job.args),
        "kwargs": job.kwargs,
        "result": job.result,
        "progress": None if job.progress is None else progress(job),
        "stage": job.stage,
        "tenant": job.tenant or None,
        "tags": list(job.tags) or None,
        "metadata": job.metadata,
        "worker": job.worker,
        "created": job.created_at,
        "runs at": job.run_at,
        "started": job.started_at,
        "ended": job.ended_at,
        "expires": job.expires_at,
    }
    # Counted from the job's first: tokens grow over the whole store, and attempts begin anew with a replay.
    runs = [_past(run) for run in job.attempts]
    if job.state in (State.RUNNING, State.SUCCEEDED):
        runs.append(f"attempt {job.attempt}, {job.state}")
    fields |= {f"run {number}": run for number, run in enumerate(runs, start=1)}
    if job.error is not None and job.state is not State.SUCCEEDED:
        name = "error" if job.state is State.DEAD else "last error"
        fields |= {
            name: f"{job.error.type}: {job.error.message}",
            "error class": job.error.error_class or None,
            "fingerprint": job.error.fingerprint,
            "traceback": job.error.traceback.removesuffix(f"{CLASS_LINE}{job.error.error_class}\n") or None,
        }
    out.record({name: value for name, value in fields.items() if value is not None})


def _past(run: AttemptInfo) -> str:
    error = "" if run.error is None else f": {run.error.type}: {run.error.message}".replace(": :", ":")
    return f"attempt {run.number}, {run.cause}{error}"
