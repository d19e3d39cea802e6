"""I1, I2, I9: what the store has against what producers were told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.history.joined import Joined
from tests.history.records import Answer, ClientCall, Op
from tests.history.report import Violation

from holdfast.core.cause import Cause


def no_loss(joined: Joined) -> Iterator[Violation]:
    """I1: what was accepted is there (that it came to an end is I14); what is there is in some state."""
    promised = {
        call.answered_id
        for calls in joined.calls.values()
        for call in calls
        if call.op is Op.ENQUEUE and call.answer is Answer.OK
    }
    for job_id in sorted(promised - joined.store.jobs.keys()):
        if not joined.pruned(job_id):
            yield Violation("I1", job_id, "was accepted, but is not in the store")
    for job_id, record in joined.store.jobs.items():
        if not record.places:
            yield Violation("I1", job_id, "has a body, but is in no state at all")


def no_invention(joined: Joined) -> Iterator[Violation]:
    """I2: what is there, and what was replayed, was asked for."""
    for job_id, record in joined.store.jobs.items():
        asked = joined.answers(job_id, Op.ENQUEUE)
        if not any(call.answered_id == job_id for call in asked):
            why = "its calls were refused" if job_id in joined.calls else "nobody asked for it"
            if asked:
                why = f"its key belonged to {asked[0].answered_id}, as its caller was told"
            yield Violation("I2", job_id, f"is in the store, but {why}")
        by_move = sum(move.replays for move in joined.moves.get(job_id, ()))
        replays = max(by_move, sum(row.cause == Cause.REPLAY for row in record.attempts))
        if replays > (replays_asked := len(joined.answers(job_id, Op.REPLAY))):
            yield Violation("I2", job_id, f"was replayed {replays} times, but this was asked {replays_asked} times")


def one_job_per_key(joined: Joined) -> Iterator[Violation]:
    """I9: a key has one job, all who use it are told the same id, and another request with it is refused."""
    by_key: dict[tuple[str, str], list[ClientCall]] = defaultdict(list)
    for calls in joined.calls.values():
        for call in calls:
            if call.op is Op.ENQUEUE and call.key is not None:
                by_key[call.tenant, call.key].append(call)
    owners = {(row.tenant, row.key): row.job_id for row in joined.store.keys}
    for (tenant, key), calls in by_key.items():
        name = f"key {key!r}" + (f" of tenant {tenant!r}" if tenant else "")
        accepted = [call for call in calls if call.answer is Answer.OK]
        told = sorted({call.answered_id for call in accepted})
        if len(told) > 1:
            yield Violation("I9", told[0], f"{name}: callers were told {len(told)} different ids: {told}")
        stored = sorted({call.job_id for call in calls} & joined.store.jobs.keys())
        if len(stored) > 1:
            yield Violation("I9", stored[0], f"{name} has {len(stored)} jobs: {stored}")
        if len({call.fingerprint for call in accepted}) > 1:
            yield Violation("I9", told[0], f"{name}: different requests were accepted as the same")
        owner = owners.get((tenant, key))
        if told and owner is not None and owner not in told:
            yield Violation("I9", told[0], f"{name} belongs to {owner} in the store, but callers were told {told}")
