"""How snapshots reach the user: a live picture on a terminal, lines in a pipe, JSON when asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.live import Live

from holdfast.cli.columns import progress
from holdfast.cli.demo.view import picture
from holdfast.cli.demo.watching import News, Snapshot
from holdfast.cli.output import Output, printable


class Present(Protocol):
    """Shows a snapshot; called several times per second."""

    def __call__(self, snapshot: Snapshot, /) -> None: ...


@contextlib.contextmanager
def presenting(out: Output, *, command: str) -> Iterator[Present]:
    """Whatever suits the output."""
    console = Console()
    # Where the picture's letters cannot be shown, or the cursor cannot be moved, lines are better.
    if not out.terminal or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        yield Lines(out)
        return
    # The other screen: nothing scrolls, a change of the window's size leaves no remains, and it is gone at the end.
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def present(snapshot: Snapshot) -> None:
            width, height = console.size
            live.update(picture(snapshot, width=width, height=height, command=command), refresh=True)

        yield present


class Lines:
    """A line for each piece of news, and one for every second."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._last = 0
        self._second = 0

    def __call__(self, snapshot: Snapshot, /) -> None:
        for news in snapshot.news:
            if news.number > self._last:
                self._last = news.number
                self._say(news)
        if int(snapshot.at_s) > self._second:
            self._second = int(snapshot.at_s)
            self._say_second(snapshot)

    def _say(self, news: News) -> None:
        if self._out.as_json:
            said = {"at_s": round(news.at_s, 3), "event": news.name, "text": news.sentence, **news.fields}
            self._out.document(said, indent=None)
        else:
            self._out.line(f"{news.at_s:6.1f} s  {printable(news.sentence)}")

    def _say_second(self, snapshot: Snapshot) -> None:
        rate = snapshot.per_second[-1] if snapshot.per_second else 0
        counts = snapshot_counts(snapshot)
        if self._out.as_json:
            second = {"at_s": round(snapshot.at_s, 3), "event": "demo.second", "per_second": rate, **counts}
            self._out.document(second, indent=None)
        else:
            parts = [f"{count:,} {name}" for name, count in counts.items() if count]
            said = f"{snapshot.at_s:6.1f} s  {rate} jobs/s; {', '.join(parts)}"
            if bars := [f"{job.task} {progress(job)}" for job in snapshot.running if job.progress is not None]:
                said += f"; {printable(', '.join(bars))}"
            self._out.line(said)


def snapshot_counts(snapshot: Snapshot) -> dict[str, int]:
    """How many so far, and how many now."""
    now = {
        "ready": sum(queue.ready for queue in snapshot.queues),
        "running": sum(queue.running for queue in snapshot.queues),
        "scheduled": sum(queue.scheduled for queue in snapshot.queues),
    }
    return snapshot.tally._asdict() | now
