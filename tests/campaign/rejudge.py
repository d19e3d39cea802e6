"""`python -m tests.campaign.rejudge <directory>`: judge a campaign that is at rest again, from its files and its store.

By the same invariants as the judge that looked on, but all at once and in several processes: each takes the jobs whose
ids fall to it. What is about several jobs (keys, counters) is judged over those that have a key, or live.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tests.campaign.sources import StoreSource
from tests.campaign.where import Where
from tests.history.checker import judge
from tests.history.joined import Joined, Rules
from tests.history.leases import extra_runs, overlapping_runs
from tests.history.records import client_call, run_line
from tests.history.tails import Tails

PROCESSES = 6
_CHUNK = 10_000


class Part(NamedTuple):
    """What one process found."""

    jobs: int
    runs: int
    calls: int
    extra: Counter[str]
    overlaps: int
    violations: list[str]


def judge_part(directory: Path, part: int, parts: int) -> Part:
    """Judge the jobs that fall to this process."""
    gc.disable()
    source = StoreSource(Where.of(directory))
    mine = lambda job_id: UUID(job_id).int % parts == part  # noqa: E731
    lines: defaultdict[str, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for which, name in enumerate(("client", "runs")):
        for job_id, line in Tails(directory / name).new():
            if mine(job_id):
                lines[job_id][which].append(line)
    there = {job_id for job_id in source.all_ids() if mine(job_id)}
    ids = sorted(there | lines.keys())
    found = Part(len(there), 0, 0, Counter(), 0, [])
    for at in range(0, len(ids), _CHUNK):
        some = ids[at : at + _CHUNK]
        calls = [client_call(line) for job_id in some for line in lines[job_id][0]]
        runs = [run_line(line) for job_id in some for line in lines[job_id][1]]
        # Whoever was told of another job's id is judged with all that have a key.
        own = [call for call in calls if call.answered_id == call.job_id]
        joined = Joined.of(own, runs, source.record(some), Rules(True, max_attempts=5, crash_budget=3))
        report = judge(joined, partial=True)
        found = Part(
            found.jobs,
            found.runs + report.runs,
            found.calls + len(calls),
            found.extra + Counter(cause for causes in extra_runs(joined).values() for cause in causes),
            found.overlaps + overlapping_runs(joined).total(),
            found.violations + [str(violation) for violation in report.violations],
        )
    return found


def judge_together(directory: Path) -> list[str]:
    """What is about several jobs: keys, and the counters of depth."""
    source = StoreSource(Where.of(directory))
    lines = (line for _, line in Tails(directory / "client").new() if b'"key-' in line)
    calls = [client_call(line) for line in lines]
    ids = sorted({call.answered_id for call in calls} | {call.job_id for call in calls})
    record = source.record(ids)
    joined = Joined.of(calls, [], record, Rules(True, max_attempts=5, crash_budget=3))
    named = ("I1", "I2", "I9", "I15")
    return [str(violation) for violation in judge(joined).violations if violation.invariant in named]


def main(directory: str) -> int:
    place = Path(directory)
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES) as pool:
        together = pool.apply_async(judge_together, (place,))
        parts = pool.starmap(judge_part, [(place, n, PROCESSES) for n in range(PROCESSES)])
        violations = [*together.get(), *(each for part in parts for each in part.violations)]
    source = StoreSource(Where.of(place))
    figures = {
        "jobs": sum(part.jobs for part in parts),
        "runs": sum(part.runs for part in parts),
        "calls": sum(part.calls for part in parts),
        "states": source.states(),
        "extra_runs_by_cause": dict(sum((part.extra for part in parts), Counter())),
        "causes_on_record": source.grouped("SELECT cause, count(*) FROM attempt GROUP BY cause"),
        "overlapping_runs": sum(part.overlaps for part in parts),
        "violations": violations,
    }
    print(json.dumps(figures, indent=1))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
