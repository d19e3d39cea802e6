"""Why a job ran more than once: every extra run has one of these on record."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """How a run that did not end its job came to its end; stored with the run in the table `attempt`."""

    RETRY = "retry"
    """The task failed and its policy allows another attempt. Charged."""

    SNOOZE = "snooze"
    """The task asked to run again later (`RetryLater`), or its queue's retry budget did not cover it. Not charged."""

    LEASE_EXPIRED = "lease_expired"
    """The worker's lease ran out: its machine died, or it was stopped too long. Not charged."""

    WORKER_LOST = "worker_lost"
    """The process that ran it died, and whoever had started that said so. Not charged."""

    HANDED_BACK = "handed_back"
    """The worker gave the job back: drained, or parked it. Not charged."""

    CLAIM_LOST = "claim_lost"
    """The answer to a claim never arrived, so nobody ran the job. Not charged."""

    REPLAY = "replay"
    """The job was dead and a person replayed it; the last run of the chapter before carries this."""

    DEAD = "dead"
    """The last run before the dead letter. Becomes `replay` when the job is replayed."""

    CANCELLED = "cancelled"
    """The run was ended by a cancellation."""
