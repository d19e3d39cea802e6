"""What the demonstration says at its end: what became of every job, as the store has it, and what to try next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.app import Holdfast
from holdfast.core.cause import Cause
from holdfast.core.job import JobInfo
from holdfast.core.shown import counted
from holdfast.core.state import State

_PAGE = 1000
_NEW = "sqlite:///demo.db"
#: Of the causes on record, those after which a job ran once more.
_AGAIN = frozenset(Cause) - {Cause.DEAD, Cause.CANCELLED}


class Summary(NamedTuple):
    """All jobs of the store, counted."""

    seconds: float
    jobs: int
    runs: int
    succeeded: int
    retried: int
    """Jobs that failed at least once and were run again."""
    recovered: int
    """Jobs that ran again because their worker had died."""
    dead: int
    cancelled: int
    waiting: int
    dead_reasons: dict[str, int]
    causes: dict[str, int]
    """Why jobs ran more than once, and how often."""

    def fields(self) -> dict[str, Any]:
        """For `--json`."""
        return {"event": "demo.summary"} | self._asdict()


async def sum_up(hf: Holdfast, *, seconds: float) -> Summary:
    """Count every job and every run that the store has on record."""
    states: Counter[State] = Counter()
    reasons: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    jobs_with: Counter[str] = Counter()
    runs = 0
    page = await hf.jobs.list(limit=_PAGE)
    while page:
        for job in page:
            states[job.state] += 1
            again = [run.cause for run in job.attempts if run.cause in _AGAIN]
            causes.update(again)
            jobs_with.update(set(again))
            runs += len(job.attempts) + (job.state is State.SUCCEEDED)  # a run that succeeds leaves no attempt
            if job.state is State.DEAD:
                reasons[job.reason or ""] += 1
        page = await hf.jobs.list(limit=_PAGE, before=page[-1].id)
    return Summary(
        seconds=round(seconds, 1),
        jobs=states.total(),
        runs=runs,
        succeeded=states[State.SUCCEEDED],
        retried=jobs_with[Cause.RETRY],
        recovered=jobs_with[Cause.LEASE_EXPIRED],
        dead=states[State.DEAD],
        cancelled=states[State.CANCELLED],
        waiting=sum(count for state, count in states.items() if not state.ended),
        dead_reasons=dict(reasons),
        causes=dict(causes),
    )


def summary_lines(summary: Summary, *, enqueued: int) -> Iterator[str]:
    """For people. Fewer jobs than were enqueued means that somebody has purged some: then nothing is claimed."""
    whole = ", none lost" if summary.jobs >= enqueued else ""
    yield f"{counted(summary.jobs, 'job')} in {summary.seconds:g} s, {counted(summary.runs, 'run')}{whole}:"
    yield f"{summary.succeeded:7,} succeeded"
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(summary.dead_reasons.items()))
    yield f"{summary.dead:7,} dead" + (f": {reasons}" if reasons else "")
    if summary.cancelled:
        yield f"{summary.cancelled:7,} cancelled"
    yield f"{summary.waiting:7,} waiting for the next worker"
    yield f"{counted(summary.retried, 'job')} failed and ran again, {summary.recovered} recovered from a killed worker."


def next_lines(command: str, *, url: str | None, letter: JobInfo | None, clone: bool) -> Iterator[str]:
    """What to try next; every line can be copied. `url`: where the jobs stayed, `letter`: a dead `charge` among them.

    `clone`: the demonstration's tasks can be imported from here, so a worker can be started for them.
    """
    tries = [(f"{command} demo --url {_NEW}", "the same, but its jobs stay")] if url is None else []
    tries.append((f"{command} dead list --url {url or _NEW}", "which jobs gave up, and why"))
    if url is not None and letter is not None:
        tries += [
            (f"{command} dead edit {letter.id} {letter.args[0]} 700 --replay --url {url}", "mend one; it runs again"),
            (f"{command} jobs show {letter.id} --url {url}", "all that is known of it"),
        ]
    if url is not None and clone:
        tries.append((f"HOLDFAST_URL={url} {command} worker examples.demo_tasks:hf", "run whatever waits"))
    tries.append((f"{command} --help", "all commands"))
    width = max(len(line) for line, _ in tries)
    yield "What to try next:"
    for line, meaning in tries:
        yield f"  {line:{width}}  # {meaning}"
