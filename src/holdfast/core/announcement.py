"""What is said of a job that has become ready: which one, and in which lane it waits."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.job import JobId


class Announcement(NamedTuple):
    """A reason to look, never a fact to act on: by the time it is heard, the job may have been taken or have ended."""

    lane: Lane
    job_id: JobId | None
    """None: some job of this lane is ready, and the store's order decides which comes first."""
