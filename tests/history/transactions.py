"""P6: what users wrote in a transaction of their own is there if and only if the job, or its success, is."""

from __future__ import annotations

from collections.abc import Iterator

from tests.history.joined import Joined
from tests.history.report import Violation

from holdfast.core.state import State

#: The task whose runs write a row and finish in one transaction, and the one that is enqueued beside a row only.
FINISHING, ORDERED = "transacting", "ordered"


def effect_with_success(joined: Joined) -> Iterator[Violation]:
    """A row of a run is there once if the job succeeded in it, and else not at all."""
    for job_id, record in joined.store.jobs.items():
        tokens = list(joined.store.effects.get(job_id, ()))
        succeeded = [place.token for place in record.places if place.state is State.SUCCEEDED]
        wanted = succeeded if record.task == FINISHING else []
        if tokens != wanted:
            yield Violation("P6", job_id, f"succeeded under tokens {wanted}, but its effects are of tokens {tokens}")
    for job_id in sorted(joined.store.effects.keys() - joined.store.jobs.keys()):
        if not joined.pruned(job_id):
            yield Violation("P6", job_id, "has an effect, but is not in the store")


def job_with_order(joined: Joined) -> Iterator[Violation]:
    """A job that is enqueued beside a row of its caller is there if and only if that row is."""
    for job_id in sorted(joined.store.orders - joined.store.jobs.keys()):
        if not joined.pruned(job_id):
            yield Violation("P6", job_id, "is not in the store, but what was committed with it is")
    for job_id, record in joined.store.jobs.items():
        if record.task == ORDERED and job_id not in joined.store.orders:
            yield Violation("P6", job_id, "is in the store, but what should have been committed with it is not")
