"""The demonstration's picture: a pure function from a snapshot and a size to something that rich can draw."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.cli.columns import attempt
from holdfast.cli.demo.queues_view import queues_table
from holdfast.cli.demo.watching import News, Snapshot
from holdfast.cli.output import printable
from holdfast.core.cause import Cause
from holdfast.core.job import JobInfo

_NARROW = 72
_SPARKS = "▁▂▃▄▅▆▇█"
_MOST_RUNNING = 10
_MOST_LISTED = 3
_LEAST_RUNNING = 4
"""The lists below get lines of their own only when so many are left for running jobs."""


def picture(snapshot: Snapshot, *, width: int, height: int, command: str = "holdfast") -> RenderableType:
    """As many lines of each part as fit into the height. Parts keep their place, so that nothing jumps."""
    narrow = width < _NARROW
    # Besides: heading, tally, the titles of queues and running jobs, the heads of the queues, two lines at the foot.
    left = height - 7 - len(snapshot.queues)
    listed = max(0, min(_MOST_LISTED, (left - _LEAST_RUNNING) // 3 - 1))
    running = max(1, min(_MOST_RUNNING, left - (3 * (listed + 1) if listed else 0)))
    parts: list[RenderableType] = [
        _heading(snapshot, narrow=narrow),
        _tally(snapshot, narrow=narrow),
        _title("Queues"),
        queues_table(snapshot.queues, narrow=narrow),
        _title("Running", len(snapshot.running)),
        _table([_run(job, snapshot.now, narrow=narrow) for job in snapshot.running], running),
    ]
    story = [each for each in snapshot.news if not each.name.startswith("job.")]
    if listed:
        parts += [
            _title("Waiting for a retry", len(snapshot.retrying)),
            _table([_retry(job, snapshot.now, narrow=narrow) for job in snapshot.retrying], listed),
            _title("Dead letters", sum(queue.dead for queue in snapshot.queues)),
            _table([_letter(job, narrow=narrow) for job in snapshot.dead], listed),
            _title(f"Workers: {_workers(snapshot, narrow=narrow)}"),
            _table([_news(each) for each in story[-listed:]], listed),
        ]
    last_line = _news(story[-1])[-1] if story and not listed else _where_else(snapshot, width=width, command=command)
    return Group(*parts, _footer(snapshot), last_line)


def sparkline(numbers: Sequence[int]) -> str:
    """One letter per number, as high as it is among them."""
    highest = max(numbers, default=0) or 1
    return "".join(_SPARKS[round(number / highest * (len(_SPARKS) - 1))] for number in numbers)


# ---------------------------------------------------------------- lines


def _heading(snapshot: Snapshot, *, narrow: bool) -> Table:
    lately = snapshot.per_second[-3:]
    rate = sum(lately) / len(lately) if lately else 0
    minutes, seconds = divmod(int(snapshot.at_s), 60)
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(no_wrap=True, justify="right")
    line.add_row(
        Text.assemble(("Holdfast", "bold cyan"), "" if narrow else " at work", (f"  {minutes}:{seconds:02}", "dim")),
        Text.assemble(
            (sparkline(snapshot.per_second[-(12 if narrow else 40) :]), "green"), (f"  {rate:.0f} jobs/s", "bold green")
        ),
    )
    return line


def _tally(snapshot: Snapshot, *, narrow: bool) -> Text:
    styles = {"enqueued": "bold", "succeeded": "bold green", "retried": "bold yellow", "dead": "bold red"}
    text = _cell("")
    for name, count in snapshot.tally._asdict().items():
        if narrow and name in ("enqueued", "retried"):
            continue
        text.append(f"{count:,}", style=styles.get(name, "bold magenta") if count else "dim")
        text.append(f" {name}" + ("  " if narrow else "    "), style="" if count else "dim")
    return text


def _title(text: str, count: int | None = None) -> Rule:
    return Rule(Text(text if count is None else f"{text}: {count}", style="bold"), align="left", style="dim")


def _footer(snapshot: Snapshot) -> Text:
    if snapshot.draining:
        return _cell("Draining: what runs may end. Ctrl-C again hands it back.", "bold yellow")
    return _cell("Ctrl-C drains and sums up.", "bold")


def _where_else(snapshot: Snapshot, *, width: int, command: str) -> Text:
    """Where to look from another terminal. A command that is cut off cannot be copied: whole, or not at all."""
    look = f"{command} jobs list --url {snapshot.url}"
    ways = (f"In another terminal: {look}", f"Try: {look}", f"Store: {snapshot.url}", "")
    return _cell(next(way for way in ways if len(way) <= width), "dim")


def _workers(snapshot: Snapshot, *, narrow: bool) -> str:
    """How busy they are, those of one process together."""
    loads: dict[int, list[str]] = {}
    for worker in sorted(snapshot.workers, key=lambda each: each.started_at):
        loads.setdefault(worker.pid, []).append(f"{worker.running}/{worker.concurrency}")
    where = "in" if narrow else "in process"
    return ", ".join(f"{' and '.join(each)} {where} {pid}" for pid, each in loads.items()) or "none"


# ---------------------------------------------------------------- rows


def _table(rows: Sequence[Sequence[RenderableType]], lines: int) -> Table:
    """So many lines, whatever there is to show; the last column takes the width that is left."""
    hidden = len(rows) - lines + 1 if len(rows) > lines > 2 else 0
    shown = rows[: lines - 1] if hidden else rows[:lines]
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for place in range(columns := max((len(row) for row in shown), default=1)):
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1 if place == columns - 1 else None)
    for row in shown:
        table.add_row(*row)
    if hidden:
        table.add_row(_cell(f"+ {hidden} more", "dim"))
    for _ in range(lines - table.row_count):
        table.add_row("")
    return table


def _run(job: JobInfo, now: float, *, narrow: bool) -> list[RenderableType]:
    length = 10 if narrow else 24
    fraction = None if job.progress is None else job.progress.fraction
    if fraction is None:
        running_s = 0.0 if job.started_at is None else max(0.0, now - job.started_at.timestamp())
        return [*_who(job, narrow=narrow), _cell(f"{running_s:.1f} s", "dim"), _cell("", ""), _notes(job)]
    bar = ProgressBar(total=1.0, completed=fraction, width=length)
    return [*_who(job, narrow=narrow), bar, _cell(f"{fraction:4.0%}", "cyan"), _notes(job)]


def _notes(job: JobInfo) -> Text:
    """The stage, and what was before this run."""
    text = _cell(printable(job.stage or ""))
    causes = {run.cause for run in job.attempts}
    if Cause.LEASE_EXPIRED in causes:
        text.append("  again: its worker was killed", style="magenta")
    elif Cause.RETRY in causes:
        text.append(f"attempt {attempt(job)}", style="yellow")
    return text


def _retry(job: JobInfo, now: float, *, narrow: bool) -> list[RenderableType]:
    wait_s = 0.0 if job.run_at is None else max(0.0, job.run_at.timestamp() - now)
    return [*_who(job, narrow=narrow), _cell(f"in {wait_s:.1f} s", "yellow"), _cell(attempt(job), "dim"), _error(job)]


def _letter(job: JobInfo, *, narrow: bool) -> list[RenderableType]:
    return [*_who(job, narrow=narrow), _cell(printable(job.reason or ""), "red"), _error(job)]


def _who(job: JobInfo, *, narrow: bool) -> list[RenderableType]:
    return [_cell(f"{printable(job.task):13}"), *([] if narrow else [_cell(str(job.id)[-4:], "dim")])]


def _error(job: JobInfo) -> Text:
    failure = job.error or (job.attempts[-1].error if job.attempts else None)
    return _cell("" if failure is None else printable(failure.message))


def _news(news: News) -> list[RenderableType]:
    return [_cell(f"{news.at_s:3.0f} s", "dim"), _cell(printable(news.sentence))]


def _cell(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
