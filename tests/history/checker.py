"""The judge: joins the three histories and says which invariants they break. Reads no file."""

from __future__ import annotations

from collections import Counter

from tests.history import accepted, endings, gates, leases, transactions
from tests.history.joined import Joined, Rules
from tests.history.records import ClientCall, History, RunLine, StoreRecord
from tests.history.report import Report

_OTHERS = (
    accepted.no_invention,
    endings.one_ending,
    endings.success_had_effect,
    endings.allowed_moves,
    endings.convergence,
    leases.leases_disjoint,
    leases.tokens_increase,
    leases.budgets,
    transactions.effect_with_success,
    transactions.job_with_order,
)
#: What is about several jobs at once.
_TOGETHER = (accepted.one_job_per_key, endings.counters, gates.limits, gates.rates)


def check(
    client: History[ClientCall],
    runs: History[RunLine],
    store: StoreRecord,
    *,
    quiescent: bool = True,
    partial: bool = False,
    max_attempts: int = 5,
    crash_budget: int = 3,
) -> Report:
    """Judge a whole history.

    `quiescent`: the work is over, so nothing may be left that could run now. `partial`: these are some of the jobs,
    each with its whole history, so what is about all of them is left out. `max_attempts`: the limit of jobs that do
    not carry their own.
    """
    rules = Rules(quiescent, max_attempts, crash_budget)
    joined = Joined.of(client.lines, runs.lines, store, rules)
    return judge(joined, partial=partial, torn=client.torn + runs.torn)


def judge(joined: Joined, *, partial: bool = False, torn: int = 0) -> Report:
    """The same for histories that are side by side already."""
    jobs = joined.store.jobs
    lost = list(accepted.no_loss(joined))
    unexplained = list(leases.runs_explained(joined))
    stale = list(leases.stale_writes(joined))
    invariants = (*_OTHERS, *(() if partial else _TOGETHER))
    others = [violation for invariant in invariants for violation in invariant(joined)]
    return Report(
        violations=[*lost, *unexplained, *stale, *others],
        jobs=len(jobs),
        states=Counter(str(place.state) for record in jobs.values() for place in record.places),
        runs=sum(len(starts) for starts in joined.starts.values()),
        extra_runs=Counter(cause for causes in leases.extra_runs(joined).values() for cause in causes),
        lost=len(lost),
        unexplained_duplicates=len(unexplained),
        stale_writes_accepted=len(stale),
        overlapping_runs=leases.overlapping_runs(joined).total(),
        torn_lines=torn,
    )
