"""What is worth a line of the demonstration, and how it is said."""

from __future__ import annotations

from holdfast.core.job import JobId
from holdfast.core.shown import counted
from holdfast.telemetry.events import (
    Event,
    JobBuried,
    JobRetried,
    StoreDown,
    StoreUp,
    WorkerDraining,
    WorkersReaped,
    WorkerStarted,
)


def told(event: Event) -> str | None:
    """The sentence for an event; None for the many that are only counted."""
    match event:
        case JobRetried():
            who = job_name(event.task, event.job_id)
            return f"{who} failed in attempt {event.attempt}, again in {event.delay_s:.1f} s: {event.error}"
        case JobBuried():
            return f"{job_name(event.task, event.job_id)} is dead ({event.reason}): {event.error}"
        case WorkerStarted():
            return f"a worker serves {', '.join(event.queues)}: up to {counted(event.concurrency, 'job')} at once"
        case WorkersReaped():
            return f"a silent worker was declared dead: {counted(event.jobs, 'job')} recovered, to be run again"
        case WorkerDraining():
            return f"a worker claims nothing more and lets {counted(event.running, 'running job')} end"
        case StoreDown():
            return f"the store does not answer: {event.error}"
        case StoreUp():
            return f"the store answers again, after {event.after_s:.1f} s"
        case _:
            return None


def job_name(task: str, job_id: JobId) -> str:
    """The task and the end of the id, which is what differs between jobs of one moment."""
    return f"{task} {str(job_id)[-4:]}"
