"""How a task of the campaign tells its recorder what it does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tests.history import RunRecorder

from holdfast import current_job
from holdfast.worker.context import CurrentJob


@contextlib.contextmanager
def told(recorder: RunRecorder | None) -> Iterator[tuple[CurrentJob, Callable[[], None]]]:
    """Records start and end of the current run; gives the job and the way to record an effect."""
    assert recorder is not None, "only workers run tasks"
    job = current_job()
    token, attempt, worker = job.token, job.attempt, job.worker
    recorder.start(job.id, token=token, attempt=attempt, worker=worker)
    try:
        yield job, lambda: recorder.effect(job.id, token=token, attempt=attempt, worker=worker)
    except BaseException as error:
        recorder.end(job.id, token=token, attempt=attempt, worker=worker, outcome=type(error).__name__)
        raise
    recorder.end(job.id, token=token, attempt=attempt, worker=worker)
