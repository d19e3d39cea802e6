"""Where an answer leads on to, as OpenAPI says it: from a job that was taken to all that can be asked about it."""

from __future__ import annotations

from typing import Any

_OF_A_JOB = ("get_job", "get_result", "explain_job", "cancel_job", "retry_job", "get_dead", "replay_one")
_OF_A_BATCH = ("batch_status", "batch_jobs")


def job_links(place: str) -> dict[str, Any]:
    """To the operations on one job, whose id is at this place of the answer."""
    return {name: {"operationId": name, "parameters": {"job_id": place}} for name in _OF_A_JOB}


def batch_links(place: str) -> dict[str, Any]:
    """The same of a batch."""
    return {name: {"operationId": name, "parameters": {"batch": place}} for name in _OF_A_BATCH}
