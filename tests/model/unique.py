"""Unique keys in the model: who has one, and what becomes of a call that wants it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core.job import JobId, NewJob
from holdfast.core.state import LIVE, State
from holdfast.core.unique import UniqueClaim, WhenTaken
from holdfast.stores.base import Existing, InsertResult, Taken


class Holder(NamedTuple):
    job_id: JobId
    created_at: float
    first_at: float
    """When the first was enqueued of those that were replaced one by the other."""
    expires_at: float | None
    """When its own window is over."""


StateOf = Callable[[JobId], State | None]
HasRun = Callable[[JobId], bool]
"""Whether it waits for another run."""


@dataclass
class Unique:
    """key → who came last with it."""

    holders: dict[str, Holder] = field(default_factory=dict)
    begun: HasRun = lambda _: False
    pruned: dict[JobId, State] = field(default_factory=dict)
    """Who had one when he was pruned, with its window open; how he had ended."""

    def copy(self) -> Unique:
        return Unique(dict(self.holders), self.begun, self.pruned)

    def prune(self, job_id: JobId, state: State, now: float) -> None:
        """It goes; windows of it that are open stay."""
        windows = [each.expires_at for each in self.holders.values() if each.job_id == job_id]
        if any(expires_at is not None and now < expires_at for expires_at in windows):
            self.pruned[job_id] = state

    def counting(self, claim: UniqueClaim, state_of: StateOf, now: float) -> Holder | None:
        holder = self.holders.get(claim.key)
        if holder is None:
            return None
        state = state_of(holder.job_id)
        if state is None and holder.job_id in self.pruned:  # his window is the one that he had
            over = holder.expires_at is None or holder.expires_at <= now or claim.for_s is None
            return None if over or self.pruned[holder.job_id] not in claim.states else holder
        if state not in claim.states:
            return None
        if claim.states == {State.SCHEDULED} and self.begun(holder.job_id):
            return None
        return holder if claim.for_s is None or now < holder.created_at + claim.for_s else None

    def refusal(self, job: NewJob, state_of: StateOf, now: float) -> InsertResult | None:
        if job.unique is None or job.unique.when_taken is WhenTaken.REPLACE:
            return None
        holder = self.counting(job.unique, state_of, now)
        if holder is None:
            return None
        existing = job.unique.when_taken is WhenTaken.EXISTING
        return Existing(holder.job_id) if existing else Taken(holder.job_id)

    def take(
        self, job: NewJob, state_of: StateOf, now: float, has_run: HasRun = lambda _: False
    ) -> tuple[JobId | None, float | None]:
        """Whom it replaces, and when it is due at the latest."""
        assert job.unique is not None
        before = self.counting(job.unique, state_of, now)
        if before is not None and state_of(before.job_id) is None:
            before = None  # nobody is there to be replaced
        waits = before is not None and state_of(before.job_id) in WAITING and not has_run(before.job_id)
        first_at = before.first_at if before is not None and waits else now
        expires_at = None if job.unique.for_s is None else now + job.unique.for_s
        self.holders[job.unique.key] = Holder(job.id, now, first_at, expires_at)
        if before is None:
            return None, None
        longest_s = job.unique.longest_s
        return before.job_id, None if longest_s is None else first_at + longest_s

    def in_the_way(self, job: NewJob, state_of: StateOf, now: float) -> JobId | None:
        """Because of whom a dead job stays dead."""
        holder = None if job.unique is None else self.counting(job.unique, state_of, now)
        return None if holder is None or holder.job_id == job.id else holder.job_id

    def take_again(self, job: NewJob, created_at: float, state_of: StateOf, now: float) -> None:
        """A dead job that is replayed has its key again, unless its window is over."""
        if job.unique is None:
            return
        holder = self.holders.get(job.unique.key)
        if holder is not None and holder.job_id != job.id and state_of(holder.job_id) in LIVE:
            return
        expires_at = None if job.unique.for_s is None else created_at + job.unique.for_s
        if expires_at is None or now < expires_at:
            kept = holder is not None and holder.job_id == job.id
            first_at = holder.first_at if holder is not None and kept else now
            self.holders[job.unique.key] = Holder(job.id, created_at, first_at, expires_at)

    def drop(self, state_of: StateOf, now: float) -> tuple[int, int]:
        """Those whose window is over, and those of jobs that are no more, which may have gone with them; how many."""
        there = {
            key: each
            for key, each in self.holders.items()
            if state_of(each.job_id) is not None or each.job_id in self.pruned
        }
        kept = {key: each for key, each in there.items() if each.expires_at is None or now < each.expires_at}
        dropped = len(there) - len(kept), len(self.holders) - len(there)
        self.holders = kept
        return dropped


WAITING = {State.READY, State.SCHEDULED, State.BLOCKED, State.PARKED}
