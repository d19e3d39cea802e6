"""Judges a history while it is made: jobs that have come to rest, a part at a time, and the rest when the work is over.

What has been judged is forgotten, but for its id. A job of which more is heard later (a replay, a run that was stopped
and woken) is judged again at the end, from everything that was written about it; so are those that share a key or a
limit, because that is about all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from tests.history.checker import judge
from tests.history.joined import Joined, Rules
from tests.history.leases import extra_runs, overlapping_runs
from tests.history.records import RunEvent, StoreRecord, client_call, run_line
from tests.history.report import Report, Violation
from tests.history.tails import Tails

#: So many looks must find the same fault: one look may see a replay's run before the replay itself.
LOOKS = 3
_CALLS, _RUNS = 0, 1
Lines = tuple[list[bytes], list[bytes]]


class Source(Protocol):
    """Where the store's record comes from."""

    def ids_between(self, after: str, before: str, limit: int) -> list[str]:
        """The next jobs in the order of their ids, which is that of their making."""

    def ended(self, ids: Collection[str]) -> set[str]:
        """Those of them that have ended."""

    def record(self, ids: Sequence[str]) -> StoreRecord:
        """Everything about these jobs, as of one moment."""

    def all_ids(self) -> set[str]:
        """Of all jobs that are there."""


class RunningJudge:
    """`look` again and again; `finish` once nobody writes any more."""

    def __init__(
        self,
        source: Source,
        *,
        client: Path,
        runs: Path,
        chunk: int = 20_000,
        saw: Callable[[Joined], None] = lambda _: None,
    ) -> None:
        """`saw` is shown all that is judged, perhaps more than once, for figures that are no violations."""
        self._source = source
        self._tails = (Tails(client), Tails(runs))
        self._chunk = chunk
        self._saw = saw
        self._lines: defaultdict[str, Lines] = defaultdict(lambda: ([], []))
        self._watermark = ""
        self._open: set[str] = set()
        self._kept: set[str] = set()
        self._judged: set[str] = set()
        self._reopened: set[str] = set()
        self._suspects: Counter[str] = Counter()
        self._extra: dict[str, list[str]] = {}
        self._overlaps: Counter[str] = Counter()
        self._runs = 0
        self.violations: list[Violation] = []

    @property
    def judged(self) -> int:
        return len(self._judged)

    @property
    def seen(self) -> int:
        """Jobs that were there at some look."""
        return len(self._judged) + len(self._open) + len(self._kept)

    @property
    def watermark(self) -> str:
        """The highest id that was looked at; empty before the first."""
        return self._watermark

    def look(self, *, before: str) -> bool:
        """Judge what has ended of the jobs with ids below `before`; whether there may be more at once."""
        fresh = self._source.ids_between(self._watermark, before, self._chunk)
        if fresh:
            self._watermark = fresh[-1]
        self._open.update(fresh)
        ended = sorted(self._source.ended(self._open))[: self._chunk]
        if ended:
            record = self._source.record(ended)
            self._gather()  # after the record was read: what led to an ending had been written down before it
            self._judge_part(record, ended)
        else:
            self._gather()
        return len(fresh) == self._chunk

    def finish(self) -> Report:
        """The judgement on everything."""
        self._gather()
        there = self._source.all_ids()
        ids = sorted((there - self._judged) | self._reopened)
        for job_id in self._reopened:
            del self._lines[job_id]
        for which, tails in enumerate(self._tails):
            for job_id, lines in tails.all_of(self._reopened).items():
                self._lines[job_id][which].extend(lines)
        asked = sorted(self._lines.keys() - set(ids))  # not there, and perhaps something is that should not be
        record = self._source.record([*ids, *asked])
        lost = [Violation("I1", job_id, "is gone since it was judged") for job_id in sorted(self._judged - there)]
        joined = self._joined(record, self._lines, quiescent=True)
        self.violations += [*lost, *judge(joined).violations]
        self._note(joined)
        return Report(
            violations=self.violations,
            jobs=len(there),
            runs=self._runs,
            extra_runs=Counter(cause for causes in self._extra.values() for cause in causes),
            lost=sum(each.invariant == "I1" for each in self.violations),
            unexplained_duplicates=sum(each.invariant == "I5" for each in self.violations),
            stale_writes_accepted=sum(_is_stale_write(each) for each in self.violations),
            overlapping_runs=self._overlaps.total(),
            torn_lines=sum(tails.torn for tails in self._tails),
        )

    def joined_of(self, job_id: str) -> Joined:
        """Everything about one job, to be told to a person."""
        calls, runs = (tails.all_of([job_id])[job_id] for tails in self._tails)
        return self._joined(self._source.record([job_id]), {job_id: (calls, runs)}, quiescent=False)

    def _gather(self) -> None:
        for which, tails in enumerate(self._tails):
            for job_id, line in tails.new():
                self._lines[job_id][which].append(line)
                if which == _RUNS:
                    self._runs += _STARTED in line
                if job_id in self._judged:
                    self._reopened.add(job_id)

    def _judge_part(self, record: StoreRecord, ids: Sequence[str]) -> None:
        mine = {job_id: self._lines[job_id] for job_id in ids if job_id in self._lines}
        joined = self._joined(record, mine, quiescent=False)
        shared = {job_id for job_id, calls in joined.calls.items() if any(call.key for call in calls)}
        shared |= {job_id for job_id, job in record.jobs.items() if job.gates}
        found: dict[str, list[Violation]] = defaultdict(list)
        for violation in judge(joined, partial=True).violations:
            found[violation.job].append(violation)
        self._note(joined)
        self._suspects = Counter({job_id: self._suspects[job_id] + 1 for job_id in found})
        for job_id in ids:
            if self._suspects[job_id] >= LOOKS:
                self.violations += found[job_id]
            elif job_id in found:
                continue  # it stays open
            self._open.discard(job_id)
            if job_id in shared:
                self._kept.add(job_id)
            else:
                self._judged.add(job_id)
                self._lines.pop(job_id, None)

    def _note(self, joined: Joined) -> None:
        for job_id in joined.store.jobs:
            self._overlaps.pop(job_id, None)
        self._extra.update(extra_runs(joined))
        self._overlaps.update(overlapping_runs(joined))
        self._saw(joined)

    @staticmethod
    def _joined(record: StoreRecord, lines: dict[str, Lines], *, quiescent: bool) -> Joined:
        calls = [client_call(line) for each in lines.values() for line in each[_CALLS]]
        runs = [run_line(line) for each in lines.values() for line in each[_RUNS]]
        return Joined.of(calls, runs, record, Rules(quiescent, max_attempts=5, crash_budget=3))


_STARTED = f'"{RunEvent.START}"'.encode()


def _is_stale_write(violation: Violation) -> bool:
    return violation.invariant == "I7" and not violation.sentence.startswith("was claimed")
