"""Follows jobs to their end: bars on a terminal, a line per change in a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from holdfast.app import Holdfast
from holdfast.cli.columns import progress
from holdfast.cli.exits import Exit
from holdfast.cli.output import Output, printable
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State

Notice = Callable[[JobInfo], None]


async def follow(
    hf: Holdfast,
    job_ids: Sequence[JobId | str],
    out: Output,
    *,
    app: str | None,
    timeout_s: float | None,
    lines: bool,
) -> list[JobInfo]:
    """The jobs, once all have ended; TimeoutError if they have not in time. `lines`: tell changes on the output."""
    # First, so that a wrong one is told at once, not beside the bars of the others.
    jobs = [await hf.jobs.get(job_id) for job_id in job_ids]
    if not out.as_json and not all(job.state.ended for job in jobs) and not await hf.workers.list():
        out.note(f"note: no worker is running: `holdfast worker {app or 'MODULE:APP'}` starts one")
    with _noticing(out, lines=lines) as notice:
        try:
            async with asyncio.timeout(timeout_s):
                return list(await asyncio.gather(*(_watched(hf, job_id, notice) for job_id in job_ids)))
        except TimeoutError:
            what = f"job {job_ids[0]} has" if len(job_ids) == 1 else f"not all of the {len(job_ids)} jobs have"
            raise TimeoutError(f"{what} {'not ' if len(job_ids) == 1 else ''}ended within {timeout_s:g} s") from None


def ending(jobs: Sequence[JobInfo]) -> Exit:
    """The exit code for jobs that were awaited."""
    return Exit.OK if all(job.state is State.SUCCEEDED for job in jobs) else Exit.FAILED


async def _watched(hf: Holdfast, job_id: JobId | str, notice: Notice) -> JobInfo:
    async with contextlib.aclosing(hf.jobs.watch(job_id)) as changes:  # type: ignore[type-var]  # a generator it is
        async for info in changes:
            notice(info)
    return info


@contextlib.contextmanager
def _noticing(out: Output, *, lines: bool) -> Iterator[Notice]:
    if sys.stderr.isatty() and (out.terminal or not lines):
        with _bars() as notice:
            yield notice
    elif lines and not out.as_json:
        yield lambda info: out.line(info.id, info.state.value, progress(info), info.stage)
    else:
        yield lambda info: None


@contextlib.contextmanager
def _bars() -> Iterator[Notice]:
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as bars:
        rows: dict[JobId, object] = {}

        def notice(info: JobInfo) -> None:
            stage = f" {printable(info.stage)}" if info.stage else ""
            text = escape(f"{info.task} {info.state}{stage}")
            if info.id not in rows:
                rows[info.id] = bars.add_task(text, total=None)
            done, total = (info.progress.done, info.progress.total) if info.progress else (0.0, None)
            bars.update(rows[info.id], description=text, completed=done, total=total)  # type: ignore[arg-type]  # rich takes None for "unknown"

        yield notice
