"""The judge: joins the three histories and says which invariants they break. Reads no file."""

from __future__ import annotations

from collections import Counter

from tests.history import accepted, endings, leases
from tests.history.joined import Joined, Rules
from tests.history.records import ClientCall, History, RunLine, StoreRecord
from tests.history.report import Report

_OTHERS = (
    accepted.no_invention,
    accepted.one_job_per_key,
    endings.one_ending,
    endings.success_had_effect,
    endings.allowed_moves,
    endings.convergence,
    endings.counters,
    leases.leases_disjoint,
    leases.tokens_increase,
    leases.budgets,
    leases.limits,
)


def check(
    client: History[ClientCall],
    runs: History[RunLine],
    store: StoreRecord,
    *,
    quiescent: bool = True,
    max_attempts: int = 5,
    crash_budget: int = 3,
) -> Report:
    """Judge a whole history.

    `quiescent`: the work is over, so nothing may be left that could run now. `max_attempts`: the limit of
    jobs that do not carry their own.
    """
    joined = Joined.of(client.lines, runs.lines, store, Rules(quiescent, max_attempts, crash_budget))
    lost = list(accepted.no_loss(joined))
    unexplained = list(leases.runs_explained(joined))
    stale = list(leases.stale_writes(joined))
    others = [violation for invariant in _OTHERS for violation in invariant(joined)]
    return Report(
        violations=[*lost, *unexplained, *stale, *others],
        jobs=len(store.jobs),
        states=Counter(str(place.state) for record in store.jobs.values() for place in record.places),
        runs=sum(len(starts) for starts in joined.starts.values()),
        extra_runs=leases.extra_runs(joined),
        lost=len(lost),
        unexplained_duplicates=len(unexplained),
        stale_writes_accepted=len(stale),
        overlapping_runs=leases.overlapping_runs(joined),
        torn_lines=client.torn + runs.torn,
    )
