"""I5–I8, I10: every run has its claim and its cause, leases do not overlap, tokens fence, budgets hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.history.joined import Joined
from tests.history.records import AuditOp, JobRecord
from tests.history.report import Violation

from holdfast.core.cause import Cause
from holdfast.core.state import State

#: What may stand behind a run that did not end its job.
EXTRA_RUN_CAUSES = frozenset(
    {
        Cause.RETRY,
        Cause.SNOOZE,
        Cause.LEASE_EXPIRED,
        Cause.WORKER_LOST,
        Cause.HANDED_BACK,
        Cause.CLAIM_LOST,
        Cause.REPLAY,
    }
)
#: Said by the task itself, so it must have run.
_BY_THE_TASK = frozenset({Cause.RETRY, Cause.SNOOZE})
_CHARGED = frozenset({Cause.RETRY, Cause.REPLAY, Cause.DEAD})


def extra_runs(joined: Joined) -> dict[str, list[str]]:
    """Runs that did not end their job and have a cause on record: per job, those causes."""
    extra: dict[str, list[str]] = defaultdict(list)
    for job_id, token in joined.starts:
        cause = _cause(joined.store.jobs.get(job_id), token)
        if cause in EXTRA_RUN_CAUSES:
            extra[job_id].append(str(cause))
    return extra


def runs_explained(joined: Joined) -> Iterator[Violation]:
    """I5: a run ends its job, or holds its lease now, or has a cause of its own. No token runs twice.

    With a trail, the same is asked of every claim, also of those that never came to run.
    """
    for (job_id, token), starts in joined.starts.items():
        if len(starts) > 1:
            pids = ", ".join(str(start.pid) for start in starts)
            yield Violation("I5", job_id, f"started {len(starts)} times under token {token} (processes {pids})")
        record = joined.store.jobs.get(job_id)
        if joined.pruned(job_id) or (record and any(place.token == token for place in record.places)):
            continue
        cause = _cause(record, token)
        if cause is None:
            yield Violation("I5", job_id, f"ran under token {token}, but no cause is on record for that run")
        elif cause not in EXTRA_RUN_CAUSES:
            yield Violation("I5", job_id, f"ran under token {token}, which did not end it, with cause {cause!r}")
    for job_id, record in joined.store.jobs.items():
        for move in joined.moves.get(job_id, ()):
            given_up = move.source is State.RUNNING and move.target is not State.SUCCEEDED and move.before
            if given_up and given_up.token is not None and _cause(record, given_up.token) is None:
                sentence = f"left its lease under token {given_up.token} ({move}) without a cause on record"
                yield Violation("I5", job_id, sentence)
        for row in record.attempts:
            if row.cause in _BY_THE_TASK and (job_id, row.token) not in joined.starts:
                yield Violation("I5", job_id, f"has cause {row.cause!r} for token {row.token}, which never ran")
            if any(p.state is State.SUCCEEDED and p.token == row.token for p in record.places):
                yield Violation("I5", job_id, f"succeeded under token {row.token}, which has cause {row.cause!r}")


def leases_disjoint(joined: Joined) -> Iterator[Violation]:
    """I6: a job is never leased twice at a time, nor taken from a worker as expired before it was."""
    held: dict[str, list[int | None]] = defaultdict(list)
    for row in joined.store.audit or ():
        if row.state is not State.RUNNING:
            continue
        if row.op is AuditOp.DELETE:
            if row.token in held[row.job_id]:
                held[row.job_id].remove(row.token)
        else:
            if held[row.job_id]:
                sentence = f"was leased under token {row.token} while leased under {held[row.job_id][-1]}"
                yield Violation("I6", row.job_id, f"{sentence} (audit row {row.n})")
            held[row.job_id].append(row.token)
    for job_id, record in joined.store.jobs.items():
        if sum(place.state is State.RUNNING for place in record.places) > 1:
            yield Violation("I6", job_id, "has more than one lease")
        for run in record.attempts:
            until = joined.store.removed_workers.get(run.worker or "")
            if run.cause == Cause.LEASE_EXPIRED and until is not None and run.ended_at < until:
                early = f"{until - run.ended_at:.3f} s before that worker's lease ended"
                yield Violation("I6", job_id, f"was taken from worker {run.worker} as expired, {early}")
        if joined.store.audit is None:  # the order of the trail is better than a clock, which may be set back
            yield from _recorded_times_disjoint(record)


def tokens_increase(joined: Joined) -> Iterator[Violation]:
    """I7, first half: every claim's token is greater than the one before."""
    for job_id in joined.moves:
        for before, after in pairwise(joined.claims(job_id)):
            if before is None or after is None or after <= before:
                yield Violation("I7", job_id, f"was claimed under token {after} after token {before}")


def stale_writes(joined: Joined) -> Iterator[Violation]:
    """I7, second half: an ending carries the last token, and the lease that it took away was its own."""
    for job_id, record in joined.store.jobs.items():
        last = max(joined.tokens(job_id), default=None)
        for place in record.places:
            if place.token is None:
                if place.state is State.SUCCEEDED:
                    yield Violation("I7", job_id, "succeeded without a token")
            elif last is not None and place.token < last:
                sentence = f"is {place.state} under token {place.token}, though token {last} was given later"
                yield Violation("I7", job_id, f"stale write: {sentence}")
    for job_id, moves in joined.moves.items():
        for move in moves:
            lease, ending = move.before, move.after
            if lease is None or ending is None or lease.state is not State.RUNNING or not move.ends:
                continue
            if ending.token is not None and ending.token != lease.token:
                sentence = f"token {ending.token} ended it as {move.target}, {lease.token} held the lease"
                yield Violation("I7", job_id, f"stale write: {sentence}")
            elif ending.worker is not None and ending.worker != lease.worker:
                sentence = f"worker {ending.worker} ended it as {move.target}, {lease.worker} held the lease"
                yield Violation("I7", job_id, f"stale write: {sentence}")


def budgets(joined: Joined) -> Iterator[Violation]:
    """I8: no more attempts than allowed per chapter, no more crashes than the budget."""
    seen: dict[str, int] = Counter()
    for row in joined.store.audit or ():
        seen[row.job_id] = max(seen[row.job_id], row.crashes or 0)
    for job_id, record in joined.store.jobs.items():
        limit = record.max_attempts or joined.rules.max_attempts
        highest = max([p.attempt for p in record.places] + [r.number for r in record.attempts], default=0)
        attempts = max(highest, _most_charged(record))
        if attempts > limit:
            yield Violation("I8", job_id, f"had {attempts} attempts, {limit} are allowed")
        crashes = max([seen[job_id]] + [place.crashes for place in record.places])
        if crashes > joined.rules.crash_budget:
            yield Violation("I8", job_id, f"crashed {crashes} times, {joined.rules.crash_budget} are allowed")


def overlapping_runs(joined: Joined) -> Counter[str]:
    """Pairs of neighbouring runs of a job that were in user code at once, as far as their ends are known: per job."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for run, starts in joined.starts.items():
        ends = joined.ends.get(run, starts)
        spans[run[0]].append((starts[0].at, ends[-1].at))
    return Counter(
        job_id for job_id, runs in spans.items() for earlier, later in pairwise(sorted(runs)) if later[0] < earlier[1]
    )


def _recorded_times_disjoint(record: JobRecord) -> Iterator[Violation]:
    spans = [(row.token, row.started_at, row.ended_at) for row in record.attempts]
    lost = {row.token for row in record.attempts}
    spans += [
        (place.token, place.started_at, float("inf"))
        for place in record.places
        if place.token is not None and place.token not in lost
    ]
    for (before, _, ended_at), (after, started_at, _) in pairwise(sorted(spans)):
        if started_at < ended_at:
            sentence = f"was leased under token {after} before its lease under {before} was over"
            yield Violation("I6", record.job_id, sentence)


def _cause(record: JobRecord | None, token: int) -> str | None:
    rows = record.attempts if record else ()
    return next((row.cause for row in rows if row.token == token), None)


def _most_charged(record: JobRecord) -> int:
    """The charged runs of the longest chapter; a replay begins a new one."""
    most = charged = 0
    for row in sorted(record.attempts, key=lambda row: row.token):
        charged += row.cause in _CHARGED
        most = max(most, charged)
        if row.cause == Cause.REPLAY:
            charged = 0
    succeeded = any(place.state is State.SUCCEEDED for place in record.places)
    return max(most, charged + succeeded)
